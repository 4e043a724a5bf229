//! Parts of the image by themselves; and the whole image, unpacked by another program and run as a cluster would.

#[path = "../../../../tests/it/support/image_root.rs"]
mod image_root;
mod server;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use self::image_root::RUN;
use super::super::debian::PackagePin;
use super::*;
use crate::release::{build, read};

fn package(files: &[(&str, FileContent)]) -> DebianPackage {
    let pin = PackagePin {
        name: "p".into(),
        version: "1".into(),
        architecture: "amd64".into(),
        sha256: String::new(),
    };
    let files = files.iter().map(|(path, content)| ((*path).to_owned(), (0o644, content.clone()))).collect();
    DebianPackage { pin, control: "Package: p\n".to_owned(), files }
}

#[test]
fn links_are_followed_within_a_package() {
    let link = |target: &str| FileContent::Link(target.to_owned());
    let packages = [package(&[
        ("lib64/loader", link("/lib/x/loader")),
        ("lib/x/loader", link("loader-2")),
        ("lib/x/loader-2", FileContent::File(b"loader".to_vec())),
        ("lib/x/circle", link("circle")),
    ])];
    let found = |wanted: &str| find_file(&packages, |path| path == wanted).map(|(_, bytes)| bytes);
    assert_eq!(found("lib64/loader"), Some(b"loader".to_vec()));
    assert_eq!(found("lib/x/circle"), None);
    assert_eq!(found("lib/x/other"), None);
}

#[test]
fn missing_library_or_version_is_named() {
    let architecture = architecture().unwrap();
    let folder = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let own = |name: &str| {
        let bytes = fs::read(format!("/{folder}/{name}")).unwrap();
        (format!("{folder}/{name}"), FileContent::File(bytes))
    };
    let loader = if architecture == "amd64" { "ld-linux-x86-64.so.2" } else { "ld-linux-aarch64.so.1" };
    let (libc, loader) = (own("libc.so.6"), own(loader));
    let packages = [package(&[(libc.0.as_str(), libc.1), (loader.0.as_str(), loader.1)])];
    let lay = |library: &str, version: &str| {
        let needs = ElfRequirements {
            loader: None,
            libraries: [library.to_owned()].into(),
            versions: [(library.to_owned(), version.to_owned())].into(),
        };
        let mut tree = FileTree::default();
        libraries(&packages, &needs, architecture, &mut tree, &mut BTreeSet::new()).map(|()| tree)
    };
    assert!(lay("libc.so.6", "GLIBC_2.17").unwrap().get(&format!("{folder}/libc.so.6")).is_some());
    let error = |library: &str, version: &str| lay(library, version).unwrap_err().to_string();
    assert!(error("libc.so.6", "GLIBC_9.1").starts_with("the binary needs GLIBC_9.1 of libc.so.6, which"));
    assert!(error("libq.so.3", "Q_1").starts_with("the binary loads libq.so.3, which no pinned package has"));
}

/// Everything that may be in an image.
const FILES: &str = "\
etc etc/group etc/nsswitch.conf etc/os-release etc/passwd etc/ssl etc/ssl/certs etc/ssl/certs/ca-certificates.crt \
lib lib/MACHINE-linux-gnu lib/MACHINE-linux-gnu/libc.so.6 lib/MACHINE-linux-gnu/libgcc_s.so.1 \
lib/MACHINE-linux-gnu/libm.so.6 state tmp usr usr/bin usr/bin/helm-render usr/bin/tutti usr/lib usr/lib/os-release usr/share \
usr/share/doc usr/share/doc/base-files usr/share/doc/base-files/copyright usr/share/doc/ca-certificates \
usr/share/doc/ca-certificates/copyright usr/share/doc/libc6 usr/share/doc/libc6/copyright usr/share/doc/libgcc-s1 \
usr/share/doc/libgcc-s1/copyright usr/share/doc/tutti usr/share/doc/tutti/LICENSE \
usr/share/doc/tutti/THIRD-PARTY-LICENSES.txt var var/lib var/lib/dpkg var/lib/dpkg/status.d \
var/lib/dpkg/status.d/base-files var/lib/dpkg/status.d/ca-certificates var/lib/dpkg/status.d/libc6 \
var/lib/dpkg/status.d/libgcc-s1";

/// The binary to pack: `TUTTI_IMAGE_BINARY`, else the one that `cargo test --workspace` has built beside this test.
fn binary() -> Result<PathBuf, String> {
    let named = std::env::var_os("TUTTI_IMAGE_BINARY").map(PathBuf::from);
    let own = std::env::current_exe().unwrap();
    let path = named.unwrap_or_else(|| own.parent().unwrap().parent().unwrap().join("tutti"));
    let help = "build it, or name one by TUTTI_IMAGE_BINARY";
    if path.is_file() { Ok(path) } else { Err(format!("{} is not there: {help}", path.display())) }
}

/// The programs that the test needs, or why it is skipped.
fn what_is_needed() -> Result<PathBuf, String> {
    if std::env::var("TUTTI_LIVE").is_ok_and(|it| it == "0") {
        return Err("TUTTI_LIVE=0".to_owned());
    }
    for program in ["skopeo", "umoci", "unshare", "strip", "git", "go", "apt-get", "dpkg-deb"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        if !found.status.success() {
            return Err(format!("{program} is not installed"));
        }
    }
    // To become the image's user and to mount its root read-only.
    let can_mount = Command::new("unshare").args(["--mount", "true"]).output().unwrap();
    if !can_mount.status.success() {
        return Err("only root can mount the image's root and run as its user".to_owned());
    }
    binary()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments);
    build::text(command).unwrap()
}

