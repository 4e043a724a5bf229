//! The commands: parses flags, wires all modules, prints results, and maps errors to exit codes.
//!
//! Data goes to standard output; progress and errors go to standard error. No other module prints or reads flags.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "commands print")]

mod api_client;
mod app_selection;
mod approve;
mod checkout;
mod ci;
mod cluster;
mod connections;
mod demo;
pub mod diagnostics;
mod diff;
mod doctor;
mod exit;
mod explain;
mod field_origins;
mod files;
mod forge;
mod forge_repository;
mod get;
mod grants;
mod health;
mod hook;
mod hook_secrets;
pub mod import;
mod keys;
mod leadership;
mod lint;
mod logging;
mod migrate;
mod notify;
mod output;
mod plan;
mod plan_explain;
mod policy;
mod process;
mod progress;
mod promote;
mod read;
pub mod reference;
mod removed_clusters;
mod render;
mod repository;
mod revisions;
mod rollout;
mod run;
mod scaffold;
mod schema;
mod secret_cache;
mod session;
mod state_folder;
mod templates;
mod timeout;
mod trace;
mod trigger_tokens;
mod wait;
mod why;
mod width;
mod wrapped_line;

use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::model::without_credentials;
use crate::worker;
use exit::Exit;

/// A GitOps reconciler for many Kubernetes clusters
#[derive(Debug, Parser)]
#[command(name = "tutti", version, disable_help_subcommand = true)]
struct CliArguments {
    #[command(subcommand)]
    command: CliCommand,
    /// Print more on standard error: -v each write, -vv also the reasons
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Print log lines as JSON
    #[arg(long, global = true, env = "TUTTI_LOG_JSON", value_parser = BoolishValueParser::new())]
    log_json: bool,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run the example repository on four embedded clusters and print the progress of its rollout
    Demo(demo::DemoArgs),
    /// Reconcile the clusters with a config repository, continuously or once
    Run(run::RunArgs),
    /// Create a config repository
    Init(scaffold::InitArgs),
    /// Write the files of a new app, cluster, template, notification route, server or policy
    New(scaffold::NewArgs),
    /// Write manifests for live workloads, which tutti can then adopt without a restart
    Import(import::ImportArgs),
    /// Print all errors and warnings in a config repository; no cluster is contacted
    Lint(lint::LintArgs),
    /// Print what an error code means and how to fix the error
    Explain(explain::ExplainArgs),
    /// Print a YAML file as tutti reads it: which values are numbers, booleans or text
    Read(read::ReadArgs),
    /// Convert manifests of foreign versions to the native version, in place
    Migrate(migrate::MigrateArgs),
    /// Print the JSON Schema of a kind of manifest, for editors
    Schema(schema::SchemaArgs),
    /// Print the rendered Kubernetes objects of apps
    Render(render::RenderArgs),
    /// Print the objects and targets that a file, or one line of it, affects
    Trace(trace::TraceArgs),
    /// List the templates that are shipped with tutti, or copy them into a config repository
    Templates(templates::TemplatesArgs),
    /// Print what tutti would write to the clusters; nothing is written
    Plan(plan::PlanArgs),
    /// Print what an apply would change in the live objects, by dry runs on the clusters; nothing is written
    Diff(diff::DiffArgs),
    /// Write the approval for waiting deletes or for a rollout
    Approve(approve::ApproveArgs),
    /// Set the version of an app in a ring by writing its pin
    Promote(promote::PromoteArgs),
    /// List apps, targets, clusters, waiting deletes, promotions, AppSets or other parts of the fleet
    Get(get::GetArgs),
    /// Explain why an app is in its current state, from Git to its pods; `--cluster NAME` shows only that cluster
    Why(why::WhyArgs),
    /// Print the progress or the history of rollouts
    Rollout(rollout::RolloutArgs),
    /// Wait until a commit or an app is healthy or planned, through the API of a running tutti
    Wait(wait::WaitArgs),
    /// Call a trigger of a running tutti from a pipeline, and wait; settings are PLUGIN_… or INPUT_… variables
    Ci(ci::CiArgs),
    /// Check that tutti can apply the config repository to its clusters: access, rights, kinds, clocks
    Doctor(doctor::DoctorArgs),
    /// Set up or check the config repository at its forge: webhook, branch protection, labels
    Forge(forge::ForgeArgs),
    /// Print the RBAC roles that tutti needs on a cluster
    Cluster(cluster::ClusterArgs),
    /// Send a test message through a notification route, or print the messages for a commit
    Notify(notify::NotifyArgs),
    /// Test the policies of a config repository
    Policy(policy::PolicyArgs),
    /// Verify a webhook delivery offline, or list and replay the deliveries to a running tutti
    Hook(hook::HookArgs),
    /// Print the health of each Kubernetes object in a file
    Health(health::HealthArgs),
    /// Print the version
    Version(VersionArgs),
    /// Render templates for the parent process
    #[command(name = worker::COMMAND, hide = true)]
    TemplateWorker,
}

