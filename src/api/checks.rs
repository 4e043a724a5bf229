//! Readiness of the process, and the state of each dependency, for `/ready`. Pure functions of the overview;
//! [`status`](super::status) calls them.

use std::fmt;

use serde::Serialize;

use crate::leader::LeaderRole;
use crate::model::{short_line, without_credentials};
use crate::report::{ClusterReport, Overview};

/// In characters, of one `detail`.
const MAX_DETAIL_CHARS: usize = 300;

/// Only the config repository counts: clusters, forge and webhooks may fail later without ending readiness.
pub(super) fn check_ready(overview: &Overview) -> Result<(), &'static str> {
    match overview.revision {
        Some(_) => Ok(()),
        None => Err("the config repository has not been read yet"),
    }
}

/// Body of `/ready?full`.
#[derive(Debug, Serialize)]
pub(super) struct ReadinessReport {
    ready: bool,
    checks: [ReadinessCheck; 5],
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct ReadinessCheck {
    name: &'static str,
    state: CheckState,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckState {
    Ok,
    Failed,
    Unknown,
    Unused,
}

impl ReadinessReport {
    /// `post`: result of the last commit status. `doors`: receivers, and whether each has a secret. `role`: the
    /// leader role, and whether this process may write; `None` without election.
    pub(super) fn of(
        overview: &Overview,
        post: Option<&Result<(), String>>,
        doors: &[(String, bool)],
        role: Option<&(LeaderRole, bool)>,
    ) -> Self {
        let check = |name, (state, detail): (CheckState, String)| ReadinessCheck {
            name,
            state,
            detail: safe_detail(&detail),
        };
        let checks = [
            check("repository", repository(overview)),
            check("clusters", clusters(overview)),
            check("forge", forge(post)),
            check("webhooks", webhooks(doors)),
            check("leader", leader(role)),
        ];
        Self { ready: check_ready(overview).is_ok(), checks }
    }
}

impl fmt::Display for ReadinessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        writeln!(f, "{text}")
    }
}

/// Errors quote URLs and responses of other servers.
fn safe_detail(detail: &str) -> String {
    short_line(&without_credentials(detail), MAX_DETAIL_CHARS)
}

fn repository(overview: &Overview) -> (CheckState, String) {
    match (&overview.source_error, &overview.revision) {
        (Some(error), Some(revision)) => {
            (CheckState::Failed, format!("{} was read; since then: {error}", revision.short()))
        }
        (Some(error), None) => (CheckState::Failed, error.clone()),
        (None, Some(revision)) => (CheckState::Ok, format!("{} was read", revision.short())),
        (None, None) => (CheckState::Unknown, "it has not been read yet".to_owned()),
    }
}

fn clusters(overview: &Overview) -> (CheckState, String) {
    let ours: Vec<&ClusterReport> = overview.clusters.iter().filter(|it| !it.is_unregistered()).collect();
    let up = ours.iter().filter(|cluster| cluster.is_up()).count();
    let answer = format!("{up} of {} answer", ours.len());
    match ours.iter().find(|cluster| !cluster.is_up()) {
        None if ours.is_empty() => (CheckState::Unused, "no cluster is registered".to_owned()),
        None => (CheckState::Ok, answer),
        Some(ClusterReport { name, state, detail, .. }) if detail.is_empty() => {
            (CheckState::Failed, format!("{answer}; {name}: {state}"))
        }
        Some(ClusterReport { name, state, detail, .. }) => {
            (CheckState::Failed, format!("{answer}; {name}: {state}, {detail}"))
        }
    }
}

fn forge(post: Option<&Result<(), String>>) -> (CheckState, String) {
    match post {
        None => (CheckState::Unknown, "no commit status was written yet".to_owned()),
        Some(Ok(())) => (CheckState::Ok, "the last commit status was written".to_owned()),
        Some(Err(error)) => (CheckState::Failed, error.clone()),
    }
}

fn webhooks(doors: &[(String, bool)]) -> (CheckState, String) {
    let open = doors.iter().filter(|(_, is_open)| *is_open).count();
    let of = format!("{open} of {} open", doors.len());
    match doors.iter().find(|(_, is_open)| !is_open) {
        None if doors.is_empty() => (CheckState::Unused, "tutti.yaml names no receivers".to_owned()),
        None => (CheckState::Ok, of),
        Some((name, _)) => (CheckState::Failed, format!("{of}; {name} has no secret")),
    }
}

