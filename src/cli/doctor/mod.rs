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
use super::output::{self, Format, say};
use super::process::{Process, ProcessArgs};
use super::session::{Source, folder};
use super::{cluster, diagnostics, exit, repository};
use crate::cluster::Home;
use crate::controller::{Grants, registered};
use crate::fleet::Fleet;
use crate::forge;
use crate::manifest;
use crate::model::{ClusterName, Revision, Snapshot};
use crate::source::{self, Repository};
use examine::Examination;
use finding::{Check, Finding};

/// Clusters that are checked at once.
const SIDE_BY_SIDE: usize = 8;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Only these clusters
    #[arg(value_name = "CLUSTER")]
    clusters: Vec<String>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Read the folder as it stands on disk, before a commit
    #[arg(long)]
    worktree: bool,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    revision: Revision,
    repository: Vec<Finding>,
    clusters: Vec<ClusterReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterReport {
    name: ClusterName,
    findings: Vec<Finding>,
}

pub async fn run(args: DoctorArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let mut snapshot = load(&process, args.worktree).await?;
    snapshot.keys = process.keys.clone();
    let mut fleet = repository::fleet(&snapshot);
    if fleet.instance.registry.is_some() {
        snapshot.registered = registered(&process.ways.home, fleet.instance.registry.as_ref()).await;
        fleet = repository::fleet(&snapshot);
    }
    let mut names = Vec::new();
    for name in &args.clusters {
        names.push(cluster::chosen(&fleet, name)?);
    }
    if names.is_empty() {
        names = fleet.clusters.keys().cloned().collect();
    }
    if !fleet.is_usable() {
        diagnostics::print(&fleet.diagnostics);
        bail!("the instance cannot be read");
    }
    let charts = repository::charts(&fleet, process.sites.clone()).await;
    let links = process.ways.links();
    let (fleet, snapshot) = (&fleet, &snapshot);
    let examined = names.iter().filter_map(|name| fleet.clusters.get(name)).map(|cluster| {
        let examination = Examination { fleet, snapshot, charts: &charts, cluster, link: links(cluster) };
        async move { ClusterReport { name: cluster.name.clone(), findings: examination.run().await } }
    });
    let clusters = futures::stream::iter(examined).buffered(SIDE_BY_SIDE).collect().await;
    let report = Report {
        revision: snapshot.revision.clone(),
        repository: of_repository(fleet, snapshot, &process).await,
        clusters,
    };
    match args.output {
        Format::Table => write(&report),
        format => output::write_value(format, &report)?,
    }
    Ok(exit(&report))
}

pub(super) async fn load(process: &Process, worktree: bool) -> anyhow::Result<Snapshot> {
    if worktree {
        return Ok(source::read_folder(&folder(&process.source), manifest::listed_beside).map_err(Source)?);
    }
    let repository = Repository::open(process.source.clone()).await.map_err(Source)?;
    let revision = repository.fetch().await.map_err(Source)?;
    Ok(repository.snapshot(&revision).await.map_err(Source)?)
}

/// Checks that concern all clusters: manifests, home cluster, forge.
async fn of_repository(fleet: &Fleet, snapshot: &Snapshot, process: &Process) -> Vec<Finding> {
    let mut findings = Vec::new();
    let errors = fleet.diagnostics.iter().filter(|it| it.is_error()).count();
    findings.push(if errors == 0 {
        Finding::good(Check::Manifests, "the manifests have no mistake")
    } else {
        let count = crate::report::words::count(errors, "mistake");
        let message = format!("{count} in the manifests: nothing is deleted anywhere while they stand");
        Finding::bad(Check::Manifests, Exit::Failed, message).help("`tutti lint` shows them")
    });
    let (home, grants) = (&process.ways.home, &*process.grants);
    findings.extend(home::examine(fleet, home).await);
    if let Some(forge) = &fleet.instance.forge {
        findings.push(of_forge(forge, &snapshot.revision, home, grants).await);
    }
    findings
}

async fn of_forge(
    wanted: &crate::model::Forge,
    revision: &Revision,
    home: &Home,
    grants: &Grants,
) -> Finding {
    let place = format!("{} at {}", wanted.repository, wanted.url);
    let token = match &wanted.token {
        Some(reference) => grants.resolve(reference, home).await.map(Some),
        None => Ok(None),
    };
    let token = match token {
        Ok(token) => token,
        Err(error) => return Finding::bad(Check::Forge, Exit::Denied, error.to_string()),
    };
    let asked = async {
        let client = forge::Client::gitea(&wanted.url, &wanted.repository, token, &grants.forge)?;
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
        Ok(version) => Finding::good(Check::Forge, format!("{place} answers, version {version}")),
        Err(error) => Finding::bad(Check::Forge, exit::of_forge(&error), error.to_string()),
    }
}

fn write(report: &Report) {
    say!("repository at {}", report.revision.short());
    report.repository.iter().for_each(finding::write);
    for cluster in &report.clusters {
        say!("\n{}", cluster.name);
        cluster.findings.iter().for_each(finding::write);
    }
}

/// The worst finding's exit code, in the order of `run`.
fn exit(report: &Report) -> Exit {
    let all = report.clusters.iter().flat_map(|cluster| &cluster.findings).chain(&report.repository);
    let found: Vec<Exit> = all.filter_map(|finding| finding.exit).collect();
    let order = [Exit::Configuration, Exit::Unreachable, Exit::Denied, Exit::Failed];
    order.into_iter().find(|exit| found.contains(exit)).unwrap_or(Exit::Ok)
}
