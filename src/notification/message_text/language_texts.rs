//! The words of messages in one language.

use crate::model::NotificationPhase;
use crate::report::notices::{NoticeFacts, NotificationThread};

pub(super) struct LanguageTexts {
    /// The title for a commit in a ring, with `{what}` and `{ring}`; `{ring}` may be empty.
    pub(super) title: fn(NotificationPhase, &NotificationThread, &str, &NoticeFacts) -> String,
    pub(super) apps: fn(usize) -> String,
    /// For a rollout that only deletes.
    pub(super) objects: fn(usize) -> String,
    /// The number of names that are left out.
    pub(super) and_more: fn(usize) -> String,
    /// The number of other targets in the same bad phase.
    pub(super) others: fn(usize) -> String,
    /// The number of events that a digest leaves out.
    pub(super) rest: fn(usize) -> String,
    pub(super) healthy: fn(usize, usize) -> String,
    pub(super) by: fn(&str, &str) -> String,
    /// The command that confirms.
    pub(super) confirm: fn(&str) -> String,
    /// The command against a failure.
    pub(super) mend: fn(&str) -> String,
    pub(super) commit: &'static str,
    pub(super) page: &'static str,
    pub(super) pull: &'static str,
    pub(super) digest: fn(usize) -> String,
    /// For the test of a route, by its name.
    pub(super) test: fn(&str) -> String,
    pub(super) sent_by: fn(&str) -> String,
    /// The label of a cause.
    pub(super) cause: &'static str,
    pub(super) comma: &'static str,
    pub(super) or: &'static str,
}
