//! Splits a render into the content of its units, without replica counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::model::{Digest, ObjectId, RenderedObject, RenderedTarget};

/// The content of one unit. It excludes hook runs, which every content names anew, and install hooks, which keep their first
/// form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitContent {
    pub digest: Digest,
    /// Sorted by id.
    pub objects: Vec<(ObjectId, Digest)>,
}

/// By podSet; the key is empty if the app is one unit. A podSet without objects is a unit too.
pub type UnitContents = BTreeMap<Arc<str>, UnitContent>;

pub fn unit_contents(rendered: &RenderedTarget) -> UnitContents {
    let mut objects: BTreeMap<Arc<str>, Vec<(ObjectId, Digest)>> = match &*rendered.pod_sets {
        [] => [(Arc::default(), Vec::new())].into(),
        pod_sets => pod_sets.iter().map(|name| (Arc::clone(name), Vec::new())).collect(),
    };
    for object in rendered.objects.iter().filter(|object| is_unit_content(object)) {
        if let Some(of_unit) = objects.get_mut(rendered.unit_of(object)) {
            of_unit.push((object.id.clone(), object.content()));
        }
    }
    objects.into_iter().map(|(name, objects)| (name, UnitContent::of(objects))).collect()
}

/// Whether the object counts as content of its unit.
pub fn is_unit_content(object: &RenderedObject) -> bool {
    !is_hook_run(object) && object.hook.is_none_or(|hook| !hook.is_install_only())
}

/// Whether the object is a hook Job or Pod.
pub fn is_hook_run(object: &RenderedObject) -> bool {
    object.hook.is_some_and(|hook| hook.runs)
}

impl UnitContent {
    pub fn of(objects: Vec<(ObjectId, Digest)>) -> Self {
        let parts = objects.iter().map(|(id, content)| [id.origin(), content.to_string()]);
        let digest = Digest::of_json(&json!(parts.collect::<Vec<_>>()));
        Self { digest, objects }
    }

    pub fn get(&self, id: &ObjectId) -> Option<Digest> {
        let place = self.objects.binary_search_by(|(known, _)| known.cmp(id)).ok()?;
        self.objects.get(place).map(|(_, content)| *content)
    }
}
