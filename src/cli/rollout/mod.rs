//! `tutti rollout`: how apps in waves stand, one app as it goes on, and the commits that changed it.

mod get;
mod history;
mod shown;
mod watch;

use std::collections::BTreeSet;

use anyhow::bail;
use clap::{Args, Subcommand};
pub use shown::at_the_latest;

use super::exit::Exit;
use crate::manifest::read::nearest;
use crate::model::AppId;
use crate::report::{Overview, RolloutReport};

#[derive(Args, Debug)]
pub struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, Subcommand)]
enum RolloutCommand {
    /// Show how far the waves of each app are, or of one app with what holds its units
    Get(get::GetArgs),
    /// Show a rollout as it goes on, until it is done or has failed
    Watch(watch::WatchArgs),
    /// List the commits that changed an app, and which units run each
    History(history::HistoryArgs),
}

pub async fn run(args: RolloutArgs) -> anyhow::Result<Exit> {
    match args.command {
        RolloutCommand::Get(args) => get::run(args).await,
        RolloutCommand::Watch(args) => watch::run(args).await,
        RolloutCommand::History(args) => history::run(args).await,
    }
}

/// The app of a name: `NAMESPACE/NAME`, or the name alone where one namespace has it.
pub fn app_named(overview: &Overview, name: &str) -> anyhow::Result<AppId> {
    let known: BTreeSet<&AppId> = overview.targets.iter().map(|target| &target.app).collect();
    let fitting: Vec<&AppId> =
        known.iter().copied().filter(|app| app.to_string() == name || *app.name == *name).collect();
    match fitting[..] {
        [app] => Ok(app.clone()),
        [] => {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            let bare = known.iter().map(|app| &*app.name);
            let all: Vec<&str> = names.iter().map(String::as_str).chain(bare).collect();
            match nearest(name, &all) {
                Some(near) => bail!("no app {name} here; did you mean {near}?"),
                None if names.is_empty() => bail!("no app {name} here; there are none"),
                None => bail!("no app {name} here; there are {}", names.join(", ")),
            }
        }
        _ => {
            let names: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            bail!("{name} is the name of several apps: {}", names.join(", "))
        }
    }
}

/// The rollout of an app that is named.
pub fn rollout_named<'o>(overview: &'o Overview, name: &str) -> anyhow::Result<&'o RolloutReport> {
    let app = app_named(overview, name)?;
    match overview.rollouts.iter().find(|rollout| rollout.app == app) {
        Some(rollout) => Ok(rollout),
        None => bail!(
            "{app} has no waves: a commit reaches all its clusters at once; rings.yaml, `waves` or `upgradeType` give it some"
        ),
    }
}
