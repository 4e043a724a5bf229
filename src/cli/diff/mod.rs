//! `tutti diff`: what an apply would change in live objects, by server-side dry runs.

mod external;
mod fold;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::app_selection::{AppSelection, select_app};
use super::exit::{self, Exit};
use super::output::{self, OutputFormat, say, tell};
use super::process::ProcessArgs;
use super::timeout::timeout;
use super::{diagnostics, get, session};
use crate::controller::RunUntil;
use crate::model::{AppId, ClusterName, ObjectId};
use crate::plan::{Plan, PlanAction, PlanStep};
use crate::reconcile::is_dry_run;
use crate::report::status_text::count_noun;
use crate::report::{DeletionReport, TargetReport};
use fold::{FoldedDifference, fold};

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// App to show, as NAMESPACE/NAME or NAME; without it, all apps
    app: Option<String>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Read the files on disk, including uncommitted changes, instead of the last commit
    #[arg(long)]
    worktree: bool,
    /// Exit with code 1 if there are changes, including changes that wait
    #[arg(long)]
    exit_code: bool,
    /// Number of unchanged lines to show around each change
    #[arg(long, default_value_t = 3, value_name = "LINES")]
    context: usize,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(args: DiffArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let until = RunUntil::Planned { timeout: args.timeout };
    let (ending, overview) = session::observe_with_dry_run(&process, until, args.worktree, true).await?;
    diagnostics::print(&overview.diagnostics);
    let chosen = select_app(&overview, args.app.as_deref())?;
    let AppSelection { targets, deletions, held, .. } = &chosen;
    let folded = fold(targets, args.context);
    let refusals = steps_by_reason(targets, |step| step.intended_action() == PlanAction::Refuse);
    // Waiting objects are not compared: the reason of the wait is shown.
    let waiting =
        steps_by_reason(targets, |step| step.intended_action() == PlanAction::Wait && !is_dry_run(step));
    let unknown: Vec<&TargetReport> = targets.iter().copied().filter(|target| !is_compared(target)).collect();
    let external =
        std::env::var(external::EXTERNAL_DIFF_VARIABLE).ok().filter(|command| !command.trim().is_empty());
    match (args.output, external) {
        (OutputFormat::Table, external) => {
            let failures = failure_lines(&refusals, &unknown);
            let said = match external {
                // Its output has its own format, and may not end.
                Some(command) => {
                    failures.iter().for_each(|line| tell!("{line}"));
                    external::run(&command, &folded)?;
                    &[]
                }
                None => {
                    folded.iter().for_each(write_difference);
                    failures.as_slice()
                }
            };
            write_remaining((deletions, held), &waiting, said);
            let deletions = [&deletions[..], held].concat();
            write_summary(&folded, &deletions, &waiting, (&refusals, &unknown), chosen.held_units());
            get::write_approvals_of(&overview, &chosen);
        }
        (format, _) => output::write_value(
            format,
            &serde_json::json!({
                "revision": overview.revision, "differences": differences_json(targets), "deletions": deletions, "held": held,
                "refused": refusals, "waiting": waiting, "clusters": overview.clusters,
                "notCompared": unknown.iter().map(|it| json!({"app": it.app, "cluster": it.cluster, "why": not_compared_reason(it)})).collect::<Vec<_>>(),
            }),
        )?,
    }
    let differs = !folded.is_empty() || !waiting.is_empty() || !deletions.is_empty() || !held.is_empty();
    let is_refused = !refusals.is_empty() || folded.iter().any(|one| one.difference.refused.is_some());
    Ok(match exit::of_read_only_run(&ending, &overview, &chosen) {
        Exit::Ok if is_refused || !unknown.is_empty() => Exit::Failed,
        Exit::Ok if args.exit_code && differs => Exit::Differences,
        exit => exit,
    })
}

/// Whether the cluster's dry runs are done, or none are needed.
fn is_compared(target: &TargetReport) -> bool {
    let asks = |plan: &Plan| plan.steps.iter().any(is_dry_run);
    target.plan.as_deref().is_some_and(|plan| target.differences.is_some() || !asks(plan))
}

fn not_compared_reason(target: &TargetReport) -> &str {
    if target.detail.is_empty() { "its cluster has not answered" } else { &target.detail }
}

/// Steps without a dry run, refused or waiting, grouped by reason.
#[derive(Debug, Serialize)]
struct StepsByReason<'o> {
    app: &'o AppId,
    object: &'o ObjectId,
    reason: String,
    on: Vec<&'o ClusterName>,
}