fn leader(role: Option<&(LeaderRole, bool)>) -> (CheckState, String) {
    match role {
        None => (CheckState::Unused, "this process runs alone".to_owned()),
        Some((LeaderRole::Leads, true)) => (CheckState::Ok, "this process leads".to_owned()),
        Some((LeaderRole::Leads, false)) => (
            CheckState::Failed,
            "this process leads but writes nothing: it could not renew its lease".to_owned(),
        ),
        Some((LeaderRole::StandsBy { leader: Some(leader) }, _)) => {
            (CheckState::Ok, format!("stands by, {leader} leads"))
        }
        Some((LeaderRole::StandsBy { leader: None }, _)) => {
            (CheckState::Unknown, "stands by; the leader is not known".to_owned())
        }
        Some((LeaderRole::Lost { .. }, _)) => {
            (CheckState::Failed, "this process lost the lease to another process".to_owned())
        }
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
    fn check((state, detail): (CheckState, String), expected: CheckState, words: &str) {
        assert_eq!((state, detail.as_str()), (expected, words));
    }

    #[test]
    fn repository_and_readiness() {
        let error = || Some("failed to fetch".to_owned());
        let cases = [
            (Overview::default(), CheckState::Unknown, "it has not been read yet"),
            (
                Overview { source_error: error(), ..Overview::default() },
                CheckState::Failed,
                "failed to fetch",
            ),
            (read(), CheckState::Ok, "0123456 was read"),
            (
                Overview { source_error: error(), ..read() },
                CheckState::Failed,
                "0123456 was read; since then: failed to fetch",
            ),
        ];
        for (overview, state, words) in cases {
            assert_eq!(check_ready(&overview).is_ok(), overview.revision.is_some());
            check(repository(&overview), state, words);
        }
    }

    #[test]
    fn clusters_that_answer() {
        let of = |list: &[ClusterReport]| clusters(&Overview { clusters: list.to_vec(), ..read() });
        let (up, gone) = (cluster("bj1", "Ready", ""), cluster("old", "Dropped", ""));
        check(of(&[]), CheckState::Unused, "no cluster is registered");
        check(of(&[up.clone(), gone]), CheckState::Ok, "1 of 1 answer");
        let away = cluster("sh1", "Offline", "no route");
        check(of(&[up.clone(), away]), CheckState::Failed, "1 of 2 answer; sh1: Offline, no route");
        let new = cluster("sh1", "Connecting", "");
        check(of(&[up, new]), CheckState::Failed, "1 of 2 answer; sh1: Connecting");
    }

    #[test]
    fn forge_and_webhooks() {
        check(forge(None), CheckState::Unknown, "no commit status was written yet");
        check(forge(Some(&Ok(()))), CheckState::Ok, "the last commit status was written");
        check(forge(Some(&Err("refused".to_owned()))), CheckState::Failed, "refused");
        let door = |name: &str, is_open| (name.to_owned(), is_open);
        check(webhooks(&[]), CheckState::Unused, "tutti.yaml names no receivers");
        check(webhooks(&[door("gitea", true)]), CheckState::Ok, "1 of 1 open");
        let doors = [door("gitea", true), door("mirror", false)];
        check(webhooks(&doors), CheckState::Failed, "1 of 2 open; mirror has no secret");
    }

    #[test]
    fn roles() {
        check(leader(None), CheckState::Unused, "this process runs alone");
        check(leader(Some(&(LeaderRole::Leads, true))), CheckState::Ok, "this process leads");
        let unrenewed = "this process leads but writes nothing: it could not renew its lease";
        check(leader(Some(&(LeaderRole::Leads, false))), CheckState::Failed, unrenewed);
        let stands_by =
            |leader: Option<&str>| (LeaderRole::StandsBy { leader: leader.map(ToOwned::to_owned) }, false);
        check(leader(Some(&stands_by(Some("tutti-1")))), CheckState::Ok, "stands by, tutti-1 leads");
        check(leader(Some(&stands_by(None))), CheckState::Unknown, "stands by; the leader is not known");
        check(
            leader(Some(&(LeaderRole::Lost { leader: None }, false))),
            CheckState::Failed,
            "this process lost the lease to another process",
        );
    }

    /// Texts of other servers are cut; credentials and control characters are removed.
    #[test]
    fn foreign_texts_are_sanitized() {
        let error = format!("https://li:s3cr3t@git.example.com: \u{1b}[31m\u{7}a\nb {}", "x".repeat(10_000));
        let overview = Overview { source_error: Some(error.clone()), ..Overview::default() };
        let text = ReadinessReport::of(&overview, Some(&Err(error)), &[], None).to_string();
        assert!(!text.contains("s3cr3t"), "{text}");
        assert!(!text.trim_end().contains(char::is_control) && !text.contains("\\u00"), "{text}");
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
}
