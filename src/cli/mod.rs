//! The commands: parses flags, wires all modules, prints results, and maps errors to exit codes.
//!
//! Data goes to standard output; progress and errors go to standard error. No other module prints or reads flags.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "commands print")]

mod api_client;
mod approve;
mod at_forge;
mod changes;
mod chosen;
mod ci;
mod cluster;
mod demo;
pub mod diagnostics;
mod diff;
mod doctor;
mod exit;
mod explain;
mod fields;
mod files;
mod forge;
mod get;
mod grants;
mod health;
mod hook;
mod hook_secrets;
pub mod import;
mod kept_secrets;
mod keys;
mod leading;
mod lint;
mod logging;
mod migrate;
mod notify;
mod output;
mod plan;
mod policy;
mod process;
mod progress;
mod promote;
mod read;
pub mod reference;
mod render;
mod repository;
mod revisions;
mod rollout;
mod run;
mod scaffold;
mod schema;
mod session;
mod state_folder;
mod taken_away;
mod templates;
mod timeout;
mod trace;
mod trigger_tokens;
mod wait;
mod ways;
mod why;
mod width;

use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::model::without_credentials;
use crate::worker;
use exit::Exit;

/// A GitOps reconciler for many Kubernetes clusters
#[derive(Debug, Parser)]
#[command(name = "tutti", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// More on standard error: -v what is done, -vv also why
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Log lines as JSON
    #[arg(long, global = true, env = "TUTTI_LOG_JSON", value_parser = BoolishValueParser::new())]
    log_json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the example repository to four embedded clusters and show how it rolls out
    Demo(demo::DemoArgs),
    /// Reconcile a config repository with its clusters, for ever or once
    Run(run::RunArgs),
    /// Begin a config repository
    Init(scaffold::InitArgs),
    /// Write the files of a new app, cluster or template
    New(scaffold::NewArgs),
    /// Write manifests of live workloads, which then are adopted without a restart
    Import(import::ImportArgs),
    /// List every mistake of a config repository, without any cluster
    Lint(lint::LintArgs),
    /// Say what an error code means, and what to do about it
    Explain(explain::ExplainArgs),
    /// Print a YAML file as it is read: what is a number, a boolean, a text
    Read(read::ReadArgs),
    /// Bring manifests of foreign versions to the native one, in place
    Migrate(migrate::MigrateArgs),
    /// Print the JSON Schema of a kind of manifest, for editors
    Schema(schema::SchemaArgs),
    /// Print what apps are rendered to
    Render(render::RenderArgs),
    /// Say which objects of which targets a file, or a line of it, reaches
    Trace(trace::TraceArgs),
    /// List the templates that tutti brings along, or copy them out
    Templates(templates::TemplatesArgs),
    /// Show what would be written to the clusters, and write nothing
    Plan(plan::PlanArgs),
    /// Show what an apply would change in the objects, as the clusters say; write nothing
    Diff(diff::DiffArgs),
    /// Write the approval for deletes that wait, or for the next waves of a rollout
    Approve(approve::ApproveArgs),
    /// Bring a version of an app to a ring: write its pin
    Promote(promote::PromoteArgs),
    /// Show apps, targets, clusters, waiting deletes, promotions or AppSets
    Get(get::GetArgs),
    /// Say why an app is as it is, from Git to its pods; `--cluster NAME` shows that cluster alone
    Why(why::WhyArgs),
    /// Show the progress and history of rollouts
    Rollout(rollout::RolloutArgs),
    /// Wait until a commit or an app is well, by the API of a running tutti
    Wait(wait::WaitArgs),
    /// A step of a pipeline: call a trigger of a running tutti, and wait
    Ci(ci::CiArgs),
    /// Say what stands between the repository and its clusters: access, rights, kinds, clocks
    Doctor(doctor::DoctorArgs),
    /// Set up the repository at its forge: webhook, branch protection, labels
    Forge(forge::ForgeArgs),
    /// Print what tutti needs on a cluster
    Cluster(cluster::ClusterArgs),
    /// Test a route of notifications; show what routes would send for a commit
    Notify(notify::NotifyArgs),
    /// Test the policies of a repository
    Policy(policy::PolicyArgs),
    /// Check a webhook offline; list and replay what came to a running tutti
    Hook(hook::HookArgs),
    /// Say the health of each object in a dump
    Health(health::HealthArgs),
    /// Print the version
    Version(VersionArgs),
    /// Render templates for the process that started this one
    #[command(name = worker::COMMAND, hide = true)]
    TemplateWorker,
}

#[derive(clap::Args, Debug)]
struct VersionArgs {
    #[arg(short, long, value_enum, default_value_t)]
    output: output::Format,
}

/// The command line, for completions, manual pages and [`mod@reference`].
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    output::tell_of_panics_as_usual();
    // One TLS provider for all clients; a second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runs = matches!(arguments.command, Command::Run(_));
    let traces = logging::start(arguments.verbose, arguments.log_json, runs);
    let result = match arguments.command {
        Command::Demo(args) => on_runtime(demo::run(args)),
        Command::Run(args) => on_runtime(run::run(args)),
        Command::Init(args) => scaffold::init(&args),
        Command::New(args) => scaffold::new(&args),
        Command::Import(args) => on_runtime(import::run(args)),
        Command::Lint(args) => on_runtime(lint::run(args)),
        Command::Explain(args) => explain::run(&args),
        Command::Read(args) => read::run(&args),
        Command::Migrate(args) => on_runtime(migrate::run(args)),
        Command::Schema(args) => on_runtime(schema::run(args)),
        Command::Render(args) => on_runtime(render::run(args)),
        Command::Trace(args) => on_runtime(trace::run(args)),
        Command::Templates(args) => templates::run(args),
        Command::Plan(args) => on_runtime(plan::run(args)),
        Command::Diff(args) => on_runtime(diff::run(args)),
        Command::Approve(args) => on_runtime(approve::run(args)),
        Command::Promote(args) => on_runtime(promote::run(args)),
        Command::Get(args) => on_runtime(get::run(args)),
        Command::Why(args) => on_runtime(why::run(args)),
        Command::Rollout(args) => on_runtime(rollout::run(args)),
        Command::Notify(args) => on_runtime(notify::run(args)),
        Command::Policy(args) => on_runtime(policy::run(args)),
        Command::Hook(args) => on_runtime(hook::run(args)),
        Command::Health(args) => on_runtime(health::run(args)),
        Command::Wait(args) => on_runtime(wait::run(args)),
        Command::Ci(args) => on_runtime(ci::run(args)),
        Command::Doctor(args) => on_runtime(doctor::run(args)),
        Command::Forge(args) => on_runtime(forge::run(args)),
        Command::Cluster(args) => on_runtime(cluster::run(args)),
        Command::Version(args) => version(&args),
        Command::TemplateWorker => worker::serve().map(|()| Exit::Ok).map_err(Into::into),
    };
    traces.end();
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            // A URL with credentials may be among the arguments.
            output::tell!("error: {}", without_credentials(&format!("{error:#}")));
            if let Some(help) = session::help_of(&error) {
                output::tell!("  help: {help}");
            }
            session::exit_of(&error).into()
        }
    }
}

fn on_runtime(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(command);
    // Watches and servers have no state to save.
    runtime.shutdown_background();
    result
}

fn version(args: &VersionArgs) -> anyhow::Result<Exit> {
    match args.output {
        output::Format::Table => output::say!("tutti {}", env!("CARGO_PKG_VERSION")),
        format => output::write_value(format, &serde_json::json!({"version": env!("CARGO_PKG_VERSION")}))?,
    }
    Ok(Exit::Ok)
}
