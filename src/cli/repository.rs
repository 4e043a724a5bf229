//! Reads and renders a config repository without any cluster; shared by commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::output::tell;
use super::session::Source;
use crate::chart::{self, Sites};
use crate::fleet::{self, Fleet};
use crate::manifest;
use crate::model::{ClusterName, KubeVersion, Rendered, Snapshot};
use crate::source::{self, Credentials, Options, Repository};
use crate::worker::Workers;

/// The folder on disk, or a commit of its repository.
pub async fn snapshot(path: &Path, revision: Option<&str>) -> anyhow::Result<Snapshot> {
    let Some(revision) = revision else {
        return Ok(source::read_folder(path, manifest::listed_beside).map_err(Source)?);
    };
    let options = Options {
        url: path.display().to_string(),
        branch: None,
        path: ".".to_owned(),
        listed: manifest::listed_beside,
        credentials: Credentials::None,
        state: std::env::temp_dir().join("tutti"),
    };
    let repository = Repository::open(options).await.map_err(Source)?;
    let revision = repository.resolve(revision).await.map_err(Source)?;
    Ok(repository.snapshot(&revision).await.map_err(Source)?)
}

pub fn fleet(snapshot: &Snapshot) -> Fleet {
    fleet::assemble(manifest::read(snapshot), snapshot)
}

/// Notes clusters whose Kubernetes version was assumed although a render depends on it.
pub fn note_guesses<'a>(fleet: &Fleet, rendered: impl Iterator<Item = &'a Rendered>) {
    let asked: BTreeSet<&ClusterName> =
        rendered.filter(|it| it.questions.are_about_versions()).map(|it| &it.cluster).collect();
    let silent = |name: &&&ClusterName| {
        fleet.clusters.get(**name).is_some_and(|it| it.version.is_none() && it.capabilities.is_empty())
    };
    let names: Vec<&str> = asked.iter().filter(silent).map(|name| name.as_str()).collect();
    if !names.is_empty() {
        let guessed = KubeVersion::newest();
        tell!(
            "note: no cluster was asked: {} taken for Kubernetes {}.{}; `version` and `capabilities` in a Cluster file say otherwise",
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
pub fn renderers(sites: Sites) -> chart::Service {
    chart::Service::found(sites).with_template_workers(Arc::new(Workers::default()))
}

/// The same, with the fleet's remote charts fetched.
pub async fn charts(fleet: &Fleet, sites: Sites) -> chart::Service {
    let charts = renderers(sites);
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
