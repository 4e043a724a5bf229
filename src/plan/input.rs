//! The input of the plan of one app on one cluster.

use std::collections::BTreeSet;

use super::{ApplySettings, PendingPrerequisites};
use crate::model::{AppId, ObjectId, Observation, RenderedTarget, Taint};
use crate::render::ObjectClaims;

/// Everything that the plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The name of this instance. Objects of another instance are never changed.
    pub instance: &'a str,
    pub settings: &'a ApplySettings,
    /// The taint of the cluster, if the app has no object there yet.
    pub blocking_taint: Option<&'a Taint>,
    /// Objects whose drift was checked within the last minute. The next check of them waits.
    pub recently_checked: &'a BTreeSet<ObjectId>,
    /// An earlier sync wave of the app may still define kinds that are not served yet.
    pub expects_new_kinds: bool,
    /// A dry run follows, so uncertain drift is checked even if nothing may be written.
    pub is_preview: bool,
    pub rendered: &'a RenderedTarget,
    pub observation: &'a Observation,
    /// From the renders of this cluster.
    pub claims: &'a ObjectClaims,
    /// From the renders of this cluster.
    pub pending: &'a PendingPrerequisites,
    /// Apps that are placed on this cluster and failed to render. Their desired objects are unknown.
    pub unrendered_apps: &'a BTreeSet<AppId>,
}
