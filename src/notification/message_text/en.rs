//! English.

use super::language_texts::LanguageTexts;
use crate::model::NotificationPhase;
use crate::report::notices::{NoticeFacts, NotificationThread};
use crate::report::status_text::count_noun;

pub(super) const TEXTS: LanguageTexts = LanguageTexts {
    title,
    apps: |number| count_noun(number, "app"),
    objects: |number| format!("deletion of {}", count_noun(number, "object")),
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
    digest: |number| count_noun(number, "event"),
    test: |route| format!("✓ test of route {route}"),
    sent_by: |sender| format!("sent by {sender} with `tutti notify test`"),
    cause: "(the cause, in the words of the cluster)",
    comma: ", ",
    or: " or ",
};

fn title(
    happened: NotificationPhase,
    thread: &NotificationThread,
    what: &str,
    facts: &NoticeFacts,
) -> String {
    let ring = match thread {
        NotificationThread::Rollout { ring: Some(ring), .. }
        | NotificationThread::Health { ring: Some(ring) } => {
            format!(" in {ring}")
        }
        _ => String::new(),
    };
    let cluster = facts.clusters.first().map(ToString::to_string).unwrap_or_default();
    let ends = facts.ends.as_deref().unwrap_or_default();
    match (happened, thread) {
        (NotificationPhase::Failed, NotificationThread::Errors { commit }) => {
            format!("✗ commit {} has errors", commit.short())
        }
        (NotificationPhase::Started, _) => format!("▶ {what}: rollout started{ring}"),
        (NotificationPhase::Waiting, _) => format!("⏸ {what}: waits for confirmation{ring}"),
        (NotificationPhase::Done, _) => format!("✓ {what}: done{ring}"),
        (NotificationPhase::Failed, _) => format!("✗ {what}: failed{ring}"),
        (NotificationPhase::Degraded, _) => format!("✗ {what}: degraded{ring}"),
        (NotificationPhase::Recovered, _) => format!("✓ {what}: recovered{ring}"),
        (NotificationPhase::Reverted, _) => format!("↩ {what}: reverted{ring}"),
        (NotificationPhase::Opened, _) => format!("⬆ {what}: promotion proposed"),
        (NotificationPhase::Held, _) => format!("⏸ {what}: promotion held"),
        (NotificationPhase::Merged, _) => format!("✓ {what}: promotion merged"),
        (NotificationPhase::Offline, _) => format!("✗ cluster {cluster} does not answer"),
        (NotificationPhase::Online, _) => format!("✓ cluster {cluster} answers again"),
        (NotificationPhase::DeleteWaits, _) => {
            format!("⏸ {}: deletion waits for approval", count_noun(facts.objects, "object"))
        }
        (NotificationPhase::CredentialEnds, _) => {
            format!("⚠ the credential of cluster {cluster} expires {ends}")
        }
        (NotificationPhase::ServerEnds, NotificationThread::Server { name, .. }) => {
            format!("⚠ server {name} expires {ends}")
        }
        (NotificationPhase::Test, _) => format!("✓ {what}"),
        (NotificationPhase::ServerEnds, _) => format!("⚠ a server expires {ends}"),
    }
}
