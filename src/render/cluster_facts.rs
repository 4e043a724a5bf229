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
    CachedText, Capabilities, CapabilityQueries, Cluster, ClusterFacts, ClusterSelector, GroupVersionKind,
    KindInfo, KindsByName, Revision,
};

/// The path of a fact: `cluster.labels.zone`, `ring`, `revision`.
pub type FactPath = Vec<String>;

/// The questions of a render with their answers. A cluster with equal answers gets the same objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedAnswers {
    answers: BTreeMap<FactPath, Option<Json>>,
    /// About capabilities of the cluster.
    pub questions: CapabilityQueries,
}

/// Questions without their answers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct QuestionSet {
    paths: Vec<FactPath>,
    has: Vec<String>,
    kinds: Vec<String>,
    version: bool,
    all: bool,
}

impl QuestionSet {
    /// The answers of a cluster as a text; two clusters have equal texts if and only if they answer alike.
    pub fn answers_of(&self, facts: &RenderFacts) -> String {
        let Self { paths, has, kinds, version, all } = self;
        let of_paths: Vec<_> = paths.iter().map(|path| (path, fact_at(facts, path))).collect();
        let known = &facts.capabilities.known;
        let of_has: Vec<_> = has.iter().map(|name| (name, known.has(name))).collect();
        let facts_of = |name: &String| facts.kind(name).map(|it| [it.namespaced, it.has_status]);
        let of_kinds: Vec<_> = kinds.iter().map(|name| (name, facts_of(name))).collect();
        let (version, all) = (version.then_some(&known.version), all.then_some(&**known));
        serde_json::json!([of_paths, of_has, of_kinds, version, all, all.map(|all| all.asked)]).to_string()
    }
}

impl RecordedAnswers {
    pub fn question_set(&self) -> QuestionSet {
        QuestionSet {
            paths: self.answers.keys().cloned().collect(),
            has: self.questions.api_versions.keys().cloned().collect(),
            kinds: self.questions.kinds.keys().cloned().collect(),
            version: self.questions.version.is_some(),
            all: self.questions.whole.is_some(),
        }
    }

    pub fn hold_for(&self, facts: &RenderFacts) -> bool {
        let same = |(path, answer): (&FactPath, &Option<Json>)| fact_at(facts, path) == answer.as_ref();
        self.answers.iter().all(same)
            && self.questions.are_unchanged(&facts.capabilities.known, &facts.defined_kinds)
    }
}

/// All facts that a render may read.
#[derive(Clone, Debug)]
pub struct RenderFacts {
    /// From the manifest of the cluster.
    cluster: Arc<Json>,
    capabilities: Arc<SharedCapabilities>,
    defined_kinds: Arc<KindsByName>,
    ring: Json,
    /// Set once the layers are read.
    revision: OnceLock<Json>,
}

impl RenderFacts {
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
        capabilities: Arc<SharedCapabilities>,
        defined: Arc<KindsByName>,
        ring: Option<&str>,
    ) -> Self {
        Self { cluster, capabilities, defined_kinds: defined, ring: ring.into(), revision: OnceLock::new() }
    }

    fn kind(&self, name: &str) -> Option<KindInfo> {
        self.capabilities.known.kinds.get(name).or_else(|| self.defined_kinds.get(name)).cloned()
    }
}

/// The capabilities of a cluster, with their serialized form for workers.
#[derive(Debug)]
pub struct SharedCapabilities {
    known: Arc<Capabilities>,
    serialized: OnceLock<CachedText>,
}

impl SharedCapabilities {
    pub fn new(known: Arc<Capabilities>) -> Self {
        Self { known, serialized: OnceLock::new() }
    }

    pub fn known(&self) -> &Arc<Capabilities> {
        &self.known
    }

    /// Without the kinds, which no template reads.
    fn serialized(&self) -> &CachedText {
        let text = || serde_json::json!([&*self.known, self.known.asked]).to_string();
        self.serialized.get_or_init(|| CachedText::new(text()))
    }

    pub fn read(text: &str) -> serde_json::Result<Self> {
        let (known, asked): (Capabilities, bool) = serde_json::from_str(text)?;
        Ok(Self::new(Arc::new(Capabilities { asked, ..known })))
    }
}

/// The facts in a worker request, without capabilities.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct WorkerFacts {
    cluster: Json,
    ring: Json,
    revision: Option<Json>,
}

impl WorkerFacts {
    pub fn into_recorder(self, capabilities: Arc<SharedCapabilities>) -> FactRecorder {
        let Self { cluster, ring, revision } = self;
        let revision = revision.map_or_else(OnceLock::new, OnceLock::from);
        let cluster = Arc::new(cluster);
        let facts = RenderFacts { cluster, capabilities, defined_kinds: Arc::default(), ring, revision };
        FactRecorder { facts: Arc::new(facts), answers: Arc::default() }
    }
}

