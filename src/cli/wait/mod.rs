//! `tutti wait`: waits until a commit or an app is healthy on all its clusters.

mod poll;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::Args;
use serde_json::Value;

pub use poll::{WaitGoal, WaitResult, WaitSubject, wait};

use super::api_client::ApiServerArgs;
use super::exit::Exit;
use super::output::{self, OutputFormat, say, tell};
use super::timeout::timeout;
use crate::model::AppId;
use crate::report::pipeline_report::AppReportFilter;

#[derive(Args, Debug)]
pub struct WaitArgs {
    #[command(flatten)]
    server: ApiServerArgs,
    /// Commit of the deployed branch, as the full hash or at least its first seven digits
    #[arg(long, value_name = "SHA", value_parser = commit, required_unless_present = "app", conflicts_with_all = ["app", "ring", "version"])]
    commit: Option<String>,
    /// App to wait for
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = app)]
    app: Option<AppId>,
    /// With --app: wait only for the clusters of this ring
    #[arg(long, value_name = "RING")]
    ring: Option<String>,
    /// With --app: wait until the app has this version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// State to wait for
    #[arg(long = "for", value_enum, default_value_t, value_name = "STATE")]
    goal: WaitGoal,
    /// Maximum time to wait, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

fn commit(text: &str) -> Result<String, String> {
    let fits = (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits { Ok(text.to_owned()) } else { Err("a commit is 7 to 64 hexadecimal digits".to_owned()) }
}

fn app(text: &str) -> Result<AppId, String> {
    AppId::parse(text).ok_or_else(|| "write it as namespace/name".to_owned())
}

pub async fn run(args: WaitArgs) -> anyhow::Result<Exit> {
    let client = args.server.client()?;
    let question = AppReportFilter { version: args.version, ring: args.ring };
    let subject = match (args.commit, args.app) {
        (Some(commit), _) => WaitSubject::Commit(commit),
        (None, Some(app)) => WaitSubject::App(app, question),
        (None, None) => return Ok(Exit::Configuration),
    };
    let ended = wait(&client, &subject, args.goal, args.timeout, &mut |line| tell!("{line}")).await;
    write_result(&ended, args.output)?;
    Ok(ended.exit)
}

/// Prints the result; errors go to standard error.
pub fn write_result(ended: &WaitResult, format: OutputFormat) -> anyhow::Result<()> {
    match (format, &ended.report) {
        (OutputFormat::Table, Some(report)) => {
            say!("{}", ended.text);
            unhealthy_lines(report).for_each(|line| say!("  {line}"));
        }
        (format, Some(report)) if format != OutputFormat::Table => output::write_value(format, report)?,
        _ => tell!("error: {}", ended.text),
    }
    Ok(())
}

fn unhealthy_lines(report: &Value) -> impl Iterator<Item = String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of_rings = list(&report["rings"]).into_iter().flat_map(move |ring| list(&ring["unwell"]));
    let of_app = list(&report["clusters"]).into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_rings.chain(of_app).filter_map(move |target| {
        let (phase, detail) = (text(&target["phase"]), text(&target["detail"]));
        let line = format!("{} {} {phase}", text(&target["cluster"]), text(&target["app"]));
        let is_well = matches!(phase.as_str(), "Running" | "Unmanaged" | "KeptOut");
        (!is_well).then(|| if detail.is_empty() { line } else { format!("{line}: {detail}") })
    })
}
