//! `tutti policy`: tests the policies of a repository.

mod test;

use clap::{Args, Subcommand};

use super::exit::Exit;

#[derive(Args, Debug)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Evaluate the policies of a config repository on the examples in their manifests
    Test(test::PolicyTestArgs),
}

pub async fn run(args: PolicyArgs) -> anyhow::Result<Exit> {
    match args.command {
        PolicyCommand::Test(args) => test::run(args).await,
    }
}
