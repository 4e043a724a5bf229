//! Developer commands: `cargo xtask <command>`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod charts;
mod deploy;
mod helm_render;
mod live;
mod picture;
mod release;
mod schema;
mod vectors;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of tutti")]
struct XtaskArguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Render every chart in a folder with helm-render and with `helm template`, and compare the results (needs Go)
    Charts(charts::ChartOptions),
    /// Write the manifests in deploy/ from the chart charts/tutti (needs Go)
    Deploy(deploy::DeployOptions),
    /// Write the release archive: programs, completions, manual pages, licences (needs Go)
    Dist(release::dist::DistOptions),
    /// Write cli.md and fields.md in docs/reference, from the commands and the schemas of manifests
    Docs,
    /// Build helm-render, the renderer of Helm charts, into the cache where tutti finds it (needs Go)
    HelmRender(helm_render::HelmRenderOptions),
    /// Write an image of tutti as an OCI layout, without a daemon (needs Go, and Debian's apt)
    Image(release::image::ImageOptions),
    /// Run real clusters and a real Gitea on this machine
    #[command(subcommand)]
    Live(live::LiveCommand),
    /// Draw the output of a command as an SVG picture, for README.md
    Picture(picture::PictureOptions),
    /// Read the kinds of a real API server, and write them for the sandbox
    Schema(schema::SchemaOptions),
    /// Record the results of upstream's server-side apply, as expected values for tests of the sandbox (needs Go)
    Vectors(vectors::VectorOptions),
}

fn main() -> ExitCode {
    let result = match XtaskArguments::parse().command {
        XtaskCommand::Charts(options) => charts::run(&options),
        XtaskCommand::Deploy(options) => deploy::run(&options),
        XtaskCommand::Dist(options) => release::dist::run(&options),
        XtaskCommand::Docs => release::dist::docs(),
        XtaskCommand::HelmRender(options) => helm_render::run(&options),
        XtaskCommand::Image(options) => release::image::run(&options),
        XtaskCommand::Live(command) => live::run(command),
        XtaskCommand::Picture(options) => picture::run(&options),
        XtaskCommand::Schema(options) => schema::run(options),
        XtaskCommand::Vectors(options) => vectors::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
