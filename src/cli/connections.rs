//! Resolves how each cluster is connected.
//!
//! A kubeconfig may name programs and files. It is therefore read only from the operator's folder, never from a checkout of the
//! repository. `--cluster` on the command line wins over the connection in a Cluster file, also for file names.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use parking_lot::Mutex;
use sandbox::{Sandbox, SandboxOptions};

use crate::cluster::{ClusterLink, HomeCluster, KeyObjectKind, StoredKubeconfig};
use crate::controller::LinkResolver;
use crate::model::{Cluster, ClusterName, Connection, DataKeyRef};
use crate::source;

/// `tutti/clusters` in the user's configuration folder, or in `/etc` without a home.
pub fn default_kubeconfigs() -> PathBuf {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")));
    base.unwrap_or_else(|| PathBuf::from("/etc")).join("tutti/clusters")
}

/// The checkout of the config repository, if it is local.
#[derive(Clone, Debug, Default)]
pub struct WorkTree(Option<PathBuf>);

impl WorkTree {
    pub fn of(url: &str) -> Self {
        Self(source::work_tree(url))
    }

    /// Whether a path is inside, links resolved. For a missing path its existing part counts.
    fn contains(&self, path: &Path) -> bool {
        let Some(root) = &self.0 else { return false };
        // The last ancestor of a relative path is empty: the working directory.
        let place =
            |it: &Path| if it.as_os_str().is_empty() { Path::new(".") } else { it }.canonicalize().ok();
        path.ancestors().find_map(place).is_some_and(|it| it.starts_with(root))
    }

    /// Refuses a link into the checkout.
    pub fn refuse_inside(&self, link: ClusterLink) -> ClusterLink {
        match &link {
            ClusterLink::Kubeconfig { path, .. } if self.contains(path) => {
                let because = format!(
                    "{} is inside of the config repository, whose kubeconfigs could name programs to run: keep it in {}, or name \
                     another folder with --kubeconfigs",
                    path.display(),
                    default_kubeconfigs().display()
                );
                ClusterLink::Invalid(because.into())
            }
            _ => link,
        }
    }
}

#[derive(Clone, Debug)]
enum ConnectionOverride {
    Sandbox,
    Kubeconfig { path: PathBuf, context: Option<String> },
}

/// Connections of clusters, and the embedded clusters in use.
#[derive(Clone, Debug)]
pub struct ClusterConnections {
    pub home: HomeCluster,
    kubeconfigs: PathBuf,
    overrides: BTreeMap<String, ConnectionOverride>,
    work_tree: WorkTree,
    /// Embedded clusters start only by `--cluster`, never by a Cluster file.
    pub embeds_only_by_flag: bool,
    sandboxes: Arc<Mutex<BTreeMap<String, Sandbox>>>,
}

impl ClusterConnections {
    pub fn parse(
        home: HomeCluster,
        kubeconfigs: PathBuf,
        ways: &[String],
        work_tree: WorkTree,
    ) -> anyhow::Result<Self> {
        let mut replaced = BTreeMap::new();
        for text in ways {
            let Some((name, way)) =
                text.split_once('=').filter(|(name, way)| !name.is_empty() && !way.is_empty())
            else {
                bail!("--cluster {text}: expected NAME=FILE[#CONTEXT] or NAME=sandbox");
            };
            let way = match way.split_once('#') {
                None if way == "sandbox" => ConnectionOverride::Sandbox,
                None => ConnectionOverride::Kubeconfig { path: kubeconfigs.join(way), context: None },
                Some((path, context)) => ConnectionOverride::Kubeconfig {
                    path: kubeconfigs.join(path),
                    context: Some(context.to_owned()),
                },
            };
            replaced.insert(name.to_owned(), way);
        }
        Ok(Self {
            home,
            kubeconfigs,
            overrides: replaced,
            work_tree,
            embeds_only_by_flag: false,
            sandboxes: Arc::default(),
        })
    }

