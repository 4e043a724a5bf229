//! The commit of another repository that a payload is about, if it names one.

use serde::Serialize;
use serde_json::Value;

use crate::model::{PayloadPath, short_line};

/// For display: nothing is fetched from it. Every text is short and on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceCommit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// 7 to 64 hexadecimal digits.
    pub sha: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of the commit or of the build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Characters of a name and of a message, and bytes of an address.
const LONGEST_NAME: usize = 100;
const LONGEST_MESSAGE: usize = 120;
const LONGEST_URL: usize = 500;

/// Paths in payloads of API calls, Drone, Woodpecker steps and Gitea pushes.
const SHA_PATHS: &[&str] = &["commit.sha", "build.after", "CI_COMMIT_SHA", "after", "sha"];
const REPOSITORY_PATHS: &[&str] = &["commit.repo", "repo.slug", "CI_REPO", "repository.full_name"];
const AUTHOR_PATHS: &[&str] =
    &["commit.author", "build.author_login", "CI_COMMIT_AUTHOR", "pusher.login", "sender.login"];
const MESSAGE_PATHS: &[&str] =
    &["commit.message", "build.message", "CI_COMMIT_MESSAGE", "head_commit.message"];
const URL_PATHS: &[&str] = &["commit.url", "build.link", "CI_PIPELINE_URL", "head_commit.url", "compare_url"];

pub fn source_commit(payload: &Value) -> Option<SourceCommit> {
    let first = |paths: &[&str]| {
        let mut found = paths.iter().filter_map(|path| PayloadPath::parse(path)?.scalar(payload));
        found.find(|text| !text.trim().is_empty())
    };
    let sha = first(SHA_PATHS).filter(|sha| is_sha(sha))?;
    let line = |paths, longest| {
        let text: String = first(paths)?;
        let line = short_line(text.trim_start().lines().next().unwrap_or_default(), longest);
        (!line.is_empty()).then_some(line)
    };
    Some(SourceCommit {
        repository: line(REPOSITORY_PATHS, LONGEST_NAME),
        sha,
        author: line(AUTHOR_PATHS, LONGEST_NAME),
        message: line(MESSAGE_PATHS, LONGEST_MESSAGE),
        url: first(URL_PATHS).filter(|url| is_url(url)),
    })
}

fn is_sha(text: &str) -> bool {
    (7..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !text.bytes().all(|it| it == b'0')
}

/// An address that needs no escaping in Markdown and contains no password.
fn is_url(text: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "-._~:/?#&=%+,;".contains(it);
    let is_http = text.starts_with("https://") || text.starts_with("http://");
    is_http && text.len() <= LONGEST_URL && text.chars().all(is_letter)
}
