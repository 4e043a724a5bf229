//! `cargo xtask image`: a container image with only the programs and what they load.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::build_origin::BuildOrigin;
use super::components::{self, ReleaseComponent};
use super::debian::{self, DebianPackage};
use super::elf::{self, ElfRequirements};
use super::file_tree::{FileContent, FileTree, NONROOT};
use super::oci::{ImageLayer, ImageLayout};
use super::programs::{LoadedPrograms, ReleasePrograms};
use super::sbom;
use super::{IMAGE_LIMIT, VERSION, architecture, figure, fresh_folder, licenses, write};

#[derive(Args)]
pub struct ImageOptions {
    #[command(flatten)]
    programs: ReleasePrograms,
    /// Folder to write into; its previous content is deleted
    #[arg(long, value_name = "DIR", default_value = "target/image")]
    out: PathBuf,
    /// Also write the layout as one tar file
    #[arg(long)]
    tar: bool,
    /// Architecture of the image, amd64 or arm64; default: the architecture of this machine
    #[arg(long, value_name = "ARCHITECTURE")]
    arch: Option<String>,
    /// Only pin the newest versions of the Debian packages that apt has
    #[arg(long)]
    update_pins: bool,
}

pub fn run(options: &ImageOptions) -> anyhow::Result<()> {
    let architecture = architecture()?;
    if let Some(wanted) = &options.arch
        && wanted != architecture
    {
        bail!(
            "this machine is {architecture}, and has no toolchain for {wanted}: build that image on a machine that is {wanted}"
        );
    }
    if options.update_pins {
        return debian::update_pins(architecture);
    }
    // Before a build of minutes: what is wrong here is wrong after it, too.
    let packages = debian::packages(architecture)?;
    let origin = BuildOrigin::read()?;
    let programs = options.programs.load()?;
    let mut components = components::of_tutti()?;
    components.extend(components::of_helm_render(&programs.helm_render_path)?);
    let base = base_layer(&packages, &required_libraries(&programs, architecture)?, architecture)?;
    let layers = [
        ImageLayer { about: "files of Debian's packages, and users", tree: base.tree },
        ImageLayer { about: "tutti and helm-render", tree: own_layer(programs, &components) },
    ];
    let unpacked = layers.iter().map(|layer| layer.tree.size()).sum();
    figure("image_unpacked", unpacked);
    let layout = ImageLayout::new(&layers, architecture, &origin)?;
    figure("image_compressed", layout.compressed);
    options.programs.check("the image", unpacked, IMAGE_LIMIT)?;

    let used = packages.iter().filter(|package| base.used.contains(&package.pin.name));
    components.extend(used.map(|package| ReleaseComponent::of_package(package, &base.release)));
    fresh_folder(&options.out)?;
    let folder = options.out.join("oci");
    std::fs::create_dir(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    layout.write(&folder)?;
    write(
        &options.out.join("sbom.spdx.json"),
        sbom::spdx(&sbom::SbomSubject::image(&layout.digest), &components, &origin)?,
    )?;
    println!("oci:{}:{VERSION}", folder.display());
    println!("{}", layout.digest);
    if options.tar {
        let path = options.out.join(format!("tutti-{VERSION}-{architecture}.oci.tar"));
        write(&path, layout.files.tar(origin.time)?)?;
        println!("{}", path.display());
    }
    Ok(())
}

fn required_libraries(programs: &LoadedPrograms, architecture: &str) -> anyhow::Result<ElfRequirements> {
    let mut needs = elf::elf_requirements("tutti", &programs.tutti, architecture)?;
    let other = elf::elf_requirements("helm-render", &programs.helm_render, architecture)?;
    needs.loader = needs.loader.or(other.loader);
    needs.libraries.extend(other.libraries);
    needs.versions.extend(other.versions);
    Ok(needs)
}

/// Our own files, which change with each release.
fn own_layer(programs: LoadedPrograms, components: &[ReleaseComponent]) -> FileTree {
    let mut tree = FileTree::default();
    tree.file("usr/bin/tutti", 0o755, programs.tutti);
    // `tutti` looks for it beside itself.
    tree.file("usr/bin/helm-render", 0o755, programs.helm_render);
    tree.file("usr/share/doc/tutti/THIRD-PARTY-LICENSES.txt", 0o644, licenses::license_list(components));
    tree.file("usr/share/doc/tutti/LICENSE", 0o644, include_str!("../../../LICENSE"));
    tree
}

struct BaseLayer {
    tree: FileTree,
    /// Names of the packages that something was taken from.
    used: BTreeSet<String>,
    /// The number of Debian's release.
    release: String,
}

/// Loader, libraries, certificates and users: what is the same for many releases.
fn base_layer(
    packages: &[DebianPackage],
    needs: &ElfRequirements,
    architecture: &str,
) -> anyhow::Result<BaseLayer> {
    let mut tree = FileTree::default();
    let mut used = BTreeSet::new();
    libraries(packages, needs, architecture, &mut tree, &mut used)?;

    let authorities = packages.iter().flat_map(|package| {
        let certificates = package
            .files
            .iter()
            .filter(|(path, _)| path.starts_with("usr/share/ca-certificates/") && path.ends_with(".crt"));
        certificates.map(move |(_, (_, content))| (package, content))
    });
    let mut bundle = Vec::new();
    for (package, content) in authorities {
        if let FileContent::File(bytes) = content {
            bundle.extend(bytes.trim_ascii());
            bundle.push(b'\n');
            used.insert(package.pin.name.clone());
        }
    }
    if bundle.is_empty() {
        bail!("no pinned package has certificates of authorities: ca-certificates is missing");
    }
    tree.file("etc/ssl/certs/ca-certificates.crt", 0o644, bundle);

    // With the records below: by these a scanner knows which release of Debian the libraries are of.
    let (package, content) = find_file(packages, |path| path == "usr/lib/os-release")
        .context("no pinned package has os-release")?;
    let release = String::from_utf8_lossy(&content).lines().find_map(|line| {
        let value = line.strip_prefix("VERSION_ID=")?;
        Some(value.trim_matches('"').to_owned())
    });
    tree.file("usr/lib/os-release", 0o644, content);
    tree.link("etc/os-release", "../usr/lib/os-release");
    used.insert(package.pin.name.clone());
    for package in packages.iter().filter(|package| used.contains(&package.pin.name)) {
        let name = &package.pin.name;
        tree.file(&format!("var/lib/dpkg/status.d/{name}"), 0o644, package.control.as_str());
        let folder = format!("usr/share/doc/{name}");
        // Several packages of one source share theirs.
        let shared = package.files.get(&folder).and_then(|(_, content)| match content {
            FileContent::Link(target) => Some(format!("usr/share/doc/{target}")),
            _ => None,
        });
        let of = format!("{}/copyright", shared.as_ref().unwrap_or(&folder));
        let (_, copyright) =
            find_file(packages, |path| path == of).with_context(|| format!("no pinned package has {of}"))?;
        tree.file(&format!("{folder}/copyright"), 0o644, copyright);
    }

    let user = format!("nonroot:x:{NONROOT}:{NONROOT}:nonroot:/state:/sbin/nologin\n");
    tree.file("etc/passwd", 0o644, format!("root:x:0:0:root:/root:/sbin/nologin\n{user}"));
    tree.file("etc/group", 0o644, format!("root:x:0:\nnonroot:x:{NONROOT}:\n"));
    tree.file("etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nhosts: files dns\n");
    // Where volumes are mounted; without any, both can be written to.
    tree.folder("tmp", 0o1777, 0);
    tree.folder("state", 0o700, NONROOT);
    let release = release
        .context("os-release has no VERSION_ID: the pinned packages are not from a release of Debian")?;
    Ok(BaseLayer { tree, used, release })
}

/// The loader where the binary names it, and every library that it loads, with those that these load.
fn libraries(
    packages: &[DebianPackage],
    needs: &ElfRequirements,
    architecture: &str,
    tree: &mut FileTree,
    used: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let loader = needs.loader.as_deref().unwrap_or_default().trim_start_matches('/');
    let mut waiting: BTreeSet<String> = needs.libraries.clone();
    waiting.extend(loader.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned));
    let mut versions = needs.versions.clone();
    let mut found = BTreeMap::new();
    while let Some(name) = waiting.pop_first() {
        let is_it = |path: &str| {
            let folder = path.strip_suffix(&name).unwrap_or_default();
            folder.ends_with("-linux-gnu/")
        };
        let (package, bytes) = find_file(packages, is_it).with_context(|| {
            format!("the binary loads {name}, which no pinned package has: add the package")
        })?;
        let more = elf::elf_requirements(&name, &bytes, architecture)?;
        versions.extend(more.versions);
        found.insert(name.clone(), elf::versions(&name, &bytes)?);
        waiting.extend(more.libraries.into_iter().filter(|name| !found.contains_key(name)));
        used.insert(package.pin.name.clone());
        let place = match loader.ends_with(&format!("/{name}")) {
            true => loader.to_owned(),
            false => format!("lib/{}-linux-gnu/{name}", std::env::consts::ARCH),
        };
        tree.file(&place, 0o755, bytes);
    }
    let missing = versions
        .iter()
        .find(|(library, version)| !found.get(library).is_some_and(|versions| versions.contains(version)));
    if let Some((library, version)) = missing {
        bail!(
            "the binary needs {version} of {library}, which the pinned package does not have: it was built on a newer \
             system than that of the pins; build it on the same one, or update the pins there"
        );
    }
    Ok(())
}

/// The first file that fits, links followed within its package.
fn find_file(packages: &[DebianPackage], fits: impl Fn(&str) -> bool) -> Option<(&DebianPackage, Vec<u8>)> {
    packages.iter().find_map(|package| {
        let mut path = package.files.keys().find(|path| fits(path))?.clone();
        for _ in 0..8 {
            match &package.files.get(&path)?.1 {
                FileContent::File(bytes) => return Some((package, bytes.clone())),
                FileContent::Link(target) if target.starts_with('/') => {
                    target.trim_start_matches('/').clone_into(&mut path)
                }
                FileContent::Link(target) => {
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    path = format!("{folder}/{target}");
                }
                FileContent::Folder => return None,
            }
        }
        None
    })
}

#[cfg(test)]
mod tests;