    /// Every cluster is embedded.
    pub fn all_sandbox() -> Self {
        Self {
            home: HomeCluster::default(),
            kubeconfigs: default_kubeconfigs(),
            overrides: BTreeMap::from([("*".to_owned(), ConnectionOverride::Sandbox)]),
            work_tree: WorkTree::default(),
            embeds_only_by_flag: false,
            sandboxes: Arc::default(),
        }
    }

    pub fn all_are_sandbox(&self) -> bool {
        matches!(self.overrides.get("*"), Some(ConnectionOverride::Sandbox))
    }

    pub fn links(&self) -> LinkResolver {
        let ways = self.clone();
        Arc::new(move |cluster| ways.link(cluster))
    }

    /// Clusters with an override by name.
    pub fn named_links(&self) -> BTreeMap<ClusterName, ClusterLink> {
        let named = self.overrides.iter().filter(|(name, _)| *name != "*");
        named.map(|(name, way)| (ClusterName::from(name.as_str()), self.override_link(name, way))).collect()
    }

    fn override_link(&self, name: &str, way: &ConnectionOverride) -> ClusterLink {
        match way {
            ConnectionOverride::Sandbox => ClusterLink::in_process(self.sandbox(name).service()),
            ConnectionOverride::Kubeconfig { path, context } => self
                .work_tree
                .refuse_inside(ClusterLink::Kubeconfig { path: path.clone(), context: context.clone() }),
        }
    }

    fn link(&self, cluster: &Cluster) -> ClusterLink {
        let name = cluster.name.as_str();
        if let Some(way) = self.overrides.get(name).or_else(|| self.overrides.get("*")) {
            return self.override_link(name, way);
        }
        match &cluster.connection {
            Connection::Sandbox if self.embeds_only_by_flag => ClusterLink::Invalid(
                format!("an embedded cluster, which `tutti run` starts only with --cluster {name}=sandbox")
                    .into(),
            ),
            Connection::Sandbox => ClusterLink::in_process(self.sandbox(name).service()),
            Connection::Kubeconfig { path, context } => {
                self.work_tree.refuse_inside(ClusterLink::Kubeconfig {
                    path: self.kubeconfigs.join(path),
                    context: context.clone(),
                })
            }
            Connection::KubeconfigSecret { at, context } => {
                self.stored_link(KeyObjectKind::Secret, at, context.clone())
            }
            Connection::ConfigMap { at, .. } => self.stored_link(KeyObjectKind::ConfigMap, at, None),
            Connection::InCluster => ClusterLink::InCluster,
        }
    }

    fn stored_link(&self, keeper: KeyObjectKind, at: &DataKeyRef, context: Option<String>) -> ClusterLink {
        ClusterLink::Stored(StoredKubeconfig {
            home: self.home.clone(),
            object_kind: keeper,
            at: at.clone(),
            context,
        })
    }

    /// Overrides whose cluster does not exist.
    pub fn unknown_overrides(&self, clusters: &[&str]) -> Vec<&str> {
        self.overrides
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "*" && !clusters.contains(name))
            .collect()
    }

    /// The embedded cluster of this name, created on demand.
    pub fn sandbox(&self, name: &str) -> Sandbox {
        self.sandboxes
            .lock()
            .entry(name.to_owned())
            .or_insert_with(|| {
                Sandbox::new(SandboxOptions { name: name.to_owned(), ..SandboxOptions::default() })
            })
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_relative_path_is_in_the_working_directory() {
        let here = WorkTree(Path::new(".").canonicalize().ok());
        let elsewhere = WorkTree(Path::new("src").canonicalize().ok());
        for path in ["not", "not/there", "./not/there"] {
            assert!(here.contains(Path::new(path)) && !elsewhere.contains(Path::new(path)), "{path}");
        }
        assert!(!here.contains(Path::new("/not/there")));
    }
}
