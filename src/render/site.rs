//! Gives a render its facts about the cluster, and records each question with its answer.
//!
//! Templates and our own code read the cluster only through this module. A render that never read the zone holds for every
//! zone, so all clusters with equal answers share it. New code that reads the cluster must record it here, or two clusters
//! share a render that should differ.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use minijinja::{Error, ErrorKind};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::model::{
    Capabilities, Cluster, ClusterFacts, KeptText, Kind, KindFacts, KindsByName, Questions, Revision,
    Selector,
};

/// The path of a fact: `cluster.labels.zone`, `ring`, `revision`.
pub type Path = Vec<String>;

/// The questions of a render with their answers. A cluster with equal answers gets the same objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    answers: BTreeMap<Path, Option<Json>>,
    /// About capabilities of the cluster.
    pub questions: Questions,
}

/// Questions without their answers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Asked {
    paths: Vec<Path>,
    has: Vec<String>,
    kinds: Vec<String>,
    version: bool,
    all: bool,
}

impl Asked {
    /// The answers of a cluster as a text; two clusters have equal texts if and only if they answer alike.
    pub fn answers_of(&self, facts: &Facts) -> String {
        let Self { paths, has, kinds, version, all } = self;
        let of_paths: Vec<_> = paths.iter().map(|path| (path, answer_of(facts, path))).collect();
        let known = &facts.capabilities.known;
        let of_has: Vec<_> = has.iter().map(|name| (name, known.has(name))).collect();
        let facts_of = |name: &String| facts.kind(name).map(|it| [it.namespaced, it.has_status]);
        let of_kinds: Vec<_> = kinds.iter().map(|name| (name, facts_of(name))).collect();
        let (version, all) = (version.then_some(&known.version), all.then_some(&**known));
        serde_json::json!([of_paths, of_has, of_kinds, version, all, all.map(|all| all.asked)]).to_string()
    }
}

impl Seen {
    pub fn asked(&self) -> Asked {
        Asked {
            paths: self.answers.keys().cloned().collect(),
            has: self.questions.has.keys().cloned().collect(),
            kinds: self.questions.kinds.keys().cloned().collect(),
            version: self.questions.version.is_some(),
            all: self.questions.all.is_some(),
        }
    }

    pub fn is_true_of(&self, facts: &Facts) -> bool {
        let same = |(path, answer): (&Path, &Option<Json>)| answer_of(facts, path) == answer.as_ref();
        self.answers.iter().all(same) && self.questions.hold(&facts.capabilities.known, &facts.defined)
    }
}

/// All facts that a render may read.
#[derive(Clone, Debug)]
pub struct Facts {
    /// From the manifest of the cluster.
    cluster: Arc<Json>,
    capabilities: Arc<ToldCapabilities>,
    defined: Arc<KindsByName>,
    ring: Json,
    /// Set once the layers are read.
    revision: OnceLock<Json>,
}

impl Facts {
    /// The manifest of a cluster as templates see it; capabilities are separate.
    pub fn of_cluster(cluster: &Cluster) -> Json {
        serde_json::json!({
            "name": cluster.name,
            "labels": cluster.labels,
            "meta": cluster.meta,
            "vip": cluster.vip,
        })
    }

    pub fn new(
        cluster: Arc<Json>,
        capabilities: Arc<ToldCapabilities>,
        defined: Arc<KindsByName>,
        ring: Option<&str>,
    ) -> Self {
        Self { cluster, capabilities, defined, ring: ring.into(), revision: OnceLock::new() }
    }

    fn kind(&self, name: &str) -> Option<KindFacts> {
        self.capabilities.known.kinds.get(name).or_else(|| self.defined.get(name)).cloned()
    }
}

/// The capabilities of a cluster, with their serialized form for workers.
#[derive(Debug)]
pub struct ToldCapabilities {
    known: Arc<Capabilities>,
    told: OnceLock<KeptText>,
}

impl ToldCapabilities {
    pub fn new(known: Arc<Capabilities>) -> Self {
        Self { known, told: OnceLock::new() }
    }

    pub fn known(&self) -> &Arc<Capabilities> {
        &self.known
    }

