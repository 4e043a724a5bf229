//! Exit codes of all commands, and the text that explains them.

use std::process::ExitCode;

use super::chosen::Chosen;
use super::width::first_names;
use crate::controller::Ending;
use crate::forge;
use crate::model::{Diagnostic, Scope};
use crate::report::{ClusterReport, Overview, Phase, RolloutReport, TargetReport};
use crate::source::ErrorKind;

const MOST_CLUSTERS: usize = 8;

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
        forge::ErrorKind::Authentication => Exit::Denied,
        forge::ErrorKind::Configuration => Exit::Configuration,
        _ => Exit::Unreachable,
    }
}

/// For `run --once`: the worst, in the order 2, 6, 3, 4.
pub fn of_run(ending: &Ending, overview: &Overview) -> Exit {
    let any = |wanted: fn(Phase) -> bool| overview.targets.iter().any(|target| wanted(target.phase));
    let is_offline = overview.clusters.iter().any(is_offline) || any(|phase| phase == Phase::Unreachable);
    if let Some(exit) = of_all(ending, overview, is_offline, any(Phase::is_failure)) {
        exit
    } else if any(|phase| !phase.is_done() && phase != Phase::OutOfSync)
        || overview.deletions.iter().any(|deletion| deletion.waits)
    {
        Exit::Differences
    } else {
        Exit::Ok
    }
}

/// For commands that only read, about all apps or one: the health of apps does not count, nor do clusters without the app.
pub fn of_look(ending: &Ending, overview: &Overview, chosen: &Chosen<'_>) -> Exit {
    let Chosen { app, targets, deletions, .. } = chosen;
    // Any cluster may have objects of an app that is gone.
    let is_of_all = app.is_none() || targets.is_empty();
    let is_asked = |cluster: &ClusterReport| {
        let mut clusters = targets.iter().map(|it| &it.cluster).chain(deletions.iter().map(|it| &it.cluster));
        is_of_all || clusters.any(|name| *name == cluster.name)
    };
    let is_offline = overview.clusters.iter().any(|cluster| is_offline(cluster) && is_asked(cluster));
    let any = |wanted: Phase| targets.iter().any(|target| target.phase == wanted);
    let has_failed = any(Phase::Refused) || any(Phase::Invalid);
    let is_known = !is_of_all && targets.iter().all(|target| target.plan.is_some());
    match of_all(ending, overview, is_offline || any(Phase::Unreachable), has_failed) {
        // Only other clusters are missing.
        Some(Exit::TimedOut) if is_known => Exit::Ok,
        exit => exit.unwrap_or(Exit::Ok),
    }
}

/// One line about a code other than 0.
pub fn reason(exit: Exit, overview: &Overview) -> Option<String> {
    let waits = || pending(overview);
    Some(match exit {
        Exit::Ok => return None,
        Exit::Differences => asked(overview).unwrap_or_else(waits),
        Exit::Configuration => {
            let of_instance = |it: &&Diagnostic| it.scope == Scope::Instance;
            mistakes(overview, of_instance).unwrap_or_else(|| "the configuration has mistakes".to_owned())
        }
        Exit::Failed => failures(overview)
            .or_else(|| mistakes(overview, |_| true))
            .unwrap_or_else(|| "an app has failed".to_owned()),
        Exit::TimedOut => format!("the time of --timeout is over; {}", waits()),
        Exit::Denied => "access was denied".to_owned(),
        Exit::Unreachable => unreachable(overview),
        Exit::Interrupted => format!("a signal stopped it; {}", waits()),
    })
}

/// The first line, and the number of others.
fn first_of(mut lines: impl Iterator<Item = String>) -> Option<String> {
    let first = lines.next()?;
    match lines.count() {
        0 => Some(first),
        more => Some(format!("{first} (and {more} more)")),
    }
}

fn mistakes(overview: &Overview, wanted: impl Fn(&&Diagnostic) -> bool) -> Option<String> {
    let errors = overview.diagnostics.iter().filter(|it| it.is_error());
    first_of(errors.filter(wanted).map(ToString::to_string))
}

fn failures(overview: &Overview) -> Option<String> {
    first_of(overview.targets.iter().filter(|target| target.phase.is_failure()).map(line))
}

/// Clusters that do not answer, with the first one's reason.
pub fn offline(overview: &Overview, is_asked: impl Fn(&ClusterReport) -> bool) -> Option<String> {
    let clusters: Vec<&ClusterReport> =
        overview.clusters.iter().filter(|cluster| is_offline(cluster) && is_asked(cluster)).collect();
    let names: Vec<String> = clusters.iter().map(|cluster| cluster.name.to_string()).collect();
    let noun = if names.len() == 1 { "cluster" } else { "clusters" };
    let because = &clusters.first()?.detail;
    Some(format!("{noun} {}: {because}", first_names(&names, MOST_CLUSTERS)))
}

fn unreachable(overview: &Overview) -> String {
    let clusters = offline(overview, |_| true);
    let apps = || overview.targets.iter().filter(|target| target.phase == Phase::Unreachable);
    let found = clusters.or_else(|| first_of(apps().map(line)));
    found.unwrap_or_else(|| "a cluster does not answer".to_owned())
}