struct UnpackedImage {
    root: PathBuf,
    /// The image's, as `NAME=VALUE`.
    environment: Vec<String>,
}

impl UnpackedImage {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", RUN, "sh"]).arg(&self.root).args(&self.environment);
        command
            .args(["/usr/sbin/chroot", "--userspec=65532:65532"])
            .arg(&self.root)
            .arg("/usr/bin/tutti")
            .args(arguments);
        command.output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?} ended with {}:\n{said}\n{errors}", output.status);
        said.into_owned()
    }

    fn paths(&self) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                paths.insert(entry.path().strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        paths
    }
}

fn write_image(binary: &Path, out: &Path) -> String {
    let programs = ReleasePrograms { binary: Some(binary.to_owned()), any_size: true };
    run(&ImageOptions { programs, out: out.to_owned(), tar: true, arch: None, update_pins: false }).unwrap();
    let index: Value = serde_json::from_slice(&read(&out.join("oci/index.json")).unwrap()).unwrap();
    index["manifests"][0]["digest"].as_str().unwrap().to_owned()
}

/// A config repository in Git, with a chart in it, for [`server`].
fn repository(folder: &Path) {
    let example = crate::release::root().join("examples/helm-repo");
    output("cp", &["-r", example.to_str().unwrap(), folder.to_str().unwrap()]);
    let git = |arguments: &[&str]| {
        output(
            "git",
            &[
                &["-C", folder.to_str().unwrap(), "-c", "user.name=t", "-c", "user.email=t@example.com"],
                arguments,
            ]
            .concat(),
        )
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=A chart"]);
}

#[test]
fn image_runs_read_only_without_a_shell() {
    let binary = match what_is_needed() {
        Ok(binary) => binary,
        Err(why) => {
            assert!(std::env::var("TUTTI_LIVE").as_deref() != Ok("1"), "TUTTI_LIVE=1, and {why}");
            // Straight to standard error: the test runner keeps what it captures.
            let _ = writeln!(std::io::stderr(), "##### THE TEST OF THE IMAGE DID NOT RUN: {why} #####");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    // Debug information of a quarter of a gigabyte proves nothing here.
    output("strip", &["-o", &text(&at("tutti")), &text(&binary)]);

    let digest = write_image(&at("tutti"), &at("one"));
    assert_eq!(write_image(&at("tutti"), &at("two")), digest, "made twice");
    for file in fs::read_dir(at("one")).unwrap().map(|entry| entry.unwrap().file_name()) {
        if at("one").join(&file).is_file() {
            assert!(
                read(&at("one").join(&file)).unwrap() == read(&at("two").join(&file)).unwrap(),
                "{}",
                file.display()
            );
        }
    }

    let image = format!("oci:{}:{VERSION}", text(&at("one/oci")));
    let seen: Value = serde_json::from_str(&output("skopeo", &["inspect", &image])).unwrap();
    assert_eq!(seen["Digest"], digest.as_str());
    let copy = format!("oci:{}:copy", text(&at("copy")));
    output("skopeo", &["copy", "--quiet", &image, &copy]);
    let archive = format!(
        "oci-archive:{}",
        text(&at(&format!("one/tutti-{VERSION}-{}.oci.tar", architecture().unwrap())))
    );
    for other in [copy, archive] {
        let seen: Value = serde_json::from_str(&output("skopeo", &["inspect", &other])).unwrap();
        assert_eq!(seen["Digest"], digest.as_str(), "{other}");
    }

    output("umoci", &["unpack", "--image", &image["oci:".len()..], &text(&at("bundle"))]);
    let config: Value = serde_json::from_slice(&read(&at("bundle/config.json")).unwrap()).unwrap();
    let process = &config["process"];
    assert_eq!(process["user"]["uid"], 65_532);
    assert_eq!(process["args"], serde_json::json!(["/usr/bin/tutti", "run"]));
    let environment =
        process["env"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect();
    let unpacked = UnpackedImage { root: at("bundle/rootfs"), environment };
    let mut expected: BTreeSet<String> =
        FILES.replace("MACHINE", std::env::consts::ARCH).split(' ').map(str::to_owned).collect();
    let mut found = unpacked.paths();
    // The loader is where the machine has it, and a binary that is not of the profile `dist` loads the machine's zlib.
    found.retain(|path| {
        !path.contains("ld-linux") && path != "lib64" && !path.contains("libz.so") && !path.contains("zlib1g")
    });
    assert_eq!(found, std::mem::take(&mut expected));

    assert_eq!(unpacked.succeeds(&["--version"]), format!("tutti {VERSION}\n"));
    // Templates are rendered by a second tutti, in which it starts itself.
    let said = unpacked.succeeds(&["demo", "--once"]);
    assert!(said.contains("shop/shop-web") && said.contains('✓'), "{said}");

    // Git over HTTPS, a chart by helm-render, and the state folder.
    repository(&at("repository"));
    let (address, certificate) = server::serve(at("repository"));
    let arguments =
        ["run", "--once", "--repo", &address, "--cluster", "*=sandbox", "--listen", "127.0.0.1:0"];
    let arguments = [&arguments[..], &["--hooks-listen", "127.0.0.1:0"]].concat();
    let refused = unpacked.run(&arguments);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.to_lowercase().contains("certificate"), "{errors}");
    let bundle = unpacked.root.join("etc/ssl/certs/ca-certificates.crt");
    let authorities = fs::read_to_string(&bundle).unwrap();
    assert!(authorities.matches("BEGIN CERTIFICATE").count() > 100, "{authorities}");
    fs::write(&bundle, authorities + &certificate).unwrap();
    let said = unpacked.succeeds(&arguments);
    assert!(said.contains("bbcc") && said.contains('✓'), "{said}");
}
