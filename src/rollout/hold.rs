//! Holds: why a unit does not have the head's render.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::{GateProgress, UnitId};
use crate::model::{AppId, ApprovalShortfall, ClusterName, Digest, UnmetApprovalRule};
use crate::window;

/// Serialized with a code for programs and a text for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "camelCase")]
pub enum RolloutHold {
    Paused,
    /// Its cluster is offline or in maintenance.
    LeftOut {
        cluster: ClusterName,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// The objects on the cluster, or the content of the unit, are not known yet.
    Unread,
    NotRendered {
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// Not all clusters of the app were read: the version may have failed there, or this may be a first installation.
    ClusterUnread {
        cluster: UnitId,
    },
    /// An earlier wave is not done.
    Wave {
        wave: String,
        done: usize,
        of: usize,
        unit: UnitId,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// All clusters of an earlier wave are left out.
    WaveLeftOut {
        wave: String,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// The soak time of an earlier wave is not over.
    Soak {
        wave: String,
        until: Timestamp,
    },
    /// An earlier wave is done; the next one needs a confirmation.
    Confirmation {
        after: String,
        through: String,
        digest: Digest,
    },
    /// The limit of units that change at the same time is reached.
    Concurrency {
        wave: String,
        limit: usize,
    },
    /// A unit has failed: no other unit changes.
    Stopped {
        unit: UnitId,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// The version failed and was reverted.
    Reverted {
        digest: Digest,
    },
    /// The revert is not possible.
    RevertFailed {
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// Another app must be done first.
    After {
        app: AppId,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// The ring before has not finished this version.
    Pin {
        ring: String,
        version: String,
        through: String,
        digest: Digest,
    },
    /// A window is shut.
    Window {
        window: String,
        /// `None`: it does not end without help.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who may override the window.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        may_override: Vec<String>,
        /// The version that an Approval would name.
        digest: Digest,
    },
    /// An earlier wave is done, and a measurement after it has not passed.
    Analysis {
        wave: String,
        analysis: String,
        standing: GateProgress,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
        /// The last wave that a person would open.
        through: String,
        digest: Digest,
    },
    /// An earlier wave is done, and a commit status of another program is not success.
    Status {
        wave: String,
        context: String,
        standing: GateProgress,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
        through: String,
        digest: Digest,
    },
    /// Approvals of the version are missing.
    Approval {
        /// The requirements of each rule that is not satisfied.
        asks: Vec<UnmetApprovalRule>,
        /// The wave that an Approval would open.
        through: String,
        digest: Digest,
    },
    /// The current content is unknown: the unit stays as it is. Its gates continue.
    Frozen {
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
        /// The hold of its gates.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits: Option<Box<Self>>,
    },
}

/// The confirmation that a person may give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// The wave that is done. Empty if an approval rule requires the approval.
    pub after: String,
    /// The last wave that opens with it.
    pub through: String,
    pub digest: Digest,
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// No agreement is being read.
fn is_for_people(asks: &[UnmetApprovalRule]) -> bool {
    asks.iter().all(|asks| !matches!(asks.lack, ApprovalShortfall::NotReadYet(_)))
}

impl RolloutHold {
    /// The hold of the gates, without the frozen state.
    pub fn gate(&self) -> &Self {
        match self {
            Self::Frozen { waits: Some(waits), .. } => waits,
            _ => self,
        }
    }

    pub fn confirmation(&self) -> Option<Confirmation> {
        match self.gate() {
            Self::Confirmation { after, through, digest }
            | Self::Pin { ring: after, through, digest, .. } => {
                Some(Confirmation { after: after.clone(), through: through.clone(), digest: *digest })
            }
            Self::Analysis { wave, through, digest, .. } | Self::Status { wave, through, digest, .. }
                if self.standing() == Some(GateProgress::Inconclusive) =>
            {
                Some(Confirmation { after: wave.clone(), through: through.clone(), digest: *digest })
            }
            // An agreement is read before a person is asked.
            Self::Approval { asks, through, digest } if is_for_people(asks) => {
                Some(Confirmation { after: String::new(), through: through.clone(), digest: *digest })
            }
            _ => None,
        }
    }

    /// A fact is being read: for this moment nobody is asked.
    pub fn is_reading(&self) -> bool {
        match self.gate() {
            Self::Unread | Self::ClusterUnread { .. } => true,
            Self::Approval { asks, .. } => !is_for_people(asks),
            _ => false,
        }
    }

    /// The state of its measurement.
    pub fn standing(&self) -> Option<GateProgress> {
        match self.gate() {
            Self::Analysis { standing, .. } | Self::Status { standing, .. } => Some(*standing),
            _ => None,
        }
    }

    /// Only a person can end it.
    pub fn waits_for_a_person(&self) -> bool {
        if let Self::Approval { asks, .. } = self.gate() {
            return is_for_people(asks);
        }
        matches!(
            self.gate(),
            Self::Confirmation { .. }
                | Self::Analysis { standing: GateProgress::Inconclusive, .. }
                | Self::Status { standing: GateProgress::Inconclusive, .. }
                | Self::Pin { .. }
                | Self::Reverted { .. }
                | Self::RevertFailed { .. }
                | Self::Paused
                | Self::Window { until: None, .. }
        )
    }

    /// The version stays back unless somebody changes something.
    pub fn is_failure(&self) -> bool {
        matches!(
            self.gate(),
            Self::Reverted { .. }
                | Self::RevertFailed { .. }
                | Self::NotRendered { .. }
                | Self::Analysis { standing: GateProgress::Failed, .. }
        )
    }

    pub fn until(&self) -> Option<Timestamp> {
        match self.gate() {
            Self::Soak { until, .. } => Some(*until),
            Self::Window { until, .. } => *until,
            _ => None,
        }
    }
}

impl fmt::Display for RolloutHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => f.write_str("the app is paused"),
            Self::LeftOut { cluster, because } => write!(f, "cluster {cluster} is left out: {because}"),
            Self::NotRendered { because } => write!(f, "the new version cannot be rendered here: {because}"),
            Self::Unread => f.write_str("the live objects are being read"),
            Self::ClusterUnread { cluster } => write!(f, "waits for the first read of {}", cluster.cluster),
            Self::Wave { wave, done, of, unit, because } => {
                write!(f, "waits for wave {wave}, {done}/{of} done, {unit}: {because}")
            }
            Self::WaveLeftOut { wave, because } => {
                write!(f, "every cluster of wave {wave} is left out: {because}")
            }
            Self::Soak { wave, until } => {
                write!(f, "wave {wave} is done, the next opens at {}", until.strftime("%F %H:%M:%S UTC"))
            }
            Self::Confirmation { after, through, digest } => {
                write!(f, "wave {after} is done, wave {through} waits for confirmation of {}", digest.short())
            }
            Self::Concurrency { wave, limit } => {
                write!(f, "wave {wave} changes {limit} at a time (maxConcurrency)")
            }
            Self::Stopped { unit, because } => write!(f, "stopped, {unit} failed: {because}"),
            Self::Reverted { digest } => write!(f, "version {} failed and was reverted", digest.short()),
            Self::RevertFailed { because } => write!(f, "RevertFailed: {because}"),
            Self::After { app, because } => write!(f, "waits for app {app}: {because}"),
            Self::Pin { ring, version, digest, .. } => write!(
                f,
                "ring {ring} has not finished {version}, waits for it or for confirmation of {}",
                digest.short()
            ),
            Self::Window { window, until, reason, may_override, .. } => {
                f.write_str(&window::shut_text(window, *until, reason.as_deref(), may_override))
            }
            Self::Analysis { wave, analysis, standing, because, .. } => {
                let standing = standing.as_str();
                write!(f, "wave {wave} is done, analysis {analysis} {standing}: {because}")
            }
            Self::Status { wave, context, because, .. } => {
                write!(f, "wave {wave} is done, commit status {context}: {because}")
            }
            Self::Approval { asks, .. } => match &asks[..] {
                [] => f.write_str("approval rules are not satisfied"),
                [asks] => asks.fmt(f),
                [asks, others @ ..] => write!(f, "{asks}, and {} more", others.len()),
            },
            Self::Frozen { because, waits: None } => write!(f, "frozen, not changed: {because}"),
            Self::Frozen { because, waits: Some(waits) } => write!(f, "frozen, {waits}; {because}"),
        }
    }
}
