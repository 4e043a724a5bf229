//! The components inside the programs: linked crates, C libraries of crates, Go modules, Debian packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::debian::DebianPackage;
use super::license_texts::{recognized, standard_texts};
use super::{build, root};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComponentKind {
    Crate,
    /// Source in C inside a crate.
    Native,
    Go,
    Debian,
}

/// The program of ours that a component is inside of; none for what lies beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShippedProgram {
    Tutti,
    HelmRender,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleaseComponent {
    pub kind: ComponentKind,
    pub name: String,
    pub version: String,
    pub inside: Option<ShippedProgram>,
    /// An expression of SPDX, where it is known.
    pub license: Option<String>,
    /// SHA-256 of what was downloaded, where it is known.
    pub sha256: Option<String>,
    /// Its address as package managers write it.
    pub purl: Option<String>,
    /// Texts of licences and notices.
    pub texts: Vec<String>,
}

impl ReleaseComponent {
    /// `release`: that of Debian, as `12`.
    pub fn of_package(package: &DebianPackage, release: &str) -> Self {
        let pin = &package.pin;
        // What purl wants escaped, and may be in a version of Debian's.
        let version = pin.version.replace('+', "%2B").replace(':', "%3A");
        Self {
            kind: ComponentKind::Debian,
            name: pin.name.clone(),
            version: pin.version.clone(),
            inside: None,
            // Each says it file by file in a text, which the image has.
            license: None,
            sha256: Some(pin.sha256.clone()),
            purl: Some(format!(
                "pkg:deb/debian/{}@{version}?arch={}&distro=debian-{release}",
                pin.name, pin.architecture
            )),
            texts: Vec::new(),
        }
    }
}

/// A library in C that is built and linked with a crate.
struct NativeLibrary {
    of: &'static str,
    name: &'static str,
    license: &'static str,
    /// From the crate's folder.
    text: &'static str,
    version: NativeVersionSource,
}

enum NativeVersionSource {
    /// After the `+` of the crate's.
    Crate,
    /// `#define NAME "…"` of a header.
    Header(&'static str, &'static str),
    /// After the name of a folder that begins so.
    Folder(&'static str),
}

const NATIVE: [NativeLibrary; 6] = [
    NativeLibrary {
        of: "libgit2-sys",
        name: "libgit2",
        license: "GPL-2.0-only WITH GCC-exception-2.0",
        text: "libgit2/COPYING",
        version: NativeVersionSource::Crate,
    },
    NativeLibrary {
        of: "libssh2-sys",
        name: "libssh2",
        license: "BSD-3-Clause",
        text: "libssh2/COPYING",
        version: NativeVersionSource::Header("libssh2/include/libssh2.h", "LIBSSH2_VERSION"),
    },
    NativeLibrary {
        of: "libz-sys",
        name: "zlib",
        license: "Zlib",
        text: "src/zlib/LICENSE",
        version: NativeVersionSource::Header("src/zlib/zlib.h", "ZLIB_VERSION"),
    },
    NativeLibrary {
        of: "lua-src",
        name: "lua",
        license: "MIT",
        text: "lua-5.4/lua.h",
        version: NativeVersionSource::Folder("lua-5.4"),
    },
    NativeLibrary {
        of: "openssl-src",
        name: "openssl",
        license: "Apache-2.0",
        text: "openssl/LICENSE.txt",
        version: NativeVersionSource::Crate,
    },
    NativeLibrary {
        of: "tikv-jemalloc-sys",
        name: "jemalloc",
        license: "BSD-2-Clause",
        text: "jemalloc/COPYING",
        version: NativeVersionSource::Crate,
    },
];

/// Crates whose source in C is linked though they themselves are only needed for the build.
const SOURCES: [&str; 2] = ["lua-src", "openssl-src"];

pub fn of_tutti() -> anyhow::Result<Vec<ReleaseComponent>> {
    let linked = dependency_tree("normal,no-proc-macro")?;
    let built = dependency_tree("normal,build,no-proc-macro")?;
    let metadata =
        build::json(build::cargo(&["metadata", "--format-version", "1", "--locked", "--all-features"]))?;
    let checksums = checksums(&super::read_text(&root().join("Cargo.lock"))?);
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let mut components = BTreeSet::new();
    let mut seen = 0;
    for package in packages {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let key = (text("name"), text("version"));
        let is_source = SOURCES.contains(&key.0.as_str()) && built.contains(&key);
        if !linked.contains(&key) && !is_source {
            continue;
        }
        seen += usize::from(linked.contains(&key));
        let folder = PathBuf::from(text("manifest_path")).parent().map(Path::to_owned).unwrap_or_default();
        for native in NATIVE.iter().filter(|native| native.of == key.0) {
            components.insert(of_native(native, &key.1, &folder)?);
        }
        // Our own crates are the product, not parts from elsewhere.
        if package["source"].is_string() {
            components.insert(of_crate(package, &key, &folder, checksums.get(&key))?);
        }
    }
    if seen != linked.len() {
        bail!("cargo tree lists {} crates, but cargo metadata has only {seen} of them", linked.len());
    }
    components.insert(rust_library()?);
    Ok(components.into_iter().collect())
}

/// (name, version) of each crate in the tree of the release's build.
fn dependency_tree(edges: &str) -> anyhow::Result<BTreeSet<(String, String)>> {
    let mut command = build::cargo(&["tree", "--locked", "--package", "tutti", "--prefix", "none"]);
    command.args(["--features", build::FEATURES, "--edges", edges, "--target", &build::target()?]);
    Ok(tree_lines(&build::text(command)?))
}

fn tree_lines(text: &str) -> BTreeSet<(String, String)> {
    let crates = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    });
    crates.collect()
}

