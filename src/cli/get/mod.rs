//! `tutti get`: lists apps, targets, clusters, deletions and other parts of the fleet.

mod app_sets;
mod approvals;
mod manifests;
mod matrix;
mod pod_numbers;
mod promotions;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;

use approvals::write_approvals;
pub use approvals::{write_approvals_of, write_next_steps};
pub use manifests::read_manifests;
pub use matrix::write_matrix;
use pod_numbers::PodNumbers;

use super::exit::{self, Exit};
use super::output::{self, OutputFormat, age, fit_terminal, table, write_table};
use super::process::ProcessArgs;
use super::timeout::timeout;
use super::{diagnostics, session};
use crate::cluster::Credential;
use crate::controller::RunUntil;
use crate::model::AppId;
use crate::report::{DeletionReport, Overview, TargetReport};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GetResource {
    /// Apps, one line for each app over all clusters
    #[default]
    Apps,
    /// Targets, one line for each app on each cluster
    Targets,
    /// Clusters, each with its ring, state and credential
    Clusters,
    /// Objects that no app renders any more, each with the planned action and its reason
    Deletions,
    /// Apps with pins, one line for each ring: its version, and the next one
    #[value(alias = "promotion")]
    Promotions,
    /// AppSets, one line for each AppSet over all clusters
    #[value(name = "as", aliases = ["appset", "appsets"])]
    AppSets,
    /// AppSets, one line for each AppSet on each cluster
    #[value(name = "ad", aliases = ["advdeployment", "advdeployments"])]
    AdvDeployments,
    /// Notification routes in the config repository
    #[value(alias = "notification")]
    Notifications,
    /// Servers of the inventory, and how long each is paid for
    #[value(alias = "server")]
    Servers,
    /// Windows: when new versions may begin, and whether they may begin now
    #[value(alias = "window")]
    Windows,
    /// Analyses: what is measured after waves, and the rings and apps that use each
    #[value(alias = "analysis")]
    Analyses,
}

#[derive(Args, Debug)]
pub struct GetArgs {
    /// Resources to list
    #[arg(value_enum, default_value_t)]
    what: GetResource,
    #[command(flatten)]
    process: ProcessArgs,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    /// For `as` and `ad`: print again after every change, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// For `as` and `ad`: also print the podSets of each AppSet
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppLine<'a> {
    namespace: &'a str,
    name: &'a str,
    kind: &'a str,
    #[serde(flatten)]
    numbers: PodNumbers,
    status: &'a str,
    detail: String,
    created: Option<&'a str>,
}

pub async fn run(args: GetArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let of_app_sets = match args.what {
        GetResource::AppSets => Some(app_sets::AppSetScope::Fleet),
        GetResource::AdvDeployments => Some(app_sets::AppSetScope::Clusters),
        _ if args.watch || args.all => bail!("--watch and --all are for `get as` and `get ad`"),
        _ => None,
    };
    if let Some(scope) = of_app_sets {
        let shown = app_sets::AppSetView { scope, all: args.all, format: args.output };
        return match args.watch {
            true => app_sets::watch(&process, shown).await,
            false => app_sets::show_once(&process, shown, args.timeout).await,
        };
    }
    match args.what {
        GetResource::Promotions => return promotions::run(&process, args.timeout, args.output).await,
        GetResource::Notifications => return manifests::notifications(&process, args.output).await,
        GetResource::Servers => return manifests::servers(&process, args.output).await,
        GetResource::Windows => return manifests::windows(&process, args.output).await,
        GetResource::Analyses => return manifests::analyses(&process, args.output).await,
        _ => {}
    }
    let until = RunUntil::Settled { timeout: args.timeout };
    let (ending, overview) = session::observe(&process, until, false).await?;
    diagnostics::print(&overview.diagnostics);
    match (args.what, args.output) {
        (GetResource::Apps, OutputFormat::Table) => write_apps(&overview),
        (GetResource::Apps, format) => output::write_value(format, &app_lines(&overview))?,
        (GetResource::Targets, OutputFormat::Table) => write_targets(&overview),
        (GetResource::Targets, format) => output::write_value(format, &overview.targets)?,
        (GetResource::Clusters, OutputFormat::Table) => write_clusters(&overview),
        (GetResource::Clusters, format) => output::write_value(format, &overview.clusters)?,
        (GetResource::Deletions, OutputFormat::Table) => write_deletions(&overview),
        (GetResource::Deletions, format) => {
            let all: Vec<_> = pending_removals(&overview).collect();
            output::write_value(format, &all)?;
        }
        (
            GetResource::AppSets
            | GetResource::AdvDeployments
            | GetResource::Promotions
            | GetResource::Notifications
            | GetResource::Servers
            | GetResource::Windows
            | GetResource::Analyses,
            _,
        ) => {}
    }
    Ok(exit::of_run(&ending, &overview))
}