/// The facts, and a record of those that were read.
#[derive(Clone, Debug)]
pub struct FactRecorder {
    facts: Arc<RenderFacts>,
    answers: Arc<Mutex<RecordedAnswers>>,
}

impl FactRecorder {
    /// The template variables about the cluster.
    pub const VARIABLES: [&str; 3] = ["cluster", "ring", "revision"];

    /// `cluster` and its maps always exist and record each read later. Any other value is recorded whole now, because its
    /// existence is an answer too.
    pub fn variable(&self, path: FactPath) -> Option<Value> {
        let of_cluster = match path.as_slice() {
            [first, second] if first == "cluster" => second.as_str(),
            _ => "",
        };
        match (of_cluster, self.answer(&path)) {
            ("version", _) => Some(self.version()),
            ("capabilities", _) => Some(Value::from_object(CapabilitiesVariable(self.clone()))),
            (_, Some(Json::Object(_))) if path.len() < 3 => {
                Some(Value::from_object(FactMap { recorder: self.clone(), path }))
            }
            (_, answer) => {
                let value = answer.as_ref().map(to_template_value);
                self.record(path, answer);
                value
            }
        }
    }

    fn version(&self) -> Value {
        let version = &self.facts.capabilities.known.version;
        self.answers.lock().questions.version = Some(version.clone());
        to_template_value(version)
    }

    fn has(&self, name: &str) -> bool {
        let answer = self.facts.capabilities.known.has(name);
        self.answers.lock().questions.api_versions.entry(name.to_owned()).or_insert(answer);
        answer
    }

    fn kind(&self, name: String) -> Option<KindInfo> {
        let answer = self.facts.kind(&name);
        self.answers.lock().questions.kinds.entry(name).or_insert_with(|| answer.clone());
        answer
    }

    /// For callers that may read any capability.
    fn capabilities(&self) -> &Capabilities {
        self.answers.lock().questions.whole = Some(Arc::clone(&self.facts.capabilities.known));
        &self.facts.capabilities.known
    }

    fn answer(&self, path: &[String]) -> Option<Json> {
        fact_at(&self.facts, path).cloned()
    }

    fn record(&self, path: FactPath, answer: Option<Json>) {
        self.answers.lock().answers.insert(path, answer);
    }

    pub fn question_set(&self) -> QuestionSet {
        self.answers.lock().question_set()
    }
}

/// The only access of a render to its cluster, so that every read is recorded.
#[derive(Clone, Debug)]
pub struct TrackedCluster<'a> {
    cluster: &'a Cluster,
    ring: Option<&'a str>,
    recorder: FactRecorder,
}

impl<'a> TrackedCluster<'a> {
    pub fn new(cluster: &'a Cluster, ring: Option<&'a str>, facts: RenderFacts) -> Self {
        Self { cluster, ring, recorder: FactRecorder { facts: Arc::new(facts), answers: Arc::default() } }
    }

