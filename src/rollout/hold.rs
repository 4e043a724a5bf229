//! Why a unit does not have the head's render.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::{Confirmation, Standing, UnitId};
use crate::model::{AppId, ClusterName, Digest, Lack, RuleAsks};
use crate::window;

/// Shown with a code for programs and words for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "camelCase")]
pub enum Hold {
    /// The app is paused.
    Paused,
    /// Its cluster does not answer, or is in maintenance.
    LeftOut {
        cluster: ClusterName,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// What the cluster holds, or what the unit runs, is not known yet.
    Unread,
    /// The head cannot be rendered for it.
    NotRendered {
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// Not all clusters of the app were read: the version may have failed there, or this is a first installation.
    ClusterUnread { cluster: UnitId },
    /// An earlier wave is not done.
    Wave {
        wave: String,
        done: usize,
        of: usize,
        unit: UnitId,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// No cluster of an earlier wave takes part.
    WaveLeftOut {
        wave: String,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// An earlier wave is done, and has not been so for long enough.
    Soak { wave: String, until: Timestamp },
    /// An earlier wave is done; a person says when the next one opens.
    Confirmation { after: String, through: String, digest: Digest },
    /// So many units of the wave as may change side by side do.
    Concurrency { wave: String, limit: usize },
    /// A unit has failed: no further one changes.
    Stopped {
        unit: UnitId,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// The version failed and was reverted.
    Reverted { digest: Digest },
    /// It was to be reverted, and cannot.
    RevertFailed {
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// Another app comes first.
    After {
        app: AppId,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
    },
    /// The ring before has not finished this version.
    Pin { ring: String, version: String, through: String, digest: Digest },
    /// Nothing new begins now.
    Window {
        window: String,
        /// `None`: it does not end by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who may let a version pass.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        may_override: Vec<String>,
        /// The version that an Approval would name.
        digest: Digest,
    },
    /// An earlier wave is done, and what is measured after it has not passed.
    Analysis {
        wave: String,
        analysis: String,
        standing: Standing,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
        /// The last wave that a person would open.
        through: String,
        digest: Digest,
    },
    /// An earlier wave is done, and a commit status of others is not success.
    Status {
        wave: String,
        context: String,
        standing: Standing,
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
        through: String,
        digest: Digest,
    },
    /// So many people have to approve the version first.
    Approval {
        /// What each rule asks for that lacks something.
        asks: Vec<RuleAsks>,
        /// The wave that an Approval would open.
        through: String,
        digest: Digest,
    },
    /// Nobody knows what it runs: it is left as it is. Its gates go on.
    Frozen {
        #[serde(serialize_with = "as_text")]
        because: Arc<str>,
        /// What it waits for beside.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits: Option<Box<Self>>,
    },
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Nobody is being asked who agreed.
fn is_for_people(asks: &[RuleAsks]) -> bool {
    asks.iter().all(|asks| !matches!(asks.lack, Lack::NotReadYet(_)))
}

impl Hold {
    /// What the unit waits for, whatever is known of what it runs.
    pub fn gate(&self) -> &Self {
        match self {
            Self::Frozen { waits: Some(waits), .. } => waits,
            _ => self,
        }
    }

    /// What a person is asked for.
    pub fn confirmation(&self) -> Option<Confirmation> {
        match self.gate() {
            Self::Confirmation { after, through, digest }
            | Self::Pin { ring: after, through, digest, .. } => {
                Some(Confirmation { after: after.clone(), through: through.clone(), digest: *digest })
            }
            Self::Analysis { wave, through, digest, .. } | Self::Status { wave, through, digest, .. }
                if self.standing() == Some(Standing::Inconclusive) =>
            {
                Some(Confirmation { after: wave.clone(), through: through.clone(), digest: *digest })
            }
            // Whoever agreed is asked first.
            Self::Approval { asks, through, digest } if is_for_people(asks) => {
                Some(Confirmation { after: String::new(), through: through.clone(), digest: *digest })
            }
            _ => None,
        }
    }

    /// What it waits for is being read: for a moment, nobody is asked.
    pub fn is_reading(&self) -> bool {
        match self.gate() {
            Self::Unread | Self::ClusterUnread { .. } => true,
            Self::Approval { asks, .. } => !is_for_people(asks),
            _ => false,
        }
    }

    /// Of what is measured.
    pub fn standing(&self) -> Option<Standing> {
        match self.gate() {
            Self::Analysis { standing, .. } | Self::Status { standing, .. } => Some(*standing),
            _ => None,
        }
    }

    /// Only a person ends it.
    pub fn waits_for_a_person(&self) -> bool {
        if let Self::Approval { asks, .. } = self.gate() {
            return is_for_people(asks);
        }
        matches!(
            self.gate(),
            Self::Confirmation { .. }
                | Self::Analysis { standing: Standing::Inconclusive, .. }
                | Self::Status { standing: Standing::Inconclusive, .. }
                | Self::Pin { .. }
                | Self::Reverted { .. }
                | Self::RevertFailed { .. }
                | Self::Paused
                | Self::Window { until: None, .. }
        )
    }

    /// The version will not come unless somebody changes something.
    pub fn is_failure(&self) -> bool {
        matches!(
            self.gate(),
            Self::Reverted { .. }
                | Self::RevertFailed { .. }
                | Self::NotRendered { .. }
                | Self::Analysis { standing: Standing::Failed, .. }
        )
    }

    /// When it ends by itself.
    pub fn until(&self) -> Option<Timestamp> {
        match self.gate() {
            Self::Soak { until, .. } => Some(*until),
            Self::Window { until, .. } => *until,
            _ => None,
        }
    }
}

impl fmt::Display for Hold {
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
                f.write_str(&window::words(window, *until, reason.as_deref(), may_override))
            }
            Self::Analysis { wave, analysis, standing, because, .. } => {
                let standing = standing.as_str();
                write!(f, "wave {wave} is done, analysis {analysis} {standing}: {because}")
            }
            Self::Status { wave, context, because, .. } => {
                write!(f, "wave {wave} is done, commit status {context}: {because}")
            }
            Self::Approval { asks, .. } => match &asks[..] {
                [] => f.write_str("rules ask for approvals"),
                [asks] => asks.fmt(f),
                [asks, others @ ..] => write!(f, "{asks}, and {} more", others.len()),
            },
            Self::Frozen { because, waits: None } => write!(f, "frozen, left as it is: {because}"),
            Self::Frozen { because, waits: Some(waits) } => write!(f, "frozen, {waits}; {because}"),
        }
    }
}
