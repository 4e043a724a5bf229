//! Exit codes of all commands, and the text that explains them.

use std::process::ExitCode;

use super::app_selection::AppSelection;
use super::width::first_names;
use crate::controller::RunEnding;
use crate::forge;
use crate::model::{Diagnostic, DiagnosticScope};
use crate::report::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport};
use crate::source::ErrorKind;

const MAX_NAMED_CLUSTERS: usize = 8;

/// The exit code; its numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// Differences, or something is not healthy yet.
    Differences = 1,
    /// Usage or configuration; nothing was read.
    Configuration = 2,
    /// A target failed, or an app was not rendered.
    Failed = 3,
    TimedOut = 4,
    Denied = 5,
    Unreachable = 6,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// After an error of the forge.
pub fn of_forge(error: &forge::Error) -> Exit {
    match error.kind() {
        forge::ForgeErrorKind::Authentication => Exit::Denied,
        forge::ForgeErrorKind::Configuration => Exit::Configuration,
        _ => Exit::Unreachable,
    }
}

/// For `run --once`: the worst, in the order 2, 6, 3, 4.
pub fn of_run(ending: &RunEnding, overview: &Overview) -> Exit {
    let any = |wanted: fn(TargetPhase) -> bool| overview.targets.iter().any(|target| wanted(target.phase));
    let is_offline =
        overview.clusters.iter().any(is_offline) || any(|phase| phase == TargetPhase::Unreachable);
    if let Some(exit) = common_exit(ending, overview, is_offline, any(TargetPhase::is_failure)) {
        exit
    } else if any(|phase| !phase.is_done() && phase != TargetPhase::OutOfSync)
        || overview.deletions.iter().any(|deletion| deletion.waits)
    {
        Exit::Differences
    } else {
        Exit::Ok
    }
}

/// For commands that only read, about all apps or one: the health of apps does not count, nor do clusters without the app.
pub fn of_read_only_run(ending: &RunEnding, overview: &Overview, chosen: &AppSelection<'_>) -> Exit {
    let AppSelection { app, targets, deletions, .. } = chosen;
    // Any cluster may have objects of an app that is gone.
    let is_of_all = app.is_none() || targets.is_empty();
    let is_asked = |cluster: &ClusterReport| {
        let mut clusters = targets.iter().map(|it| &it.cluster).chain(deletions.iter().map(|it| &it.cluster));
        is_of_all || clusters.any(|name| *name == cluster.name)
    };
    let is_offline = overview.clusters.iter().any(|cluster| is_offline(cluster) && is_asked(cluster));
    let any = |wanted: TargetPhase| targets.iter().any(|target| target.phase == wanted);
    let has_failed = any(TargetPhase::Refused) || any(TargetPhase::Invalid);
    let is_known = !is_of_all && targets.iter().all(|target| target.plan.is_some());
    match common_exit(ending, overview, is_offline || any(TargetPhase::Unreachable), has_failed) {
        // Only other clusters are missing.
        Some(Exit::TimedOut) if is_known => Exit::Ok,
        exit => exit.unwrap_or(Exit::Ok),
    }
}

/// One line about a code other than 0.
pub fn reason(exit: Exit, overview: &Overview) -> Option<String> {
    let waits = || pending_text(overview);
    Some(match exit {
        Exit::Ok => return None,
        Exit::Differences => next_step_text(overview).unwrap_or_else(waits),
        Exit::Configuration => {
            let of_instance = |it: &&Diagnostic| it.scope == DiagnosticScope::Instance;
            first_error(overview, of_instance).unwrap_or_else(|| "the configuration has errors".to_owned())
        }
        Exit::Failed => first_failure(overview)
            .or_else(|| first_error(overview, |_| true))
            .unwrap_or_else(|| "an app has failed".to_owned()),
        Exit::TimedOut => format!("the time of --timeout is over; {}", waits()),
        Exit::Denied => "access was denied".to_owned(),
        Exit::Unreachable => unreachable_text(overview),
        Exit::Interrupted => format!("a signal stopped it; {}", waits()),
    })
}

/// The first line, and the number of others.
fn first_with_count(mut lines: impl Iterator<Item = String>) -> Option<String> {
    let first = lines.next()?;
    match lines.count() {
        0 => Some(first),
        more => Some(format!("{first} (and {more} more)")),
    }
}

