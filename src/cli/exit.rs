//! Exit codes: one table for all commands.

use std::process::ExitCode;

use super::plan::Chosen;
use crate::controller::Ending;
use crate::model::Scope;
use crate::report::{ClusterReport, Overview, Phase};
use crate::source::ErrorKind;

/// How a command ended; the numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// There are differences, or something is not healthy yet.
    Differences = 1,
    /// Usage or configuration: nothing could be read.
    Configuration = 2,
    /// A target failed, or an app could not be rendered.
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

/// Of `run --once`: the worst, in the order 2, 6, 3, 4.
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

/// Of a look at what a commit would change, of all or of one app: how apps fare does not matter, nor do clusters where the app is not.
pub fn of_look(ending: &Ending, overview: &Overview, chosen: &Chosen<'_>) -> Exit {
    let Chosen { app, targets, deletions, .. } = chosen;
    // Of an app that is gone, any cluster may still have something.
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
        // Others were waited for.
        Some(Exit::TimedOut) if is_known => Exit::Ok,
        exit => exit.unwrap_or(Exit::Ok),
    }
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
    // Without an instance (or its rings) nothing could be said of any app.
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
