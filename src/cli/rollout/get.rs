//! `tutti rollout get`: prints the waves of all rollouts, or of one with its units.

use std::time::Duration;

use clap::Args;

use super::super::app_selection::{AppSelection, rollout_named};
use super::super::exit::{self, Exit};
use super::super::get::write_next_steps;
use super::super::output::{self, OutputFormat, say};
use super::super::process::ProcessArgs;
use super::super::timeout::timeout;
use super::super::wrapped_line::say_wrapped;
use super::super::{diagnostics, session};
use super::view;
use crate::controller::RunUntil;

#[derive(Args, Debug)]
pub struct RolloutGetArgs {
    /// App to show with its units, as NAMESPACE/NAME or NAME; without it, all apps
    app: Option<String>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(args: RolloutGetArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let until = RunUntil::Explained { timeout: args.timeout };
    let (ending, overview) = session::observe(&process, until, false).await?;
    diagnostics::print(&overview.diagnostics);
    let named = args.app.as_ref().map(|name| rollout_named(&overview, name)).transpose()?;
    let now = jiff::Timestamp::now();
    match (args.output, named) {
        (OutputFormat::Table, Some(rollout)) => {
            view::rollout_lines(&overview, rollout, now).iter().for_each(|line| say_wrapped(line));
            write_next_steps(rollout);
        }
        (OutputFormat::Table, None) if overview.rollouts.is_empty() && overview.has_errors() => {}
        (OutputFormat::Table, None) if overview.rollouts.is_empty() => {
            say!("no app has waves: a commit reaches all clusters at once");
        }
        (OutputFormat::Table, None) => {
            view::write_table(&overview, now);
            overview.rollouts.iter().for_each(write_next_steps);
        }
        (format, Some(rollout)) => output::write_value(format, rollout)?,
        (format, None) => output::write_value(format, &overview.rollouts)?,
    }
    let chosen = AppSelection::of(&overview, named.map(|rollout| rollout.app.clone()));
    Ok(exit::of_read_only_run(&ending, &overview, &chosen))
}
