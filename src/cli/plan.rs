//! `tutti plan`: shows planned writes without writing. [`super::revisions`] compares two revisions.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::app_selection::{AppSelection, select_app};
use super::exit::{self, Exit};
use super::output::{self, OutputFormat, say};
use super::plan_explain::PlanExplainer;
use super::process::{ProcessArgs, ProcessSettings};
use super::revisions::{self, PlanFormat, RevisionArgs};
use super::rollout::with_latest_note;
use super::timeout::timeout;
use super::wrapped_line::say_wrapped;
use super::{diagnostics, get, session};
use crate::controller::RunUntil;
use crate::fleet::Target;
use crate::model::{ObjectId, Revision};
use crate::plan::{PlanAction, PlanStep, StepReason};
use crate::report::status_text::count_noun;
use crate::report::{DeletionReport, Overview, TargetReport, UnitReport};
use crate::rollout::RolloutHold;

#[derive(Args, Debug)]
pub struct PlanArgs {
    /// App to show, as NAMESPACE/NAME or NAME; without it, all apps
    app: Option<String>,
    #[command(flatten)]
    process: ProcessArgs,
    #[command(flatten)]
    revisions: RevisionArgs,
    /// Read the files on disk, including uncommitted changes, instead of the last commit
    #[arg(long)]
    worktree: bool,
    /// Also show unchanged objects, and hooks that are not due
    #[arg(long)]
    all: bool,
    /// Also show the changed fields of each object, and the files that set them
    #[arg(long)]
    explain: bool,
    /// Exit with code 1 if there are changes, including changes that wait
    #[arg(long)]
    exit_code: bool,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: PlanFormat,
}

pub async fn run(args: PlanArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    if let Some(asked) = args.revisions.comparison_request() {
        return revisions::run(&process, asked, args.output, args.exit_code).await;
    }
    let Some(output) = args.output.plain() else {
        bail!("-o markdown is for two revisions: give --head REVISION or --pr NUMBER");
    };
    let until = RunUntil::Planned { timeout: args.timeout };
    let (ending, overview) = session::observe(&process, until, args.worktree).await?;
    diagnostics::print(&overview.diagnostics);
    let chosen = select_app(&overview, args.app.as_deref())?;
    let AppSelection { targets, deletions, held, orphans, .. } = &chosen;
    let writes: usize = targets.iter().filter_map(|target| target.plan.as_deref()).map(planned_writes).sum();
    let explained = match &overview.revision {
        Some(revision) if args.explain => explain_changes(&process, args.worktree, revision, targets).await?,
        _ => ExplainedFields::new(),
    };
    match output {
        OutputFormat::Table => {
            let shown = PlanView { all: args.all, explained: &explained };
            write_plan(&overview, &chosen, &[&deletions[..], held, orphans].concat(), &shown)
        }
        format => output::write_value(
            format,
            &serde_json::json!({
                "revision": overview.revision, "plans": targets.iter().map(|target| target.plan.as_deref()).collect::<Vec<_>>(),
                "deletions": deletions, "held": held, "orphans": orphans, "rollouts": chosen.rollouts,
                "clusters": overview.clusters, "explained": explained_json(&explained),
            }),
        )?,
    }
    let exit = exit::of_read_only_run(&ending, &overview, &chosen);
    let waits = targets.iter().filter_map(|target| target.plan.as_ref()).any(|plan| has_waiting_steps(plan));
    let waits = waits || chosen.rollouts.iter().any(|rollout| rollout.holds().next().is_some());
    let changes = writes > 0 || waits || !deletions.is_empty() || !held.is_empty();
    Ok(match exit {
        Exit::Ok if args.exit_code && changes => Exit::Differences,
        exit => exit,
    })
}

fn held_units_on<'o>(
    overview: &'o Overview,
    target: &'o TargetReport,
) -> impl Iterator<Item = (&'o UnitReport, &'o RolloutHold)> {
    let rollout = overview.rollout_of(&target.app).into_iter();
    let units = rollout.flat_map(|rollout| rollout.units_on(&target.cluster));
    units.filter_map(|unit| Some((unit, unit.hold.as_ref()?)))
}

struct PlanView<'a> {
    all: bool,
    explained: &'a ExplainedFields,
}

type ExplainedFields = BTreeMap<(Target, ObjectId), Vec<String>>;

async fn explain_changes(
    process: &ProcessSettings,
    worktree: bool,
    revision: &Revision,
    targets: &[&TargetReport],
) -> anyhow::Result<ExplainedFields> {
    let mut changes = PlanExplainer::open(process, worktree, revision).await?;
    let mut explained = ExplainedFields::new();
    for plan in targets.iter().filter_map(|target| target.plan.as_ref()) {
        let target = Target { app: plan.app.clone(), cluster: plan.cluster.clone() };
        let steps: Vec<&PlanStep> =
            plan.steps.iter().filter(|step| step.intended_action() == PlanAction::Configure).collect();
        let of_target = changes.changed_fields(process, &target, &steps).await;
        explained.extend(of_target.into_iter().map(|(object, lines)| ((target.clone(), object), lines)));
    }
    Ok(explained)
}

