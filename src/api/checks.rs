//! Readiness of the process, and the state of each dependency, for `/ready`. Pure functions of the overview;
//! [`status`](super::status) calls them.

use std::fmt;

use serde::Serialize;

use crate::leader::Role;
use crate::model::{short_line, without_credentials};
use crate::report::{ClusterReport, Overview};

/// In characters, of one `detail`.
const LONGEST: usize = 300;

/// Only the config repository counts: clusters, forge and webhooks may fail later without ending readiness.
pub(super) fn ready(overview: &Overview) -> Result<(), &'static str> {
    match overview.revision {
        Some(_) => Ok(()),
        None => Err("the config repository has not been read yet"),
    }
}

/// Body of `/ready?full`.
#[derive(Debug, Serialize)]
pub(super) struct Checks {
    ready: bool,
    checks: [Check; 5],
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Failed,
    Unknown,
    Unused,
}

impl Checks {
    /// `post`: result of the last commit status. `doors`: receivers, and whether each has a secret. `role`: the
    /// leader role, and whether this process may write; `None` without election.
    pub(super) fn of(
        overview: &Overview,
        post: Option<&Result<(), String>>,
        doors: &[(String, bool)],
        role: Option<&(Role, bool)>,
    ) -> Self {
        let check = |name, (state, detail): (State, String)| Check { name, state, detail: shown(&detail) };
        let checks = [
            check("repository", repository(overview)),
            check("clusters", clusters(overview)),
            check("forge", forge(post)),
            check("webhooks", webhooks(doors)),
            check("leader", leader(role)),
        ];
        Self { ready: ready(overview).is_ok(), checks }
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        writeln!(f, "{text}")
    }
}

/// Errors quote URLs and responses of other servers.
fn shown(detail: &str) -> String {
    short_line(&without_credentials(detail), LONGEST)
}

fn repository(overview: &Overview) -> (State, String) {
    match (&overview.source_error, &overview.revision) {
        (Some(error), Some(revision)) => {
            (State::Failed, format!("{} was read; since then: {error}", revision.short()))
        }
        (Some(error), None) => (State::Failed, error.clone()),
        (None, Some(revision)) => (State::Ok, format!("{} was read", revision.short())),
        (None, None) => (State::Unknown, "it has not been read yet".to_owned()),
    }
}

fn clusters(overview: &Overview) -> (State, String) {
    let ours: Vec<&ClusterReport> = overview.clusters.iter().filter(|it| !it.is_dropped()).collect();
    let up = ours.iter().filter(|cluster| cluster.is_up()).count();
    let answer = format!("{up} of {} answer", ours.len());
    match ours.iter().find(|cluster| !cluster.is_up()) {
        None if ours.is_empty() => (State::Unused, "there are none".to_owned()),
        None => (State::Ok, answer),
        Some(ClusterReport { name, state, detail, .. }) if detail.is_empty() => {
            (State::Failed, format!("{answer}; {name}: {state}"))
        }
        Some(ClusterReport { name, state, detail, .. }) => {
            (State::Failed, format!("{answer}; {name}: {state}, {detail}"))
        }
    }
}

fn forge(post: Option<&Result<(), String>>) -> (State, String) {
    match post {
        None => (State::Unknown, "no commit status was written yet".to_owned()),
        Some(Ok(())) => (State::Ok, "the last commit status was written".to_owned()),
        Some(Err(error)) => (State::Failed, error.clone()),
    }
}

fn webhooks(doors: &[(String, bool)]) -> (State, String) {
    let open = doors.iter().filter(|(_, is_open)| *is_open).count();
    let of = format!("{open} of {} open", doors.len());
    match doors.iter().find(|(_, is_open)| !is_open) {
        None if doors.is_empty() => (State::Unused, "tutti.yaml names no receivers".to_owned()),
        None => (State::Ok, of),
        Some((name, _)) => (State::Failed, format!("{of}; {name} has no secret")),
    }
}

