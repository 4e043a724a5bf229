//! The configuration of a live environment, and the running environment.

use std::path::Path;

use futures::future::{OptionFuture, join, try_join_all};

use crate::process::TierProcess;
use crate::run_folder::RunFolder;
use crate::{Error, GiteaServer, LiveCluster, TierPrograms, cache};

/// The clusters and services to start.
#[derive(Debug, Clone)]
pub struct LiveSetup {
    /// One cluster per name.
    pub clusters: Vec<String>,
    /// So many of the last clusters run the other versions of Kubernetes that there are, one after the other.
    pub older_count: usize,
    pub gitea: bool,
}

impl LiveSetup {
    /// `cluster-1` to `cluster-<count>`, and a Gitea.
    pub fn new(count: usize) -> Self {
        Self::named((1..=count).map(|number| format!("cluster-{number}")))
    }

    /// Clusters of these names, and a Gitea.
    pub fn named<Name: Into<String>>(names: impl IntoIterator<Item = Name>) -> Self {
        Self { clusters: names.into_iter().map(Into::into).collect(), older_count: 0, gitea: true }
    }

    /// Lets the last clusters run older versions of Kubernetes.
    #[must_use]
    pub fn with_old(mut self, count: usize) -> Self {
        self.older_count = count;
        self
    }

    #[must_use]
    pub fn without_gitea(mut self) -> Self {
        self.gitea = false;
        self
    }

    /// Which of so many older versions a cluster runs; `None`: the newest.
    fn older_version_index(&self, index: usize, versions: usize) -> Option<usize> {
        let first = self.clusters.len().saturating_sub(self.older_count);
        index.checked_sub(first).and_then(|place| place.checked_rem(versions))
    }
}

/// Running clusters, perhaps a Gitea, and their folder. Dropping it stops every process and removes the folder, which
/// stays (with the logs) when a thread panicked meanwhile or [`LiveEnvironment::keep`] was called.
///
/// A test binary may hold one in a static: statics are never dropped, but the processes die with the binary.
#[derive(Debug)]
pub struct LiveEnvironment {
    clusters: Vec<LiveCluster>,
    gitea: Option<GiteaServer>,
    // Last: fields are dropped in order, and the processes must be gone before their folder.
    folder: RunFolder,
}

impl LiveEnvironment {
    /// Starts everything side by side and waits until all of it is ready. Logs of a failed start are kept.
    pub async fn start(programs: &TierPrograms, setup: &LiveSetup) -> Result<Self, Error> {
        let folder = RunFolder::create(&cache::folder()?)?;
        let clusters = setup.clusters.iter().enumerate().map(|(index, name)| {
            let home = folder.path().join(name);
            let older = setup
                .older_version_index(index, programs.older.len())
                .and_then(|place| programs.older.get(place));
            let control_plane = older.unwrap_or(&programs.newest);
            async move { LiveCluster::start(name, &home, programs, control_plane).await }
        });
        let home = folder.path().join("gitea");
        let gitea: OptionFuture<_> = setup.gitea.then(|| GiteaServer::start(&home, programs)).into();
        let (clusters, gitea) = join(try_join_all(clusters), gitea).await;
        match (clusters, gitea.transpose()) {
            (Ok(clusters), Ok(gitea)) => Ok(Self { clusters, gitea, folder }),
            (Err(error), _) | (_, Err(error)) => {
                folder.keep();
                Err(error)
            }
        }
    }

    pub fn clusters(&self) -> &[LiveCluster] {
        &self.clusters
    }

    /// In the order of the setup, from 0.
    pub fn cluster(&self, index: usize) -> &LiveCluster {
        &self.clusters[index]
    }

    /// `None` when the setup has none.
    pub fn gitea(&self) -> Option<&GiteaServer> {
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

    /// The versions that run, for the log: `Kubernetes v1.36.4 ×3, v1.30.14 ×1, Gitea 1.26.4`.
    pub fn versions(&self) -> String {
        let versions: Vec<&str> = self.clusters.iter().map(LiveCluster::version).collect();
        let runs: Vec<String> = versions
            .chunk_by(|one, next| one == next)
            .map(|run| format!("{} ×{}", run[0], run.len()))
            .collect();
        let kubernetes = if runs.is_empty() { "none".to_owned() } else { runs.join(", ") };
        let gitea = self.gitea.as_ref().map_or("none", GiteaServer::version);
        format!("Kubernetes {kubernetes}, Gitea {gitea}")
    }

    /// The last lines of every log, to print when a test fails.
    pub fn log_tails(&self, lines: usize) -> String {
        self.processes().map(|process| process.log_tail(lines)).collect()
    }

    /// The ids of all processes, for checks that they have ended.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes().filter_map(TierProcess::id).collect()
    }

    fn processes(&self) -> impl Iterator<Item = &TierProcess> {
        self.clusters
            .iter()
            .flat_map(LiveCluster::processes)
            .chain(self.gitea.iter().map(GiteaServer::process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_clusters_run_the_old_versions() {
        fn check(old: usize, versions: usize, expected: [Option<usize>; 4]) {
            let setup = LiveSetup::new(4).with_old(old);
            let found: Vec<_> = (0..4).map(|index| setup.older_version_index(index, versions)).collect();
            assert_eq!(found, expected, "{old} of {versions} versions");
        }
        check(0, 1, [None; 4]);
        check(1, 1, [None, None, None, Some(0)]);
        check(3, 2, [None, Some(0), Some(1), Some(0)]);
        check(1, 0, [None; 4]);
    }
}
