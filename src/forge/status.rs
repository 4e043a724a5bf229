//! A commit status, in the words all forges share.

use std::borrow::Cow;

use serde::Serialize;

/// In characters; GitHub's limit, the smallest of the forges'.
pub const LONGEST_DESCRIPTION: usize = 140;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitStatus {
    /// Who says it, for example `tutti/deploy/prod`. The newest of a context replaces the earlier.
    pub context: String,
    pub state: State,
    /// Cut to 140 characters when it is written.
    pub description: String,
    pub target_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Pending,
    Success,
    Failure,
    Error,
    /// Gitea has it since 1.24.
    Skipped,
}

impl State {
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

/// At most 140 characters; what was cut is shown as `…`.
pub fn shortened(description: &str) -> Cow<'_, str> {
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
        let table = page.split("| state | it says, for example |").nth(1).expect("the table");
        let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.split(" |").next());
        let words = rows.flat_map(|cell| {
            cell.split([',', ' ', '(', '`']).next().into_iter().chain(cell.split('`').nth(1))
        });
        let mut listed: Vec<&str> = words.filter(|word| *word != "any" && *word != "mode: observe").collect();
        listed.sort_unstable();
        listed.dedup();
        let mut known = State::ALL.map(State::as_str);
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn descriptions_are_cut_between_characters() {
        let check = |text: &str, expected: &str| assert_eq!(shortened(text), expected);
        check("", "");
        check("6/6 healthy", "6/6 healthy");
        check(&"发".repeat(140), &"发".repeat(140));
        check(&"发".repeat(141), &format!("{}…", "发".repeat(139)));
    }
}
