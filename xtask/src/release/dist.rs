//! `cargo xtask dist`: the archive of a release, and `cargo xtask docs`: what is written from the commands.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::build_origin::BuildOrigin;
use super::file_tree::{self, FileTree};
use super::programs::ReleasePrograms;
use super::{
    VERSION, architecture, build, components, elf, fresh_folder, licenses, read, root, sbom, sha256, write,
};

#[derive(Args)]
pub struct DistOptions {
    #[command(flatten)]
    programs: ReleasePrograms,
    /// Folder to write into; its previous content is deleted
    #[arg(long, value_name = "DIR", default_value = "target/release-files")]
    out: PathBuf,
}

pub fn run(options: &DistOptions) -> anyhow::Result<()> {
    let origin = BuildOrigin::read()?;
    let programs = options.programs.load()?;
    let needs = elf::elf_requirements("tutti", &programs.tutti, architecture()?)?;
    let glibc =
        elf::minimum_glibc(&needs).context("tutti needs no glibc: this is not the binary of a release")?;
    let mut components = components::of_tutti()?;
    components.extend(components::of_helm_render(&programs.helm_render_path)?);

    let name = format!("tutti-{VERSION}-{}-linux", std::env::consts::ARCH);
    let list = sbom::spdx(&sbom::SbomSubject::archive(&name), &components, &origin)?;
    let mut tree = FileTree::default();
    let generated = tempfile::tempdir().context("failed to create a folder")?;
    commands(&["release".as_ref(), generated.path().as_os_str()])?;
    add_files(&mut tree, &name, generated.path())?;
    check_pages(&tree)?;
    tree.file(&format!("{name}/tutti"), 0o755, programs.tutti);
    tree.file(&format!("{name}/helm-render"), 0o755, programs.helm_render);
    tree.file(&format!("{name}/LICENSE"), 0o644, read(&root().join("LICENSE"))?);
    tree.file(&format!("{name}/README.md"), 0o644, read(&root().join("README.md"))?);
    tree.file(&format!("{name}/THIRD-PARTY-LICENSES.txt"), 0o644, licenses::license_list(&components));
    tree.file(&format!("{name}/sbom.spdx.json"), 0o644, list.clone());

    fresh_folder(&options.out)?;
    let archive = file_tree::gzip(&tree.tar(origin.time)?)?;
    super::figure("archive", archive.len() as u64);
    println!("figure glibc {glibc} version");
    let mut sums = String::new();
    for (file, bytes) in [(format!("{name}.sbom.spdx.json"), list), (format!("{name}.tar.gz"), archive)] {
        let path = options.out.join(&file);
        // As `sha256sum --check` reads it.
        sums += &format!("{}  {file}\n", sha256(&bytes));
        write(&path, bytes)?;
        println!("{}", path.display());
    }
    write(&options.out.join("SHA256SUMS"), sums)
}

/// A manual page for each command that `docs/reference/cli.md` names.
fn check_pages(tree: &FileTree) -> anyhow::Result<()> {
    let commands = super::read_text(&root().join("docs/reference/cli.md"))?.matches("\n## ").count();
    let pages = tree.paths().filter(|path| path.contains("/man/man1/")).count();
    if pages != commands {
        bail!(
            "{pages} manual pages were written, and docs/reference/cli.md has {commands} commands: `cargo xtask docs` writes it anew"
        );
    }
    Ok(())
}

/// `cargo xtask docs`.
pub fn docs() -> anyhow::Result<()> {
    commands(&["markdown".as_ref(), root().join("docs/reference").as_os_str()])
}

/// A program of its own, so that the other developer commands are built without all of tutti.
fn commands(arguments: &[&std::ffi::OsStr]) -> anyhow::Result<()> {
    let mut command = build::cargo(&["run", "--quiet", "--locked", "--example", "commands", "--"]);
    let status = command.args(arguments).status().context("failed to start cargo")?;
    if !status.success() {
        bail!("the example that writes the commands ended with {status}");
    }
    Ok(())
}

/// Every file of a folder, under a prefix.
fn add_files(tree: &mut FileTree, prefix: &str, folder: &Path) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to read {}", folder.display()))?;
        let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => add_files(tree, &path, &entry.path())?,
            false => tree.file(&path, 0o644, read(&entry.path())?),
        }
    }
    Ok(())
}