fn leader(role: Option<&(Role, bool)>) -> (State, String) {
    match role {
        None => (State::Unused, "this process runs alone".to_owned()),
        Some((Role::Leads, true)) => (State::Ok, "this process leads".to_owned()),
        Some((Role::Leads, false)) => {
            (State::Failed, "this process leads, and writes nothing: its lease is not renewed".to_owned())
        }
        Some((Role::StandsBy { leader: Some(leader) }, _)) => {
            (State::Ok, format!("stands by, {leader} leads"))
        }
        Some((Role::StandsBy { leader: None }, _)) => {
            (State::Unknown, "stands by, nobody is known to lead".to_owned())
        }
        Some((Role::Lost { .. }, _)) => (State::Failed, "it led, and the lease is another's".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Revision;

    fn cluster(name: &str, state: &'static str, detail: &str) -> ClusterReport {
        ClusterReport { state, detail: detail.to_owned(), objects: 0, ..ClusterReport::of_test(name, None) }
    }

    fn read() -> Overview {
        Overview { revision: Some(Revision::from("0123456789")), ..Overview::default() }
    }

    #[track_caller]
    fn check((state, detail): (State, String), expected: State, words: &str) {
        assert_eq!((state, detail.as_str()), (expected, words));
    }

    #[test]
    fn repository_and_readiness() {
        let error = || Some("failed to fetch".to_owned());
        let cases = [
            (Overview::default(), State::Unknown, "it has not been read yet"),
            (Overview { source_error: error(), ..Overview::default() }, State::Failed, "failed to fetch"),
            (read(), State::Ok, "0123456 was read"),
            (
                Overview { source_error: error(), ..read() },
                State::Failed,
                "0123456 was read; since then: failed to fetch",
            ),
        ];
        for (overview, state, words) in cases {
            assert_eq!(ready(&overview).is_ok(), overview.revision.is_some());
            check(repository(&overview), state, words);
        }
    }

    #[test]
    fn clusters_that_answer() {
        let of = |list: &[ClusterReport]| clusters(&Overview { clusters: list.to_vec(), ..read() });
        let (up, gone) = (cluster("bj1", "Ready", ""), cluster("old", "Dropped", ""));
        check(of(&[]), State::Unused, "there are none");
        check(of(&[up.clone(), gone]), State::Ok, "1 of 1 answer");
        let away = cluster("sh1", "Offline", "no route");
        check(of(&[up.clone(), away]), State::Failed, "1 of 2 answer; sh1: Offline, no route");
        let new = cluster("sh1", "Connecting", "");
        check(of(&[up, new]), State::Failed, "1 of 2 answer; sh1: Connecting");
    }

    #[test]
    fn forge_and_webhooks() {
        check(forge(None), State::Unknown, "no commit status was written yet");
        check(forge(Some(&Ok(()))), State::Ok, "the last commit status was written");
        check(forge(Some(&Err("refused".to_owned()))), State::Failed, "refused");
        let door = |name: &str, is_open| (name.to_owned(), is_open);
        check(webhooks(&[]), State::Unused, "tutti.yaml names no receivers");
        check(webhooks(&[door("gitea", true)]), State::Ok, "1 of 1 open");
        let doors = [door("gitea", true), door("mirror", false)];
        check(webhooks(&doors), State::Failed, "1 of 2 open; mirror has no secret");
    }

    #[test]
    fn roles() {
        check(leader(None), State::Unused, "this process runs alone");
        check(leader(Some(&(Role::Leads, true))), State::Ok, "this process leads");
        let unrenewed = "this process leads, and writes nothing: its lease is not renewed";
        check(leader(Some(&(Role::Leads, false))), State::Failed, unrenewed);
        let stands_by =
            |leader: Option<&str>| (Role::StandsBy { leader: leader.map(ToOwned::to_owned) }, false);
        check(leader(Some(&stands_by(Some("tutti-1")))), State::Ok, "stands by, tutti-1 leads");
        check(leader(Some(&stands_by(None))), State::Unknown, "stands by, nobody is known to lead");
        check(
            leader(Some(&(Role::Lost { leader: None }, false))),
            State::Failed,
            "it led, and the lease is another's",
        );
    }

    /// Texts of other servers are cut; credentials and control characters are removed.
    #[test]
    fn foreign_texts_are_sanitized() {
        let error = format!("https://li:s3cr3t@git.example.com: \u{1b}[31m\u{7}a\nb {}", "x".repeat(10_000));
        let overview = Overview { source_error: Some(error.clone()), ..Overview::default() };
        let text = Checks::of(&overview, Some(&Err(error)), &[], None).to_string();
        assert!(!text.contains("s3cr3t"), "{text}");
        assert!(!text.trim_end().contains(char::is_control) && !text.contains("\\u00"), "{text}");
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
}
