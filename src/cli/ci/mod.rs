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

use settings::{Action, Settings};

use super::api_client::ApiClient;
use super::exit::Exit;
use super::output::{Format, say, tell};
use super::wait::{self, Subject};
use crate::model::{AppId, short_line};
use crate::report::became::AppQuestion;

/// Backoff between two calls.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// In characters, of a server's text.
const LONGEST: usize = 400;

/// Everything comes from the environment: PLUGIN_SERVER, PLUGIN_TOKEN, PLUGIN_TRIGGER and so on; docs/ci.md lists them
#[derive(Args, Debug)]
pub struct CiArgs {}

pub async fn run(_: CiArgs) -> anyhow::Result<Exit> {
    let settings = match Settings::of(&|name| std::env::var(name).ok()) {
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
    step(&client, &settings, &mut |line| tell!("{line}")).await
}

/// `told` receives each retry and each new state.
async fn step(
    client: &ApiClient,
    settings: &Settings,
    told: &mut (dyn FnMut(&str) + Send),
) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    let subject = match &settings.action {
        Action::Wait(subject) => Some(subject.clone()),
        Action::Trigger { name, payload, key } => {
            let answer = match call(client, (name, payload, key), settings.timeout, told).await {
                Ok(answer) => answer,
                Err((exit, text)) => {
                    tell!("error: {text}");
                    return Ok(exit);
                }
            };
            say!("{}", line(&answer));
            match subject(&answer) {
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
    wait::write(&ended, Format::Table)?;
    Ok(ended.exit)
}

/// The server's answer; or the exit code and its reason.
async fn call(
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
            Err(error) => format!("{server} does not answer: {}", short_line(&error, LONGEST)),
        };
        if text != before {
            told(&text);
            before.clone_from(&text);
        }
        let left = end.map_or(LONGEST_PAUSE, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            let exit = if has_answered { Exit::TimedOut } else { Exit::Unreachable };
            return Err((exit, format!("the time of the setting timeout is over; {text}")));
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether a value was changed or will be.
fn is_written(answer: &Value) -> bool {
    matches!(answer["result"].as_str(), Some("accepted" | "unchanged"))
}

/// The app, version and ring to wait for.
fn subject(answer: &Value) -> Option<Subject> {
    let text = |name: &str| answer[name].as_str().map(ToOwned::to_owned);
    let app = AppId::parse(answer["app"].as_str()?)?;
    let question = AppQuestion { version: Some(text("version")?), ring: text("ring") };
    is_written(answer).then_some(Subject::App(app, question))
}

fn line(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().map(|text| short_line(text, LONGEST));
    let result = text("result").unwrap_or_default();
    if result == "ignored" {
        return format!("ignored: {}", text("reason").unwrap_or_default());
    }
    let of = |name: &str| text(name).unwrap_or_else(|| "nothing".to_owned());
    let place = text("ring").map(|ring| format!(" in {ring}")).unwrap_or_default();
    let link = text("link").map(|link| format!(", {link}")).unwrap_or_default();
    format!("{result}: {}{place} {} → {} ({}){link}", of("app"), of("from"), of("to"), of("file"))
}