#[derive(clap::Args, Debug)]
struct VersionArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: output::OutputFormat,
}

/// The command line, for completions, manual pages and [`mod@reference`].
pub fn command() -> clap::Command {
    CliArguments::command()
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let arguments = CliArguments::parse();
    output::install_panic_hook();
    // One TLS provider for all clients; a second installation changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runs = matches!(arguments.command, CliCommand::Run(_));
    let traces = logging::start(arguments.verbose, arguments.log_json, runs);
    let result = match arguments.command {
        CliCommand::Demo(args) => block_on_runtime(demo::run(args)),
        CliCommand::Run(args) => block_on_runtime(run::run(args)),
        CliCommand::Init(args) => scaffold::init(&args),
        CliCommand::New(args) => scaffold::new(&args),
        CliCommand::Import(args) => block_on_runtime(import::run(args)),
        CliCommand::Lint(args) => block_on_runtime(lint::run(args)),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Read(args) => read::run(&args),
        CliCommand::Migrate(args) => block_on_runtime(migrate::run(args)),
        CliCommand::Schema(args) => block_on_runtime(schema::run(args)),
        CliCommand::Render(args) => block_on_runtime(render::run(args)),
        CliCommand::Trace(args) => block_on_runtime(trace::run(args)),
        CliCommand::Templates(args) => templates::run(args),
        CliCommand::Plan(args) => block_on_runtime(plan::run(args)),
        CliCommand::Diff(args) => block_on_runtime(diff::run(args)),
        CliCommand::Approve(args) => block_on_runtime(approve::run(args)),
        CliCommand::Promote(args) => block_on_runtime(promote::run(args)),
        CliCommand::Get(args) => block_on_runtime(get::run(args)),
        CliCommand::Why(args) => block_on_runtime(why::run(args)),
        CliCommand::Rollout(args) => block_on_runtime(rollout::run(args)),
        CliCommand::Notify(args) => block_on_runtime(notify::run(args)),
        CliCommand::Policy(args) => block_on_runtime(policy::run(args)),
        CliCommand::Hook(args) => block_on_runtime(hook::run(args)),
        CliCommand::Health(args) => block_on_runtime(health::run(args)),
        CliCommand::Wait(args) => block_on_runtime(wait::run(args)),
        CliCommand::Ci(args) => block_on_runtime(ci::run(args)),
        CliCommand::Doctor(args) => block_on_runtime(doctor::run(args)),
        CliCommand::Forge(args) => block_on_runtime(forge::run(args)),
        CliCommand::Cluster(args) => block_on_runtime(cluster::run(args)),
        CliCommand::Version(args) => version(&args),
        CliCommand::TemplateWorker => worker::serve().map(|()| Exit::Ok).map_err(Into::into),
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

fn block_on_runtime(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(command);
    // Watches and servers have no state to save.
    runtime.shutdown_background();
    result
}

fn version(args: &VersionArgs) -> anyhow::Result<Exit> {
    match args.output {
        output::OutputFormat::Table => output::say!("tutti {}", env!("CARGO_PKG_VERSION")),
        format => output::write_value(format, &serde_json::json!({"version": env!("CARGO_PKG_VERSION")}))?,
    }
    Ok(Exit::Ok)
}
