//! The text of a health rule, and a mistake in it.

use crate::cel;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    /// The kinds of the rule; `_` stands for any text.
    pub group: String,
    pub kind: String,
    /// For reasons.
    pub file: String,
    pub body: RuleBody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleBody {
    Expressions(Expressions),
    Script(String),
    /// Unreadable, or over a bound: reported elsewhere.
    Rejected,
}

impl RuleBody {
    /// The cost of compiling and keeping it, in bytes of an equally costly script.
    pub fn weight(&self) -> usize {
        match self {
            Self::Script(text) => text.len(),
            Self::Expressions(texts) => {
                let given = [texts.in_progress.as_deref(), texts.failed.as_deref(), Some(&*texts.current)];
                given.into_iter().flatten().map(cel::approximate_memory).sum()
            }
            Self::Rejected => 0,
        }
    }
}

/// Each returns true or false for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expressions {
    pub in_progress: Option<String>,
    pub failed: Option<String>,
    pub current: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RulePart {
    InProgress,
    Failed,
    Current,
    Script,
}

/// Why a rule cannot be used, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMistake {
    /// The index of its source.
    pub source: usize,
    pub part: RulePart,
    /// Counted from 1 in the text of the part.
    pub line: u32,
    pub column: Option<u32>,
    pub message: String,
}
