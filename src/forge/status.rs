//! A commit status in the terms common to all forges.

use std::borrow::Cow;

use serde::Serialize;

/// In characters: GitHub's limit, the smallest of all forges.
pub const LONGEST_DESCRIPTION: usize = 140;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitStatus {
    /// Its source, for example `tutti/deploy/prod`. The newest status of a context replaces earlier ones.
    pub context: String,
    pub state: CommitStatusState,
    /// Cut to 140 characters on write.
    pub description: String,
    pub target_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitStatusState {
    Pending,
    Success,
    Failure,
    Error,
    /// In Gitea since 1.24.
    Skipped,
}

impl CommitStatusState {
    const ALL: [Self; 5] = [Self::Pending, Self::Success, Self::Failure, Self::Error, Self::Skipped];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// At most 140 characters, with `…` if it was cut.
pub fn shorten_description(description: &str) -> Cow<'_, str> {
    if description.chars().count() <= LONGEST_DESCRIPTION {
        return description.into();
    }
    let mut text: String = description.chars().take(LONGEST_DESCRIPTION - 1).collect();
    text.push('…');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_md_lists_every_state() {
        let page = include_str!("../../docs/reference/statuses.md");
        let table = page.split("| state | examples of the text |").nth(1).expect("the table");
        let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.split(" |").next());
        let words = rows.flat_map(|cell| {
            cell.split([',', ' ', '(', '`']).next().into_iter().chain(cell.split('`').nth(1))
        });
        let mut listed: Vec<&str> = words.filter(|word| *word != "any" && *word != "mode: observe").collect();
        listed.sort_unstable();
        listed.dedup();
        let mut known = CommitStatusState::ALL.map(CommitStatusState::as_str);
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn descriptions_are_cut_between_characters() {
        let check = |text: &str, expected: &str| assert_eq!(shorten_description(text), expected);
        check("", "");
        check("6/6 healthy", "6/6 healthy");
        check(&"发".repeat(140), &"发".repeat(140));
        check(&"发".repeat(141), &format!("{}…", "发".repeat(139)));
    }
}