    /// Without the kinds, which no template reads.
    fn told(&self) -> &KeptText {
        let text = || serde_json::json!([&*self.known, self.known.asked]).to_string();
        self.told.get_or_init(|| KeptText::new(text()))
    }

    pub fn read(text: &str) -> serde_json::Result<Self> {
        let (known, asked): (Capabilities, bool) = serde_json::from_str(text)?;
        Ok(Self::new(Arc::new(Capabilities { asked, ..known })))
    }
}

/// The facts in a worker request, without capabilities.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct ToldFacts {
    cluster: Json,
    ring: Json,
    revision: Option<Json>,
}

impl ToldFacts {
    pub fn with(self, capabilities: Arc<ToldCapabilities>) -> Notebook {
        let Self { cluster, ring, revision } = self;
        let revision = revision.map_or_else(OnceLock::new, OnceLock::from);
        let cluster = Arc::new(cluster);
        let facts = Facts { cluster, capabilities, defined: Arc::default(), ring, revision };
        Notebook { facts: Arc::new(facts), seen: Arc::default() }
    }
}

/// The facts, and a record of those that were read.
#[derive(Clone, Debug)]
pub struct Notebook {
    facts: Arc<Facts>,
    seen: Arc<Mutex<Seen>>,
}

impl Notebook {
    /// The template variables about the cluster.
    pub const VARIABLES: [&str; 3] = ["cluster", "ring", "revision"];

    /// `cluster` and its maps always exist and record each read later. Any other value is recorded whole now, because its
    /// existence is an answer too.
    pub fn variable(&self, path: Path) -> Option<Value> {
        let of_cluster = match path.as_slice() {
            [first, second] if first == "cluster" => second.as_str(),
            _ => "",
        };
        match (of_cluster, self.answer(&path)) {
            ("version", _) => Some(self.version()),
            ("capabilities", _) => Some(Value::from_object(InCapabilities(self.clone()))),
            (_, Some(Json::Object(_))) if path.len() < 3 => {
                Some(Value::from_object(Look { notebook: self.clone(), path }))
            }
            (_, answer) => {
                let value = answer.as_ref().map(serialized);
                self.note(path, answer);
                value
            }
        }
    }

    fn version(&self) -> Value {
        let version = &self.facts.capabilities.known.version;
        self.seen.lock().questions.version = Some(version.clone());
        serialized(version)
    }

    fn has(&self, name: &str) -> bool {
        let answer = self.facts.capabilities.known.has(name);
        self.seen.lock().questions.has.entry(name.to_owned()).or_insert(answer);
        answer
    }

    fn kind(&self, name: String) -> Option<KindFacts> {
        let answer = self.facts.kind(&name);
        self.seen.lock().questions.kinds.entry(name).or_insert_with(|| answer.clone());
        answer
    }

    /// For callers that may read any capability.
    fn capabilities(&self) -> &Capabilities {
        self.seen.lock().questions.all = Some(Arc::clone(&self.facts.capabilities.known));
        &self.facts.capabilities.known
    }

    fn answer(&self, path: &[String]) -> Option<Json> {
        answer_of(&self.facts, path).cloned()
    }

    fn note(&self, path: Path, answer: Option<Json>) {
        self.seen.lock().answers.insert(path, answer);
    }

    pub fn asked(&self) -> Asked {
        self.seen.lock().asked()
    }
}

