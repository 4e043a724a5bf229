//! `tutti doctor`: checks access between the repository, the forge and the clusters.
//!
//! Reads the repository as `plan` does, asks the forge, and checks every cluster: connection, credential and its expiry, clock,
//! rights for all renders ([`crate::access`]), served kinds. It writes nothing: rights are reviewed, not tried.

mod examine;
mod finding;
mod home;

use anyhow::bail;
use clap::Args;
use futures::StreamExt as _;
use serde::Serialize;

use super::exit::Exit;
use super::output::{self, OutputFormat, say};
use super::process::{ProcessArgs, ProcessSettings};
use super::{cluster, diagnostics, exit, repository};
use crate::cluster::HomeCluster;
use crate::controller::{RepositoryGrants, read_registered_clusters};
use crate::fleet::Fleet;
use crate::forge;
use crate::model::{ClusterName, Revision, Snapshot};
use examine::ClusterExamination;
use finding::{DoctorCheck, DoctorFinding};

/// Clusters that are checked at once.
const MAX_PARALLEL_CLUSTERS: usize = 8;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Clusters to check; without names, all clusters
    #[arg(value_name = "CLUSTER")]
    clusters: Vec<String>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Read the files on disk, including uncommitted changes, instead of the last commit
    #[arg(long)]
    worktree: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DoctorReport {
    revision: Revision,
    repository: Vec<DoctorFinding>,
    clusters: Vec<DoctorClusterReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DoctorClusterReport {
    name: ClusterName,
    findings: Vec<DoctorFinding>,
}

pub async fn run(args: DoctorArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let mut snapshot = repository::load_snapshot(&process, args.worktree).await?;
    snapshot.keys = process.keys.clone();
    let mut fleet = repository::fleet(&snapshot);
    if fleet.instance.registry.is_some() {
        snapshot.registry =
            read_registered_clusters(&process.connections.home, fleet.instance.registry.as_ref()).await;
        fleet = repository::fleet(&snapshot);
    }
    let mut names = Vec::new();
    for name in &args.clusters {
        names.push(cluster::cluster_named(&fleet, name)?);
    }
    if names.is_empty() {
        names = fleet.clusters.keys().cloned().collect();
    }
    if !fleet.is_usable() {
        diagnostics::print(&fleet.diagnostics);
        bail!("the instance cannot be read (help: `tutti lint` shows the error)");
    }
    let charts = repository::fetched_charts(&fleet, process.chart_sites.clone()).await;
    let links = process.connections.links();
    let (fleet, snapshot) = (&fleet, &snapshot);
    let examined = names.iter().filter_map(|name| fleet.clusters.get(name)).map(|cluster| {
        let examination =
            ClusterExamination { fleet, snapshot, charts: &charts, cluster, link: links(cluster) };
        async move { DoctorClusterReport { name: cluster.name.clone(), findings: examination.run().await } }
    });
    let clusters = futures::stream::iter(examined).buffered(MAX_PARALLEL_CLUSTERS).collect().await;
    let report = DoctorReport {
        revision: snapshot.revision.clone(),
        repository: repository_findings(fleet, snapshot, &process).await,
        clusters,
    };
    match args.output {
        OutputFormat::Table => write_report(&report),
        format => output::write_value(format, &report)?,
    }
    Ok(worst_exit(&report))
}

/// Checks that concern all clusters: manifests, home cluster, forge.
async fn repository_findings(
    fleet: &Fleet,
    snapshot: &Snapshot,
    process: &ProcessSettings,
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let errors = fleet.diagnostics.iter().filter(|it| it.is_error()).count();
    findings.push(if errors == 0 {
        DoctorFinding::passed(DoctorCheck::Manifests, "the manifests have no errors")
    } else {
        let count = crate::report::status_text::count_noun(errors, "error");
        let message = format!("{count} in the manifests: nothing is deleted anywhere until they are fixed");
        DoctorFinding::failed(DoctorCheck::Manifests, Exit::Failed, message).help("`tutti lint` shows them")
    });
    let (home, grants) = (&process.connections.home, &*process.grants);
    findings.extend(home::examine(fleet, home).await);
    if let Some(forge) = &fleet.instance.forge {
        findings.push(forge_finding(forge, &snapshot.revision, home, grants).await);
    }
    findings
}

async fn forge_finding(
    wanted: &crate::model::ForgeSettings,
    revision: &Revision,
    home: &HomeCluster,
    grants: &RepositoryGrants,
) -> DoctorFinding {
    let place = format!("{} at {}", wanted.repository, wanted.url);
    let token = match &wanted.token {
        Some(reference) => grants.resolve(reference, home).await.map(Some),
        None => Ok(None),
    };
    let token = match token {
        Ok(token) => token,
        Err(error) => return DoctorFinding::failed(DoctorCheck::Forge, Exit::Denied, error.to_string()),
    };
    let asked = async {
        let client = forge::ForgeClient::gitea(&wanted.url, &wanted.repository, token, &grants.forge)?;
        let version = client.version().await?;
        // A folder has no commit.
        if revision.as_str() != Revision::WORKTREE {
            match client.statuses(revision).await {
                Ok(_) | Err(forge::Error::UnknownCommit { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok::<_, forge::Error>(version)
    };
    match asked.await {
        Ok(version) => {
            DoctorFinding::passed(DoctorCheck::Forge, format!("{place} answers, version {version}"))
        }
        Err(error) => DoctorFinding::failed(DoctorCheck::Forge, exit::of_forge(&error), error.to_string()),
    }
}

fn write_report(report: &DoctorReport) {
    say!("repository at {}", report.revision.short());
    report.repository.iter().for_each(finding::write_finding);
    for cluster in &report.clusters {
        say!("\n{}", cluster.name);
        cluster.findings.iter().for_each(finding::write_finding);
    }
}

/// The worst finding's exit code, in the order of `run`.
fn worst_exit(report: &DoctorReport) -> Exit {
    let all = report.clusters.iter().flat_map(|cluster| &cluster.findings).chain(&report.repository);
    let found: Vec<Exit> = all.filter_map(|finding| finding.exit).collect();
    let order = [Exit::Configuration, Exit::Unreachable, Exit::Denied, Exit::Failed];
    order.into_iter().find(|exit| found.contains(exit)).unwrap_or(Exit::Ok)
}
