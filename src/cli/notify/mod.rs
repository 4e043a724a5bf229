//! `tutti notify`: tests a route of notifications, and previews its messages.

mod preview;
mod route;
mod test;

use clap::{Args, Subcommand};

use super::exit::Exit;

#[derive(Args, Debug)]
pub struct NotifyArgs {
    #[command(subcommand)]
    command: NotifyCommand,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    /// Send one message to the service of a route, and say what the service answers
    Test(test::NotifyTestArgs),
    /// Show what the routes would send if a commit were deployed; nothing is sent, and no cluster is asked
    Preview(preview::PreviewArgs),
}

pub async fn run(args: NotifyArgs) -> anyhow::Result<Exit> {
    match args.command {
        NotifyCommand::Test(args) => test::run(args).await,
        NotifyCommand::Preview(args) => preview::run(args).await,
    }
}
