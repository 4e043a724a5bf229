//! The text of a message in one language: what, where, why, and links.
//!
//! Causes keep the wording of clusters, Git and tutti, so that a search in logs finds them.

mod en;
mod language_texts;
mod zh;

use jiff::Timestamp;
use serde_json::json;

use self::language_texts::LanguageTexts;
use super::message::{Message, MessageLink};
use crate::model::{Instance, MessageLanguage, Notification, NotificationPhase, short_line};
use crate::report::notices::{NoticeFacts, NotificationThread, ThreadHistory, WorstTarget};
use crate::source::CommitInfo;

/// Of one line, in characters. Services may allow less.
const LONGEST_LINE: usize = 300;
/// Of the commands, in characters, with room for the text before them.
const LONGEST_COMMANDS: usize = 260;
/// The most names of a list.
const MAX_NAMED: usize = 3;
/// Of a digest.
const MOST_LINES: usize = 10;

/// The parts of a commit that messages name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitText {
    pub subject: String,
    pub author: String,
    /// The time of the committer.
    pub time: Option<Timestamp>,
    /// Its page on the forge.
    pub url: Option<String>,
}

impl CommitText {
    pub fn of(commit: CommitInfo) -> Self {
        let time = Timestamp::from_second(commit.time).ok();
        Self { subject: commit.subject, author: commit.author, time, url: None }
    }
}

/// The input of one message.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// The name of the tutti instance.
    pub instance: &'a str,
    pub thread: &'a NotificationThread,
    pub happened: NotificationPhase,
    /// The history after this message.
    pub history: &'a ThreadHistory,
    pub facts: &'a NoticeFacts,
    pub commit: Option<&'a CommitText>,
    pub started_at: Timestamp,
    pub at: Timestamp,
}

fn language_texts(language: MessageLanguage) -> &'static LanguageTexts {
    match language {
        MessageLanguage::En => &en::TEXTS,
        MessageLanguage::Zh => &zh::TEXTS,
    }
}

impl Notice<'_> {
    pub fn message(&self, language: MessageLanguage) -> Message {
        let words = language_texts(language);
        Message {
            id: self.id(),
            thread: format!("{}/{}", self.instance, self.thread),
            happened: self.happened,
            language,
            at: self.at,
            title: self.title(words),
            place: self.place(words),
            cause: self.why(words),
            links: self.links(words),
            data: self.data(),
        }
    }

    /// Stable over retries, so that a receiver detects repetitions.
    fn id(&self) -> String {
        let text = format!("{} {} {} {:?}", self.instance, self.thread, self.started_at, self.history);
        format!("tutti-{}", crate::model::Digest::of(text.as_bytes()).short())
    }

    fn title(&self, words: &LanguageTexts) -> String {
        single_line(&(words.title)(self.happened, self.thread, &self.subject(words), self.facts))
    }

    /// `shop/web 1.5.0`, `3 apps`, `2 objects`.
    fn subject(&self, words: &LanguageTexts) -> String {
        match (self.facts.apps.as_slice(), self.facts.app_count) {
            ([app], 1) => match &self.facts.version {
                Some(version) => format!("{app} {version}"),
                None => app.to_string(),
            },
            (_, 0) => (words.objects)(self.facts.objects),
            (_, apps) => (words.apps)(apps),
        }
    }

    fn place(&self, words: &LanguageTexts) -> String {
        let mut parts = Vec::new();
        // With one app the title has its name.
        if self.facts.app_count > 1 || matches!(self.thread, NotificationThread::Deletes(_)) {
            parts.push(join_names(&self.facts.apps, self.facts.app_count, words));
        }
        if self.facts.cluster_count > 0
            && !matches!(self.thread, NotificationThread::Cluster(_) | NotificationThread::Credential { .. })
        {
            parts.push(join_names(&self.facts.clusters, self.facts.cluster_count, words));
        }
        let counts = matches!(self.thread, NotificationThread::Rollout { .. }) && self.facts.total > 0;
        if counts && !matches!(self.happened, NotificationPhase::Degraded | NotificationPhase::Reverted) {
            parts.push((words.healthy)(self.facts.healthy, self.facts.total));
        }
        single_line(&parts.join(" · "))
    }

    fn why(&self, words: &LanguageTexts) -> String {
        let mut lines = Vec::new();
        let is_bad = matches!(self.happened, NotificationPhase::Failed | NotificationPhase::Degraded);
        if let Some(WorstTarget { app, cluster, phase, detail }) =
            self.facts.worst.as_ref().filter(|_| is_bad)
        {
            let cause = if detail.is_empty() { phase } else { detail.as_str() };
            let more = if self.facts.others == 0 { String::new() } else { (words.others)(self.facts.others) };
            lines.push(format!("{cluster} {app}: {cause}{more}"));
        }
        if !self.facts.text.is_empty() {
            let others = match self.thread {
                NotificationThread::Deletes(_) => self.facts.objects.saturating_sub(1),
                _ => 0,
            };
            let more = if others == 0 { String::new() } else { (words.others)(others) };
            lines.push(self.facts.text.clone() + &more);
        }
        let asks = matches!(self.happened, NotificationPhase::Waiting | NotificationPhase::DeleteWaits);
        if asks && !self.facts.confirm.is_empty() {
            lines.push((words.confirm)(&join_commands(&self.facts.confirm)));
        }
        if is_bad && !self.facts.mend.is_empty() {
            lines.push((words.mend)(&self.facts.mend.join(words.or)));
        }
        if let Some(commit) = self.commit.filter(|commit| !commit.subject.is_empty()) {
            lines.push((words.by)(&commit.subject, &commit.author));
        }
        lines.iter().map(|text| single_line(text)).collect::<Vec<_>>().join("\n")
    }

    fn links(&self, words: &LanguageTexts) -> Vec<MessageLink> {
        let commit = match self.thread {
            NotificationThread::Rollout { commit, .. } | NotificationThread::Errors { commit } => {
                let url = self.commit.and_then(|commit| commit.url.clone());
                url.map(|url| MessageLink { text: format!("{} {}", words.commit, commit.short()), url })
            }
            _ => None,
        };
        let text = match self.thread {
            NotificationThread::Promotion(number) => format!("{} #{number}", words.pull),
            _ => words.page.to_owned(),
        };
        let page = self.facts.url.clone().map(|url| MessageLink { text, url });
        commit.into_iter().chain(page).filter(|link| is_web_url(&link.url)).collect()
    }

    fn data(&self) -> serde_json::Value {
        let mut data = json!({
            "instance": self.instance, "thread": self.thread.to_string(), "phase": self.happened.as_str(),
            "facts": self.facts,
        });
        match self.thread {
            NotificationThread::Rollout { commit, ring } => {
                data["commit"] = json!(commit);
                data["ring"] = json!(ring);
            }
            NotificationThread::Errors { commit } => data["commit"] = json!(commit),
            NotificationThread::Promotion(number) => data["pull"] = json!(number),
            NotificationThread::Server { name, .. } => data["server"] = json!(name),
            NotificationThread::Health { ring } => data["ring"] = json!(ring),
            NotificationThread::Cluster(_)
            | NotificationThread::Deletes(_)
            | NotificationThread::Credential { .. } => {}
        }
        if let Some(commit) = self.commit {
            data["subject"] = json!(commit.subject);
            data["author"] = json!(commit.author);
        }
        data
    }
}

