//! What the operator allows the config repository to use. Whoever may push to the repository can use nothing else of this
//! process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::secrets::{self, SecretError};
use crate::cluster::{HomeCluster, KeyObjectKind};
use crate::forge::ForgeHostRules;
use crate::model::{Hosts, SecretRef};

/// Prefix of environment variables that the repository may use.
const VARIABLE_PREFIX: &str = "TUTTI_SECRET_";
/// Limit of a secret file, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// What the repository may refer to. The default is minimal: variables with [`VARIABLE_PREFIX`], no files, no forge on another host.
#[derive(Clone, Debug, Default)]
pub struct RepositoryGrants {
    /// Names of further variables.
    pub variables: BTreeSet<String>,
    /// The folder of the files that it may name.
    pub folder: Option<PathBuf>,
    /// Hosts that its forge may have.
    pub forge: ForgeHostRules,
    /// Hosts that analyses may reach without TLS.
    pub allow_http: Hosts,
    /// Hosts that analyses may reach with a credential, or on a private address.
    pub analysis_hosts: Hosts,
}

impl RepositoryGrants {
    /// The value behind a reference of the repository. `home` decides which namespaces of the home cluster are open.
    pub async fn resolve(
        &self,
        reference: &SecretRef,
        home: &HomeCluster,
    ) -> Result<SecretString, SecretError> {
        match reference {
            SecretRef::Env(name) => {
                if !name.starts_with(VARIABLE_PREFIX) && !self.variables.contains(name) {
                    return Err(SecretError::Withheld {
                        what: format!("environment variable {name}"),
                        flag: format!(
                            "--secret-env {name}, or give it a name that begins with {VARIABLE_PREFIX}"
                        ),
                    });
                }
                secrets::read_variable(name)
            }
            SecretRef::File(path) => {
                let (folder, named) = (self.folder.clone(), path.clone());
                // A network share may be slow.
                let read =
                    tokio::task::spawn_blocking(move || read_secret_file(folder.as_deref(), &named)).await;
                read.unwrap_or_else(|error| Err(unreadable(path, io::Error::other(error))))
            }
            SecretRef::Secret(at) => {
                let value = home.read(KeyObjectKind::Secret, at).await?;
                secrets::non_empty_secret(value.expose_secret(), format!("Secret {at}"))
            }
        }
    }
}

/// Reads a regular file below the folder. A link may point to another place below it, as in a volume of a Secret.
fn read_secret_file(folder: Option<&Path>, path: &str) -> Result<SecretString, SecretError> {
    let withheld = || SecretError::Withheld {
        what: format!("file {path}"),
        flag: "--secrets DIR, the folder that it is in".to_owned(),
    };
    let Some(folder) = folder else { return Err(withheld()) };
    let unreadable = |problem| unreadable(path, problem);
    let named = folder.join(path);
    // The error must not show whether a file outside the folder exists.
    if !named.starts_with(folder) || named.components().any(|part| part == Component::ParentDir) {
        return Err(withheld());
    }
    let (folder, real) =
        (folder.canonicalize().map_err(unreadable)?, named.canonicalize().map_err(unreadable)?);
    if !real.starts_with(folder) {
        return Err(withheld());
    }
    // Checked before the open, because a FIFO blocks until it has a writer.
    if !real.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    let mut text = String::new();
    let opened = File::open(&real).map_err(unreadable)?;
    opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes"))));
    }
    secrets::non_empty_secret(&text, path.to_owned())
}

fn unreadable(path: &str, problem: io::Error) -> SecretError {
    SecretError::File { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    async fn check(grants: &RepositoryGrants, reference: SecretRef, expected: Result<&str, &str>) {
        let found = grants.resolve(&reference, &HomeCluster::default()).await;
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.expose_secret(), expected, "{reference:?}"),
            (Err(found), Err(expected)) => {
                assert!(found.to_string().contains(expected), "{reference:?}: {found}");
            }
            (found, _) => panic!("{reference:?}: {found:?}"),
        }
    }

    #[tokio::test]
    async fn variables_need_prefix_or_flag() {
        let env = |name: &str| SecretRef::Env(name.to_owned());
        let mut grants = RepositoryGrants::default();
        check(&grants, env("PATH"), Err("--secret-env PATH")).await;
        check(&grants, env("TUTTI_SECRET_OF_NOBODY"), Err("it is not set")).await;
        grants.variables.insert("PATH".to_owned());
        check(&grants, env("PATH"), Ok(&std::env::var("PATH").expect("a path"))).await;
        check(&grants, env("HOME"), Err("--secret-env HOME")).await;
    }

    #[tokio::test]
    async fn secret_files_are_regular_small_and_in_folder() {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("secrets");
        std::fs::create_dir_all(folder.join("..data")).expect("a folder");
        let write = |name: &str, size: u64| {
            std::fs::write(folder.join(name), "x".repeat(size as usize)).expect("a file");
        };
        write("..data/token", 3);
        write("large", MAX_FILE_BYTES + 1);
        write("largest", MAX_FILE_BYTES);
        std::fs::write(outer.path().join("other"), "other").expect("a file");
        // The layout of a Secret volume, as the kubelet writes it.
        symlink("..data/token", folder.join("token")).expect("a link");
        symlink("../other", folder.join("out")).expect("a link");
        symlink("/dev/zero", folder.join("zero")).expect("a link");
        symlink("/proc/self/environ", folder.join("environ")).expect("a link");
        assert!(Command::new("mkfifo").arg(folder.join("fifo")).status().expect("mkfifo").success());
        let of = |path: &str| SecretRef::File(path.to_owned());
        let absolute = folder.join("token").display().to_string();
        check(&RepositoryGrants::default(), of(&absolute), Err("--secrets DIR")).await;
        let grants = RepositoryGrants { folder: Some(folder.clone()), ..RepositoryGrants::default() };
        check(&grants, of("token"), Ok("xxx")).await;
        check(&grants, of(&absolute), Ok("xxx")).await;
        check(&grants, of("largest"), Ok(&"x".repeat(MAX_FILE_BYTES as usize))).await;
        check(&grants, of("large"), Err("more than 65536 bytes")).await;
        check(&grants, of("fifo"), Err("not a regular file")).await;
        check(&grants, of("..data"), Err("not a regular file")).await;
        check(&grants, of("absent"), Err("No such file")).await;
        for path in [
            "out",
            "zero",
            "environ",
            "../other",
            "/dev/zero",
            "/etc/passwd",
            "/etc/absent",
            "token/../../other",
        ] {
            check(&grants, of(path), Err("--secrets DIR")).await;
        }
    }
}
