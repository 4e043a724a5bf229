//! Finds the source of each chart: a remote repository, an OCI registry, or the folder `charts/`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Fleet;
use crate::manifest::read::suggest;
use crate::manifest::yaml;
use crate::model::{
    App, AppSpec, Chart, ChartFailure, ChartFailureKind, ChartName, ChartRef, ChartRepository, ChartSource,
    Digest, Snapshot, SnapshotFile,
};

/// The folder of charts in the config repository.
pub const CHARTS_FOLDER: &str = "charts/";

/// Why a chart has no source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartSourceError {
    UnknownRepository { help: String },
    NoVersion,
}

/// The source of a chart. Aliases come from the instance.
pub fn chart_source(
    chart: &ChartRef,
    repositories: &[ChartRepository],
) -> Result<ChartSource, ChartSourceError> {
    let (url, version) = match &chart.named {
        ChartName::Raw(archive) => {
            return Ok(ChartSource::Raw { digest: Digest::of(archive), archive: Arc::clone(archive) });
        }
        ChartName::Url { url, version } => (url, version),
    };
    let wanted = || version.clone().ok_or(ChartSourceError::NoVersion);
    if url.starts_with("oci://") {
        return Ok(ChartSource::Registry { url: url.clone(), version: wanted()? });
    }
    let (alias, name) = url.split_once('/').unwrap_or(("", url));
    let folder = || ChartSource::Folder { name: name.to_owned(), version: version.clone() };
    let Some(repository) = repositories.iter().find(|repository| repository.name == alias) else {
        if alias == CHARTS_FOLDER.trim_end_matches('/') {
            return Ok(folder());
        }
        let known: Vec<&str> = repositories.iter().map(|repository| repository.name.as_str()).collect();
        let help = if known.is_empty() {
            format!("name it in tutti.yaml: `charts: {{repositories: [{{name: {alias}, url: https://…}}]}}`")
        } else {
            suggest(alias, &known, &known)
        };
        return Err(ChartSourceError::UnknownRepository { help });
    };
    if repository.url == CHARTS_FOLDER {
        return Ok(folder());
    }
    if repository.url.starts_with("oci://") {
        return Ok(ChartSource::Registry { url: format!("{}/{name}", repository.url), version: wanted()? });
    }
    Ok(ChartSource::Repository { url: repository.url.clone(), chart: name.to_owned(), version: wanted()? })
}

/// The folder of a chart in the config repository, with a final `/`.
pub fn folder_of(chart: &ChartRef, repositories: &[ChartRepository]) -> Option<String> {
    match chart_source(chart, repositories) {
        Ok(ChartSource::Folder { name, .. }) => Some(format!("{CHARTS_FOLDER}{name}/")),
        _ => None,
    }
}

/// The charts that must be fetched before the fleet can be rendered.
pub fn remote_sources(fleet: &Fleet) -> BTreeSet<ChartSource> {
    fleet.apps.values().flat_map(|app| remote_sources_of(app, fleet)).collect()
}

pub fn remote_sources_of(app: &App, fleet: &Fleet) -> BTreeSet<ChartSource> {
    let AppSpec::AppSet(app_set) = &app.spec else { return BTreeSet::new() };
    let sources = app_set.charts().filter_map(|chart| chart_source(chart, &fleet.instance.charts).ok());
    sources.filter(ChartSource::is_remote).collect()
}

/// A chart of the folder `charts/`. Its digest covers names and blob ids, so no content is hashed.
pub fn chart_in_folder(
    name: &str,
    version: Option<&str>,
    snapshot: &Snapshot,
) -> Result<Chart, ChartFailure> {
    let origin = format!("{CHARTS_FOLDER}{name}/");
    let inside = snapshot.files_in(&origin);
    let files: BTreeMap<&str, &SnapshotFile> =
        inside.map(|(path, file)| (&path[origin.len()..], file)).collect();
    if !files.contains_key("Chart.yaml") {
        let known = chart_names(snapshot);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let failure = ChartFailure::new(ChartFailureKind::Missing, format!("there is no chart {origin}"));
        return Err(failure.help(suggest(name, &known, &known)));
    }
    if let Some((name, excess)) = files.iter().find_map(|(name, file)| Some((name, file.why_unreadable()?))) {
        return Err(ChartFailure::new(ChartFailureKind::Malformed, format!("{origin}{name} {excess}")));
    }
    let chart = Chart {
        digest: Digest::of_files(files.iter().map(|(name, file)| (*name, *file))),
        files: files.iter().map(|(name, file)| ((*name).to_owned(), Arc::clone(&file.content))).collect(),
        folder: true,
        origin,
    };
    match (version, chart_field(&chart, "version")) {
        (Some(wanted), Some(own)) if own != wanted => {
            let message = format!("{} has version {own}, and not {wanted}", chart.origin);
            let help = "a folder of this repository has one version: change chartVersion, or leave it out";
            Err(ChartFailure::new(ChartFailureKind::Missing, message).help(help))
        }
        _ => Ok(chart),
    }
}

/// A text field of the `Chart.yaml`.
pub fn chart_field(chart: &Chart, field: &str) -> Option<String> {
    let values = yaml::parse_values("Chart.yaml", chart.text("Chart.yaml")?).ok()?;
    values.get(field)?.as_str().map(str::to_owned)
}

fn chart_names(snapshot: &Snapshot) -> BTreeSet<String> {
    let name = |path: &str| Some(path.strip_prefix(CHARTS_FOLDER)?.split_once('/')?.0.to_owned());
    snapshot.files_in(CHARTS_FOLDER).filter_map(|(path, _)| name(path)).collect()
}
