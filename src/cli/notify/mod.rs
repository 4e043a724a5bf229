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
    /// Send one test message to the service of a route, and print its response
    Test(test::NotifyTestArgs),
    /// Print the messages that routes would send if a commit were deployed; nothing is sent, and no cluster is
    /// contacted
    Preview(preview::PreviewArgs),
}

pub async fn run(args: NotifyArgs) -> anyhow::Result<Exit> {
    match args.command {
        NotifyCommand::Test(args) => test::run(args).await,
        NotifyCommand::Preview(args) => preview::run(args).await,
    }
}
