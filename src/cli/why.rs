//! `tutti why`: the first link between Git and the pods of an app that is not well, with its place and what to do.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::chosen::{Chosen, app_named};
use super::exit::{self, Exit};
use super::output::{self, Format, say};
use super::process::ProcessArgs;
use super::session;
use super::timeout::timeout;
use crate::controller::Until;
use crate::model::AppId;
use crate::report::RolloutReport;
use crate::report::why::{Chain, Finding, State, chains};

/// Clusters that are named, of those with one answer.
const MOST_CLUSTERS: usize = 5;

#[derive(Args, Debug)]
pub struct WhyArgs {
    /// NAMESPACE/NAME or its name
    app: String,
    #[command(flatten)]
    process: ProcessArgs,
    /// The longest to wait for clusters, as 90s or 5m; a number alone is seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub async fn run(mut args: WhyArgs) -> anyhow::Result<Exit> {
    // A name alone is no way to a cluster: only that one is shown.
    let (ways, on): (Vec<String>, Vec<String>) =
        std::mem::take(&mut args.process.cluster).into_iter().partition(|cluster| cluster.contains('='));
    args.process.cluster = ways;
    let process = args.process.resolve(Some(".")).await?;
    let until = Until::Planned { timeout: args.timeout };
    let (ending, overview) = session::look_for(&process, until, false, true).await?;
    let app = match app_named(&overview, &args.app) {
        Ok(app) => app,
        // It may stand in a file that cannot be read: the chain says which.
        Err(error) if overview.has_errors() || overview.source_error.is_some() => {
            let app = unread(&args.app);
            if chains(&overview, &app).is_empty() {
                return Err(error);
            }
            app
        }
        Err(error) => return Err(error),
    };
    let mut all = chains(&overview, &app);
    if !on.is_empty() {
        let is_shown = |name: &str| on.iter().any(|on| on == name);
        all.retain(|chain| chain.cluster.as_ref().is_none_or(|cluster| is_shown(cluster.as_str())));
        anyhow::ensure!(!all.is_empty(), "{app} is not on {}", on.join(", "));
    }
    let rollout = overview.rollout_of(&app);
    match args.output {
        Format::Table => write(&all, rollout),
        format => output::write_value(format, &json!({"chains": all, "waves": rollout.map(|it| &it.waves)}))?,
    }
    Ok(exit::of_look(&ending, &overview, &Chosen::of(&overview, Some(app))))
}

fn unread(name: &str) -> AppId {
    let (namespace, name) = name.split_once('/').unwrap_or(("?", name));
    AppId::new(namespace, name)
}

fn write(all: &[Chain], rollout: Option<&RolloutReport>) {
    for (number, same) in folded(all).into_iter().enumerate() {
        if number > 0 {
            say!("");
        }
        say!("{}", heading(&same));
        same.iter().take(1).flat_map(|chain| &chain.findings).for_each(write_finding);
    }
    let waves = rollout.filter(|rollout| rollout.is_open).map(|rollout| &rollout.waves);
    for (number, wave) in waves.into_iter().flatten().enumerate() {
        if number == 0 {
            say!("\nwaves:");
        }
        let waits = wave.waits.as_ref().map(|hold| format!(": {hold}")).unwrap_or_default();
        say!("  {} {}/{} done{waits}", wave.name, wave.done, wave.units);
    }
}

/// Those with one answer together, in order.
fn folded(all: &[Chain]) -> Vec<Vec<&Chain>> {
    let mut groups: Vec<Vec<&Chain>> = Vec::new();
    for chain in all {
        let is_same = |group: &&mut Vec<&Chain>| {
            group.first().is_some_and(|first| first.findings == chain.findings && first.phase == chain.phase)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(chain),
            None => groups.push(vec![chain]),
        }
    }
    groups
}

fn heading(same: &[&Chain]) -> String {
    let Some(first) = same.first() else { return String::new() };
    let Some(phase) = first.phase else { return first.app.name.to_string() };
    let names = same.iter().filter_map(|chain| {
        let ring = chain.ring.as_ref().map(|ring| format!(" ({ring})")).unwrap_or_default();
        Some(format!("{}{ring}", chain.cluster.as_ref()?))
    });
    let names: Vec<String> = names.take(MOST_CLUSTERS).collect();
    let more = same.len() - names.len();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{} on {}{rest}: {phase}", first.app, names.join(", "))
}

fn write_finding(finding: &Finding) {
    let sign = match finding.state {
        State::Well => "✓",
        State::Waits => "…",
        State::Broken => "✗",
        State::NotReached => "·",
    };
    say!("{}", format!("  {sign} {:8} {}", finding.link.as_str(), finding.text).trim_end());
    if let Some(place) = &finding.place {
        say!("             at {place}");
    }
    for (number, help) in finding.help.iter().enumerate() {
        say!("             {}{help}", if number == 0 { "→ " } else { "or " });
    }
}