fn first_error(overview: &Overview, wanted: impl Fn(&&Diagnostic) -> bool) -> Option<String> {
    let errors = overview.diagnostics.iter().filter(|it| it.is_error());
    first_with_count(errors.filter(wanted).map(ToString::to_string))
}

fn first_failure(overview: &Overview) -> Option<String> {
    first_with_count(overview.targets.iter().filter(|target| target.phase.is_failure()).map(target_line))
}

/// Clusters that do not answer, with the first one's reason.
pub fn offline_clusters(overview: &Overview, is_asked: impl Fn(&ClusterReport) -> bool) -> Option<String> {
    let clusters: Vec<&ClusterReport> =
        overview.clusters.iter().filter(|cluster| is_offline(cluster) && is_asked(cluster)).collect();
    let names: Vec<String> = clusters.iter().map(|cluster| cluster.name.to_string()).collect();
    let noun = if names.len() == 1 { "cluster" } else { "clusters" };
    let because = &clusters.first()?.detail;
    Some(format!("{noun} {}: {because}", first_names(&names, MAX_NAMED_CLUSTERS)))
}

fn unreachable_text(overview: &Overview) -> String {
    let clusters = offline_clusters(overview, |_| true);
    let apps = || overview.targets.iter().filter(|target| target.phase == TargetPhase::Unreachable);
    let found = clusters.or_else(|| first_with_count(apps().map(target_line)));
    found.unwrap_or_else(|| "a cluster does not answer".to_owned())
}

/// The next step of a person, and its command.
fn next_step_text(overview: &Overview) -> Option<String> {
    let steps = overview.rollouts.iter().filter_map(RolloutReport::next_step);
    first_with_count(steps.map(|step| step.to_string()))
}

fn pending_text(overview: &Overview) -> String {
    if overview.revision.is_none() {
        return "the config repository was not read".to_owned();
    }
    if !overview.is_rendered {
        return "the apps were not rendered".to_owned();
    }
    let targets = overview.targets.iter();
    let targets = targets.filter(|target| !target.phase.is_done() && target.phase != TargetPhase::OutOfSync);
    let deletions = overview.deletions.iter().map(|it| {
        let state = if it.waits { "waits to be deleted" } else { "is to be deleted" };
        format!("{} {} {state}: {}", it.cluster, it.object, it.reason)
    });
    let clusters = overview.clusters.iter().filter(|cluster| !cluster.observed);
    let clusters = clusters.map(|cluster| format!("cluster {} was not read", cluster.name));
    let found = first_with_count(targets.map(target_line))
        .or_else(|| first_with_count(deletions))
        .or_else(|| first_with_count(clusters));
    found.unwrap_or_else(|| "requests were still under way".to_owned())
}

fn target_line(target: &TargetReport) -> String {
    let state = format!("{} {} is {}", target.cluster, target.app, target.phase.as_str());
    if target.detail.is_empty() { state } else { format!("{state}: {}", target.detail) }
}

fn is_offline(cluster: &ClusterReport) -> bool {
    cluster.state == "Offline"
}

