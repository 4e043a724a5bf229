//! `cargo xtask live`: clusters and a Gitea for a person, by the harness that the tests use.
//!
//! `up` leaves a holder process behind, which owns all the others and writes the state file. `down` stops the holder; the
//! rest ends with it. Nothing is ever stopped by name: only by an id whose start time is still the recorded one.

mod down;
mod holder;
mod process;
mod programs;
mod status;
mod tier_state;
mod up;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum LiveCommand {
    /// Build the programs into the cache (takes minutes the first time)
    Build,
    /// Start clusters and a Gitea in the background, and print how to reach them
    Up(up::UpOptions),
    /// Print the running clusters and Gitea, and how to reach them
    Status,
    /// Stop the clusters and the Gitea that `up` started
    Down,
    /// Run as the parent of all processes until a stop signal (started by `up`)
    #[command(hide = true)]
    Hold(up::UpOptions),
}

pub fn run(command: LiveCommand) -> anyhow::Result<()> {
    match command {
        LiveCommand::Build => programs::build().map(drop),
        LiveCommand::Up(options) => up::run(&options),
        LiveCommand::Status => status::run(),
        LiveCommand::Down => down::run(),
        LiveCommand::Hold(options) => holder::run(&options),
    }
}
