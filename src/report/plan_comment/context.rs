//! The labels of a comment: its marker, its heading and its links.

use super::text::{MAX_NAME_CHARS, code_span, escaped};
use crate::model::Revision;

/// Labels and links of a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanCommentContext {
    /// The prefix of statuses, which tells the comments of several instances apart.
    pub prefix: String,
    pub base: String,
    pub head: String,
    /// The page with more details.
    pub url: Option<String>,
}

impl PlanCommentContext {
    /// The first line of the comment, by which it is found again.
    pub fn marker(&self) -> String {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "._/-".contains(*letter);
        let prefix: String = self.prefix.chars().filter(is_plain).take(MAX_NAME_CHARS).collect();
        // Two hyphens could end the HTML comment.
        format!("<!-- tutti:plan v1 prefix={} -->", prefix.replace("--", "-"))
    }

    pub(super) fn heading(&self, head: &Revision) -> String {
        let (base, branch) = (code_span(&self.base, MAX_NAME_CHARS), code_span(&self.head, MAX_NAME_CHARS));
        format!("{}\n### tutti plan · {base} ← {branch} @ {}\n", self.marker(), escaped(head.short(), 12))
    }
}