    pub fn name(&self) -> &'a str {
        self.record(&["cluster", "name"]);
        self.cluster.name.as_str()
    }

    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.record(&["cluster", "labels", key]);
        self.cluster.labels.get(key).map(String::as_str)
    }

    pub fn meta(&self, key: &str) -> Option<&'a Json> {
        self.record(&["cluster", "meta", key]);
        self.cluster.meta.get(key)
    }

    pub fn vip(&self) -> Option<&'a str> {
        self.record(&["cluster", "vip"]);
        self.cluster.vip.as_deref()
    }

    pub fn ring(&self) -> Option<&'a str> {
        self.record(&["ring"]);
        self.ring
    }

    /// The facts of a custom kind, as discovered or as apps define it.
    pub fn kind(&self, kind: &GroupVersionKind) -> Option<KindInfo> {
        self.recorder.kind(kind.name())
    }

    pub fn defined_kinds(&self) -> &Arc<KindsByName> {
        &self.recorder.facts.defined_kinds
    }

    /// For charts, which may read any capability.
    pub fn capabilities(&self) -> &Capabilities {
        self.recorder.capabilities()
    }

    /// The manifest, for its declared capabilities.
    pub fn declared(&self) -> &'a Cluster {
        self.record(&["cluster", "name"]);
        self.cluster
    }

    pub fn is_selected_by(&self, selector: &ClusterSelector) -> bool {
        if selector.names.is_some() {
            self.record(&["cluster", "name"]);
        }
        let keys = selector.match_labels.keys();
        for key in keys.chain(selector.match_expressions.iter().map(|requirement| &requirement.key)) {
            self.record(&["cluster", "labels", key]);
        }
        if selector.ring.is_some() {
            self.record(&["ring"]);
        }
        selector.matches(self.cluster.facts(self.ring))
    }

    /// Not recorded: for choices that are compared otherwise, such as layers and podSets.
    pub fn untracked_facts(&self) -> ClusterFacts<'a> {
        self.cluster.facts(self.ring)
    }

    /// Not recorded: for the position of the manifest, which no object shows.
    pub fn untracked_manifest(&self) -> &'a Cluster {
        self.cluster
    }

    /// The commit of the render; set once.
    pub fn set_revision(&self, revision: &Revision) {
        self.recorder.facts.revision.get_or_init(|| revision.as_str().into());
    }

    pub fn facts(&self) -> &RenderFacts {
        &self.recorder.facts
    }

    /// The facts for a worker request.
    pub fn worker_facts(&self) -> (WorkerFacts, &CachedText) {
        let RenderFacts { cluster, capabilities, ring, revision, .. } = &*self.recorder.facts;
        let cluster = Json::clone(cluster);
        let told = WorkerFacts { cluster, ring: ring.clone(), revision: revision.get().cloned() };
        (told, capabilities.serialized())
    }

    /// Records the questions that a worker reports, with the local answers, which are equal.
    pub fn record_questions(&self, asked: QuestionSet) {
        let QuestionSet { paths, has, kinds, version, all } = asked;
        for path in paths {
            let answer = self.recorder.answer(&path);
            self.recorder.record(path, answer);
        }
        has.iter().for_each(|name| _ = self.recorder.has(name));
        kinds.into_iter().for_each(|name| _ = self.recorder.kind(name));
        if version {
            self.recorder.version();
        }
        if all {
            self.recorder.capabilities();
        }
    }

    pub fn recorder(&self) -> FactRecorder {
        self.recorder.clone()
    }

    /// All facts, unrecorded; only for suggestions in mistakes.
    pub fn to_json(&self) -> [(&'static str, Json); 3] {
        let RenderFacts { cluster, capabilities, defined_kinds: _, ring, revision } = &*self.recorder.facts;
        let mut cluster = Json::clone(cluster);
        cluster["version"] = serde_json::json!(capabilities.known.version);
        cluster["capabilities"] = serde_json::json!(&*capabilities.known);
        let revision = revision.get().cloned().unwrap_or_default();
        [("cluster", cluster), ("ring", ring.clone()), ("revision", revision)]
    }

    pub fn questions(&self) -> CapabilityQueries {
        self.recorder.answers.lock().questions.clone()
    }

    pub fn take_answers(&self) -> RecordedAnswers {
        std::mem::take(&mut self.recorder.answers.lock())
    }

    fn record(&self, path: &[&str]) {
        let path: FactPath = path.iter().map(|part| (*part).to_owned()).collect();
        let answer = self.recorder.answer(&path);
        self.recorder.record(path, answer);
    }
}

pub fn to_template_value(value: &impl Serialize) -> Value {
    Value::from(minijinja::value::Serde(value))
}

fn fact_at<'f>(facts: &'f RenderFacts, path: &[String]) -> Option<&'f Json> {
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
pub struct FactMap {
    recorder: FactRecorder,
    path: FactPath,
}

impl FactMap {
    fn child_path(&self, key: &str) -> FactPath {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }
}

impl Object for FactMap {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.recorder.variable(self.child_path(key.as_str()?))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let answer = self.recorder.answer(&self.path);
        let keys: Vec<Value> = match &answer {
            Some(Json::Object(map)) => map.keys().map(|key| Value::from(key.as_str())).collect(),
            _ => Vec::new(),
        };
        self.recorder.record(self.path.clone(), answer);
        let more: &[&str] = if self.path == ["cluster"] { &["version", "capabilities"] } else { &[] };
        Enumerator::Values(keys.into_iter().chain(more.iter().map(|key| Value::from(*key))).collect())
    }
}

/// `cluster.capabilities`.
#[derive(Debug)]
struct CapabilitiesVariable(FactRecorder);

impl Object for CapabilitiesVariable {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "version" => Some(self.0.version()),
            "apiVersions" => Some(to_template_value(&self.0.capabilities().api_versions)),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["version", "apiVersions"])
    }
}

/// `cluster.capabilities is has("autoscaling/v2")`.
pub fn has_api(capabilities: &Value, name: &str) -> Result<bool, Error> {
    match capabilities.downcast_object_ref::<CapabilitiesVariable>() {
        Some(CapabilitiesVariable(notebook)) => Ok(notebook.has(name)),
        None => Err(Error::new(ErrorKind::InvalidOperation, "`has` asks cluster.capabilities")),
    }
}