fn app_lines(overview: &Overview) -> Vec<AppLine<'_>> {
    let mut grouped: BTreeMap<&AppId, Vec<&TargetReport>> = BTreeMap::new();
    for target in &overview.targets {
        grouped.entry(&target.app).or_default().push(target);
    }
    grouped
        .into_iter()
        .filter_map(|(app, targets)| {
            let worst = targets.iter().max_by_key(|target| target.phase)?;
            let numbers: Vec<PodNumbers> = targets.iter().map(|target| PodNumbers::of(target)).collect();
            let detail = if worst.detail.is_empty() {
                String::new()
            } else {
                format!("{}: {}", worst.cluster, worst.detail)
            };
            Some(AppLine {
                namespace: &app.namespace,
                name: &app.name,
                kind: worst.kind,
                numbers: PodNumbers::sum(&numbers.iter().collect::<Vec<_>>()),
                status: worst.phase.as_str(),
                detail,
                created: targets.iter().filter_map(|target| target.created.as_deref()).min(),
            })
        })
        .collect()
}

fn write_apps(overview: &Overview) {
    let now = jiff::Timestamp::now();
    let mut lines = table(&[
        "NAMESPACE",
        "NAME",
        "KIND",
        "DESIRED",
        "AVAILABLE",
        "UNAVAILABLE",
        "VERSION",
        "STATUS",
        "AGE",
    ]);
    for app in app_lines(overview) {
        let [desired, available, unavailable, version] = app.numbers.cells();
        lines.add_row([
            app.namespace.to_owned(),
            app.name.to_owned(),
            app.kind.to_owned(),
            desired,
            available,
            unavailable,
            version,
            app.status.to_owned(),
            age(app.created, now),
        ]);
    }
    write_table(&fit_terminal(lines));
    write_approvals(overview);
}

fn write_targets(overview: &Overview) {
    let mut lines = table(&[
        "CLUSTER",
        "RING",
        "NAMESPACE",
        "NAME",
        "DESIRED",
        "AVAILABLE",
        "VERSION",
        "STATUS",
        "CAUSE",
    ]);
    for target in &overview.targets {
        let [desired, available, _, version] = PodNumbers::of(target).cells();
        lines.add_row([
            target.cluster.to_string(),
            target.ring.clone().unwrap_or_else(|| "-".to_owned()),
            target.app.namespace.to_string(),
            target.app.name.to_string(),
            desired,
            available,
            version,
            target.phase.as_str().to_owned(),
            target.detail.clone(),
        ]);
    }
    write_table(&fit_terminal(lines));
    write_approvals(overview);
}

fn write_clusters(overview: &Overview) {
    let now = jiff::Timestamp::now();
    let mut lines = table(&["NAME", "RING", "STATE", "OBJECTS", "CREDENTIAL", "CAUSE"]);
    for cluster in &overview.clusters {
        lines.add_row([
            cluster.name.to_string(),
            cluster.ring.clone().unwrap_or_else(|| "-".to_owned()),
            cluster.state.to_owned(),
            cluster.objects.to_string(),
            credential_left(cluster.credential_expires.as_deref(), now),
            cluster.detail.clone(),
        ]);
    }
    write_table(&fit_terminal(lines));
}

/// How long the credential is valid.
fn credential_left(expires: Option<&str>, now: jiff::Timestamp) -> String {
    let expires = expires.and_then(|text| text.parse().ok());
    expires.map_or_else(|| "-".to_owned(), |expires| Credential::time_left(expires, now))
}

fn pending_removals(overview: &Overview) -> impl Iterator<Item = &DeletionReport> {
    overview.deletions.iter().chain(&overview.held).chain(&overview.orphans)
}

fn write_deletions(overview: &Overview) {
    let mut lines = table(&["CLUSTER", "APP", "OBJECT", "ACTION", "REASON"]);
    for deletion in pending_removals(overview) {
        lines.add_row([
            deletion.cluster.to_string(),
            deletion.app.to_string(),
            deletion.object.clone(),
            deletion.action.as_str().to_owned(),
            deletion.reason.clone(),
        ]);
    }
    write_table(&fit_terminal(lines));
    write_approvals(overview);
}
