//! `tutti notify preview`: the messages that routes would send for a commit.

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::super::exit::Exit;
use super::super::output::{self, Format, say, tell};
use super::super::process::ProcessArgs;
use super::super::revisions::{Compared, compared, named};
use super::super::session::Source;
use super::route_named;
use crate::compare::{Comparison, Fate};
use crate::model::{Instance, Mode, Revision};
use crate::notification::words::CommitFacts;
use crate::notification::{Foreseen, Message, foreseen};
use crate::report::words::count;
use crate::source::{self, Repository};

#[derive(Args, Debug)]
pub struct PreviewArgs {
    /// The commit, branch or tag; it is compared with the commit before it
    #[arg(long, value_name = "REVISION")]
    commit: String,
    /// Only this route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// When it would be sent, as 2026-11-27T23:00:00+08:00: quiet hours hold messages; by default now
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    #[command(flatten)]
    process: ProcessArgs,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageLine<'a> {
    route: &'a str,
    service: &'static str,
    language: &'static str,
    ring: Option<&'a str>,
    phase: &'static str,
    /// `APP on CLUSTER`; `None`: without a failure.
    if_fails: Option<String>,
    held_until: Option<Timestamp>,
    thread: &'a str,
    what: &'a str,
    r#where: &'a str,
    why: &'a str,
    links: Vec<LinkLine<'a>>,
    data: &'a Value,
}

#[derive(Serialize)]
struct LinkLine<'a> {
    text: &'a str,
    url: &'a str,
}

pub async fn run(args: PreviewArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let repository = Repository::open(process.source.clone()).await.map_err(Source)?;
    let head = named(&repository, &process, &args.commit).await?;
    let base = before(&repository, &head).await?;
    let compared = compared(&repository, [&base, &head], &process.keys, &process).await?;
    let Compared { plan, fleet, .. } = &compared;
    let routes = match &args.route {
        Some(name) => vec![route_named(&fleet.notifications, name)?.clone()],
        None => fleet.notifications.clone(),
    };
    let commit = commit(&repository, &head, &fleet.instance).await?;
    let messages = foreseen(plan, fleet, &routes, &commit, args.at.unwrap_or_else(Timestamp::now));
    if args.output != Format::Table {
        output::write_value(args.output, &messages.iter().map(line).collect::<Vec<_>>())?;
    } else if routes.is_empty() {
        say!("no route: notifications/<name>.yaml makes one");
    } else {
        for route in &routes {
            let mut own = messages.iter().filter(|it| it.route.name == route.name).peekable();
            let nothing = if own.peek().is_none() { ": nothing" } else { "" };
            say!("{} ({}){nothing}", route.name, route.service.name());
            own.for_each(write);
        }
    }
    notes(plan, &fleet.instance);
    Ok(compared.mistakes())
}

async fn before(repository: &Repository, head: &Revision) -> anyhow::Result<Revision> {
    match repository.resolve(&format!("{head}^")).await {
        Ok(base) => Ok(base),
        Err(source::Error::UnknownRevision { .. }) => {
            bail!("commit {} has none before it: there is nothing to compare it with", head.short())
        }
        Err(error) => Err(Source(error).into()),
    }
}

async fn commit(
    repository: &Repository,
    head: &Revision,
    instance: &Instance,
) -> anyhow::Result<CommitFacts> {
    let mut read = repository.recent(head, 1).await.map_err(Source)?;
    let read = read.pop().context("the commit cannot be read")?;
    let url = instance.forge.as_ref().map(|forge| forge.commit_page(head));
    Ok(CommitFacts { url, ..CommitFacts::of(read) })
}

fn line(foreseen: &Foreseen) -> MessageLine<'_> {
    let Foreseen { route, ring, if_fails, held_until, message } = foreseen;
    let Message { happened, thread, what, place, why, links, data, .. } = message;
    MessageLine {
        route: &route.name,
        service: route.service.name(),
        language: route.language.as_str(),
        ring: ring.as_deref(),
        phase: happened.as_str(),
        if_fails: if_fails.as_ref().map(|(app, cluster)| format!("{app} on {cluster}")),
        held_until: *held_until,
        thread,
        what,
        r#where: place,
        why,
        links: links.iter().map(|link| LinkLine { text: &link.text, url: &link.url }).collect(),
        data,
    }
}

fn write(foreseen: &Foreseen) {
    let Foreseen { ring, if_fails, held_until, message, .. } = foreseen;
    let mut title = message.happened.as_str().to_owned();
    if let Some(ring) = ring {
        title = format!("ring {ring}, {title}");
    }
    if let Some((app, cluster)) = if_fails {
        title = format!("{title} (if {app} fails on {cluster})");
    }
    if let Some(until) = held_until {
        title = format!("{title}, held by quiet hours until {until}");
    }
    say!("  {title}");
    let links = message.links.iter().map(|link| format!("{}: {}", link.text, link.url));
    let lines = [&message.what, &message.place].into_iter().cloned();
    for line in lines.chain(message.why.lines().map(ToOwned::to_owned)).chain(links) {
        if !line.is_empty() {
            say!("      {line}");
        }
    }
}

/// Notes about parts of the commit without messages.
fn notes(plan: &Comparison, instance: &Instance) {
    if instance.mode != Mode::Enforce {
        tell!("note: mode observe writes nothing: no route is told of commits");
    }
    for change in &plan.apps {
        if let Some(held) = change.held {
            tell!("note: {} is {held}: nothing is applied, and nothing is told", change.app);
        }
    }
    let waits = |(_, object): &(_, &crate::compare::ObjectChange)| {
        matches!(object.fate, Some(Fate::WaitsForApproval(_)))
    };
    let waiting: usize = plan.deletes().filter(waits).map(|(_, object)| object.clusters.len()).sum();
    if waiting > 0 {
        tell!(
            "note: {} would wait for approval, which phase delete-waits tells of",
            count(waiting, "delete")
        );
    }
}
