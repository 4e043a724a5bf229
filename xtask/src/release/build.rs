//! The binary of a release: the same bytes from every checkout and target folder.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::root;

pub const PROFILE: &str = "dist";
pub const FEATURES: &str = "full";

/// Builds `tutti`, and answers with its path.
pub fn tutti() -> anyhow::Result<PathBuf> {
    let target = target_folder()?;
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root())
        .args(["build", "--locked", "--package", "tutti", "--bin", "tutti"])
        .args(["--profile", PROFILE, "--features", FEATURES])
        .arg("--target-dir")
        .arg(&target)
        .envs(variables(root(), &cargo_home()?, &target));
    let status = command.status().context("failed to start cargo")?;
    if !status.success() {
        bail!("the build of tutti ended with {status}");
    }
    Ok(target.join(PROFILE).join("tutti"))
}

/// No path of the machine, no time of day and no library of the machine (but those of every Debian) gets into the binary.
fn variables(root: &Path, cargo_home: &Path, target: &Path) -> [(&'static str, String); 7] {
    let map = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // Of several that fit the last one counts, and the target folder may be inside the checkout.
    let flags = [map(root, "/source"), map(cargo_home, "/cargo"), map(target, "/target")];
    [
        ("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")),
        ("CARGO_INCREMENTAL", "0".to_owned()),
        // zlib's own source, whether the machine has the library or not.
        ("LIBZ_SYS_STATIC", "1".to_owned()),
        // OpenSSL, which libgit2 has: when it was built, and where it looks for certificates, engines and modules. The
        // last two would be in the target folder, where its build puts itself.
        ("SOURCE_DATE_EPOCH", "1".to_owned()),
        ("OPENSSL_CONFIG_DIR", "/etc/ssl".to_owned()),
        ("GNUMAKEFLAGS", "ENGINESDIR=/usr/lib/ssl/engines-3 MODULESDIR=/usr/lib/ssl/ossl-modules".to_owned()),
        // Flags of whoever builds would make it another binary.
        ("CFLAGS", String::new()),
    ]
}

fn cargo_home() -> anyhow::Result<PathBuf> {
    let named = env::var_os("CARGO_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    named
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set: cargo's folder is not known")
}

fn target_folder() -> anyhow::Result<PathBuf> {
    let metadata = json(cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]))?;
    metadata["target_directory"].as_str().map(PathBuf::from).context("cargo metadata names no target folder")
}

/// Cargo, in the checkout.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(arguments);
    command
}

/// The standard output of a program; an error contains its standard error.
pub fn text(mut command: Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("failed to start {name}"))?;
    if !output.status.success() {
        let arguments: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} {} ended with {}: {}", arguments.join(" "), output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {name} is not text"))
}

pub fn json(command: Command) -> anyhow::Result<Value> {
    let name = command.get_program().to_string_lossy().into_owned();
    serde_json::from_str(&text(command)?).with_context(|| format!("the output of {name} is not JSON"))
}

pub fn version_of(binary: &Path) -> anyhow::Result<String> {
    let mut command = Command::new(std::path::absolute(binary)?);
    command.arg("--version");
    let said = text(command)?;
    let version = said.trim().strip_prefix("tutti ");
    version
        .map(str::to_owned)
        .with_context(|| format!("{} is not tutti: its version is {said:?}", binary.display()))
}

/// The target triple of this machine's compiler.
pub fn target() -> anyhow::Result<String> {
    let mut command = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.arg("-vV");
    let said = text(command)?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc -vV names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_that_are_mapped_name_the_machine() {
        let variables = variables(Path::new("/a/tutti"), Path::new("/a/.cargo"), Path::new("/t"));
        let with_paths: Vec<_> = variables.iter().filter(|(_, value)| value.contains("/a/")).collect();
        assert_eq!(with_paths.len(), 1);
        assert_eq!(
            with_paths[0].1.split('\u{1f}').collect::<Vec<_>>(),
            [
                "--remap-path-prefix=/a/tutti=/source",
                "--remap-path-prefix=/a/.cargo=/cargo",
                "--remap-path-prefix=/t=/target",
            ]
        );
    }
}
