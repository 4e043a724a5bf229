//! Verdicts of policies on changes before they are written.

use std::sync::Arc;

use super::{Digest, Operation};

/// A policy denies a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDenial {
    pub policy: Arc<str>,
    pub message: Arc<str>,
}

/// The verdict on one write. It is valid for the same operation between the same two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteVerdict {
    /// `Delete`: a replacement, so a delete and what follows it.
    pub operation: Operation,
    /// Of the object as rendered.
    pub hash: Digest,
    /// Of what was applied before; `None`: nothing, or that is not known.
    pub previous_hash: Option<Digest>,
    pub denial: Option<PolicyDenial>,
}
