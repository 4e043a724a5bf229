//! Results of checks, for people and for programs.

use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::output::say;
use crate::model::short_line;

/// In characters.
const LONGEST: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    Manifests,
    Forge,
    Home,
    Credential,
    Connection,
    Clock,
    Apis,
    Renders,
    Kinds,
    Rights,
}

impl Check {
    fn as_str(self) -> &'static str {
        match self {
            Self::Manifests => "manifests",
            Self::Forge => "forge",
            Self::Home => "home",
            Self::Credential => "credential",
            Self::Connection => "connection",
            Self::Clock => "clock",
            Self::Apis => "apis",
            Self::Renders => "renders",
            Self::Kinds => "kinds",
            Self::Rights => "rights",
        }
    }
}

/// Missing rights of one role, and the rules that grant them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    pub role: String,
    pub rights: Vec<String>,
    pub rules: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub check: Check,
    pub level: Level,
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Exit code for this finding.
    #[serde(skip)]
    pub exit: Option<Exit>,
}

impl Finding {
    /// Messages quote forges and clusters.
    fn new(check: Check, level: Level, message: impl Into<String>) -> Self {
        let message = short_line(&message.into(), LONGEST);
        Self { check, level, message, missing: Vec::new(), help: None, exit: None }
    }

    pub fn good(check: Check, message: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, message)
    }

    pub fn doubtful(check: Check, message: impl Into<String>) -> Self {
        Self::new(check, Level::Warning, message)
    }

    pub fn bad(check: Check, exit: Exit, message: impl Into<String>) -> Self {
        Self { exit: Some(exit), ..Self::new(check, Level::Error, message) }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

pub fn write(finding: &Finding) {
    let level = match finding.level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    say!("  {level:<8} {:<10} {}", finding.check.as_str(), finding.message);
    for missing in &finding.missing {
        for right in &missing.rights {
            say!("           missing: {right}");
        }
        say!("           add to {}:", missing.role);
        for line in missing.rules.lines() {
            say!("             {line}");
        }
    }
    if let Some(help) = &finding.help {
        say!("           help: {help}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_one_line_without_control_characters() {
        let said = "version 1\u{1b}[2J\n  ok       rights     all\r";
        assert_eq!(Finding::good(Check::Forge, said).message, "version 1 ok rights all");
        let long = Finding::bad(Check::Kinds, Exit::Failed, "x".repeat(LONGEST * 9)).message;
        assert_eq!(long.chars().count(), LONGEST + 1);
    }
}
