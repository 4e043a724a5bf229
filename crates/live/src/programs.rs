//! Finds the programs in folders that the user named, else in the cache.

use std::env;
use std::path::{Path, PathBuf};

use crate::go_module::{GITEA, GoModule, KUBERNETES, KWOK, OLD_KUBERNETES};
use crate::{Error, cache, compile};

const KUBERNETES_VARIABLE: &str = "TUTTI_K8S_BIN";
const GITEA_VARIABLE: &str = "TUTTI_GITEA_BIN";
const CONTROL_PLANE: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
/// Of any version; those of the first folder serve all.
const SHARED_PROGRAMS: [&str; 3] = ["etcd", "kubectl", "kwok"];

/// The programs that differ between versions of Kubernetes.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    pub apiserver: PathBuf,
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
}

impl ControlPlane {
    fn in_folder(folder: &Path) -> Self {
        Self {
            apiserver: folder.join("kube-apiserver"),
            controller_manager: folder.join("kube-controller-manager"),
            scheduler: folder.join("kube-scheduler"),
        }
    }
}

/// Paths of programs that exist.
#[derive(Debug, Clone)]
pub struct TierPrograms {
    pub etcd: PathBuf,
    /// The control plane that clusters run by default.
    pub newest: ControlPlane,
    pub older: Vec<ControlPlane>,
    pub kubectl: PathBuf,
    pub kwok: PathBuf,
    pub gitea: PathBuf,
    /// Gitea's templates and options, unless the program carries them inside.
    pub gitea_static: Option<PathBuf>,
}

impl TierPrograms {
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

    fn locate(home: &dyn Fn(&GoModule) -> Result<Option<PathBuf>, Error>) -> Result<Option<Self>, Error> {
        let named_folders = folders(KUBERNETES_VARIABLE);
        let kubernetes = match named_folders.split_first() {
            Some((first, others)) => {
                check(KUBERNETES_VARIABLE, first, &[SHARED_PROGRAMS, CONTROL_PLANE].concat())?;
                for other in others {
                    check(KUBERNETES_VARIABLE, other, &CONTROL_PLANE)?;
                }
                Some((first.clone(), others.to_vec(), first.clone()))
            }
            None => match (home(&KUBERNETES)?, home(&OLD_KUBERNETES)?, home(&KWOK)?) {
                (Some(newest), Some(old), Some(kwok)) => {
                    Some((newest.join("bin"), vec![old.join("bin")], kwok.join("bin")))
                }
                _ => None,
            },
        };
        let gitea = match folders(GITEA_VARIABLE).as_slice() {
            [] => home(&GITEA)?.map(|home| (home.join("bin/gitea"), Some(home.join("static")))),
            [folder] => {
                check(GITEA_VARIABLE, folder, &["gitea"])?;
                Some((folder.join("gitea"), Some(folder.join("static")).filter(|path| path.is_dir())))
            }
            several => {
                let value = several.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(":");
                let reason = "only one Gitea is supported: name one folder".to_owned();
                return Err(Error::Variable { variable: GITEA_VARIABLE, value, reason });
            }
        };
        Ok(kubernetes.zip(gitea).map(|((newest, older, kwok), (gitea, gitea_static))| Self {
            etcd: newest.join("etcd"),
            newest: ControlPlane::in_folder(&newest),
            older: older.iter().map(|folder| ControlPlane::in_folder(folder)).collect(),
            kubectl: newest.join("kubectl"),
            kwok: kwok.join("kwok"),
            gitea,
            gitea_static,
        }))
    }
}

/// The folders that an environment variable names.
fn folders(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(|value| env::split_paths(&value).collect()).unwrap_or_default()
}

/// Everything in `wanted` must be there.
fn check(variable: &'static str, folder: &Path, wanted: &[&str]) -> Result<(), Error> {
    let missing = missing(folder, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::MissingPrograms { variable, folder: folder.to_owned(), missing })
}

fn missing(folder: &Path, wanted: &[&str]) -> Vec<String> {
    wanted.iter().filter(|name| !folder.join(name).exists()).map(|name| (*name).to_owned()).collect()
}
