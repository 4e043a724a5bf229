//! `tutti rollout`: state of rollouts, one rollout as it continues, and the history of an app.

mod get;
mod history;
pub mod view;
mod watch;

use clap::{Args, Subcommand};
pub use view::with_latest_note;

use super::exit::Exit;

#[derive(Args, Debug)]
pub struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, Subcommand)]
enum RolloutCommand {
    /// Print the progress of the waves of all apps, or of one app with the holds of its units
    Get(get::RolloutGetArgs),
    /// Print the progress of a rollout until it is done, has failed or cannot continue
    Watch(watch::WatchArgs),
    /// List the commits that changed an app, and the units that run each commit
    History(history::HistoryArgs),
}

pub async fn run(args: RolloutArgs) -> anyhow::Result<Exit> {
    match args.command {
        RolloutCommand::Get(args) => get::run(args).await,
        RolloutCommand::Watch(args) => watch::run(args).await,
        RolloutCommand::History(args) => history::run(args).await,
    }
}
