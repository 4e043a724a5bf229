//! What to start, and what then runs.

use std::path::Path;

use futures::future::{OptionFuture, join, try_join_all};

use crate::process::Process;
use crate::run::RunFolder;
use crate::{Cluster, Error, Gitea, Programs, cache};

/// What to start.
#[derive(Debug, Clone)]
pub struct Setup {
    /// One cluster per name.
    pub clusters: Vec<String>,
    pub gitea: bool,
}

impl Setup {
    /// `cluster-1` to `cluster-<count>`, and a Gitea.
    pub fn new(count: usize) -> Self {
        Self { clusters: (1..=count).map(|number| format!("cluster-{number}")).collect(), gitea: true }
    }

    /// Clusters of these names, and a Gitea.
    pub fn named<Name: Into<String>>(names: impl IntoIterator<Item = Name>) -> Self {
        Self { clusters: names.into_iter().map(Into::into).collect(), gitea: true }
    }

    #[must_use]
    pub fn without_gitea(mut self) -> Self {
        self.gitea = false;
        self
    }
}

/// Running clusters, perhaps a Gitea, and their folder. Dropping it stops every process and removes the folder, which
/// stays (with the logs) when a thread panicked meanwhile or [`Live::keep`] was called.
///
/// A test binary may hold one in a static: statics are never dropped, but the processes die with the binary.
#[derive(Debug)]
pub struct Live {
    clusters: Vec<Cluster>,
    gitea: Option<Gitea>,
    // Last: fields are dropped in order, and the processes must be gone before their folder.
    folder: RunFolder,
}

impl Live {
    /// Starts everything side by side and waits until all of it is ready. Logs of a failed start are kept.
    pub async fn start(programs: &Programs, setup: &Setup) -> Result<Self, Error> {
        let folder = RunFolder::create(&cache::folder()?)?;
        let clusters = setup.clusters.iter().map(|name| {
            let home = folder.path().join(name);
            async move { Cluster::start(name, &home, programs).await }
        });
        let home = folder.path().join("gitea");
        let gitea: OptionFuture<_> = setup.gitea.then(|| Gitea::start(&home, programs)).into();
        let (clusters, gitea) = join(try_join_all(clusters), gitea).await;
        match (clusters, gitea.transpose()) {
            (Ok(clusters), Ok(gitea)) => Ok(Self { clusters, gitea, folder }),
            (Err(error), _) | (_, Err(error)) => {
                folder.keep();
                Err(error)
            }
        }
    }

    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// In the order of the setup, from 0.
    pub fn cluster(&self, index: usize) -> &Cluster {
        &self.clusters[index]
    }

    /// `None` when the setup has none.
    pub fn gitea(&self) -> Option<&Gitea> {
        self.gitea.as_ref()
    }

    /// Data, certificates and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder, for a failure that is not a panic.
    pub fn keep(&self) {
        self.folder.keep();
    }

    /// The versions that run, for the log: `Kubernetes v1.36.4 ×4, Gitea 1.26.4`.
    pub fn versions(&self) -> String {
        let kubernetes = self.clusters.first().map_or("none", Cluster::version);
        let gitea = self.gitea.as_ref().map_or("none", Gitea::version);
        format!("Kubernetes {kubernetes} ×{}, Gitea {gitea}", self.clusters.len())
    }

    /// The last lines of every log, to print when a test fails.
    pub fn log_tails(&self, lines: usize) -> String {
        self.processes().map(|process| process.log_tail(lines)).collect()
    }

    /// The ids of all processes, for someone who wants to see that they are gone afterwards.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes().filter_map(Process::id).collect()
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.clusters.iter().flat_map(Cluster::processes).chain(self.gitea.iter().map(Gitea::process))
    }
}
