//! kustomize, for the overlay benchmark.

use std::path::PathBuf;

use crate::module::KUSTOMIZE;
use crate::{Error, cache, compile};

/// Paths of programs that exist.
#[derive(Debug, Clone)]
pub struct Kustomize {
    pub command: PathBuf,
    /// Builds all overlays of a folder in one process, and prints the seconds.
    pub in_process: PathBuf,
}

impl Kustomize {
    /// Builds what is missing.
    pub fn ensure(progress: &dyn Fn(&str)) -> Result<Self, Error> {
        let home = compile::ensure(&KUSTOMIZE, &cache::folder()?, progress)?.join("bin");
        Ok(Self { command: home.join("kustomize"), in_process: home.join("overlays") })
    }
}