/// SHA-256 of each crate that comes from a registry.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let packages = lock.split("[[package]]").filter_map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    packages.collect()
}

fn of_crate(
    package: &Value,
    (name, version): &(String, String),
    folder: &Path,
    checksum: Option<&String>,
) -> anyhow::Result<ReleaseComponent> {
    // An older way to write OR.
    let license = package["license"].as_str().map(|it| it.replace('/', " OR ").replace("  OR  ", " OR "));
    let mut texts = license_texts(folder, package["license_file"].as_str())?;
    // One that only names a file.
    let license = license.or_else(|| texts.iter().find_map(|text| recognized(text)).map(str::to_owned));
    if texts.is_empty() {
        let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let authors: Vec<&str> = authors.collect();
        texts = standard_texts(name, license.as_deref().unwrap_or_default(), &authors.join(", "));
    }
    Ok(ReleaseComponent {
        kind: ComponentKind::Crate,
        name: name.clone(),
        version: version.clone(),
        inside: Some(ShippedProgram::Tutti),
        license,
        sha256: checksum.cloned(),
        purl: Some(format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))),
        texts,
    })
}

fn of_native(native: &NativeLibrary, version: &str, folder: &Path) -> anyhow::Result<ReleaseComponent> {
    let unknown = || format!("failed to find the version of {} in {}", native.name, folder.display());
    let mut text = folder.join(native.text);
    let version = match native.version {
        NativeVersionSource::Crate => version.split_once('+').map(|(_, version)| version.to_owned()),
        NativeVersionSource::Header(header, name) => {
            let header = super::read_text(&folder.join(header))?;
            let define = header.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
            define.and_then(|rest| rest.split('"').nth(1)).map(str::to_owned)
        }
        NativeVersionSource::Folder(prefix) => {
            let entries = fs::read_dir(folder).with_context(unknown)?.filter_map(Result::ok);
            let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let found = names.find(|name| name.starts_with(prefix));
            text = text
                .strip_prefix(folder.join(prefix))
                .map(|rest| folder.join(found.clone().unwrap_or_default()).join(rest))
                .unwrap_or(text);
            found.and_then(|name| name.rsplit('-').next().map(str::to_owned))
        }
    };
    let whole = super::read_text(&text)?;
    // In a header, the notice is the last comment.
    let notice = if native.text.ends_with(".h") { whole.rsplit("/***").next() } else { Some(whole.as_str()) };
    Ok(ReleaseComponent {
        kind: ComponentKind::Native,
        name: native.name.to_owned(),
        version: version.with_context(unknown)?,
        inside: Some(ShippedProgram::Tutti),
        license: Some(native.license.to_owned()),
        sha256: None,
        purl: None,
        texts: notice.map(str::to_owned).into_iter().collect(),
    })
}

fn rust_library() -> anyhow::Result<ReleaseComponent> {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.arg("--version");
    let said = build::text(command)?;
    let version = said.split(' ').nth(1).context("rustc --version names no version")?;
    Ok(ReleaseComponent {
        kind: ComponentKind::Native,
        name: "rust-std".to_owned(),
        version: version.to_owned(),
        inside: Some(ShippedProgram::Tutti),
        license: Some("MIT OR Apache-2.0".to_owned()),
        sha256: None,
        purl: None,
        texts: standard_texts("Rust's standard library", "MIT OR Apache-2.0", "The Rust Project Developers"),
    })
}

/// The modules that `go` wrote into the program when it built it.
pub fn of_helm_render(program: &Path) -> anyhow::Result<Vec<ReleaseComponent>> {
    let mut command = Command::new("go");
    command.args(["version", "-m"]).arg(program);
    let (go, modules) = go_modules(&build::text(command)?)?;
    let mut download = Command::new("go");
    download.current_dir(root().join("tools/helm-render")).env("GOWORK", "off");
    download.args(["mod", "download", "-json"]);
    download.args(modules.iter().map(|(name, version)| format!("{name}@{version}")));
    let answers = build::text(download)
        .context("failed to download the Go modules of helm-render, whose licences are listed")?;
    let mut components = Vec::new();
    for answer in serde_json::Deserializer::from_str(&answers).into_iter::<Value>() {
        let answer = answer.context("the output of go mod download is not JSON")?;
        let text = |field: &str| {
            let value = answer[field].as_str().map(str::to_owned);
            value.with_context(|| format!("go mod download names no {field}: {answer}"))
        };
        let (name, version) = (text("Path")?, text("Version")?);
        let texts = license_texts(Path::new(&text("Dir")?), None)?;
        components.push(of_go(name, version, texts));
    }
    if components.len() != modules.len() {
        bail!(
            "helm-render has {} modules, but `go mod download` lists only {}",
            modules.len(),
            components.len()
        );
    }
    let mut goroot = Command::new("go");
    goroot.args(["env", "GOROOT"]);
    let goroot = build::text(goroot)?;
    components.push(of_go("std".to_owned(), go, license_texts(Path::new(goroot.trim()), None)?));
    components.sort();
    Ok(components)
}

