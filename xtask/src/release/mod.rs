//! Builds a release: image, archive, SBOM and licence list. `docs/reference/packages.md` describes it.

mod build;
mod build_origin;
mod components;
mod debian;
pub mod dist;
mod elf;
mod file_tree;
pub mod image;
mod licenses;
mod oci;
mod sbom;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use sha2::{Digest, Sha256};

/// Most bytes of the stripped binary of the profile `dist`.
const BINARY_LIMIT: u64 = 60_000_000;
/// Most bytes of the image's unpacked layers.
const IMAGE_LIMIT: u64 = 120_000_000;

/// The programs that go in.
#[derive(Args)]
pub struct ReleasePrograms {
    /// A tutti that is built already, instead of a build with `--profile dist --features full`
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// No limits of size: for a binary of another profile
    #[arg(long)]
    any_size: bool,
}

/// Read once, checked.
struct LoadedPrograms {
    tutti: Vec<u8>,
    helm_render: Vec<u8>,
    helm_render_path: PathBuf,
}

impl ReleasePrograms {
    fn load(&self) -> anyhow::Result<LoadedPrograms> {
        let path = match &self.binary {
            Some(path) => path.clone(),
            None => build::tutti()?,
        };
        let version = build::version_of(&path)?;
        if version != VERSION {
            bail!(
                "{} is tutti {version}, and this checkout is {VERSION}: build it from this checkout, or leave --binary out",
                path.display()
            );
        }
        let helm_render_path = live::HelmPrograms::ensure_render(&|line| eprintln!("{line}"))?;
        let loaded =
            LoadedPrograms { tutti: read(&path)?, helm_render: read(&helm_render_path)?, helm_render_path };
        figure("binary", loaded.tutti.len() as u64);
        self.check("the binary", loaded.tutti.len() as u64, BINARY_LIMIT)?;
        Ok(loaded)
    }

    fn check(&self, what: &str, bytes: u64, limit: u64) -> anyhow::Result<()> {
        if bytes > limit && !self.any_size {
            bail!(
                "{what} has {bytes} bytes, more than the {limit} that it may have: see `cargo bloat --profile dist --features full`, \
                 or give --any-size for a binary of another profile"
            );
        }
        Ok(())
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
const LICENSE: &str = env!("CARGO_PKG_LICENSE");
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The root of this checkout.
fn root() -> &'static Path {
    // `xtask/..`, without the dots: the path goes into flags of the compiler.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Debian's and OCI's names for a machine's architecture as Rust calls it.
fn architecture() -> anyhow::Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("images are not supported for {other}, only for x86_64 and aarch64"),
    }
}

fn figure(name: &str, bytes: u64) {
    #[allow(clippy::cast_precision_loss, reason = "a figure of two decimals")]
    let megabytes = bytes as f64 / 1e6;
    println!("figure {name} {megabytes:.2} MB");
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("failed to write {}", path.display()))
}

/// Empty, whatever was there.
fn fresh_folder(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    std::fs::create_dir_all(path).with_context(|| format!("failed to create {}", path.display()))
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
