//! The rendered objects of one cluster, indexed by app and by object.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::model::{Kind, ObjectId, Observation, Rendered, RenderedObject};
use crate::plan::{self, Pending};
use crate::render::Claims;

#[derive(Debug, Default)]
pub struct Wanted {
    /// Key: the app as the annotations of objects name it. Value: the effective render and the head's render.
    by_app: HashMap<String, (Arc<Rendered>, Arc<Rendered>)>,
    pub kinds: BTreeSet<Kind>,
    /// Objects that more than one app renders.
    pub claims: Claims,
    /// Objects that other apps may wait for: the render, and the position in it.
    opens: Vec<(Arc<Rendered>, usize)>,
    ids: OnceCell<BTreeSet<ObjectId>>,
}

impl Wanted {
    /// `renders`: the effective render of each app, and that of the head. Dependencies between apps and deletes follow the head.
    pub fn of<'a>(renders: impl Iterator<Item = (&'a Arc<Rendered>, &'a Arc<Rendered>)>) -> Self {
        let mut wanted = Self::default();
        for (rendered, head) in renders {
            if !Arc::ptr_eq(&rendered.objects, &head.objects) {
                wanted.kinds.extend(rendered.objects.iter().map(|object| object.kind.clone()));
            }
            for (place, object) in head.objects.iter().enumerate() {
                if !wanted.kinds.contains(&object.kind) {
                    wanted.kinds.insert(object.kind.clone());
                }
                if plan::is_waited_for(&head.app, object) {
                    wanted.opens.push((Arc::clone(head), place));
                }
            }
            wanted.by_app.insert(rendered.app.to_string(), (Arc::clone(rendered), Arc::clone(head)));
        }
        wanted.claims = Claims::of(wanted.heads());
        wanted
    }

    fn heads(&self) -> impl Iterator<Item = &Rendered> {
        self.by_app.values().map(|(_, head)| &**head)
    }

    /// Sets the effective render of an app; its head render stays. Returns the affected objects, and whether a kind is new on
    /// this cluster.
    pub fn choose(&mut self, app: &str, rendered: &Arc<Rendered>) -> (BTreeSet<ObjectId>, bool) {
        let Some((now, head)) = self.by_app.get_mut(app) else { return (BTreeSet::new(), false) };
        let before = std::mem::replace(now, Arc::clone(rendered));
        let is_of_head = |it: &Rendered| Arc::ptr_eq(&it.objects, &head.objects);
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

    pub fn pending(&self, observation: &Observation) -> Pending {
        let opens = self
            .opens
            .iter()
            .filter_map(|(rendered, place)| Some((&rendered.app, rendered.objects.get(*place)?)));
        Pending::of(opens, &self.claims, observation)
    }
}
