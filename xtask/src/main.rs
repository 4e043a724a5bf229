//! Developer commands: `cargo xtask <command>`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod charts;
mod deploy;
mod helm_render;
mod live;
mod release;
mod schema;
mod vectors;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of tutti")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Render every chart of a folder with our renderer and with helm template, and compare (needs Go)
    Charts(charts::Options),
    /// Write the manifests in deploy/ from the chart charts/tutti (needs Go)
    Deploy(deploy::Options),
    /// Write the archive of a release: programs, completions, manual pages, licences (needs Go)
    Dist(release::dist::Options),
    /// Write cli.md and fields.md in docs/reference, from the commands and the schemas of manifests
    Docs,
    /// Build the renderer of Helm charts, which tutti then finds (needs Go)
    HelmRender(helm_render::Options),
    /// Write an image of tutti as an OCI layout, without a daemon (needs Go, and Debian's apt)
    Image(release::image::Options),
    /// Real clusters and a real Gitea on this machine
    #[command(subcommand)]
    Live(live::Command),
    /// Read the kinds of a real server into the sandbox
    Schema(schema::Options),
    /// Ask upstream's server-side apply for the answers that the sandbox is tested with (needs Go)
    Vectors(vectors::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Charts(options) => charts::run(&options),
        Command::Deploy(options) => deploy::run(&options),
        Command::Dist(options) => release::dist::run(&options),
        Command::Docs => release::dist::docs(),
        Command::HelmRender(options) => helm_render::run(&options),
        Command::Image(options) => release::image::run(&options),
        Command::Live(command) => live::run(command),
        Command::Schema(options) => schema::run(options),
        Command::Vectors(options) => vectors::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
