//! English.

use super::Words;
use crate::model::Happened;
use crate::report::notices::{Facts, Thread};
use crate::report::words::count;

pub(super) const WORDS: Words = Words {
    title,
    apps: |number| count(number, "app"),
    objects: |number| format!("deletion of {}", count(number, "object")),
    and_more: |number| format!(" and {number} more"),
    others: |number| format!("; and {number} more"),
    rest: |number| format!("and {number} more"),
    healthy: |healthy, total| format!("{healthy} of {total} healthy"),
    by: |subject, author| format!("“{subject}” by {author}"),
    confirm: |commands| format!("to go on: {commands}"),
    mend: |commands| format!("what to do: {commands}"),
    commit: "commit",
    page: "details",
    pull: "pull request",
    digest: |number| count(number, "event"),
    test: |route| format!("✓ test of route {route}"),
    sent_by: |sender| format!("sent by {sender} with `tutti notify test`"),
    cause: "(the cause, in the words of the cluster)",
    comma: ", ",
    or: " or ",
};

fn title(happened: Happened, thread: &Thread, what: &str, facts: &Facts) -> String {
    let ring = match thread {
        Thread::Rollout { ring: Some(ring), .. } | Thread::Health { ring: Some(ring) } => {
            format!(" in {ring}")
        }
        _ => String::new(),
    };
    let cluster = facts.clusters.first().map(ToString::to_string).unwrap_or_default();
    let ends = facts.ends.as_deref().unwrap_or_default();
    match (happened, thread) {
        (Happened::Failed, Thread::Errors { commit }) => format!("✗ commit {} has errors", commit.short()),
        (Happened::Started, _) => format!("▶ {what}: rollout started{ring}"),
        (Happened::Waiting, _) => format!("⏸ {what}: waits for confirmation{ring}"),
        (Happened::Done, _) => format!("✓ {what}: done{ring}"),
        (Happened::Failed, _) => format!("✗ {what}: failed{ring}"),
        (Happened::Degraded, _) => format!("✗ {what}: degraded{ring}"),
        (Happened::Recovered, _) => format!("✓ {what}: recovered{ring}"),
        (Happened::Reverted, _) => format!("↩ {what}: reverted{ring}"),
        (Happened::Opened, _) => format!("⬆ {what}: promotion proposed"),
        (Happened::Held, _) => format!("⏸ {what}: promotion held"),
        (Happened::Merged, _) => format!("✓ {what}: promotion merged"),
        (Happened::Offline, _) => format!("✗ cluster {cluster} does not answer"),
        (Happened::Online, _) => format!("✓ cluster {cluster} answers again"),
        (Happened::DeleteWaits, _) => {
            format!("⏸ {}: deletion waits for approval", count(facts.objects, "object"))
        }
        (Happened::CredentialEnds, _) => format!("⚠ the credential of cluster {cluster} expires {ends}"),
        (Happened::ServerEnds, Thread::Server { name, .. }) => format!("⚠ server {name} expires {ends}"),
        (Happened::Test, _) => format!("✓ {what}"),
        (Happened::ServerEnds, _) => format!("⚠ a server expires {ends}"),
    }
}
