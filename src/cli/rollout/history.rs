//! `tutti rollout history`: the commits that changed an app, from Git alone.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::super::app_selection::{AppSelection, app_error, app_named};
use super::super::exit::{self, Exit};
use super::super::output::{self, OutputFormat, age, table};
use super::super::process::{ProcessArgs, ProcessSettings};
use super::super::session::SourceError;
use super::super::timeout::timeout;
use super::super::width::first_names;
use super::super::{diagnostics, repository, session};
use super::view::MAX_NAMED_UNITS;
use crate::controller::RunUntil;
use crate::model::{AppId, Revision, Snapshot};
use crate::render::FleetRenderer;
use crate::report::{Overview, TargetPhase};
use crate::source::{CommitInfo, ConfigRepository};

#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// App, as NAMESPACE/NAME or as NAME if it is unique
    app: String,
    #[command(flatten)]
    process: ProcessArgs,
    /// Maximum number of commits to show
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "NUMBER")]
    limit: u16,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppHistoryCommit {
    revision: Revision,
    /// When it was committed (RFC 3339).
    time: String,
    author: String,
    subject: String,
    units: Vec<String>,
}

pub async fn run(args: HistoryArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let until = RunUntil::Planned { timeout: args.timeout };
    let (ending, overview) = session::observe(&process, until, false).await?;
    diagnostics::print(&overview.diagnostics);
    let app = app_named(&overview, &args.app)?;
    let chosen = AppSelection::of(&overview, Some(app.clone()));
    let Some(head) = &overview.revision else { return Ok(Exit::Configuration) };
    let commits = app_commits(&process, head, &app, usize::from(args.limit)).await?;
    if let (true, Some(error)) = (commits.is_empty(), app_error(&overview, &app)) {
        bail!("the history of {app} cannot be read: {error}");
    }
    let mut running = units_by_commit(&overview, &app);
    let change = |commit: CommitInfo| AppHistoryCommit {
        time: jiff::Timestamp::from_second(commit.time).map(|time| time.to_string()).unwrap_or_default(),
        units: running.remove(&commit.revision).unwrap_or_default(),
        revision: commit.revision,
        author: commit.author,
        subject: commit.subject,
    };
    let changes: Vec<AppHistoryCommit> = commits.into_iter().map(change).collect();
    if args.output == OutputFormat::Table {
        write_history(&changes, &running);
    } else {
        output::write_value(args.output, &changes)?;
    }
    Ok(exit::of_read_only_run(&ending, &overview, &chosen))
}

fn write_history(changes: &[AppHistoryCommit], others: &BTreeMap<Revision, Vec<String>>) {
    let now = jiff::Timestamp::now();
    let mut lines = table(&["COMMIT", "AGE", "AUTHOR", "SUBJECT", "UNITS"]);
    for AppHistoryCommit { revision, time, author, subject, units } in changes {
        let units = if units.is_empty() { "-".to_owned() } else { first_names(units, MAX_NAMED_UNITS) };
        lines.add_row([
            revision.short().to_owned(),
            age(Some(time), now),
            author.clone(),
            subject.clone(),
            units,
        ]);
    }
    output::write_table(&output::fit_terminal(lines));
    for (revision, units) in others {
        let units = first_names(units, MAX_NAMED_UNITS);
        super::super::wrapped_line::say_wrapped(&format!(
            "{units}: {}, which is not among these",
            revision.short()
        ));
    }
}

fn units_by_commit(overview: &Overview, app: &AppId) -> BTreeMap<Revision, Vec<String>> {
    let mut running: BTreeMap<Revision, Vec<String>> = BTreeMap::new();
    let rollout = overview.rollouts.iter().find(|rollout| rollout.app == *app);
    for unit in rollout.iter().flat_map(|rollout| &rollout.units) {
        if let Some(revision) = &unit.revision {
            running.entry(revision.clone()).or_default().push(unit.unit.to_string());
        }
    }
    // Without waves a Running cluster has its target's revision.
    let targets = overview.targets.iter().filter(|target| rollout.is_none() && target.app == *app);
    for target in targets.filter(|target| target.phase == TargetPhase::Running) {
        running.entry(target.revision.clone()).or_default().push(target.cluster.to_string());
    }
    running
}

/// First-parent commits that changed the app's inputs, newest first. Found step by step: the newest change of a snapshot, then
/// that of the snapshot before it.
async fn app_commits(
    process: &ProcessSettings,
    head: &Revision,
    app: &AppId,
    limit: usize,
) -> anyhow::Result<Vec<CommitInfo>> {
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(SourceError)?;
    let line = repository.snapshot(head).await.map_err(SourceError)?.history.commits.clone();
    let mut commits = Vec::new();
    let mut at = 0;
    while let Some(revision) = line.get(at).filter(|_| commits.len() < limit) {
        let snapshot = repository.snapshot(revision).await.map_err(SourceError)?;
        let Some(newest) = newest_change(process, snapshot, app).await else { break };
        let Some(position) = line.iter().position(|it| *it == newest) else { break };
        commits.extend(repository.recent_commits(&newest, 1).await.map_err(SourceError)?);
        at = position.max(at) + 1;
    }
    Ok(commits)
}

/// The newest commit that changed an input of any target; `None`: the app does not exist there.
async fn newest_change(process: &ProcessSettings, mut snapshot: Snapshot, app: &AppId) -> Option<Revision> {
    snapshot.keys = process.keys.clone();
    let fleet = repository::fleet(&snapshot);
    let charts = repository::fetched_charts(&fleet, process.chart_sites.clone()).await;
    let renderer = FleetRenderer::new(&fleet, &snapshot, &charts);
    let of_app = fleet.targets().into_iter().filter(|target| target.app == *app);
    let own = fleet.apps.get(app).map(|app| app.location.file.as_str());
    let rendered = of_app.filter_map(|target| renderer.render(&target).ok()).map(|it| it.revision);
    // The app's own file covers targets that do not render.
    let changed = rendered.chain(own.map(|file| snapshot.last_change([file]).clone()));
    let position = |revision: &Revision| snapshot.history.commits.iter().position(|it| it == revision);
    changed.min_by_key(|revision| position(revision).unwrap_or(usize::MAX))
}
