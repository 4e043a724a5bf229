//! The rendered objects of one cluster, indexed by app and by object.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::model::{GroupVersionKind, ObjectId, Observation, RenderedObject, RenderedTarget};
use crate::plan::{self, PendingPrerequisites};
use crate::render::ObjectClaims;

#[derive(Debug, Default)]
pub struct DesiredIndex {
    /// Key: the app as the annotations of objects name it. Value: the effective render and the head's render.
    by_app: HashMap<String, (Arc<RenderedTarget>, Arc<RenderedTarget>)>,
    pub kinds: BTreeSet<GroupVersionKind>,
    /// Objects that more than one app renders.
    pub shared_objects: ObjectClaims,
    /// Objects that other apps may wait for: the render, and the position in it.
    prerequisites: Vec<(Arc<RenderedTarget>, usize)>,
    ids: OnceCell<BTreeSet<ObjectId>>,
}

impl DesiredIndex {
    /// `renders`: the effective render of each app, and that of the head. Dependencies between apps and deletes follow the head.
    pub fn of<'a>(renders: impl Iterator<Item = (&'a Arc<RenderedTarget>, &'a Arc<RenderedTarget>)>) -> Self {
        let mut wanted = Self::default();
        for (rendered, head) in renders {
            if !Arc::ptr_eq(&rendered.objects, &head.objects) {
                wanted.kinds.extend(rendered.objects.iter().map(|object| object.kind.clone()));
            }
            for (place, object) in head.objects.iter().enumerate() {
                if !wanted.kinds.contains(&object.kind) {
                    wanted.kinds.insert(object.kind.clone());
                }
                if plan::is_prerequisite(&head.app, object) {
                    wanted.prerequisites.push((Arc::clone(head), place));
                }
            }
            wanted.by_app.insert(rendered.app.to_string(), (Arc::clone(rendered), Arc::clone(head)));
        }
        wanted.shared_objects = ObjectClaims::of(wanted.heads());
        wanted
    }

    fn heads(&self) -> impl Iterator<Item = &RenderedTarget> {
        self.by_app.values().map(|(_, head)| &**head)
    }

    /// Sets the effective render of an app; its head render stays. Returns the affected objects, and whether a kind is new on
    /// this cluster.
    pub fn set_render(&mut self, app: &str, rendered: &Arc<RenderedTarget>) -> (BTreeSet<ObjectId>, bool) {
        let Some((now, head)) = self.by_app.get_mut(app) else { return (BTreeSet::new(), false) };
        let before = std::mem::replace(now, Arc::clone(rendered));
        let is_of_head = |it: &RenderedTarget| Arc::ptr_eq(&it.objects, &head.objects);
        if !is_of_head(&before) || !is_of_head(rendered) {
            self.ids.take();
        }
        let kinds = self.kinds.len();
        for object in rendered.objects.iter() {
            if !self.kinds.contains(&object.kind) {
                self.kinds.insert(object.kind.clone());
            }
        }
        let objects = before.objects.iter().chain(&*rendered.objects).map(|object| object.id.clone());
        (objects.collect(), self.kinds.len() > kinds)
    }

    /// The object in the render of the app that its annotation names.
    pub fn get(&self, app: &str, id: &ObjectId) -> Option<&RenderedObject> {
        self.by_app.get(app)?.0.object(id)
    }

    /// All rendered objects of all apps.
    pub fn ids(&self) -> &BTreeSet<ObjectId> {
        self.ids.get_or_init(|| {
            let others = self.by_app.values().filter(|(now, head)| !Arc::ptr_eq(&now.objects, &head.objects));
            let others = others.map(|(now, _)| &**now);
            self.heads()
                .chain(others)
                .flat_map(|rendered| rendered.objects.iter().map(|object| object.id.clone()))
                .collect()
        })
    }

    pub fn pending(&self, observation: &Observation) -> PendingPrerequisites {
        let opens = self
            .prerequisites
            .iter()
            .filter_map(|(rendered, place)| Some((&rendered.app, rendered.objects.get(*place)?)));
        PendingPrerequisites::of(opens, &self.shared_objects, observation)
    }
}
