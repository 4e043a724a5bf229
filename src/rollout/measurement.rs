//! A measurement after a wave, and its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::model::{AppId, Digest, Revision};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MeasurementGate {
    /// By the name of its manifest.
    Analysis(String),
    /// By its context.
    Status(String),
}

/// One measurement after one wave of one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    pub wave: String,
    #[serde(flatten)]
    pub gate: MeasurementGate,
    /// Digest of the wave's content.
    pub digest: Digest,
    /// The commit of the last retry by a person. Empty: unknown.
    #[serde(skip)]
    pub retry: Option<Revision>,
}

/// The result of a measurement, with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "because", rename_all = "camelCase")]
pub enum MeasurementOutcome {
    /// The measurement is in progress.
    Pending(#[serde(serialize_with = "as_text")] Arc<str>),
    Success(#[serde(serialize_with = "as_text")] Arc<str>),
    Failure(#[serde(serialize_with = "as_text")] Arc<str>),
    /// Neither success nor failure: a person decides, unless a later measurement does.
    Inconclusive(#[serde(serialize_with = "as_text")] Arc<str>),
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Of one app.
pub type MeasurementOutcomes = BTreeMap<Measurement, MeasurementOutcome>;
/// Of all apps.
pub type AllMeasurementOutcomes = BTreeMap<AppId, MeasurementOutcomes>;

/// A required measurement with its result so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MeasurementResult {
    #[serde(flatten)]
    pub measure: Measurement,
    #[serde(flatten)]
    pub outcome: MeasurementOutcome,
}

/// The state of a gate that has not passed. The most important one comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GateProgress {
    Inconclusive,
    Pending,
    Failed,
}

impl MeasurementOutcome {
    /// `None`: it has passed.
    pub fn gate_progress(&self) -> Option<GateProgress> {
        match self {
            Self::Pending(_) => Some(GateProgress::Pending),
            Self::Success(_) => None,
            Self::Failure(_) => Some(GateProgress::Failed),
            Self::Inconclusive(_) => Some(GateProgress::Inconclusive),
        }
    }

    pub fn reason(&self) -> &Arc<str> {
        let (Self::Pending(because)
        | Self::Success(because)
        | Self::Failure(because)
        | Self::Inconclusive(because)) = self;
        because
    }
}

impl GateProgress {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inconclusive => "is inconclusive",
            Self::Pending => "is under way",
            Self::Failed => "has failed",
        }
    }
}