/// The next step of a person, and its command.
fn asked(overview: &Overview) -> Option<String> {
    let steps = overview.rollouts.iter().filter_map(RolloutReport::next_step);
    first_of(steps.map(|step| step.to_string()))
}

fn pending(overview: &Overview) -> String {
    if overview.revision.is_none() {
        return "the config repository was not read".to_owned();
    }
    if !overview.is_rendered {
        return "the apps were not rendered".to_owned();
    }
    let targets = overview.targets.iter();
    let targets = targets.filter(|target| !target.phase.is_done() && target.phase != Phase::OutOfSync);
    let deletions = overview.deletions.iter().map(|it| {
        let state = if it.waits { "waits to be deleted" } else { "is to be deleted" };
        format!("{} {} {state}: {}", it.cluster, it.object, it.reason)
    });
    let clusters = overview.clusters.iter().filter(|cluster| !cluster.observed);
    let clusters = clusters.map(|cluster| format!("cluster {} was not read", cluster.name));
    let found = first_of(targets.map(line)).or_else(|| first_of(deletions)).or_else(|| first_of(clusters));
    found.unwrap_or_else(|| "requests were still under way".to_owned())
}

fn line(target: &TargetReport) -> String {
    let state = format!("{} {} is {}", target.cluster, target.app, target.phase.as_str());
    if target.detail.is_empty() { state } else { format!("{state}: {}", target.detail) }
}

fn is_offline(cluster: &ClusterReport) -> bool {
    cluster.state == "Offline"
}

fn of_all(ending: &Ending, overview: &Overview, is_offline: bool, has_failed: bool) -> Option<Exit> {
    if let Ending::Unreadable(error) = ending {
        return Some(match error.kind {
            ErrorKind::Authentication => Exit::Denied,
            ErrorKind::Unreachable | ErrorKind::Transient => Exit::Unreachable,
            ErrorKind::Configuration => Exit::Configuration,
        });
    }
    // Without an instance (or its rings) no app is known.
    if overview.diagnostics.iter().any(|it| it.is_error() && it.scope == Scope::Instance) {
        return Some(Exit::Configuration);
    }
    if is_offline {
        return Some(Exit::Unreachable);
    }
    if has_failed || overview.has_errors() {
        return Some(Exit::Failed);
    }
    match ending {
        Ending::TimedOut => Some(Exit::TimedOut),
        Ending::Stopped => Some(Exit::Interrupted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, ClusterName, Revision};
    use crate::plan::Action;
    use crate::report::DeletionReport;

    fn target(phase: Phase, detail: &str) -> TargetReport {
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

    fn with_error(scope: Scope) -> Overview {
        let diagnostics = vec![Diagnostic::error("E1202", "a mistake", scope)];
        Overview { diagnostics, ..overview(Vec::new(), Vec::new()) }
    }

    #[test]
    fn every_code_of_a_run_has_its_reason() {
        let check = |ending: Ending, overview: &Overview, exit: Exit, expected: &str| {
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
            action: Action::Wait,
            waits: true,
            approval: None,
            reason: "goes when its app is healthy".to_owned(),
        };
        let deleting = Overview { deletions: vec![deletion], ..overview(Vec::new(), Vec::new()) };
        let two = overview(vec![target(Phase::Refused, "no"), target(Phase::Degraded, "bad")], Vec::new());
        let file = Scope::File("apps/web/app.yaml".to_owned());

        check(Ending::Settled, &of(Phase::Running, ""), Exit::Ok, "");
        check(
            Ending::Settled,
            &of(Phase::Waiting, "no namespace"),
            Exit::Differences,
            "bj1 shop/web is Waiting: no namespace",
        );
        check(Ending::Settled, &of(Phase::Waiting, ""), Exit::Differences, "bj1 shop/web is Waiting");
        check(
            Ending::Settled,
            &deleting,
            Exit::Differences,
            "bj1 ConfigMap shop/old waits to be deleted: goes when",
        );
        check(Ending::Settled, &with_error(Scope::Instance), Exit::Configuration, "a mistake");
        check(Ending::Settled, &of(Phase::Degraded, "no image"), Exit::Failed, "Degraded: no image");
        check(Ending::Settled, &two, Exit::Failed, "Refused: no (and 1 more)");
        check(Ending::Settled, &with_error(file), Exit::Failed, "a mistake");
        check(
            Ending::TimedOut,
            &nothing,
            Exit::TimedOut,
            "--timeout is over; the config repository was not read",
        );
        check(Ending::TimedOut, &of(Phase::Progressing, "0/1"), Exit::TimedOut, "Progressing: 0/1");
        let unread = overview(Vec::new(), vec![cluster("Connecting", false)]);
        check(Ending::TimedOut, &unread, Exit::TimedOut, "cluster bj1 was not read");
        check(Ending::TimedOut, &of(Phase::Running, ""), Exit::TimedOut, "requests were still under way");
        let offline = overview(Vec::new(), vec![cluster("Offline", true)]);
        check(Ending::Settled, &offline, Exit::Unreachable, "cluster bj1: connection refused");
        check(Ending::Settled, &of(Phase::Unreachable, "away"), Exit::Unreachable, "Unreachable: away");
        check(Ending::Stopped, &nothing, Exit::Interrupted, "a signal stopped it; the config repository");
    }
}
