//! kustomize, for the overlay benchmark.

use std::path::PathBuf;

use crate::go_module::KUSTOMIZE;
use crate::{Error, cache, compile};

/// Paths of programs that exist.
#[derive(Debug, Clone)]
pub struct KustomizePrograms {
    pub kustomize: PathBuf,
    /// Builds all overlays of a folder in one process, and prints the seconds.
    pub library_runner: PathBuf,
}

impl KustomizePrograms {
    /// Builds what is missing.
    pub fn ensure(progress: &dyn Fn(&str)) -> Result<Self, Error> {
        let home = compile::ensure(&KUSTOMIZE, &cache::folder()?, progress)?.join("bin");
        Ok(Self { kustomize: home.join("kustomize"), library_runner: home.join("overlays") })
    }
}
