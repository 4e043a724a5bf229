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
    /// Show how far the waves of each app are, or of one app with what holds its units
    Get(get::RolloutGetArgs),
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
