//! Builds a release: image, archive, SBOM and licence list. `docs/reference/packages.md` describes it.

mod build;
mod build_origin;
mod components;
mod debian;
pub mod dist;
mod elf;
mod file_tree;
pub mod image;
mod license_texts;
mod licenses;
mod oci;
mod programs;
mod sbom;

use std::path::Path;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

/// Most bytes of the image's unpacked layers.
const IMAGE_LIMIT: u64 = 120_000_000;

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
