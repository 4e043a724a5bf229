//! The units of a render: one for each podSet of an app, or the app as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::model::{Digest, RenderedObject, RenderedTarget};

/// The objects of one unit. A unit changes as a whole and has its own hooks and sync waves.
#[derive(Debug)]
pub struct PlanUnit<'a> {
    pub name: Arc<str>,
    pub objects: Vec<&'a RenderedObject>,
    /// The app has no other unit on the cluster.
    pub is_only: bool,
}

impl<'a> PlanUnit<'a> {
    pub fn all(rendered: &'a RenderedTarget) -> Vec<Self> {
        if rendered.pod_sets.len() <= 1 {
            let name = rendered.pod_sets.first().cloned().unwrap_or_default();
            return vec![Self { name, objects: rendered.objects.iter().collect(), is_only: true }];
        }
        let mut units: BTreeMap<&str, Vec<&RenderedObject>> = BTreeMap::new();
        for object in &*rendered.objects {
            units.entry(rendered.unit_of(object)).or_default().push(object);
        }
        let is_only = units.len() == 1;
        units.into_iter().map(|(name, objects)| Self { name: name.into(), objects, is_only }).collect()
    }

    /// A digest of the content, without the number of replicas.
    pub fn release_digest(&self) -> Digest {
        let object = |object: &&RenderedObject| [object.id.origin(), object.content().to_string()];
        Digest::of_json(&json!(self.objects.iter().map(object).collect::<Vec<_>>()))
    }
}
