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
    /// Say offline what a receiver answers to a delivery, and which hint comes of it
    Verify(verify::HookVerifyArgs),
    /// List the last deliveries to a running tutti; its token is in TUTTI_API_TOKEN
    Deliveries(server::DeliveriesArgs),
    /// Take a delivery once more that a running tutti has accepted; its token is in TUTTI_API_TOKEN
    Replay(server::ReplayArgs),
}

pub async fn run(args: HookArgs) -> anyhow::Result<Exit> {
    match args.command {
        HookCommand::Verify(args) => verify::run(args).await,
        HookCommand::Deliveries(args) => server::deliveries(args).await,
        HookCommand::Replay(args) => server::replay(args).await,
    }
}
