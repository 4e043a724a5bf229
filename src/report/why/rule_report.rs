//! One rule that applies to an app, and whether it holds the app.

use serde::Serialize;

use crate::model::Location;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// `paused`, `unmanaged`, `mode: observe`.
    Pause,
    Cluster,
    Taint,
    Policy,
    Window,
    /// Reviews of people.
    Approval,
    /// What opens a wave.
    Gate,
    After,
    Pin,
    Delete,
}

impl RuleKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Cluster => "cluster",
            Self::Taint => "taint",
            Self::Policy => "policy",
            Self::Window => "window",
            Self::Approval => "approval",
            Self::Gate => "gate",
            Self::After => "after",
            Self::Pin => "pin",
            Self::Delete => "delete",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleEffect {
    /// It holds the app somewhere now.
    Holds,
    Warns,
    /// It would hold the next version.
    WouldHold,
    Passes,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    pub kind: RuleKind,
    pub name: String,
    pub standing: RuleEffect,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Location>,
    /// Who may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}