fn explained_json(explained: &ExplainedFields) -> Vec<serde_json::Value> {
    let one = |((target, object), lines): (&(Target, ObjectId), &Vec<String>)| serde_json::json!({"app": target.app, "cluster": target.cluster, "object": object, "fields": lines});
    explained.iter().map(one).collect()
}

/// Steps that write, also held ones.
fn planned_writes(plan: &crate::plan::Plan) -> usize {
    plan.steps.iter().filter(|step| step.intended_action().is_write()).count()
}

/// Waiting steps are differences too.
fn has_waiting_steps(plan: &crate::plan::Plan) -> bool {
    plan.steps.iter().any(|step| step.intended_action() == PlanAction::Wait)
}

fn write_plan(
    overview: &Overview,
    chosen: &AppSelection<'_>,
    deletions: &[&DeletionReport],
    &PlanView { all, explained }: &PlanView<'_>,
) {
    let (mut unknown, mut units) = (0, 0);
    let mut counts: BTreeMap<PlanAction, usize> = BTreeMap::new();
    for target in &chosen.targets {
        let held: Vec<_> = held_units_on(overview, target).collect();
        units += held.len();
        let Some(plan) = &target.plan else {
            say!("{} {}: no plan, {}", target.cluster, target.app, target.detail);
            unknown += 1;
            continue;
        };
        let is_at_rest =
            |step: &PlanStep| step.intended_action() == PlanAction::Unchanged || step.is_hook_not_due();
        let shown: Vec<&PlanStep> = plan.steps.iter().filter(|step| all || !is_at_rest(step)).collect();
        for step in plan.steps.iter().filter(|step| all || !step.is_hook_not_due()) {
            *counts.entry(step.intended_action()).or_default() += 1;
        }
        if shown.is_empty() && held.is_empty() {
            continue;
        }
        say!("{} {} ({})", target.cluster, target.app, plan.revision.short());
        for step in shown {
            let force = if step.force { ", by force" } else { "" };
            let action = step.intended_action();
            say!(
                "  {} {:<10} {}: {}{force}",
                action_sign(action),
                action.as_str(),
                step.object,
                step_reason(step)
            );
            let key = (Target { app: plan.app.clone(), cluster: plan.cluster.clone() }, step.object.clone());
            for line in explained.get(&key).into_iter().flatten() {
                say!("      {line}");
            }
        }
        for (UnitReport { unit, wave, .. }, hold) in held {
            let pod_set =
                if unit.pod_set.is_empty() { String::new() } else { format!("podSet {} of ", unit.pod_set) };
            let hold = with_latest_note(hold.to_string(), std::iter::once(hold));
            say_wrapped(&format!("  … {:<10} {pod_set}wave {wave}: {hold}", "hold"));
        }
    }
    let mut last = None;
    for DeletionReport { cluster, app, object, action, reason, .. } in deletions {
        if last.replace((cluster, app)) != Some((cluster, app)) {
            say!("{cluster} {app}");
        }
        let sign = if *action == PlanAction::Orphan { ' ' } else { '-' };
        say!("  {sign} {action:<10} {object}: {reason}");
    }
    for cluster in overview.clusters.iter().filter(|cluster| cluster.is_unregistered()) {
        say!("{} dropped: {}", cluster.name, cluster.detail);
    }
    let orphans = deletions.iter().filter(|deletion| deletion.action == PlanAction::Orphan).count();
    let deletes = deletions.len() - orphans;
    let summary: Vec<String> = counts
        .iter()
        .map(|(action, number)| format!("{number} {action}"))
        .chain((units > 0).then(|| format!("{} held", count_noun(units, "unit"))))
        .chain((deletes > 0).then(|| count_noun(deletes, "delete")))
        .chain((orphans > 0).then(|| count_noun(orphans, "orphan")))
        .chain((unknown > 0).then(|| format!("{} without a plan", count_noun(unknown, "target"))))
        .collect();
    let summary = match summary.as_slice() {
        [] if overview.has_errors() => "fix the errors first: nothing can be planned with them".to_owned(),
        [] => "nothing to do".to_owned(),
        parts => parts.join(", "),
    };
    say!("\n{summary}");
    get::write_approvals_of(overview, chosen);
}

/// In a plan, observe mode is not worth a hold.
fn step_reason(step: &PlanStep) -> String {
    match &step.reason {
        StepReason::Held { by: crate::plan::WriteHold::ObserveMode, because, .. } => because.to_string(),
        reason => reason.to_string(),
    }
}

fn action_sign(action: PlanAction) -> char {
    match action {
        PlanAction::Create => '+',
        PlanAction::Configure | PlanAction::Adopt => '~',
        PlanAction::Delete => '-',
        PlanAction::Refuse => '!',
        PlanAction::Wait => '…',
        PlanAction::Unchanged | PlanAction::Orphan | PlanAction::Skip => ' ',
    }
}
