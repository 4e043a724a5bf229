//! `tutti notify preview`: the messages that routes would send for a commit.

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::super::exit::Exit;
use super::super::output::{self, OutputFormat, say, tell};
use super::super::process::ProcessArgs;
use super::super::revisions::{RevisionComparison, compare_revisions, resolve_revision};
use super::super::session::SourceError;
use super::route::route_named;
use crate::compare::{Comparison, RemovalOutcome};
use crate::model::{Instance, InstanceMode, Revision};
use crate::notification::message_text::CommitText;
use crate::notification::{Message, PreviewMessage, preview_messages};
use crate::report::status_text::count_noun;
use crate::source::{self, ConfigRepository};

#[derive(Args, Debug)]
pub struct PreviewArgs {
    /// Commit, branch or tag, which is compared with its parent commit
    #[arg(long, value_name = "REVISION")]
    commit: String,
    /// Notification route to show; without it, all routes
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// Time of sending, such as 2026-11-27T23:00:00+08:00, because quiet hours delay messages; default: now
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
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
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(SourceError)?;
    let head = resolve_revision(&repository, &process, &args.commit).await?;
    let base = parent_commit(&repository, &head).await?;
    let compared = compare_revisions(&repository, [&base, &head], &process.keys, &process).await?;
    let RevisionComparison { plan, fleet, .. } = &compared;
    let routes = match &args.route {
        Some(name) => vec![route_named(&fleet.notifications, name)?.clone()],
        None => fleet.notifications.clone(),
    };
    let commit = commit_facts(&repository, &head, &fleet.instance).await?;
    let messages = preview_messages(plan, fleet, &routes, &commit, args.at.unwrap_or_else(Timestamp::now));
    if args.output != OutputFormat::Table {
        output::write_value(args.output, &messages.iter().map(message_line).collect::<Vec<_>>())?;
    } else if routes.is_empty() {
        say!("no route: create one as notifications/<name>.yaml");
    } else {
        for route in &routes {
            let mut own = messages.iter().filter(|it| it.route.name == route.name).peekable();
            let nothing = if own.peek().is_none() { ": nothing" } else { "" };
            say!("{} ({}){nothing}", route.name, route.service.name());
            own.for_each(write_message);
        }
    }
    write_notes(plan, &fleet.instance);
    Ok(compared.report_mistakes())
}

async fn parent_commit(repository: &ConfigRepository, head: &Revision) -> anyhow::Result<Revision> {
    match repository.resolve(&format!("{head}^")).await {
        Ok(base) => Ok(base),
        Err(source::Error::UnknownRevision { .. }) => {
            bail!("commit {} has none before it: there is nothing to compare it with", head.short())
        }
        Err(error) => Err(SourceError(error).into()),
    }
}

async fn commit_facts(
    repository: &ConfigRepository,
    head: &Revision,
    instance: &Instance,
) -> anyhow::Result<CommitText> {
    let mut read = repository.recent_commits(head, 1).await.map_err(SourceError)?;
    let read = read.pop().context("the commit cannot be read")?;
    let url = instance.forge.as_ref().map(|forge| forge.commit_url(head));
    Ok(CommitText { url, ..CommitText::of(read) })
}

fn message_line(foreseen: &PreviewMessage) -> MessageLine<'_> {
    let PreviewMessage { route, ring, if_fails, held_until, message } = foreseen;
    let Message { happened, thread, title: what, place, cause: why, links, data, .. } = message;
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

fn write_message(foreseen: &PreviewMessage) {
    let PreviewMessage { ring, if_fails, held_until, message, .. } = foreseen;
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
    let lines = [&message.title, &message.place].into_iter().cloned();
    for line in lines.chain(message.cause.lines().map(ToOwned::to_owned)).chain(links) {
        if !line.is_empty() {
            say!("      {line}");
        }
    }
}

/// Notes about parts of the commit without messages.
fn write_notes(plan: &Comparison, instance: &Instance) {
    if instance.mode != InstanceMode::Enforce {
        tell!("note: mode observe writes nothing: no route sends messages about commits");
    }
    for change in &plan.apps {
        if let Some(held) = change.held {
            tell!("note: {} is {held}: nothing is applied, and no message is sent", change.app);
        }
    }
    let waits = |(_, object): &(_, &crate::compare::ObjectChange)| {
        matches!(object.fate, Some(RemovalOutcome::WaitsForApproval(_)))
    };
    let waiting: usize = plan.deletes().filter(waits).map(|(_, object)| object.clusters.len()).sum();
    if waiting > 0 {
        tell!(
            "note: {} would wait for approval; routes with phase delete-waits send a message",
            count_noun(waiting, "delete")
        );
    }
}
