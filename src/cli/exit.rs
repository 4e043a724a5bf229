//! Exit codes: one table for all commands.

use std::process::ExitCode;

use crate::controller::Ending;
use crate::model::Scope;
use crate::report::{Overview, Phase};
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
    if let Ending::Unreadable(error) = ending {
        return match error.kind {
            ErrorKind::Authentication => Exit::Denied,
            ErrorKind::Unreachable | ErrorKind::Transient => Exit::Unreachable,
            ErrorKind::Configuration => Exit::Configuration,
        };
    }
    // Without an instance (or its rings) nothing could be said of any app.
    if overview.diagnostics.iter().any(|it| it.is_error() && it.scope == Scope::Instance) {
        return Exit::Configuration;
    }
    let any = |wanted: fn(Phase) -> bool| overview.targets.iter().any(|target| wanted(target.phase));
    let offline = overview.clusters.iter().any(|cluster| cluster.state == "Offline");
    if offline || any(|phase| phase == Phase::Unreachable) {
        Exit::Unreachable
    } else if any(Phase::is_failure) || overview.has_errors() {
        Exit::Failed
    } else if matches!(ending, Ending::TimedOut) {
        Exit::TimedOut
    } else if matches!(ending, Ending::Stopped) {
        Exit::Interrupted
    } else if any(|phase| !phase.is_done() && phase != Phase::OutOfSync)
        || overview.deletions.iter().any(|deletion| deletion.waits)
    {
        Exit::Differences
    } else {
        Exit::Ok
    }
}
