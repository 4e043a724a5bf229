//! `tutti diff`: what an apply would change in live objects, by server-side dry runs.

mod external;
mod fold;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::chosen::{Chosen, chosen};
use super::exit::{self, Exit};
use super::output::{self, Format, say, tell};
use super::process::ProcessArgs;
use super::timeout::timeout;
use super::{diagnostics, get, session};
use crate::controller::Until;
use crate::model::{AppId, ClusterName, ObjectId};
use crate::plan::{Action, Plan, Step};
use crate::reconcile::is_foreseen;
use crate::report::words::count;
use crate::report::{DeletionReport, TargetReport};
use fold::{Folded, fold};

/// The user's diff program, as for `kubectl diff`.
const EXTERNAL: &str = "KUBECTL_EXTERNAL_DIFF";

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Only this app: NAMESPACE/NAME or its name
    app: Option<String>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Compare the folder as it stands on disk, before a commit
    #[arg(long)]
    worktree: bool,
    /// End with 1 when there is a difference
    #[arg(long)]
    exit_code: bool,
    /// Lines of an object shown around each change
    #[arg(long, default_value_t = 3, value_name = "LINES")]
    context: usize,
    /// The longest to wait for clusters, as 90s or 5m; a number alone is seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub async fn run(args: DiffArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let until = Until::Planned { timeout: args.timeout };
    let (ending, overview) = session::look_for(&process, until, args.worktree, true).await?;
    diagnostics::print(&overview.diagnostics);
    let chosen = chosen(&overview, args.app.as_deref())?;
    let Chosen { targets, deletions, held, .. } = &chosen;
    let folded = fold(targets, args.context);
    let refusals = told(targets, |step| step.intent() == Action::Refuse);
    // Waiting objects are not compared: the reason of the wait is shown.
    let waiting = told(targets, |step| step.intent() == Action::Wait && !is_foreseen(step));
    let unknown: Vec<&TargetReport> = targets.iter().copied().filter(|target| !is_compared(target)).collect();
    let external = std::env::var(EXTERNAL).ok().filter(|command| !command.trim().is_empty());
    match (args.output, external) {
        (Format::Table, external) => {
            let failures = failures(&refusals, &unknown);
            let said = match external {
                // Its output has its own format, and may not end.
                Some(command) => {
                    failures.iter().for_each(|line| tell!("{line}"));
                    external::run(&command, &folded)?;
                    &[]
                }
                None => {
                    folded.iter().for_each(write);
                    failures.as_slice()
                }
            };
            write_rest((deletions, held), &waiting, said);
            let deletions = [&deletions[..], held].concat();
            conclude(&folded, &deletions, &waiting, (&refusals, &unknown), chosen.units_held());
            get::write_approvals_of(&overview, &chosen);
        }
        (format, _) => output::write_value(
            format,
            &serde_json::json!({
                "revision": overview.revision, "differences": unfolded(targets), "deletions": deletions, "held": held,
                "refused": refusals, "waiting": waiting, "clusters": overview.clusters,
                "notCompared": unknown.iter().map(|it| json!({"app": it.app, "cluster": it.cluster, "why": why(it)})).collect::<Vec<_>>(),
            }),
        )?,
    }
    let differs = !folded.is_empty() || !waiting.is_empty() || !deletions.is_empty() || !held.is_empty();
    let is_refused = !refusals.is_empty() || folded.iter().any(|one| one.difference.refused.is_some());
    Ok(match exit::of_look(&ending, &overview, &chosen) {
        Exit::Ok if is_refused || !unknown.is_empty() => Exit::Failed,
        Exit::Ok if args.exit_code && differs => Exit::Differences,
        exit => exit,
    })
}

/// Whether the cluster's dry runs are done, or none are needed.
fn is_compared(target: &TargetReport) -> bool {
    let asks = |plan: &Plan| plan.steps.iter().any(is_foreseen);
    target.plan.as_deref().is_some_and(|plan| target.differences.is_some() || !asks(plan))
}

fn why(target: &TargetReport) -> &str {
    if target.detail.is_empty() { "its cluster has not answered" } else { &target.detail }
}

/// Steps without a dry run, refused or waiting, grouped by reason.
#[derive(Debug, Serialize)]
struct Told<'o> {
    app: &'o AppId,
    object: &'o ObjectId,
    reason: String,
    on: Vec<&'o ClusterName>,
}

