//! The objects of a render, and its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::patches::PatchUsage;
use crate::fleet::Target;
use crate::model::{
    CapabilityQueries, Diagnostic, KindsByName, ObjectId, RenderedObject, RenderedTarget, Revision,
};

/// The result of a render, shared by all targets with equal inputs.
#[derive(Clone, Debug)]
pub struct RenderOutput {
    pub objects: Arc<[RenderedObject]>,
    pub patches: Arc<PatchUsage>,
    pub questions: Arc<CapabilityQueries>,
    pub warnings: Arc<[Diagnostic]>,
    /// The kinds that the app defines.
    pub defined_kinds: Arc<KindsByName>,
}

impl RenderOutput {
    pub fn into_rendered(
        self,
        target: &Target,
        revision: Revision,
        pod_sets: Arc<[Arc<str>]>,
    ) -> RenderedTarget {
        let Self { objects, patches, questions, warnings, defined_kinds: _ } = self;
        let Target { app, cluster } = target.clone();
        RenderedTarget {
            app,
            cluster,
            revision,
            pod_sets,
            units: None,
            objects,
            patches,
            capability_queries: questions,
            warnings,
        }
    }
}

/// Objects by identity, each with its first podSet (empty for an Objects app).
pub type ObjectsById = BTreeMap<ObjectId, (RenderedObject, String)>;
