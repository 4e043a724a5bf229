//! `tutti rollout watch`.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::super::exit::Exit;
use super::super::get::write_next_steps;
use super::super::output::{say, tell};
use super::super::process::ProcessArgs;
use super::super::session::{Session, Unreadable, Wish};
use super::super::timeout::timeout;
use super::super::width::say_wrapped;
use super::{rollout_named, shown};
use crate::controller::{Ending, Until};
use crate::report::{Overview, RolloutReport};
use crate::rollout::{Confirmation, Hold, WaveState};

#[derive(Args, Debug)]
pub struct WatchArgs {
    /// NAMESPACE/NAME or its name
    app: String,
    #[command(flatten)]
    process: ProcessArgs,
    /// The longest to watch, as 90s or 5m; a number alone is seconds. By default for ever
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
}

/// How a rollout that was watched ended.
enum End {
    Done,
    Failed(String),
}

pub async fn run(args: WatchArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let session = Session::start(&process, Wish::look(Until::Stopped)).await?;
    let (seen, stop, name) = (session.overview.clone(), session.stop.clone(), args.app.clone());
    let following = tokio::spawn(async move {
        let followed = match args.timeout {
            Some(timeout) => tokio::time::timeout(timeout, follow(seen, &name)).await.ok(),
            None => Some(follow(seen, &name).await),
        };
        stop.cancel();
        followed
    });
    let (ending, _) = session.finish().await?;
    if let Ending::Unreadable(error) = ending {
        return Err(Unreadable(error).into());
    }
    match following.await? {
        Some(Ok(Some(End::Done))) => Ok(Exit::Ok),
        Some(Ok(Some(End::Failed(because)))) => {
            tell!("ends with {}: {because}", Exit::Failed as u8);
            Ok(Exit::Failed)
        }
        // A signal stopped the run before it.
        Some(Ok(None)) => Ok(Exit::Interrupted),
        Some(Err(error)) => Err(error),
        None => {
            tell!("ends with {}: the time of --timeout is over", Exit::TimedOut as u8);
            Ok(Exit::TimedOut)
        }
    }
}

/// What was written last.
#[derive(Default)]
struct Seen {
    waves: Vec<(WaveState, usize)>,
    units: Vec<String>,
    confirmation: Option<Confirmation>,
}

/// Writes the rollout when a wave gets further, and between that what moves, until it ends; `None` when the run stopped before.
async fn follow(mut seen: watch::Receiver<Arc<Overview>>, name: &str) -> anyhow::Result<Option<End>> {
    let mut before = Seen::default();
    while seen.changed().await.is_ok() {
        let now = Arc::clone(&seen.borrow_and_update());
        if !now.is_known() {
            continue;
        }
        let rollout = rollout_named(&now, name)?;
        if rollout.waves.is_empty() || rollout.holds().any(|hold| *hold == Hold::Unread) {
            continue;
        }
        let waves: Vec<_> = rollout.waves.iter().map(|wave| (wave.state, wave.done)).collect();
        let units = shown::moving(rollout);
        if (waves != before.waves) || rollout.confirmation != before.confirmation {
            if !before.waves.is_empty() {
                say!("");
            }
            shown::lines(rollout, jiff::Timestamp::now()).iter().for_each(|line| say_wrapped(line));
            write_next_steps(rollout);
        } else {
            units.iter().filter(|unit| !before.units.contains(unit)).for_each(|unit| say_wrapped(unit));
        }
        before = Seen { waves, units, confirmation: rollout.confirmation.clone() };
        if let Some(end) = end(&now, rollout) {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Before every cluster was read, a rollout looks as if it had just begun.
fn end(overview: &Overview, rollout: &RolloutReport) -> Option<End> {
    if !rollout.is_open {
        return Some(End::Done);
    }
    shown::failure(overview, rollout).map(End::Failed)
}
