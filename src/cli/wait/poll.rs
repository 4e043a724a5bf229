//! Polls the server, across its restarts, until an answer ends the wait.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use super::{Ended, Goal};
use crate::cli::api_client::{ApiClient, Reply};
use crate::cli::exit::Exit;
use crate::model::{AppId, short_line};
use crate::report::became::AppQuestion;

/// Longest long poll.
const HELD_BACK: Duration = Duration::from_secs(55);
/// Pause after an answer, and longest backoff after an error.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Extra time for an answer that is on its way.
const GRACE: Duration = Duration::from_secs(2);
/// In characters.
const LONGEST: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Commit(String),
    App(AppId, AppQuestion),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(sha) => write!(f, "commit {}", sha.get(..7).unwrap_or(sha)),
            Self::App(app, AppQuestion { version, ring }) => {
                write!(f, "{app}")?;
                version.as_ref().map_or(Ok(()), |version| write!(f, " {version}"))?;
                ring.as_ref().map_or(Ok(()), |ring| write!(f, " in {ring}"))
            }
        }
    }
}

impl Subject {
    async fn ask(
        &self,
        client: &ApiClient,
        wait: Option<Duration>,
        tag: Option<&str>,
    ) -> Result<Reply, String> {
        let wait = wait.map(|wait| format!("{}s", wait.as_secs().max(1)));
        let mut query: Vec<(&str, &str)> = wait.iter().map(|wait| ("wait", wait.as_str())).collect();
        match self {
            Self::Commit(sha) => client.get(&["commits", sha], &query, tag).await,
            Self::App(app, question) => {
                query.extend(question.version.iter().map(|version| ("version", version.as_str())));
                query.extend(question.ring.iter().map(|ring| ("ring", ring.as_str())));
                client.get(&["apps", &app.namespace, &app.name], &query, tag).await
            }
        }
    }
}

/// `told` receives each change once.
pub async fn wait(
    client: &ApiClient,
    subject: &Subject,
    goal: Goal,
    timeout: Duration,
    told: &mut (dyn FnMut(&str) + Send),
) -> Ended {
    let end = Instant::now().checked_add(timeout);
    let left = || end.map_or(HELD_BACK, |end| end.saturating_duration_since(Instant::now()));
    let mut last = Last::default();
    loop {
        // The first request does not wait, so that the current state is printed at once.
        let held_back = last.tag.is_some().then(|| left().min(HELD_BACK));
        let asked = subject.ask(client, held_back, last.tag.as_deref());
        let reply = match end {
            Some(end) => tokio::time::timeout_at(end + GRACE, asked)
                .await
                .unwrap_or_else(|_| Err("no answer in time".to_owned())),
            None => asked.await,
        };
        let pause = match reply {
            Ok(reply) if reply.status == StatusCode::NOT_MODIFIED => last.answered(),
            Ok(reply) if reply.status.is_success() => {
                let pause = last.answered();
                let Some(report) = reply.json().filter(|report| report["state"].is_string()) else {
                    let text = format!("the answer of {} is not understood", client.server());
                    return Ended { exit: Exit::Configuration, report: None, text };
                };
                last.tag = reply.tag;
                last.tell(&line(subject, &report), told);
                if let Some(exit) = verdict(&report, goal) {
                    return Ended { exit, text: line(subject, &report), report: Some(report) };
                }
                last.report = Some(report);
                pause
            }
            Ok(reply) if reply.status == StatusCode::NOT_FOUND => {
                // It may not be read yet.
                let pause = last.answered();
                last.tell(&format!("{subject}: not known yet ({})", reply.reason()), told);
                pause
            }
            Ok(reply) if reply.is_transient() => {
                last.tell_trouble(
                    format!("{} answers {}: {}", client.server(), reply.status, reply.reason()),
                    told,
                );
                last.failed()
            }
            Ok(reply) => {
                let exit = if reply.is_denied() { Exit::Denied } else { Exit::Configuration };
                let text = format!("{} answers {}: {}", client.server(), reply.status, reply.reason());
                return Ended { exit, report: None, text };
            }
            Err(error) => {
                last.tell_trouble(
                    format!("{} does not answer: {}", client.server(), short_line(&error, LONGEST)),
                    told,
                );
                last.failed()
            }
        };
        let is_over = left().is_zero();
        tokio::time::sleep(pause.min(left())).await;
        if is_over {
            return last.timed_out(subject);
        }
    }
}

#[derive(Default)]
struct Last {
    tag: Option<String>,
    report: Option<Value>,
    line: String,
    /// The last error. Behind a proxy one process may answer and another not.
    trouble: String,
    pause: Option<Duration>,
    has_answered: bool,
}

impl Last {
    fn tell(&mut self, line: &str, told: &mut (dyn FnMut(&str) + Send)) {
        if self.line != line {
            told(line);
            line.clone_into(&mut self.line);
        }
    }

    fn tell_trouble(&mut self, trouble: String, told: &mut (dyn FnMut(&str) + Send)) {
        if self.trouble != trouble {
            told(&trouble);
            self.trouble = trouble;
        }
    }

    fn answered(&mut self) -> Duration {
        self.has_answered = true;
        self.pause = None;
        PAUSE
    }

    fn failed(&mut self) -> Duration {
        let pause = self.pause.map_or(PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some(pause);
        pause
    }

    fn timed_out(self, subject: &Subject) -> Ended {
        let exit = if self.has_answered { Exit::TimedOut } else { Exit::Unreachable };
        let text = match &self.report {
            Some(report) => format!("the time is over; {}", line(subject, report)),
            None if self.has_answered => format!("the time is over; {}", self.line),
            None => format!("the time is over; {}", self.trouble),
        };
        Ended { exit, report: self.report, text }
    }
}

fn verdict(report: &Value, goal: Goal) -> Option<Exit> {
    match (report["state"].as_str().unwrap_or_default(), goal) {
        ("success", _) => Some(Exit::Ok),
        ("failure" | "error" | "superseded", _) => Some(Exit::Failed),
        (_, Goal::Planned) if report["planned"] == true => Some(Exit::Ok),
        _ => None,
    }
}

fn line(subject: &Subject, report: &Value) -> String {
    let text = |name: &str| short_line(report[name].as_str().unwrap_or_default(), LONGEST);
    format!("{subject}: {}, {}", text("state"), text("text"))
}
