//! Results of checks, for people and for programs.

use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::output::say;
use crate::model::short_line;

/// In characters.
const MAX_MESSAGE_CHARS: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    Ok,
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoctorCheck {
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

impl DoctorCheck {
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
pub struct MissingRights {
    pub role: String,
    pub rights: Vec<String>,
    pub rules: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorFinding {
    pub check: DoctorCheck,
    pub level: FindingLevel,
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRights>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Exit code for this finding.
    #[serde(skip)]
    pub exit: Option<Exit>,
}

impl DoctorFinding {
    /// Messages quote forges and clusters.
    fn new(check: DoctorCheck, level: FindingLevel, message: impl Into<String>) -> Self {
        let message = short_line(&message.into(), MAX_MESSAGE_CHARS);
        Self { check, level, message, missing: Vec::new(), help: None, exit: None }
    }

    pub fn passed(check: DoctorCheck, message: impl Into<String>) -> Self {
        Self::new(check, FindingLevel::Ok, message)
    }

    pub fn warning(check: DoctorCheck, message: impl Into<String>) -> Self {
        Self::new(check, FindingLevel::Warning, message)
    }

    pub fn failed(check: DoctorCheck, exit: Exit, message: impl Into<String>) -> Self {
        Self { exit: Some(exit), ..Self::new(check, FindingLevel::Error, message) }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

pub fn write_finding(finding: &DoctorFinding) {
    let level = match finding.level {
        FindingLevel::Ok => "ok",
        FindingLevel::Warning => "warning",
        FindingLevel::Error => "error",
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
        assert_eq!(DoctorFinding::passed(DoctorCheck::Forge, said).message, "version 1 ok rights all");
        let long = DoctorFinding::failed(DoctorCheck::Kinds, Exit::Failed, "x".repeat(MAX_MESSAGE_CHARS * 9))
            .message;
        assert_eq!(long.chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