impl StepsByReason<'_> {
    fn clusters(&self) -> String {
        let on: Vec<&str> = self.on.iter().map(|name| name.as_str()).collect();
        on.join(", ")
    }
}

fn steps_by_reason<'o>(
    targets: &[&'o TargetReport],
    is_one: impl Fn(&PlanStep) -> bool,
) -> Vec<StepsByReason<'o>> {
    let mut all: BTreeMap<(&AppId, &ObjectId, String), Vec<&ClusterName>> = BTreeMap::new();
    for target in targets {
        for step in target.plan.iter().flat_map(|plan| &plan.steps).filter(|step| is_one(step)) {
            let key = (&target.app, &step.object, step.reason.to_string());
            all.entry(key).or_default().push(&target.cluster);
        }
    }
    all.into_iter().map(|((app, object, reason), on)| StepsByReason { app, object, reason, on }).collect()
}

/// Machine-readable: each difference of each cluster.
fn differences_json(targets: &[&TargetReport]) -> Vec<Value> {
    let mut all = Vec::new();
    for target in targets {
        for difference in target.differences.iter().flat_map(|all| all.iter()).filter(|one| one.has_changes())
        {
            let mut one = json!(difference);
            one["app"] = json!(target.app);
            one["cluster"] = json!(target.cluster);
            all.push(one);
        }
    }
    all
}

fn write_difference(one: &FoldedDifference<'_>) {
    say!("{}", one.title());
    match &one.difference.refused {
        Some(refused) => say!("  ! {refused}\n"),
        None => say!("{}", one.text),
    }
}

/// Refused objects, and targets that were not compared.
fn failure_lines(refusals: &[StepsByReason<'_>], unknown: &[&TargetReport]) -> Vec<String> {
    let refused = refusals.iter().map(|it| {
        let StepsByReason { app, object, reason, .. } = it;
        format!("! {app}  {object}  on {}: {reason}", it.clusters())
    });
    let unknown = unknown.iter().map(|target| {
        format!("! {} on {}: not compared, {}", target.app, target.cluster, not_compared_reason(target))
    });
    refused.chain(unknown).collect()
}

fn write_remaining(
    (deletions, held): (&[&DeletionReport], &[&DeletionReport]),
    waiting: &[StepsByReason<'_>],
    failures: &[String],
) {
    for DeletionReport { app, object, cluster, action, reason, .. } in held {
        let sign = if *action == PlanAction::Orphan { '~' } else { '-' };
        say!("{sign} {app}  {object}  on {cluster}: held, {reason}");
    }
    for deletion in deletions {
        let (sign, verb) = match (deletion.action, deletion.waits) {
            (PlanAction::Orphan, false) => ('~', "is orphaned"),
            (PlanAction::Orphan, true) => ('~', "waits to be orphaned"),
            (_, true) => ('-', "waits to be deleted"),
            (_, false) => ('-', "is deleted"),
        };
        let DeletionReport { app, object, cluster, reason, .. } = deletion;
        say!("{sign} {app}  {object}  on {cluster}: {verb}, {reason}");
    }
    for it @ StepsByReason { app, object, reason, .. } in waiting {
        say!("~ {app}  {object}  on {}: waits, {reason}", it.clusters());
    }
    failures.iter().for_each(|line| say!("{line}"));
}

/// Prints the totals.
fn write_summary(
    folded: &[FoldedDifference<'_>],
    deletions: &[&DeletionReport],
    waiting: &[StepsByReason<'_>],
    (refusals, unknown): (&[StepsByReason<'_>], &[&TargetReport]),
    units: usize,
) {
    let objects: usize = folded.iter().map(|one| one.on_clusters.len()).sum();
    // Releasing an object removes our labels: that is a write too.
    let released = deletions.iter().filter(|deletion| deletion.action == PlanAction::Orphan).count();
    let deletes = deletions.len() - released;
    let parts: Vec<String> = [
        (
            folded.len(),
            format!("{} in {}", count_noun(folded.len(), "difference"), count_noun(objects, "object")),
        ),
        (deletes, count_noun(deletes, "delete")),
        (released, format!("{} orphaned", count_noun(released, "object"))),
        (waiting.len(), format!("{} waiting", count_noun(waiting.len(), "object"))),
        (units, format!("{} held", count_noun(units, "unit"))),
        (refusals.len(), format!("{} refused", count_noun(refusals.len(), "object"))),
        (unknown.len(), format!("{} not compared", count_noun(unknown.len(), "target"))),
    ]
    .into_iter()
    .filter_map(|(number, words)| (number > 0).then_some(words))
    .collect();
    say!("{}", if parts.is_empty() { "no difference".to_owned() } else { parts.join(", ") });
}
