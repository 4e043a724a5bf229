//! Changes that people and other tools make to a cluster during a run.

use std::collections::{BTreeMap, BTreeSet};

use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::draw::{Draw, pick};
use super::hands;
use super::object::{Kind, Name, body};
use super::wanted::Wanted;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// `kubectl edit` of a rendered field.
    Field,
    Remove,
    SetAndBack,
    /// Another manager applies with `force`.
    Force,
    Delete,
    Label,
    /// Our hash annotation is removed.
    Hash,
    Scale,
    Autoscale,
    /// `managedFields` is cleared.
    Managers,
    /// A field that Git does not render is added.
    Foreign,
    /// Somebody creates an object with a name that an app may use.
    Stranger,
    /// That object is deleted.
    StrangerGoes,
}

pub const WEIGHTS: [(u64, What); 13] = [
    (8, What::Field),
    (3, What::Remove),
    (3, What::SetAndBack),
    (4, What::Force),
    (8, What::Delete),
    (4, What::Label),
    (2, What::Hash),
    (4, What::Scale),
    (2, What::Autoscale),
    (2, What::Managers),
    (5, What::Foreign),
    (4, What::Stranger),
    (3, What::StrangerGoes),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    pub what: What,
    pub cluster: u64,
    pub number: u64,
}

impl std::fmt::Display for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} #{}", self.what, self.number % 1000)
    }
}

/// Cluster and path of an object.
pub type Place = (String, String);

/// The changes made from outside, and what must be preserved.
#[derive(Debug, Default)]
pub struct Traces {
    /// When each object was edited.
    pub edits: BTreeMap<Place, Vec<Instant>>,
    /// Fields of others by cluster and uid of the object: pointer and value.
    pub foreign: BTreeMap<(String, String), (String, Value)>,
    /// Uids of objects whose replicas an autoscaler sets.
    pub autoscaled: BTreeSet<String>,
    /// Uids of objects whose fields have no known manager: fields dropped from Git may stay.
    pub loosened: BTreeSet<String>,
    /// Objects that lost what marks our fields: label, hash or managers.
    pub unmarked: BTreeSet<Place>,
    /// Objects that a person deleted because of a conflict.
    pub resolved: BTreeSet<Place>,
    /// Objects of others, as they must stay.
    pub strangers: BTreeMap<Place, Value>,
}

impl Traces {
    pub fn edited(&mut self, place: Place) {
        self.edits.entry(place).or_default().push(Instant::now());
    }
}

impl Edit {
    /// Makes the edit and returns its description.
    pub fn apply(self, wanted: &Wanted, sandbox: &Sandbox, traces: &mut Traces) -> Option<String> {
        let cluster = sandbox.name();
        let mut draw = Draw::new(self.number);
        if self.what == What::StrangerGoes {
            let places: Vec<Place> =
                traces.strangers.keys().filter(|(name, _)| name == cluster).cloned().collect();
            let place = pick(&places, self.number)?.clone();
            hands::delete(sandbox, &place.1);
            traces.strangers.remove(&place);
            traces.edited(place.clone());
            return Some(format!("somebody's {} goes from {cluster}", place.1));
        }
        if self.what == What::Stranger {
            return stranger(wanted, sandbox, traces, &mut draw);
        }
        let name = self.subject(wanted, cluster)?;
        let path = name.path();
        let place = (cluster.to_owned(), path.clone());
        if traces.strangers.contains_key(&place) {
            return None;
        }
        let live = hands::get(sandbox, &path)?;
        let uid = live["metadata"]["uid"].as_str()?.to_owned();
        // Without both, the owner of the object is unknown.
        let is_labelled = live["metadata"]["labels"]["tutti.dev/managed-by"] == "main";
        let has_entry = live["metadata"]["managedFields"].to_string().contains("tutti-main");
        if (self.what == What::Managers && !is_labelled) || (self.what == What::Label && !has_entry) {
            return None;
        }
        let done = match self.what {
            What::Field => hands::merge(sandbox, "kubectl-edit", &path, &field(&name, &json!("ZWRpdGVk"))),
            What::Remove => hands::merge(sandbox, "kubectl-edit", &path, &field(&name, &Value::Null)),
            What::SetAndBack => {
                let pointer = value_of(&name);
                let before = pointer.and_then(|pointer| live.pointer(pointer)).cloned()?;
                hands::merge(sandbox, "kubectl-edit", &path, &field(&name, &json!("ZWRpdGVk")))
                    && hands::merge(sandbox, "kubectl-edit", &path, &field(&name, &before))
            }
            What::Force => {
                let mut object = body(&name, 0, false);
                object["metadata"]["labels"] = json!({"version": "helm", "team": "helm"});
                object.as_object_mut()?.retain(|field, _| !matches!(field.as_str(), "spec" | "stringData"));
                let done = hands::apply_by_force(sandbox, "helm", &name, &object);
                if done {
                    let field = ("/metadata/labels/team".to_owned(), json!("helm"));
                    traces.foreign.insert((uid.clone(), "team".to_owned()), field);
                    if name.kind == Kind::Deployment && !has_entry {
                        // An apply to an object without managers may change the replicas of an autoscaler, so these are left.
                        traces.autoscaled.insert(uid.clone());
                    }
                    // Fields beside ours stay.
                    traces.loosened.insert(uid);
                }
                done
            }
            What::Delete => hands::delete(sandbox, &path),
            What::Label => {
                let patch = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
                hands::merge(sandbox, "kubectl-edit", &path, &patch)
            }
            What::Hash => {
                let patch = json!({"metadata": {"annotations": {"tutti.dev/hash": null}}});
                hands::merge(sandbox, "kubectl-edit", &path, &patch)
            }
            What::Scale => hands::scale(sandbox, "kubectl", &name, draw.within(4..7)),
            What::Autoscale => {
                let done = hands::scale(sandbox, "kube-controller-manager", &name, draw.within(4..7));
                if done {
                    traces.autoscaled.insert(uid);
                }
                done
            }
            What::Managers => {
                traces.loosened.insert(uid);
                let nobody = json!({"metadata": {"managedFields": [{}]}});
                hands::merge(sandbox, "kubectl-edit", &path, &nobody)
            }
            What::Foreign => {
                let key = draw.of(&["team", "owner"]);
                let done = hands::merge(
                    sandbox,
                    "somebody",
                    &path,
                    &json!({"metadata": {"labels": {key: "theirs"}}}),
                );
                if done {
                    let field = (format!("/metadata/labels/{key}"), json!("theirs"));
                    traces.foreign.insert((uid, key.to_owned()), field);
                }
                done
            }
            What::Stranger | What::StrangerGoes => false,
        };
        if !done {
            return None;
        }
        if matches!(self.what, What::Label | What::Hash | What::Managers) {
            traces.unmarked.insert(place.clone());
        }
        if self.what == What::Delete {
            // The contents are deleted too.
            let inside =
                wanted.on(cluster).map(|it| it.2).filter(|it| it.kind.container().as_ref() == Some(&name));
            for name in inside {
                traces.edited((cluster.to_owned(), name.path()));
            }
        }
        traces.edited(place);
        Some(format!("{:?} of {name} on {cluster}", self.what))
    }

