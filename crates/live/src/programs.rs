//! Where the programs are: in folders the user named, or in the cache.

use std::env;
use std::path::{Path, PathBuf};

use crate::module::{GITEA, KUBERNETES, KWOK, Module};
use crate::{Error, cache, compile};

const KUBERNETES_VARIABLE: &str = "TUTTI_K8S_BIN";
const GITEA_VARIABLE: &str = "TUTTI_GITEA_BIN";
const KUBERNETES_PROGRAMS: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];

/// Paths of programs that exist.
#[derive(Debug, Clone)]
pub struct Programs {
    pub etcd: PathBuf,
    pub apiserver: PathBuf,
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
    pub kubectl: PathBuf,
    pub kwok: PathBuf,
    pub gitea: PathBuf,
    /// Gitea's templates and options, unless the program carries them inside.
    pub gitea_static: Option<PathBuf>,
}

impl Programs {
    /// What is there already, without building: `None` when something is missing from the cache. A named folder that
    /// lacks a program is an error, never a reason to build.
    pub fn find() -> Result<Option<Self>, Error> {
        let cache = cache::folder()?;
        Self::locate(&|module| Ok(Some(module.home(&cache)?).filter(|home| home.is_dir())))
    }

    /// Finds the programs and builds what is missing: minutes on a cold machine. `progress` gets a line per step.
    pub fn ensure(progress: &dyn Fn(&str)) -> Result<Self, Error> {
        let cache = cache::folder()?;
        let found = Self::locate(&|module| compile::ensure(module, &cache, progress).map(Some))?;
        found.ok_or(Error::NoCacheFolder)
    }

    fn locate(home: &dyn Fn(&Module) -> Result<Option<PathBuf>, Error>) -> Result<Option<Self>, Error> {
        let kubernetes = match named(KUBERNETES_VARIABLE, &KUBERNETES_PROGRAMS)? {
            Some(folder) => Some((folder.clone(), folder)),
            None => match (home(&KUBERNETES)?, home(&KWOK)?) {
                (Some(kubernetes), Some(kwok)) => Some((kubernetes.join("bin"), kwok.join("bin"))),
                _ => None,
            },
        };
        let gitea = match named(GITEA_VARIABLE, &["gitea"])? {
            Some(folder) => {
                Some((folder.join("gitea"), Some(folder.join("static")).filter(|path| path.is_dir())))
            }
            None => home(&GITEA)?.map(|home| (home.join("bin/gitea"), Some(home.join("static")))),
        };
        Ok(kubernetes.zip(gitea).map(|((kubernetes, kwok), (gitea, gitea_static))| Self {
            etcd: kubernetes.join("etcd"),
            apiserver: kubernetes.join("kube-apiserver"),
            controller_manager: kubernetes.join("kube-controller-manager"),
            scheduler: kubernetes.join("kube-scheduler"),
            kubectl: kubernetes.join("kubectl"),
            kwok: kwok.join("kwok"),
            gitea,
            gitea_static,
        }))
    }
}

/// The folder that an environment variable names, if it is set; everything in `wanted` must be in it.
fn named(variable: &'static str, wanted: &[&str]) -> Result<Option<PathBuf>, Error> {
    let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let folders: Vec<_> = env::split_paths(&value).collect();
    let [folder] = folders.as_slice() else {
        let value = value.to_string_lossy().into_owned();
        let reason = "several folders (several versions) are not supported yet, name one".to_owned();
        return Err(Error::Variable { variable, value, reason });
    };
    let missing = missing(folder, wanted);
    if missing.is_empty() {
        return Ok(Some(folder.clone()));
    }
    Err(Error::MissingPrograms { variable, folder: folder.clone(), missing })
}

fn missing(folder: &Path, wanted: &[&str]) -> Vec<String> {
    wanted.iter().filter(|name| !folder.join(name).exists()).map(|name| (*name).to_owned()).collect()
}
