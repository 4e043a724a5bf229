//! The chart renderer `helm-render`, and the `helm` command that tests compare it with.

use std::env;
use std::path::{Path, PathBuf};

use crate::module::{HELM, HELM_RENDER, Module};
use crate::tier::say;
use crate::{Error, cache, compile};

/// Paths of programs that exist.
#[derive(Debug, Clone)]
pub struct Helm {
    /// `helm-render`, from `tools/helm-render`.
    pub render: PathBuf,
    /// `helm` of the same version.
    pub command: PathBuf,
}

impl Helm {
    /// As [`crate::Tier::from_env`]: with `TUTTI_LIVE=1` what is missing is built; else `Err(line)` inside says why there
    /// is nothing, to be printed.
    pub fn from_env() -> Result<Result<Self, String>, Error> {
        match env::var("TUTTI_LIVE").unwrap_or_default().as_str() {
            "1" => {
                let render = build(&HELM_RENDER)?;
                Ok(Ok(Self { render, command: build(&HELM)? }))
            }
            "0" => Ok(Err(absent("TUTTI_LIVE=0"))),
            _ => match (found(&HELM_RENDER)?, found(&HELM)?) {
                (Some(render), Some(command)) => Ok(Ok(Self { render, command })),
                _ => Ok(Err(absent("run `cargo xtask helm-render --with-helm`, or set TUTTI_LIVE=1"))),
            },
        }
    }

    /// Builds the renderer alone, and answers with its path.
    pub fn ensure_render(progress: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        Ok(program(&HELM_RENDER, &compile::ensure(&HELM_RENDER, &cache::folder()?, progress)?))
    }

    /// Builds the command, and answers with its path.
    pub fn ensure_command(progress: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        Ok(program(&HELM, &compile::ensure(&HELM, &cache::folder()?, progress)?))
    }
}

fn build(module: &Module) -> Result<PathBuf, Error> {
    Ok(program(module, &compile::ensure(module, &cache::folder()?, &|line| say(line))?))
}

fn found(module: &Module) -> Result<Option<PathBuf>, Error> {
    let home = module.home(&cache::folder()?)?;
    Ok(home.is_dir().then(|| program(module, &home)))
}

fn program(module: &Module, home: &Path) -> PathBuf {
    home.join("bin").join(module.name)
}

fn absent(why: &str) -> String {
    format!("##### THE TESTS OF CHARTS DID NOT RUN: helm-render and helm are not built: {why} #####")
}