    /// Chooses an object that the edit can be made to.
    fn subject(self, wanted: &Wanted, cluster: &str) -> Option<Name> {
        let fits = |name: &Name| match self.what {
            What::Scale | What::Autoscale => name.kind == Kind::Deployment,
            // Fields that Git drops would stay, and two ports of one name are refused.
            What::Managers => name.kind != Kind::Service,
            What::Field | What::Remove | What::SetAndBack => value_of(name).is_some(),
            _ => true,
        };
        let names: Vec<Name> = wanted.on(cluster).map(|it| it.2).filter(fits).collect();
        pick(&names, self.number).cloned()
    }
}

/// The pointer of a rendered text field.
fn value_of(name: &Name) -> Option<&'static str> {
    match name.kind {
        Kind::ConfigMap | Kind::Secret | Kind::Inside => Some("/data/value"),
        Kind::ServiceAccount | Kind::Claim | Kind::Definition | Kind::Namespace => {
            Some("/metadata/annotations/value")
        }
        Kind::Service => Some("/spec/selector/app"),
        Kind::Widget => Some("/spec/value"),
        Kind::Deployment => None,
    }
}

fn field(name: &Name, value: &Value) -> Value {
    match name.kind {
        Kind::ServiceAccount | Kind::Claim | Kind::Definition | Kind::Namespace => {
            json!({"metadata": {"annotations": {"value": value}}})
        }
        Kind::Service => json!({"spec": {"selector": {"app": value}}}),
        Kind::Widget => json!({"spec": {"value": value}}),
        _ => json!({"data": {"value": value}}),
    }
}

/// Creates an object whose value no app renders, so that only a forced apply could take it over.
fn stranger(wanted: &Wanted, sandbox: &Sandbox, traces: &mut Traces, draw: &mut Draw) -> Option<String> {
    let cluster = sandbox.name();
    let kind = draw.of(&[Kind::ConfigMap, Kind::Service]);
    let name = Name::new(kind, &format!("o{}", draw.within(0..6)));
    // If an app renders this name, both writers race, which no rule decides.
    if wanted.owners(cluster, &name).next().is_some() && draw.chance(90) {
        return None;
    }
    let mut object = body(&name, 77, false);
    object["metadata"]["labels"] = json!({"version": "theirs"});
    if !hands::create(sandbox, "kubectl-create", kind.folder(), &object) {
        return None;
    }
    let place = (cluster.to_owned(), name.path());
    traces.edited(place.clone());
    let live = hands::get(sandbox, &name.path())?;
    traces.strangers.insert(place, live);
    Some(format!("somebody makes {name} on {cluster}"))
}