/// The version of Go, and (name, version) of each module that is linked.
fn go_modules(text: &str) -> anyhow::Result<(String, Vec<(String, String)>)> {
    let go = text.lines().next().and_then(|line| line.rsplit(": go").next());
    let mut modules: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match line.trim().split('\t').collect::<Vec<_>>().as_slice() {
            ["dep", name, version, ..] => modules.push(((*name).to_owned(), (*version).to_owned())),
            // It stands for the one before it.
            ["=>", name, version, ..] => {
                modules.pop();
                modules.push(((*name).to_owned(), (*version).to_owned()));
            }
            _ => {}
        }
    }
    if modules.is_empty() {
        bail!("helm-render names no modules: it was not built by go build");
    }
    Ok((go.context("go version names no version")?.to_owned(), modules))
}

fn of_go(name: String, version: String, texts: Vec<String>) -> ReleaseComponent {
    let license = texts.iter().find_map(|text| recognized(text));
    ReleaseComponent {
        kind: ComponentKind::Go,
        purl: Some(format!("pkg:golang/{name}@{}", version.replace('+', "%2B"))),
        name,
        version,
        inside: Some(ShippedProgram::HelmRender),
        license: license.map(str::to_owned),
        sha256: None,
        texts,
    }
}

/// Files of licences and notices in a folder, and one that is named.
fn license_texts(folder: &Path, named: Option<&str>) -> anyhow::Result<Vec<String>> {
    const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut paths = BTreeSet::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to read {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|wanted| name.starts_with(wanted)) && entry.path().is_file() {
            paths.insert(entry.path());
        }
    }
    paths.extend(named.map(|name| folder.join(name)).filter(|path| path.is_file()));
    let read = |path: &PathBuf| Ok(String::from_utf8_lossy(&super::read(path)?).into_owned());
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, version: &str) -> (String, String) {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn lines_of_cargo_tree() {
        let text = "tutti v0.1.0 (/source)\nage v0.12.1\nopenssl-src v300.6.1+3.6.3\nage v0.12.1 (*)\n\n";
        let expected = [pair("age", "0.12.1"), pair("openssl-src", "300.6.1+3.6.3"), pair("tutti", "0.1.0")];
        assert_eq!(tree_lines(text), expected.into());
    }

    #[test]
    fn checksums_are_of_crates_from_registries() {
        let lock = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"age\"\n\
                    version = \"0.12.1\"\nsource = \"registry\"\nchecksum = \"c0ffee\"\n";
        assert_eq!(checksums(lock), [(pair("age", "0.12.1"), "c0ffee".to_owned())].into());
    }

    #[test]
    fn modules_of_a_go_program() {
        let text = "bin/helm-render: go1.26.8\n\tpath\texample.org/a\n\tmod\texample.org/a\t(devel)\t\n\
                    \tdep\texample.org/b\tv1.0.0\th1:x=\n\tdep\texample.org/c\tv1.2.0\n\t=>\texample.org/d\tv1.3.0\th1:y=\n\
                    \tbuild\t-trimpath=true\n";
        let (go, modules) = go_modules(text).unwrap();
        assert_eq!(go, "1.26.8");
        assert_eq!(modules, [pair("example.org/b", "v1.0.0"), pair("example.org/d", "v1.3.0")]);
        assert!(go_modules("bin/other: go1.26.8\n").is_err());
    }

    /// A library that is linked and not listed, or listed with a wrong path, would be found here.
    #[test]
    fn crates_of_the_release_have_licences_and_texts() {
        let components = of_tutti().unwrap();
        let without: Vec<_> = components
            .iter()
            .filter(|it| it.license.is_none() || it.texts.is_empty())
            .map(|it| &it.name)
            .collect();
        assert!(without.is_empty(), "{without:?}");
        let native: Vec<_> = components
            .iter()
            .filter(|it| it.kind == ComponentKind::Native)
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(native, ["jemalloc", "libgit2", "libssh2", "lua", "openssl", "rust-std", "zlib"]);
        let names: BTreeSet<&str> = components.iter().map(|it| it.name.as_str()).collect();
        for (name, is_linked) in
            [("kube", true), ("age", true), ("clap_mangen", false), ("cc", false), ("windows-sys", false)]
        {
            assert_eq!(names.contains(name), is_linked, "{name}");
        }
    }
}
