//! Polls the server, across its restarts, until an answer ends the wait.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use crate::cli::api_client::{ApiClient, ApiReply};
use crate::cli::exit::Exit;
use crate::model::{AppId, short_line};
use crate::report::pipeline_report::AppReportFilter;

/// Longest long poll.
const MAX_LONG_POLL: Duration = Duration::from_secs(55);
/// Pause after an answer, and longest backoff after an error.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Extra time for an answer that is on its way.
const GRACE: Duration = Duration::from_secs(2);
/// In characters.
const MAX_TEXT_CHARS: usize = 400;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WaitGoal {
    /// All objects are applied and healthy
    #[default]
    Healthy,
    /// The plan is known; it may not be applied yet
    Planned,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WaitResult {
    pub exit: Exit,
    pub report: Option<Value>,
    /// One line about it.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitSubject {
    Commit(String),
    App(AppId, AppReportFilter),
}

impl fmt::Display for WaitSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(sha) => write!(f, "commit {}", sha.get(..7).unwrap_or(sha)),
            Self::App(app, AppReportFilter { version, ring }) => {
                write!(f, "{app}")?;
                version.as_ref().map_or(Ok(()), |version| write!(f, " {version}"))?;
                ring.as_ref().map_or(Ok(()), |ring| write!(f, " in {ring}"))
            }
        }
    }
}

impl WaitSubject {
    async fn request(
        &self,
        client: &ApiClient,
        wait: Option<Duration>,
        tag: Option<&str>,
    ) -> Result<ApiReply, String> {
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
    subject: &WaitSubject,
    goal: WaitGoal,
    timeout: Duration,
    told: &mut (dyn FnMut(&str) + Send),
) -> WaitResult {
    let end = Instant::now().checked_add(timeout);
    let left = || end.map_or(MAX_LONG_POLL, |end| end.saturating_duration_since(Instant::now()));
    let mut last = PollState::default();
    loop {
        // The first request does not wait, so that the current state is printed at once.
        let held_back = last.etag.is_some().then(|| left().min(MAX_LONG_POLL));
        let asked = subject.request(client, held_back, last.etag.as_deref());
        let reply = match end {
            Some(end) => tokio::time::timeout_at(end + GRACE, asked)
                .await
                .unwrap_or_else(|_| Err("no answer in time".to_owned())),
            None => asked.await,
        };
        let pause = match reply {
            Ok(reply) if reply.status == StatusCode::NOT_MODIFIED => last.record_answer(),
            Ok(reply) if reply.status.is_success() => {
                let pause = last.record_answer();
                let Some(report) = reply.json().filter(|report| report["state"].is_string()) else {
                    let text = format!("the answer of {} is not understood", client.server());
                    return WaitResult { exit: Exit::Configuration, report: None, text };
                };
                last.etag = reply.etag;
                last.report_line(&report_text(subject, &report), told);
                if let Some(exit) = exit_of_report(&report, goal) {
                    return WaitResult { exit, text: report_text(subject, &report), report: Some(report) };
                }
                last.report = Some(report);
                pause
            }
            Ok(reply) if reply.status == StatusCode::NOT_FOUND => {
                // It may not be read yet.
                let pause = last.record_answer();
                last.report_line(&format!("{subject}: not known yet ({})", reply.reason()), told);
                pause
            }
            Ok(reply) if reply.is_transient() => {
                last.report_error(
                    format!("{} answers {}: {}", client.server(), reply.status, reply.reason()),
                    told,
                );
                last.record_failure()
            }
            Ok(reply) => {
                let exit = if reply.is_denied() { Exit::Denied } else { Exit::Configuration };
                let text = format!("{} answers {}: {}", client.server(), reply.status, reply.reason());
                return WaitResult { exit, report: None, text };
            }
            Err(error) => {
                last.report_error(
                    format!("{} does not answer: {}", client.server(), short_line(&error, MAX_TEXT_CHARS)),
                    told,
                );
                last.record_failure()
            }
        };
        let is_over = left().is_zero();
        tokio::time::sleep(pause.min(left())).await;
        if is_over {
            return last.timeout_result(subject);
        }
    }
}

#[derive(Default)]
struct PollState {
    etag: Option<String>,
    report: Option<Value>,
    line: String,
    /// The last error. Behind a proxy one process may answer and another not.
    last_error: String,
    pause: Option<Duration>,
    has_answered: bool,
}

impl PollState {
    fn report_line(&mut self, line: &str, told: &mut (dyn FnMut(&str) + Send)) {
        if self.line != line {
            told(line);
            line.clone_into(&mut self.line);
        }
    }

    fn report_error(&mut self, trouble: String, told: &mut (dyn FnMut(&str) + Send)) {
        if self.last_error != trouble {
            told(&trouble);
            self.last_error = trouble;
        }
    }

    fn record_answer(&mut self) -> Duration {
        self.has_answered = true;
        self.pause = None;
        PAUSE
    }

    fn record_failure(&mut self) -> Duration {
        let pause = self.pause.map_or(PAUSE, |pause| (pause * 2).min(MAX_PAUSE));
        self.pause = Some(pause);
        pause
    }

    fn timeout_result(self, subject: &WaitSubject) -> WaitResult {
        let exit = if self.has_answered { Exit::TimedOut } else { Exit::Unreachable };
        let text = match &self.report {
            Some(report) => format!("the time is over; {}", report_text(subject, report)),
            None if self.has_answered => format!("the time is over; {}", self.line),
            None => format!("the time is over; {}", self.last_error),
        };
        WaitResult { exit, report: self.report, text }
    }
}

fn exit_of_report(report: &Value, goal: WaitGoal) -> Option<Exit> {
    match (report["state"].as_str().unwrap_or_default(), goal) {
        ("success", _) => Some(Exit::Ok),
        ("failure" | "error" | "superseded", _) => Some(Exit::Failed),
        (_, WaitGoal::Planned) if report["planned"] == true => Some(Exit::Ok),
        _ => None,
    }
}

fn report_text(subject: &WaitSubject, report: &Value) -> String {
    let text = |name: &str| short_line(report[name].as_str().unwrap_or_default(), MAX_TEXT_CHARS);
    format!("{subject}: {}, {}", text("state"), text("text"))
}
