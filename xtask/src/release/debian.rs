//! Packages of Debian: pinned, fetched by apt, checked, and read without being installed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};

use super::file_tree::FileContent;
use super::{build, read, root, sha256, write};

const PINS: &str = "xtask/src/release/packages.txt";
const UPDATE: &str = "`apt-get update` tells apt of what the mirror has; `cargo xtask image --update-pins` then pins the newest, \
                      and the diff of xtask/src/release/packages.txt is the change to look at";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackagePin {
    pub name: String,
    pub version: String,
    pub architecture: String,
    pub sha256: String,
}

/// The content of a package, by path from the root.
#[derive(Debug)]
pub struct DebianPackage {
    pub pin: PackagePin,
    /// Its record, as dpkg keeps it.
    pub control: String,
    pub files: BTreeMap<String, (u32, FileContent)>,
}

pub fn packages(architecture: &str) -> anyhow::Result<Vec<DebianPackage>> {
    let pins: Vec<PackagePin> = pins()?.into_iter().filter(|pin| pin.architecture == architecture).collect();
    if pins.is_empty() {
        bail!(
            "{PINS} has no packages for {architecture}\n  help: on a machine of this architecture, {UPDATE}"
        );
    }
    let cache = live::cache_folder()?.join("debian");
    fs::create_dir_all(&cache).with_context(|| format!("failed to create {}", cache.display()))?;
    pins.into_iter().map(|pin| unpack(&fetch(&pin, &cache)?, pin)).collect()
}

fn pins() -> anyhow::Result<Vec<PackagePin>> {
    parse(&fs::read_to_string(root().join(PINS)).with_context(|| format!("failed to read {PINS}"))?)
}

fn parse(text: &str) -> anyhow::Result<Vec<PackagePin>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(at, line)| match line.split(' ').collect::<Vec<_>>().as_slice() {
            &[name, version, architecture, sha256] if sha256.len() == 64 => {
                let [name, version, architecture, sha256] =
                    [name, version, architecture, sha256].map(str::to_owned);
                Ok(PackagePin { name, version, architecture, sha256 })
            }
            _ => bail!("{PINS}:{}: expected NAME VERSION ARCHITECTURE SHA256, found {line:?}", at + 1),
        })
        .collect()
}

/// The package's file, from the cache or the mirror. Its name in the cache is what it is checked by.
fn fetch(pin: &PackagePin, cache: &Path) -> anyhow::Result<PathBuf> {
    let kept = cache.join(format!("{}.deb", pin.sha256));
    if kept.is_file() && sha256(&read(&kept)?) == pin.sha256 {
        return Ok(kept);
    }
    let wanted = format!("{}={}", pin.name, pin.version);
    let folder = tempfile::tempdir_in(cache).context("failed to create a folder for a download")?;
    let mut command = Command::new("apt-get");
    command.current_dir(&folder).args(["download", "-qq", &wanted]);
    build::text(command).map_err(|error| {
        anyhow!(
            "apt does not get {wanted}, which {PINS} pins: {error:#}
  help: {UPDATE}"
        )
    })?;
    let entry = fs::read_dir(&folder)?.next().with_context(|| format!("apt left no file of {wanted}"))?;
    let bytes = read(&entry?.path())?;
    check(pin, &bytes)?;
    write(&kept, bytes)?;
    Ok(kept)
}

fn check(pin: &PackagePin, bytes: &[u8]) -> anyhow::Result<()> {
    let found = sha256(bytes);
    if found != pin.sha256 {
        bail!(
            "the mirror's file of {} {} has SHA-256 {found}, and {PINS} pins {}: it is another file, do not use it before \
             you know why",
            pin.name,
            pin.version,
            pin.sha256
        );
    }
    Ok(())
}

