//! Reads and renders a config repository without any cluster; shared by commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::output::tell;
use super::process::ProcessSettings;
use super::session::SourceError;
use crate::chart::{self, ChartHosts};
use crate::fleet::{self, Fleet};
use crate::manifest;
use crate::model::{ClusterName, KubeVersion, RenderedTarget, Snapshot};
use crate::source::{self, ConfigRepository, GitCredentials, SourceOptions};
use crate::worker::WorkerPool;

/// The folder on disk, or a commit of its repository.
pub async fn snapshot(path: &Path, revision: Option<&str>) -> anyhow::Result<Snapshot> {
    let Some(revision) = revision else {
        return Ok(source::read_folder(path, manifest::listed_beside).map_err(SourceError)?);
    };
    let options = SourceOptions {
        url: path.display().to_string(),
        branch: None,
        path: ".".to_owned(),
        outside_file_lister: manifest::listed_beside,
        credentials: GitCredentials::None,
        state_folder: std::env::temp_dir().join("tutti"),
    };
    let repository = ConfigRepository::open(options).await.map_err(SourceError)?;
    let revision = repository.resolve(revision).await.map_err(SourceError)?;
    Ok(repository.snapshot(&revision).await.map_err(SourceError)?)
}

pub async fn load_snapshot(process: &ProcessSettings, worktree: bool) -> anyhow::Result<Snapshot> {
    if worktree {
        return Ok(source::read_folder(&manifest_folder(&process.source), manifest::listed_beside)
            .map_err(SourceError)?);
    }
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(SourceError)?;
    let revision = repository.fetch().await.map_err(SourceError)?;
    Ok(repository.snapshot(&revision).await.map_err(SourceError)?)
}

/// The folder's repository, at its checked out branch.
pub async fn repository_of_folder(process: &ProcessSettings) -> Result<ConfigRepository, source::Error> {
    ConfigRepository::open(SourceOptions { branch: None, ..process.source.clone() }).await
}

pub fn manifest_folder(source: &SourceOptions) -> PathBuf {
    let names = source.path.split('/').filter(|name| !name.is_empty() && *name != ".");
    names.fold(PathBuf::from(&source.url), |folder, name| folder.join(name))
}

pub fn fleet(snapshot: &Snapshot) -> Fleet {
    fleet::assemble(manifest::read(snapshot), snapshot)
}

/// Notes clusters whose Kubernetes version was assumed although a render depends on it.
pub fn note_assumed_versions<'a>(fleet: &Fleet, rendered: impl Iterator<Item = &'a RenderedTarget>) {
    let asked: BTreeSet<&ClusterName> =
        rendered.filter(|it| it.capability_queries.depend_on_version()).map(|it| &it.cluster).collect();
    let silent = |name: &&&ClusterName| {
        fleet.clusters.get(**name).is_some_and(|it| it.version.is_none() && it.capabilities.is_empty())
    };
    let names: Vec<&str> = asked.iter().filter(silent).map(|name| name.as_str()).collect();
    if !names.is_empty() {
        let guessed = KubeVersion::newest();
        tell!(
            "note: no cluster was contacted: {} assumed to run Kubernetes {}.{}; `version` and \
             `capabilities` in a Cluster file change this",
            match names[..] {
                [name] => format!("{name} is"),
                _ => format!("{} are", names.join(", ")),
            },
            guessed.major,
            guessed.minor,
        );
    }
}

/// The service that renders charts and templates.
pub fn chart_service(sites: ChartHosts) -> chart::ChartService {
    chart::ChartService::from_environment(sites).with_template_workers(Arc::new(WorkerPool::default()))
}

/// The same, with the fleet's remote charts fetched.
pub async fn fetched_charts(fleet: &Fleet, sites: ChartHosts) -> chart::ChartService {
    let charts = chart_service(sites);
    charts.fetch_all(&fleet::charts::remote_sources(fleet)).await;
    charts
}

pub fn with_files(base: &Snapshot, files: &BTreeMap<String, String>) -> Snapshot {
    let mut snapshot = base.clone();
    for (path, text) in files {
        snapshot.put(path, text);
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::connections::ClusterConnections;
    use crate::cli::session::default_process;

    #[test]
    fn manifest_folder_is_below_the_repository() {
        let check = |path: &str, expected: &str| {
            let mut process = default_process("/a/b".to_owned(), ClusterConnections::all_sandbox());
            process.source.path = path.to_owned();
            assert_eq!(manifest_folder(&process.source), PathBuf::from(expected), "{path}");
        };
        check(".", "/a/b");
        check("./sub//fleet/", "/a/b/sub/fleet");
        check("/sub", "/a/b/sub");
    }
}
