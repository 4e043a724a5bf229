//! The programs of a release: found or built, read and checked.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::{VERSION, build, figure, read};

/// Most bytes of the stripped binary of the profile `dist`.
const BINARY_LIMIT: u64 = 60_000_000;

/// Flags for the programs of a release.
#[derive(Args)]
pub struct ReleasePrograms {
    /// Existing tutti binary to use; default: a build with `--profile dist --features full`
    #[arg(long, value_name = "FILE")]
    pub(super) binary: Option<PathBuf>,
    /// Skip the size limits, for a binary of another profile
    #[arg(long)]
    pub(super) any_size: bool,
}

/// Read once, checked.
pub(super) struct LoadedPrograms {
    pub(super) tutti: Vec<u8>,
    pub(super) helm_render: Vec<u8>,
    pub(super) helm_render_path: PathBuf,
}

impl ReleasePrograms {
    pub(super) fn load(&self) -> anyhow::Result<LoadedPrograms> {
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

    pub(super) fn check(&self, what: &str, bytes: u64, limit: u64) -> anyhow::Result<()> {
        if bytes > limit && !self.any_size {
            bail!(
                "{what} has {bytes} bytes, more than the {limit} that it may have: see `cargo bloat --profile dist --features full`, \
                 or give --any-size for a binary of another profile"
            );
        }
        Ok(())
    }
}
