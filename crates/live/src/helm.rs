//! The chart renderer `helm-render`, and the `helm` command that tests compare it with.

use std::env;
use std::path::{Path, PathBuf};

use crate::go_module::{GoModule, HELM, HELM_RENDER};
use crate::tier::print_uncaptured;
use crate::{Error, cache, compile};

/// Paths of programs that exist.
#[derive(Debug, Clone)]
pub struct HelmPrograms {
    /// `helm-render`, from `tools/helm-render`.
    pub helm_render: PathBuf,
    /// `helm` of the same version.
    pub helm: PathBuf,
}

impl HelmPrograms {
    /// As [`crate::Tier::from_env`]: with `TUTTI_LIVE=1` what is missing is built; else `Err(line)` inside says why there
    /// is nothing, to be printed.
    pub fn from_env() -> Result<Result<Self, String>, Error> {
        match env::var("TUTTI_LIVE").unwrap_or_default().as_str() {
            "1" => {
                let render = build(&HELM_RENDER)?;
                Ok(Ok(Self { helm_render: render, helm: build(&HELM)? }))
            }
            "0" => Ok(Err(skipped_line("TUTTI_LIVE=0"))),
            _ => match (find_built(&HELM_RENDER)?, find_built(&HELM)?) {
                (Some(render), Some(command)) => Ok(Ok(Self { helm_render: render, helm: command })),
                _ => Ok(Err(skipped_line("run `cargo xtask helm-render --with-helm`, or set TUTTI_LIVE=1"))),
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

fn build(module: &GoModule) -> Result<PathBuf, Error> {
    Ok(program(module, &compile::ensure(module, &cache::folder()?, &|line| print_uncaptured(line))?))
}

fn find_built(module: &GoModule) -> Result<Option<PathBuf>, Error> {
    let home = module.home(&cache::folder()?)?;
    Ok(home.is_dir().then(|| program(module, &home)))
}

fn program(module: &GoModule, home: &Path) -> PathBuf {
    home.join("bin").join(module.name)
}

fn skipped_line(why: &str) -> String {
    format!("##### THE TESTS OF CHARTS DID NOT RUN: helm-render and helm are not built: {why} #####")
}
