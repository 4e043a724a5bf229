//! Adds clusters to an overview whose file is deleted in the working tree but present in the last commit. After the next commit
//! they would be reported as dropped.

use std::collections::BTreeSet;

use super::process::ProcessSettings;
use super::repository::repository_of_folder;
use crate::manifest;
use crate::model::{ClusterName, ClusterState, Diagnostic, DiagnosticScope, Revision};
use crate::report::{ClusterReport, Overview, UNREGISTERED};
use crate::source::Error;

pub async fn add_removed_clusters(overview: &mut Overview, process: &ProcessSettings) {
    // An invalid file is not a deleted one; failed renders do not matter here.
    let is_of_file = |it: &&Diagnostic| it.is_error() && !matches!(it.scope, DiagnosticScope::Target(..));
    if overview.revision.is_none() || overview.diagnostics.iter().any(|it| is_of_file(&it)) {
        return;
    }
    match committed_clusters(process).await {
        Ok((head, committed)) => {
            let here: BTreeSet<&ClusterName> =
                overview.clusters.iter().map(|cluster| &cluster.name).collect();
            let gone: Vec<_> = committed.into_iter().filter(|name| !here.contains(name)).collect();
            overview.clusters.extend(gone.into_iter().map(|name| removed_cluster_report(name, &head)));
            overview.clusters.sort_by(|a, b| a.name.cmp(&b.name));
        }
        // The folder may be no repository, or without a commit.
        Err(error) => tracing::debug!(%error, "the clusters of the last commit are not known"),
    }
}

/// The last commit and its clusters, without those with `state: Removed`.
async fn committed_clusters(process: &ProcessSettings) -> Result<(Revision, BTreeSet<ClusterName>), Error> {
    let repository = repository_of_folder(process).await?;
    let head = repository.fetch().await?;
    let snapshot = repository.files_without_history(&head).await?;
    let ignored = manifest::IgnoredFiles::of(&snapshot);
    let files = snapshot.files.iter().filter(|(path, _)| ignored.is_candidate(path));
    let clusters = files.filter_map(|(path, file)| manifest::clusters_in(path, &file.content)).flatten();
    let is_removed = |state: ClusterState| state == ClusterState::Removed;
    let named = clusters.filter(|(_, read)| !read.as_ref().is_some_and(|it| is_removed(it.state)));
    Ok((head, named.map(|(name, _)| name).collect()))
}

fn removed_cluster_report(name: ClusterName, head: &Revision) -> ClusterReport {
    ClusterReport {
        name,
        ring: None,
        state: UNREGISTERED,
        detail: format!(
            "{} has its file, but the folder does not; its objects stay (help: to delete them, set `state: \
             Removed` first)",
            head.short()
        ),
        observed: true,
        objects: 0,
        credential_expires: None,
        dropped_by: Some(Revision::from(Revision::WORKTREE)),
    }
}