/// A message that tests a route. `sender`: the person or command that sends it.
pub fn test_message(instance: &Instance, route: &Notification, sender: &str, at: Timestamp) -> Message {
    let words = language_texts(route.language);
    let page = instance.page_url.clone().filter(|url| is_web_url(url));
    Message {
        id: format!("tutti-test-{}", at.as_millisecond()),
        thread: format!("{}/test/{}", instance.name, route.name),
        happened: NotificationPhase::Test,
        language: route.language,
        at,
        title: single_line(&(words.test)(&route.name)),
        place: single_line(&instance.name),
        cause: single_line(&(words.sent_by)(sender)),
        links: page.map(|url| MessageLink { text: words.page.to_owned(), url }).into_iter().collect(),
        data: json!({"instance": instance.name, "route": route.name, "phase": NotificationPhase::Test.as_str()}),
    }
}

pub fn cause(language: MessageLanguage) -> &'static str {
    language_texts(language).cause
}

/// One message for many events: their titles, the worst first.
pub fn digest_message(notices: &[Notice<'_>], language: MessageLanguage, at: Timestamp) -> Option<Message> {
    let words = language_texts(language);
    let mut sorted: Vec<&Notice<'_>> = notices.iter().collect();
    sorted.sort_by_key(|notice| std::cmp::Reverse(severity_rank(notice.happened)));
    let worst = sorted.first()?;
    let mut lines: Vec<String> = sorted.iter().take(MOST_LINES).map(|notice| notice.title(words)).collect();
    if let Some(more) = sorted.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        lines.push((words.rest)(more));
    }
    let ids: Vec<String> = sorted.iter().map(|notice| notice.id()).collect();
    Some(Message {
        id: format!("tutti-{}", crate::model::Digest::of(ids.concat().as_bytes()).short()),
        thread: format!("{}/digest", worst.instance),
        happened: worst.happened,
        language,
        at,
        title: (words.digest)(sorted.len()),
        place: worst.instance.to_owned(),
        cause: lines.join("\n"),
        links: worst
            .facts
            .url
            .clone()
            .filter(|url| is_web_url(url))
            .map(|url| MessageLink { text: words.page.to_owned(), url })
            .into_iter()
            .collect(),
        // Programs get each event separately.
        data: serde_json::Value::Null,
    })
}

/// From good to bad.
fn severity_rank(happened: NotificationPhase) -> u8 {
    use super::MessageSeverity::{Bad, Good, Info, Warning};
    match super::MessageSeverity::of(happened) {
        Info => 0,
        Good => 1,
        Warning => 2,
        Bad => 3,
    }
}

fn join_names<T: std::fmt::Display>(names: &[T], count: usize, words: &LanguageTexts) -> String {
    let named: Vec<String> = names.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = count - named.len();
    let rest = if more == 0 { String::new() } else { (words.and_more)(more) };
    named.join(words.comma) + &rest
}

/// As many commands as fit into a line.
fn join_commands(commands: &[String]) -> String {
    const MORE: &str = "; …";
    let mut line = String::new();
    for command in commands {
        let between = if line.is_empty() { "" } else { "; " };
        if line.chars().count() + command.chars().count() > LONGEST_COMMANDS {
            return line + MORE;
        }
        line = line + between + command;
    }
    line
}

/// Without control characters and line breaks, and of bounded length.
fn single_line(text: &str) -> String {
    short_line(text, LONGEST_LINE)
}

fn is_web_url(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

#[cfg(test)]
mod tests;