fn common_exit(ending: &RunEnding, overview: &Overview, is_offline: bool, has_failed: bool) -> Option<Exit> {
    if let RunEnding::Unreadable(error) = ending {
        return Some(match error.kind {
            ErrorKind::Authentication => Exit::Denied,
            ErrorKind::Unreachable | ErrorKind::Transient => Exit::Unreachable,
            ErrorKind::Configuration => Exit::Configuration,
        });
    }
    // Without an instance (or its rings) no app is known.
    if overview.diagnostics.iter().any(|it| it.is_error() && it.scope == DiagnosticScope::Instance) {
        return Some(Exit::Configuration);
    }
    if is_offline {
        return Some(Exit::Unreachable);
    }
    if has_failed || overview.has_errors() {
        return Some(Exit::Failed);
    }
    match ending {
        RunEnding::TimedOut => Some(Exit::TimedOut),
        RunEnding::Stopped => Some(Exit::Interrupted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, ClusterName, Revision};
    use crate::plan::PlanAction;
    use crate::report::DeletionReport;

    fn target(phase: TargetPhase, detail: &str) -> TargetReport {
        let target = TargetReport::of_test(AppId::new("shop", "web"), "bj1", phase);
        TargetReport { detail: detail.to_owned(), ..target }
    }

    fn cluster(state: &'static str, observed: bool) -> ClusterReport {
        ClusterReport {
            name: ClusterName::from("bj1"),
            ring: None,
            state,
            detail: "connection refused".to_owned(),
            observed,
            objects: 0,
            credential_expires: None,
            dropped_by: None,
        }
    }

    fn overview(targets: Vec<TargetReport>, clusters: Vec<ClusterReport>) -> Overview {
        let revision = Some(Revision::from("abc"));
        Overview { revision, is_rendered: true, targets, clusters, ..Overview::default() }
    }

    fn with_error(scope: DiagnosticScope) -> Overview {
        let diagnostics = vec![Diagnostic::error("E1202", "an error", scope)];
        Overview { diagnostics, ..overview(Vec::new(), Vec::new()) }
    }

    #[test]
    fn every_code_of_a_run_has_its_reason() {
        let check = |ending: RunEnding, overview: &Overview, exit: Exit, expected: &str| {
            assert_eq!(of_run(&ending, overview), exit, "{expected}");
            let found = reason(exit, overview).unwrap_or_default();
            assert!(found.contains(expected) && found.is_empty() == (exit == Exit::Ok), "{exit:?}: {found}");
        };
        let of = |phase, detail| overview(vec![target(phase, detail)], Vec::new());
        let nothing = Overview::default();
        let deletion = DeletionReport {
            cluster: ClusterName::from("bj1"),
            app: AppId::new("shop", "web"),
            object: "ConfigMap shop/old".to_owned(),
            revision: Revision::from("abc"),
            action: PlanAction::Wait,
            waits: true,
            approval: None,
            cause: None,
            reason: "deleted when its app is healthy".to_owned(),
        };
        let deleting = Overview { deletions: vec![deletion], ..overview(Vec::new(), Vec::new()) };
        let two = overview(
            vec![target(TargetPhase::Refused, "no"), target(TargetPhase::Degraded, "bad")],
            Vec::new(),
        );
        let file = DiagnosticScope::File("apps/web/app.yaml".to_owned());

        check(RunEnding::Settled, &of(TargetPhase::Running, ""), Exit::Ok, "");
        check(
            RunEnding::Settled,
            &of(TargetPhase::Waiting, "no namespace"),
            Exit::Differences,
            "bj1 shop/web is Waiting: no namespace",
        );
        check(
            RunEnding::Settled,
            &of(TargetPhase::Waiting, ""),
            Exit::Differences,
            "bj1 shop/web is Waiting",
        );
        check(
            RunEnding::Settled,
            &deleting,
            Exit::Differences,
            "bj1 ConfigMap shop/old waits to be deleted: deleted when",
        );
        check(RunEnding::Settled, &with_error(DiagnosticScope::Instance), Exit::Configuration, "an error");
        check(RunEnding::Settled, &of(TargetPhase::Degraded, "no image"), Exit::Failed, "Degraded: no image");
        check(RunEnding::Settled, &two, Exit::Failed, "Refused: no (and 1 more)");
        check(RunEnding::Settled, &with_error(file), Exit::Failed, "an error");
        check(
            RunEnding::TimedOut,
            &nothing,
            Exit::TimedOut,
            "--timeout is over; the config repository was not read",
        );
        check(RunEnding::TimedOut, &of(TargetPhase::Progressing, "0/1"), Exit::TimedOut, "Progressing: 0/1");
        let unread = overview(Vec::new(), vec![cluster("Connecting", false)]);
        check(RunEnding::TimedOut, &unread, Exit::TimedOut, "cluster bj1 was not read");
        check(
            RunEnding::TimedOut,
            &of(TargetPhase::Running, ""),
            Exit::TimedOut,
            "requests were still under way",
        );
        let offline = overview(Vec::new(), vec![cluster("Offline", true)]);
        check(RunEnding::Settled, &offline, Exit::Unreachable, "cluster bj1: connection refused");
        check(
            RunEnding::Settled,
            &of(TargetPhase::Unreachable, "away"),
            Exit::Unreachable,
            "Unreachable: away",
        );
        check(RunEnding::Stopped, &nothing, Exit::Interrupted, "a signal stopped it; the config repository");
    }
}
