//! `tutti init --install`: adds tutti itself as an app, from the manifests in `deploy/`.

use std::collections::BTreeMap;

use anyhow::bail;
use include_dir::{Dir, include_dir};

use super::arguments::NewClusterArgs;
use super::texts;
use crate::fleet::Fleet;
use crate::model::Connection;

static MANIFESTS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/deploy");

/// Placeholders in the manifests, for the repository's URL and its credentials.
const PLACEHOLDER_URL: &str = "\"https://git.example.com/platform/config.git\"";
const TOKEN_CREDENTIALS: &str = "{token: {file: /etc/tutti/secrets/token}}";
const SSH_CREDENTIALS: &str =
    "{sshKey: /etc/tutti/secrets/ssh-key, knownHosts: /etc/tutti/secrets/known-hosts}";

#[derive(Debug)]
pub struct RepositoryAddress {
    url: String,
    is_ssh: bool,
}

impl RepositoryAddress {
    pub fn of(url: &str) -> anyhow::Result<Self> {
        let is_ssh = match reqwest::Url::parse(url) {
            Ok(parsed) if parsed.password().is_some() => {
                bail!(
                    "--install: the address holds a password, and the repository would hold it too: leave it out"
                )
            }
            Ok(parsed) => match parsed.scheme() {
                "https" | "http" if parsed.username().is_empty() => false,
                "https" | "http" => {
                    bail!(
                        "--install: the address holds a user or token, and the repository would hold it too: leave it out"
                    )
                }
                "ssh" => true,
                _ => bail!("--install {url}: expected https://…, ssh://… or user@host:path"),
            },
            Err(_) if is_scp(url) => true,
            Err(_) => bail!("--install {url}: expected https://…, ssh://… or user@host:path"),
        };
        Ok(Self { url: url.to_owned(), is_ssh })
    }

    pub fn next_steps(&self, folder: &str, cluster: &str) -> String {
        let keys = match self.is_ssh {
            true => "ssh-key=FILE --from-file=known-hosts=FILE",
            false => "token=FILE",
        };
        format!(
            "next: commit and push; then, with the rights of an administrator of the home cluster:\n  \
             kubectl apply -f {folder}/apps/tutti/objects/\n  \
             kubectl -n tutti-system create secret generic tutti --from-file={keys} --from-file=hook=FILE\n  \
             tutti cluster rbac {cluster} --repo {folder} --service-account tutti-system/tutti | kubectl apply -f -\n  \
             kubectl -n tutti-system logs -f deployment/tutti"
        )
    }
}

/// `user@host:path`.
fn is_scp(url: &str) -> bool {
    let parts = url.split_once('@').and_then(|(user, rest)| Some((user, rest.split_once(':')?)));
    parts.is_some_and(|(user, (host, path))| {
        !user.is_empty() && !host.is_empty() && !path.is_empty() && !url.contains(char::is_whitespace)
    })
}

/// The existing Cluster file with `inCluster`.
pub fn home_cluster(fleet: &Fleet) -> Option<&str> {
    let mut clusters = fleet.clusters.values();
    clusters.find(|cluster| cluster.connection == Connection::InCluster).map(|cluster| cluster.name.as_str())
}

/// Files of the app, and of its cluster unless it exists.
pub fn install_files(address: &RepositoryAddress, home: Option<&str>) -> BTreeMap<String, String> {
    let mut made = BTreeMap::new();
    if home.is_none() {
        let cluster = NewClusterArgs { name: NAME.to_owned(), in_cluster: true, ..NewClusterArgs::default() };
        made.insert(format!("clusters/{NAME}.yaml"), texts::cluster(&cluster, &BTreeMap::new()));
    }
    made.insert("apps/tutti/app.yaml".to_owned(), texts::installation(home.unwrap_or(NAME)));
    // Monitoring is in a subfolder: it needs definitions that a cluster may lack.
    for file in MANIFESTS.files() {
        let name = file.path().display();
        let text = file.contents_utf8().unwrap_or_default();
        made.insert(format!("apps/tutti/objects/{name}"), installed_manifest(text, address));
    }
    made
}

/// Name of a new Cluster file for the home cluster.
pub const NAME: &str = "home";

/// A manifest of `deploy/` without its first line, with URL and credentials.
fn installed_manifest(text: &str, address: &RepositoryAddress) -> String {
    let text = text.split_once('\n').map_or(text, |(_, rest)| rest);
    let text = text.replace(PLACEHOLDER_URL, &serde_json::Value::from(address.url.as_str()).to_string());
    if address.is_ssh { text.replace(TOKEN_CREDENTIALS, SSH_CREDENTIALS) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_get_url_and_credentials() {
        let check = |url: &str, expected: &str| {
            let made = install_files(&RepositoryAddress::of(url).expect("an address"), None);
            let text = &made["apps/tutti/objects/configmap.yaml"];
            assert!(text.contains(&format!("url: \"{url}\"\n")), "{text}");
            assert!(text.contains(&format!("credentials: {expected}\n")), "{text}");
            assert!(!text.contains("git.example.com"), "{text}");
        };
        check("https://gitea.corp/platform/config.git", TOKEN_CREDENTIALS);
        check("ssh://git@gitea.corp:2222/platform/config.git", SSH_CREDENTIALS);
        check("git@gitea.corp:platform/config.git", SSH_CREDENTIALS);
    }

    #[test]
    fn unusable_urls_are_refused() {
        let check = |url: &str, words: &str| {
            let error = RepositoryAddress::of(url).expect_err("no address").to_string();
            assert!(error.contains(words), "{url}: {error}");
            assert!(!error.contains("s3cr3t"), "{error}");
        };
        check("https://li:s3cr3t@gitea.corp/a/b.git", "holds a password");
        check("https://s3cr3t@gitea.corp/a/b.git", "holds a user or token");
        check("/srv/config", "expected https://…, ssh://… or user@host:path");
        check("file:///srv/config", "expected https://…");
        check(".", "expected https://…");
    }

    #[test]
    fn monitoring_manifests_are_left_out() {
        let address = RepositoryAddress::of("https://gitea.corp/a/b.git").expect("an address");
        let made = install_files(&address, None);
        for name in
            ["00-namespace", "configmap", "deployment", "role", "rolebinding", "service", "serviceaccount"]
        {
            let text = &made[&format!("apps/tutti/objects/{name}.yaml")];
            assert!(!text.contains("cargo xtask"), "{text}");
        }
        assert!(made.keys().all(|path| !path.contains("monitoring")), "{:?}", made.keys());
        assert!(made.contains_key("clusters/home.yaml"));
        let made = install_files(&address, Some("mgmt"));
        assert!(!made.keys().any(|path| path.starts_with("clusters/")));
        assert!(made["apps/tutti/app.yaml"].contains("names: [mgmt]"));
    }
}
