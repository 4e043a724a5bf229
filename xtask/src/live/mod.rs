//! `cargo xtask live`: clusters and a Gitea for a person, by the harness that the tests use.
//!
//! `up` leaves a holder process behind, which owns all the others and writes the state file. `down` stops the holder; the
//! rest ends with it. Nothing is ever stopped by name: only by an id whose start time is still the recorded one.

mod down;
mod hold;
mod process;
mod state;
mod status;
mod up;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum Command {
    /// Build the programs into the cache (minutes the first time)
    Build,
    /// Start clusters and a Gitea in the background, and print how to reach them
    Up(up::Options),
    /// Say what runs and how to reach it
    Status,
    /// Stop what `up` started
    Down,
    /// Own the processes until told to stop (started by `up`)
    #[command(hide = true)]
    Hold(up::Options),
}

pub fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Build => build().map(drop),
        Command::Up(options) => up::run(&options),
        Command::Status => status::run(),
        Command::Down => down::run(),
        Command::Hold(options) => hold::run(&options),
    }
}

fn build() -> anyhow::Result<live::Programs> {
    let programs = live::Programs::ensure(&|line| println!("{line}"))?;
    println!("programs are in {}", live::cache_folder()?.display());
    Ok(programs)
}