/// The only access of a render to its cluster, so that every read is recorded.
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

    /// The facts of a custom kind, as discovered or as apps define it.
    pub fn kind(&self, kind: &Kind) -> Option<KindFacts> {
        self.notebook.kind(kind.name())
    }

    pub fn defined(&self) -> &Arc<KindsByName> {
        &self.notebook.facts.defined
    }

    /// For charts, which may read any capability.
    pub fn capabilities(&self) -> &Capabilities {
        self.notebook.capabilities()
    }

    /// The manifest, for its declared capabilities.
    pub fn declared(&self) -> &'a Cluster {
        self.note(&["cluster", "name"]);
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

    /// Not recorded: for choices that are compared otherwise, such as layers and podSets.
    pub fn selectable(&self) -> ClusterFacts<'a> {
        self.cluster.facts(self.ring)
    }

    /// Not recorded: for the position of the manifest, which no object shows.
    pub fn manifest(&self) -> &'a Cluster {
        self.cluster
    }

    /// The commit of the render; set once.
    pub fn belongs_to(&self, revision: &Revision) {
        self.notebook.facts.revision.get_or_init(|| revision.as_str().into());
    }

    pub fn facts(&self) -> &Facts {
        &self.notebook.facts
    }

    /// The facts for a worker request.
    pub fn told(&self) -> (ToldFacts, &KeptText) {
        let Facts { cluster, capabilities, ring, revision, .. } = &*self.notebook.facts;
        let cluster = Json::clone(cluster);
        let told = ToldFacts { cluster, ring: ring.clone(), revision: revision.get().cloned() };
        (told, capabilities.told())
    }

    /// Records the questions that a worker reports, with the local answers, which are equal.
    pub fn note_asked(&self, asked: Asked) {
        let Asked { paths, has, kinds, version, all } = asked;
        for path in paths {
            let answer = self.notebook.answer(&path);
            self.notebook.note(path, answer);
        }
        has.iter().for_each(|name| _ = self.notebook.has(name));
        kinds.into_iter().for_each(|name| _ = self.notebook.kind(name));
        if version {
            self.notebook.version();
        }
        if all {
            self.notebook.capabilities();
        }
    }

    pub fn notebook(&self) -> Notebook {
        self.notebook.clone()
    }

    /// All facts, unrecorded; only for suggestions in mistakes.
    pub fn to_json(&self) -> [(&'static str, Json); 3] {
        let Facts { cluster, capabilities, defined: _, ring, revision } = &*self.notebook.facts;
        let mut cluster = Json::clone(cluster);
        cluster["version"] = serde_json::json!(capabilities.known.version);
        cluster["capabilities"] = serde_json::json!(&*capabilities.known);
        let revision = revision.get().cloned().unwrap_or_default();
        [("cluster", cluster), ("ring", ring.clone()), ("revision", revision)]
    }

    pub fn questions(&self) -> Questions {
        self.notebook.seen.lock().questions.clone()
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

pub fn serialized(value: &impl Serialize) -> Value {
    Value::from(minijinja::value::Serde(value))
}

fn answer_of<'f>(facts: &'f Facts, path: &[String]) -> Option<&'f Json> {
    let (first, rest) = path.split_first()?;
    let whole = match first.as_str() {
        "cluster" => &*facts.cluster,
        "ring" => &facts.ring,
        "revision" => facts.revision.get()?,
        _ => return None,
    };
    rest.iter().try_fold(whole, |found, part| found.get(part))
}

/// A map of facts in a template, which records each read.
#[derive(Clone, Debug)]
pub struct Look {
    notebook: Notebook,
    path: Path,
}

impl Look {
    fn below(&self, key: &str) -> Path {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
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
        let keys: Vec<Value> = match &answer {
            Some(Json::Object(map)) => map.keys().map(|key| Value::from(key.as_str())).collect(),
            _ => Vec::new(),
        };
        self.notebook.note(self.path.clone(), answer);
        let more: &[&str] = if self.path == ["cluster"] { &["version", "capabilities"] } else { &[] };
        Enumerator::Values(keys.into_iter().chain(more.iter().map(|key| Value::from(*key))).collect())
    }
}

/// `cluster.capabilities`.
#[derive(Debug)]
struct InCapabilities(Notebook);

impl Object for InCapabilities {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "version" => Some(self.0.version()),
            "apiVersions" => Some(serialized(&self.0.capabilities().api_versions)),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["version", "apiVersions"])
    }
}

/// `cluster.capabilities is has("autoscaling/v2")`.
pub fn has(capabilities: &Value, name: &str) -> Result<bool, Error> {
    match capabilities.downcast_object_ref::<InCapabilities>() {
        Some(InCapabilities(notebook)) => Ok(notebook.has(name)),
        None => Err(Error::new(ErrorKind::InvalidOperation, "`has` asks cluster.capabilities")),
    }
}
