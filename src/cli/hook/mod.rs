//! `tutti hook`: checks deliveries offline, and lists those of a running process.

mod hint_line;
mod server;
mod verify;

use clap::{Args, Subcommand};

use super::exit::Exit;

#[derive(Args, Debug)]
pub struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Print the response of a receiver to a delivery, and what tutti would read again, without a running tutti
    Verify(verify::HookVerifyArgs),
    /// List the latest webhook deliveries to a running tutti; the environment variable TUTTI_API_TOKEN contains its
    /// token
    Deliveries(server::DeliveriesArgs),
    /// Process an accepted webhook delivery again in a running tutti; the environment variable TUTTI_API_TOKEN
    /// contains its token
    Replay(server::ReplayArgs),
}

pub async fn run(args: HookArgs) -> anyhow::Result<Exit> {
    match args.command {
        HookCommand::Verify(args) => verify::run(args).await,
        HookCommand::Deliveries(args) => server::deliveries(args).await,
        HookCommand::Replay(args) => server::replay(args).await,
    }
}
