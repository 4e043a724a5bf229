//! What is rendered for one cluster, found by app and by object.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::model::{Kind, ObjectId, Observation, Rendered, RenderedObject};
use crate::plan::{self, Pending};
use crate::render::Claims;

#[derive(Debug, Default)]
pub struct Wanted {
    /// By the words of the annotation that the objects carry.
    by_app: HashMap<String, Arc<Rendered>>,
    pub kinds: BTreeSet<Kind>,
    /// Objects that more than one app renders.
    pub claims: Claims,
    /// What other apps may have to wait for: the render, and where in it.
    opens: Vec<(Arc<Rendered>, usize)>,
    ids: OnceCell<BTreeSet<ObjectId>>,
}

impl Wanted {
    pub fn of<'a>(renders: impl Iterator<Item = &'a Arc<Rendered>>) -> Self {
        let mut wanted = Self::default();
        for rendered in renders {
            for (place, object) in rendered.objects.iter().enumerate() {
                if !wanted.kinds.contains(&object.kind) {
                    wanted.kinds.insert(object.kind.clone());
                }
                if plan::is_waited_for(&rendered.app, object) {
                    wanted.opens.push((Arc::clone(rendered), place));
                }
            }
            wanted.by_app.insert(rendered.app.to_string(), Arc::clone(rendered));
        }
        wanted.claims = Claims::of(wanted.renders());
        wanted
    }

    fn renders(&self) -> impl Iterator<Item = &Rendered> {
        self.by_app.values().map(Arc::as_ref)
    }

    /// The object as the app that is said to have applied it renders it here.
    pub fn get(&self, app: &str, id: &ObjectId) -> Option<&RenderedObject> {
        self.by_app.get(app)?.object(id)
    }

    /// Everything that is rendered here, by whatever app.
    pub fn ids(&self) -> &BTreeSet<ObjectId> {
        self.ids.get_or_init(|| {
            self.renders()
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
