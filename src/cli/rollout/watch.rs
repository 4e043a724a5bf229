//! `tutti rollout watch`: prints a rollout's changes until it ends.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::super::app_selection::rollout_named;
use super::super::diagnostics;
use super::super::exit::{self, Exit};
use super::super::get::write_next_steps;
use super::super::output::{say, tell};
use super::super::process::ProcessArgs;
use super::super::session::{RepositoryUnreadable, RunOptions, Session};
use super::super::timeout::timeout;
use super::super::wrapped_line::say_wrapped;
use super::view;
use crate::controller::{RunEnding, RunUntil};
use crate::model::Diagnostic;
use crate::report::{Overview, RolloutReport};
use crate::rollout::{Confirmation, RolloutHold, WaveState};

#[derive(Args, Debug)]
pub struct WatchArgs {
    /// App, as NAMESPACE/NAME or as NAME if it is unique
    app: String,
    #[command(flatten)]
    process: ProcessArgs,
    /// Maximum time to watch, such as 90s or 5m; a number without a unit is in seconds. Default: no limit
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
}

enum WatchEnd {
    Done,
    /// The rollout does not continue by itself.
    Stalled(Exit, String),
}

pub async fn run(args: WatchArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let session = Session::start(&process, RunOptions::observe_only(RunUntil::Stopped)).await?;
    let (seen, stop, name) = (session.overview.clone(), session.stop.clone(), args.app.clone());
    let following = tokio::spawn(async move {
        let followed = match args.timeout {
            Some(timeout) => tokio::time::timeout(timeout, follow_rollout(seen, &name)).await.ok(),
            None => Some(follow_rollout(seen, &name).await),
        };
        stop.cancel();
        followed
    });
    let (ending, _) = session.finish().await?;
    if let RunEnding::Unreadable(error) = ending {
        return Err(RepositoryUnreadable(error).into());
    }
    match following.await? {
        Some(Ok(Some(WatchEnd::Done))) => Ok(Exit::Ok),
        Some(Ok(Some(WatchEnd::Stalled(exit, because)))) => {
            tell!("ends with {}: {because}", exit as u8);
            Ok(exit)
        }
        // Stopped by a signal.
        Some(Ok(None)) => Ok(Exit::Interrupted),
        Some(Err(error)) => Err(error),
        None => {
            tell!("ends with {}: the time of --timeout is over", Exit::TimedOut as u8);
            Ok(Exit::TimedOut)
        }
    }
}

#[derive(Default)]
struct PrintedRollout {
    mistakes: Vec<Diagnostic>,
    waves: Vec<(WaveState, usize)>,
    units: Vec<String>,
    confirmation: Option<Confirmation>,
}

/// Prints the waves when one progresses, and moving units in between, until the end; `None`: stopped before.
async fn follow_rollout(
    mut seen: watch::Receiver<Arc<Overview>>,
    name: &str,
) -> anyhow::Result<Option<WatchEnd>> {
    let mut before = PrintedRollout::default();
    while seen.changed().await.is_ok() {
        let now = Arc::clone(&seen.borrow_and_update());
        if !now.is_complete() {
            continue;
        }
        if now.diagnostics != before.mistakes {
            diagnostics::print(&now.diagnostics);
            before.mistakes.clone_from(&now.diagnostics);
        }
        let rollout = rollout_named(&now, name)?;
        if rollout.waves.is_empty() || rollout.holds().any(|hold| *hold == RolloutHold::Unread) {
            continue;
        }
        let waves: Vec<_> = rollout.waves.iter().map(|wave| (wave.state, wave.done)).collect();
        let units = view::open_unit_lines(rollout);
        if (waves != before.waves) || rollout.confirmation != before.confirmation {
            if !before.waves.is_empty() {
                say!("");
            }
            view::rollout_lines(&now, rollout, jiff::Timestamp::now())
                .iter()
                .for_each(|line| say_wrapped(line));
            write_next_steps(rollout);
        } else {
            units.iter().filter(|unit| !before.units.contains(unit)).for_each(|unit| say_wrapped(unit));
        }
        before = PrintedRollout { waves, units, confirmation: rollout.confirmation.clone(), ..before };
        if let Some(end) = watch_end(&now, rollout) {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// An open rollout may only look so before every cluster is read.
fn watch_end(overview: &Overview, rollout: &RolloutReport) -> Option<WatchEnd> {
    let failure =
        || view::failure_reason(overview, rollout).map(|because| WatchEnd::Stalled(Exit::Failed, because));
    if rollout.is_open {
        return failure();
    }
    if view::is_done(rollout) {
        return Some(WatchEnd::Done);
    }
    let away =
        exit::offline_clusters(overview, |cluster| view::left_out_clusters(rollout).contains(&cluster.name));
    let away = away.map(|clusters| WatchEnd::Stalled(Exit::Unreachable, clusters));
    let undone =
        || WatchEnd::Stalled(Exit::Differences, format!("{}: {}", rollout.app, view::wait_reason(rollout)));
    Some(away.or_else(failure).unwrap_or_else(undone))
}
