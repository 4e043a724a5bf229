//! `tutti ci`: a pipeline step that calls a trigger and waits for its result.
//!
//! Variables configure it, as Drone, Woodpecker and Gitea Actions pass them to a step.

mod settings;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use settings::{CiAction, CiSettings};

use super::api_client::ApiClient;
use super::exit::Exit;
use super::output::{OutputFormat, say, tell};
use super::wait::{self, WaitSubject};
use crate::model::{AppId, short_line};
use crate::report::pipeline_report::AppReportFilter;

/// Backoff between two calls.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// In characters, of a server's text.
const MAX_TEXT_CHARS: usize = 400;

/// No flags: docs/ci.md lists the environment variables, such as PLUGIN_SERVER, PLUGIN_TOKEN and PLUGIN_TRIGGER
#[derive(Args, Debug)]
pub struct CiArgs {}

pub async fn run(_: CiArgs) -> anyhow::Result<Exit> {
    let settings = match CiSettings::of(&|name| std::env::var(name).ok()) {
        Ok(settings) => settings,
        Err(error) => {
            tell!("error: {error}");
            return Ok(Exit::Configuration);
        }
    };
    let client = ApiClient::new(
        &settings.server,
        &settings.allow_http,
        settings.ca_file.as_deref(),
        Some(settings.token.clone()),
    )?;
    run_step(&client, &settings, &mut |line| tell!("{line}")).await
}

/// `told` receives each retry and each new state.
async fn run_step(
    client: &ApiClient,
    settings: &CiSettings,
    told: &mut (dyn FnMut(&str) + Send),
) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    let subject = match &settings.action {
        CiAction::Wait(subject) => Some(subject.clone()),
        CiAction::Trigger { name, payload, key } => {
            let answer = match call_trigger(client, (name, payload, key), settings.timeout, told).await {
                Ok(answer) => answer,
                Err((exit, text)) => {
                    tell!("error: {text}");
                    return Ok(exit);
                }
            };
            say!("{}", answer_line(&answer));
            match answer_subject(&answer) {
                Some(subject) => Some(subject),
                None if settings.wait.is_some() && is_written(&answer) => {
                    tell!("error: the answer names no version of an app, so there is nothing to wait for");
                    tell!(
                        "  help: let the trigger set `version`, or an image with a tag; or set wait: false"
                    );
                    return Ok(Exit::Configuration);
                }
                None => None,
            }
        }
    };
    let (Some(subject), Some(goal)) = (subject, settings.wait) else { return Ok(Exit::Ok) };
    let left = settings.timeout.saturating_sub(begun.elapsed());
    let ended = wait::wait(client, &subject, goal, left, told).await;
    wait::write_result(&ended, OutputFormat::Table)?;
    Ok(ended.exit)
}

/// The server's answer; or the exit code and its reason.
async fn call_trigger(
    client: &ApiClient,
    (name, payload, key): (&str, &Value, &str),
    timeout: Duration,
    told: &mut (dyn FnMut(&str) + Send),
) -> Result<Value, (Exit, String)> {
    let end = Instant::now().checked_add(timeout);
    let (mut pause, mut before, mut has_answered) = (FIRST_PAUSE, String::new(), false);
    loop {
        let server = client.server();
        let text = match client.post(&["triggers", name], Some(key), Some(payload)).await {
            Ok(reply) if reply.status.is_success() => {
                return reply.json().ok_or_else(|| {
                    (Exit::Configuration, format!("the answer of {server} is not understood"))
                });
            }
            Ok(reply) => {
                let text = format!("{server} answers {}: {}", reply.status, reply.reason());
                if !reply.is_transient() {
                    return Err((if reply.is_denied() { Exit::Denied } else { Exit::Configuration }, text));
                }
                has_answered = true;
                text
            }
            Err(error) => format!("{server} does not answer: {}", short_line(&error, MAX_TEXT_CHARS)),
        };
        if text != before {
            told(&text);
            before.clone_from(&text);
        }
        let left = end.map_or(MAX_PAUSE, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            let exit = if has_answered { Exit::TimedOut } else { Exit::Unreachable };
            return Err((exit, format!("the time of the setting timeout is over; {text}")));
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Whether a value was changed or will be.
fn is_written(answer: &Value) -> bool {
    matches!(answer["result"].as_str(), Some("accepted" | "unchanged"))
}

/// The app, version and ring to wait for.
fn answer_subject(answer: &Value) -> Option<WaitSubject> {
    let text = |name: &str| answer[name].as_str().map(ToOwned::to_owned);
    let app = AppId::parse(answer["app"].as_str()?)?;
    let question = AppReportFilter { version: Some(text("version")?), ring: text("ring") };
    is_written(answer).then_some(WaitSubject::App(app, question))
}

fn answer_line(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().map(|text| short_line(text, MAX_TEXT_CHARS));
    let result = text("result").unwrap_or_default();
    if result == "ignored" {
        return format!("ignored: {}", text("reason").unwrap_or_default());
    }
    let of = |name: &str| text(name).unwrap_or_else(|| "nothing".to_owned());
    let place = text("ring").map(|ring| format!(" in {ring}")).unwrap_or_default();
    let link = text("link").map(|link| format!(", {link}")).unwrap_or_default();
    format!("{result}: {}{place} {} → {} ({}){link}", of("app"), of("from"), of("to"), of("file"))
}