impl Told<'_> {
    fn clusters(&self) -> String {
        let on: Vec<&str> = self.on.iter().map(|name| name.as_str()).collect();
        on.join(", ")
    }
}

fn told<'o>(targets: &[&'o TargetReport], is_one: impl Fn(&Step) -> bool) -> Vec<Told<'o>> {
    let mut all: BTreeMap<(&AppId, &ObjectId, String), Vec<&ClusterName>> = BTreeMap::new();
    for target in targets {
        for step in target.plan.iter().flat_map(|plan| &plan.steps).filter(|step| is_one(step)) {
            let key = (&target.app, &step.object, step.reason.to_string());
            all.entry(key).or_default().push(&target.cluster);
        }
    }
    all.into_iter().map(|((app, object, reason), on)| Told { app, object, reason, on }).collect()
}

/// Machine-readable: each difference of each cluster.
fn unfolded(targets: &[&TargetReport]) -> Vec<Value> {
    let mut all = Vec::new();
    for target in targets {
        for difference in target.differences.iter().flat_map(|all| all.iter()).filter(|one| one.is_any()) {
            let mut one = json!(difference);
            one["app"] = json!(target.app);
            one["cluster"] = json!(target.cluster);
            all.push(one);
        }
    }
    all
}

fn write(one: &Folded<'_>) {
    say!("{}", one.title());
    match &one.difference.refused {
        Some(refused) => say!("  ! {refused}\n"),
        None => say!("{}", one.text),
    }
}

/// Refused objects, and targets that were not compared.
fn failures(refusals: &[Told<'_>], unknown: &[&TargetReport]) -> Vec<String> {
    let refused = refusals.iter().map(|it| {
        let Told { app, object, reason, .. } = it;
        format!("! {app}  {object}  on {}: {reason}", it.clusters())
    });
    let unknown = unknown
        .iter()
        .map(|target| format!("! {} on {}: not compared, {}", target.app, target.cluster, why(target)));
    refused.chain(unknown).collect()
}

fn write_rest(
    (deletions, held): (&[&DeletionReport], &[&DeletionReport]),
    waiting: &[Told<'_>],
    failures: &[String],
) {
    for DeletionReport { app, object, cluster, action, reason, .. } in held {
        let sign = if *action == Action::Orphan { '~' } else { '-' };
        say!("{sign} {app}  {object}  on {cluster}: held, {reason}");
    }
    for deletion in deletions {
        let (sign, verb) = match (deletion.action, deletion.waits) {
            (Action::Orphan, false) => ('~', "is let go"),
            (Action::Orphan, true) => ('~', "waits to be let go"),
            (_, true) => ('-', "waits"),
            (_, false) => ('-', "goes"),
        };
        let DeletionReport { app, object, cluster, reason, .. } = deletion;
        say!("{sign} {app}  {object}  on {cluster}: {verb}, {reason}");
    }
    for it @ Told { app, object, reason, .. } in waiting {
        say!("~ {app}  {object}  on {}: waits, {reason}", it.clusters());
    }
    failures.iter().for_each(|line| say!("{line}"));
}

/// Prints the totals.
fn conclude(
    folded: &[Folded<'_>],
    deletions: &[&DeletionReport],
    waiting: &[Told<'_>],
    (refusals, unknown): (&[Told<'_>], &[&TargetReport]),
    units: usize,
) {
    let objects: usize = folded.iter().map(|one| one.on.len()).sum();
    // Releasing an object removes our labels: that is a write too.
    let released = deletions.iter().filter(|deletion| deletion.action == Action::Orphan).count();
    let deletes = deletions.len() - released;
    let parts: Vec<String> = [
        (folded.len(), format!("{} in {}", count(folded.len(), "difference"), count(objects, "object"))),
        (deletes, count(deletes, "delete")),
        (released, format!("{} let go", count(released, "object"))),
        (waiting.len(), format!("{} waiting", count(waiting.len(), "object"))),
        (units, format!("{} held", count(units, "unit"))),
        (refusals.len(), format!("{} refused", count(refusals.len(), "object"))),
        (unknown.len(), format!("{} not compared", count(unknown.len(), "target"))),
    ]
    .into_iter()
    .filter_map(|(number, words)| (number > 0).then_some(words))
    .collect();
    say!("{}", if parts.is_empty() { "no difference".to_owned() } else { parts.join(", ") });
}
