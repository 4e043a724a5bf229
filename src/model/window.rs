//! Kind Window: when new versions may begin.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{CronSchedule, Location, TargetSelector};

/// One manifest below `policies/`: while a `deny` window lasts, nothing that it selects begins; what an `allow` window selects begins only
/// while one of them lasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub name: String,
    pub action: WindowAction,
    pub selector: TargetSelector,
    pub times: WindowTimes,
    pub reason: Option<String>,
    /// Who may open it for a version by an Approval: Approvers, where there are any of that name.
    pub may_override: Vec<String>,
    pub location: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowAction {
    Allow,
    Deny,
}

impl WindowAction {
    /// As `action:` of the manifest says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum WindowTimes {
    /// It begins at each time of the schedule. One that begins while another lasts prolongs it.
    Repeated {
        schedule: CronSchedule,
        duration: SignedDuration,
        time_zone: TimeZone,
    },
    Once {
        from: Timestamp,
        to: Timestamp,
    },
    /// The manifest has a mistake, so the times are unknown.
    Unknown,
}