fn unpack(path: &Path, pin: PackagePin) -> anyhow::Result<DebianPackage> {
    let deb = |flag: &str| {
        let mut command = Command::new("dpkg-deb");
        command.arg(flag).arg(path);
        command
    };
    let control = build::text(deb("--field"))?;
    let output = deb("--fsys-tarfile").output().context("failed to start dpkg-deb")?;
    if !output.status.success() {
        bail!("dpkg-deb cannot read {}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let files = files(&output.stdout).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(DebianPackage { pin, control, files })
}

fn files(tar: &[u8]) -> anyhow::Result<BTreeMap<String, (u32, FileContent)>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(Cursor::new(tar)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().trim_start_matches("./").trim_end_matches('/').to_owned();
        let content = match entry.header().entry_type() {
            tar::EntryType::Regular => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                FileContent::File(bytes)
            }
            tar::EntryType::Symlink => {
                let target = entry.link_name()?.context("a link without target")?;
                FileContent::Link(target.to_string_lossy().into_owned())
            }
            _ => continue,
        };
        files.insert(path, (entry.header().mode()? & 0o777, content));
    }
    Ok(files)
}

/// Pins the newest of each package that apt has.
pub fn update_pins(architecture: &str) -> anyhow::Result<()> {
    let path = root().join(PINS);
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {PINS}"))?;
    let head: String =
        text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let (mut pins, others): (Vec<PackagePin>, Vec<PackagePin>) =
        parse(&text)?.into_iter().partition(|pin| pin.architecture == architecture);
    if pins.is_empty() {
        // The first of this architecture: the same packages as of another.
        let of = others.first().map(|pin| pin.architecture.clone());
        let same = others.iter().filter(|pin| Some(&pin.architecture) == of.as_ref()).cloned();
        pins = same.map(|pin| PackagePin { architecture: architecture.to_owned(), ..pin }).collect();
    }
    for pin in &mut pins {
        let mut command = Command::new("apt-cache");
        command.args(["show", "--no-all-versions", &pin.name]);
        let record = build::text(command)?;
        let field = |name: &str| {
            let line = record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(str::to_owned).with_context(|| format!("apt's record of {} has no {name}", pin.name))
        };
        (pin.version, pin.sha256) = (field("Version")?, field("SHA256")?);
    }
    let mut all = [pins, others].concat();
    all.sort_by(|one, other| (&one.architecture, &one.name).cmp(&(&other.architecture, &other.name)));
    write(&path, head + &format_pins(&all))?;
    println!("wrote {PINS}");
    Ok(())
}

fn format_pins(pins: &[PackagePin]) -> String {
    let mut text = String::new();
    for PackagePin { name, version, architecture, sha256 } in pins {
        let _ = writeln!(text, "{name} {version} {architecture} {sha256}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_as_they_are_written() {
        let pins = pins().unwrap();
        assert!(pins.iter().any(|pin| pin.name == "libc6"), "{pins:?}");
        assert_eq!(parse(&format_pins(&pins)).unwrap(), pins);
        let error = parse("# a comment\nlibc6 2.36 amd64\n").unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{PINS}:2: expected NAME VERSION ARCHITECTURE SHA256, found \"libc6 2.36 amd64\"")
        );
    }

    #[test]
    fn missing_package_version_explains_repinning() {
        let cache = tempfile::tempdir().unwrap();
        let pin = PackagePin {
            name: "libc6".to_owned(),
            version: "0-gone".to_owned(),
            architecture: "amd64".to_owned(),
            sha256: "0".repeat(64),
        };
        let error = fetch(&pin, cache.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("apt does not get libc6=0-gone, which xtask/src/release/packages.txt pins: "),
            "{error}"
        );
        assert!(
            error.ends_with("is the change to look at")
                && error.contains("`cargo xtask image --update-pins`"),
            "{error}"
        );
    }

    #[test]
    fn another_file_than_the_pinned_one_is_refused() {
        let pin = |sha256: String| PackagePin {
            name: "libc6".into(),
            version: "2.36".into(),
            architecture: "amd64".into(),
            sha256,
        };
        check(&pin(sha256(b"deb")), b"deb").unwrap();
        let error = check(&pin(sha256(b"deb")), b"other").unwrap_err().to_string();
        assert!(error.contains("libc6 2.36") && error.contains("another file"), "{error}");
    }
}
