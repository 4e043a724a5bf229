//! The cluster that is rendered for, and what a render asked of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use parking_lot::Mutex;
use serde_json::Value as Json;

use crate::model::{Capabilities, Cluster, ClusterFacts, Revision, Selector};

/// What can be known of a place: `cluster.labels.zone`, `ring`, `revision`, part by part.
pub type Path = Vec<String>;

/// What a render asked, and the answers. Another place that answers the same gets the same objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen(BTreeMap<Path, Option<Json>>);

impl Seen {
    pub fn is_true_of(&self, facts: &Facts) -> bool {
        self.0.iter().all(|(path, answer)| answer_of(facts, path).as_deref() == answer.as_ref())
    }
}

/// All that a render may know of the place that it is for.
#[derive(Clone, Debug)]
pub struct Facts {
    cluster: Arc<Json>,
    ring: Json,
    /// Known once the layers are.
    revision: OnceLock<Json>,
}

impl Facts {
    /// What there is to know of a cluster, as templates see it.
    pub fn of_cluster(cluster: &Cluster) -> Json {
        let capabilities = Capabilities::declared(cluster.version.as_ref(), &cluster.capabilities);
        serde_json::json!({
            "name": cluster.name,
            "labels": cluster.labels,
            "meta": cluster.meta,
            "vip": cluster.vip,
            "version": capabilities.version,
            "capabilities": capabilities,
        })
    }

    pub fn new(cluster: Arc<Json>, ring: Option<&str>) -> Self {
        Self { cluster, ring: ring.into(), revision: OnceLock::new() }
    }
}

/// The facts, and which of them were asked for.
#[derive(Clone, Debug)]
pub struct Notebook {
    facts: Arc<Facts>,
    seen: Arc<Mutex<Seen>>,
}

impl Notebook {
    /// The variables of templates that are about the place.
    pub const VARIABLES: [&str; 3] = ["cluster", "ring", "revision"];

    /// A map is looked into later; everything else is looked at now.
    pub fn variable(&self, path: Path) -> Option<Value> {
        match self.answer(&path) {
            Some(Json::Object(_)) => Some(Value::from_object(Look { notebook: self.clone(), path })),
            answer => {
                let value = answer.as_ref().map(serialized);
                self.note(path, answer);
                value
            }
        }
    }

    fn answer(&self, path: &[String]) -> Option<Json> {
        answer_of(&self.facts, path).map(Cow::into_owned)
    }

    fn note(&self, path: Path, answer: Option<Json>) {
        self.seen.lock().0.insert(path, answer);
    }
}

/// Everything about the cluster that a render is for goes through here, so that nothing is used that is not noted.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    cluster: &'a Cluster,
    ring: Option<&'a str>,
    notebook: Notebook,
}

impl<'a> Site<'a> {
    pub fn new(cluster: &'a Cluster, ring: Option<&'a str>, facts: Facts) -> Self {
        Self { cluster, ring, notebook: Notebook { facts: Arc::new(facts), seen: Arc::default() } }
    }

    pub fn name(&self) -> &'a str {
        self.note(&["cluster", "name"]);
        self.cluster.name.as_str()
    }

    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.note(&["cluster", "labels", key]);
        self.cluster.labels.get(key).map(String::as_str)
    }

    pub fn meta(&self, key: &str) -> Option<&'a Json> {
        self.note(&["cluster", "meta", key]);
        self.cluster.meta.get(key)
    }

    pub fn vip(&self) -> Option<&'a str> {
        self.note(&["cluster", "vip"]);
        self.cluster.vip.as_deref()
    }

    pub fn ring(&self) -> Option<&'a str> {
        self.note(&["ring"]);
        self.ring
    }

    /// For charts, which may ask for any of it.
    pub fn capabilities(&self) -> &'a Cluster {
        self.note(&["cluster", "capabilities"]);
        self.cluster
    }

    pub fn is_selected_by(&self, selector: &Selector) -> bool {
        if selector.names.is_some() {
            self.note(&["cluster", "name"]);
        }
        let keys = selector.match_labels.keys();
        for key in keys.chain(selector.match_expressions.iter().map(|requirement| &requirement.key)) {
            self.note(&["cluster", "labels", key]);
        }
        if selector.ring.is_some() {
            self.note(&["ring"]);
        }
        selector.matches(self.cluster.facts(self.ring))
    }

    /// For what is told apart by other means than what was asked: which layers, which podSets.
    pub fn selectable(&self) -> ClusterFacts<'a> {
        self.cluster.facts(self.ring)
    }

    /// Where its manifest stands, which no object shows.
    pub fn manifest(&self) -> &'a Cluster {
        self.cluster
    }

    /// The commit that what is rendered belongs to; set once.
    pub fn belongs_to(&self, revision: &Revision) {
        self.notebook.facts.revision.get_or_init(|| revision.as_str().into());
    }

    pub fn facts(&self) -> &Facts {
        &self.notebook.facts
    }

    pub fn notebook(&self) -> Notebook {
        self.notebook.clone()
    }

    /// All of it, for mistakes alone.
    pub fn to_json(&self) -> [(&'static str, Json); 3] {
        let Facts { cluster, ring, revision } = &*self.notebook.facts;
        let revision = revision.get().cloned().unwrap_or_default();
        [("cluster", Json::clone(cluster)), ("ring", ring.clone()), ("revision", revision)]
    }

    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut self.notebook.seen.lock())
    }

    fn note(&self, path: &[&str]) {
        let path: Path = path.iter().map(|part| (*part).to_owned()).collect();
        let answer = self.notebook.answer(&path);
        self.notebook.note(path, answer);
    }
}

/// As the engine holds it.
pub fn serialized(value: &impl serde::Serialize) -> Value {
    Value::from(minijinja::value::Serde(value))
}

/// What stands at a path; of a list, whether it holds the last part.
fn answer_of<'f>(facts: &'f Facts, path: &[String]) -> Option<Cow<'f, Json>> {
    let (first, rest) = path.split_first()?;
    let mut found = match first.as_str() {
        "cluster" => &*facts.cluster,
        "ring" => &facts.ring,
        "revision" => facts.revision.get()?,
        _ => return None,
    };
    for part in rest {
        found = match found {
            Json::Array(items) => {
                let holds = items.iter().any(|item| item.as_str() == Some(part));
                return Some(Cow::Owned(holds.into()));
            }
            other => other.get(part)?,
        };
    }
    Some(Cow::Borrowed(found))
}

/// A map of the place as a template holds it: it notes what is taken out of it.
#[derive(Clone, Debug)]
pub struct Look {
    notebook: Notebook,
    path: Path,
}

impl Look {
    fn below(&self, key: &str) -> Path {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    /// Whether the list of API versions of `cluster.capabilities` holds one; `None` of anything else.
    pub fn has(&self, api_version: &str) -> Option<bool> {
        let mut path = self.below("apiVersions");
        if !matches!(self.notebook.answer(&path), Some(Json::Array(_))) {
            return None;
        }
        path.push(api_version.to_owned());
        let answer = self.notebook.answer(&path);
        let has = answer == Some(Json::Bool(true));
        self.notebook.note(path, answer);
        Some(has)
    }
}

impl Object for Look {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.notebook.variable(self.below(key.as_str()?))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let answer = self.notebook.answer(&self.path);
        let keys = match &answer {
            Some(Json::Object(map)) => map.keys().map(|key| Value::from(key.as_str())).collect(),
            _ => Vec::new(),
        };
        self.notebook.note(self.path.clone(), answer);
        Enumerator::Values(keys)
    }
}
