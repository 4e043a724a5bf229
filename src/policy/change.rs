//! One change of one object, as policies see it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::resources;
use crate::model::{AppId, ClusterFacts, Kind, Operation};

/// An app on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct PolicyTarget<'a> {
    pub app: &'a AppId,
    pub app_labels: &'a BTreeMap<String, String>,
    /// `None`: it has none, or several.
    pub version: Option<&'a str>,
    pub cluster: ClusterFacts<'a>,
    /// All that the app renders there, but what holds secrets.
    pub objects: &'a [Json],
}

#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub kind: &'a Kind,
    /// The plural name that its definition gives to the kind; `None`: the usual one.
    pub plural: Option<&'a str>,
    /// After the change; `None`: it is deleted.
    pub object: Option<&'a Json>,
    /// Before the change; `None`: it is created.
    pub old_object: Option<&'a Json>,
    /// Of the namespace that it is in, as Git says. `None` for an object in one: they are not known yet.
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
    /// Messages do not say what it holds.
    pub hides_values: bool,
}

impl Change<'_> {
    pub fn operation(&self) -> Operation {
        match (self.object, self.old_object) {
            (Some(_), None) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            (None, _) => Operation::Delete,
        }
    }

    pub fn resource(&self) -> Cow<'_, str> {
        match self.plural {
            Some(plural) => Cow::Borrowed(plural),
            None => resources::resource(self.kind),
        }
    }

    /// Of the object, or of the one that is deleted.
    fn text(&self, pointer: &str) -> Option<&str> {
        self.object.or(self.old_object)?.pointer(pointer)?.as_str()
    }

    pub fn name(&self) -> Option<&str> {
        self.text("/metadata/name")
    }

    pub fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace").filter(|namespace| !namespace.is_empty())
    }

    /// The labels of each side that there is.
    pub fn labels(&self) -> impl Iterator<Item = BTreeMap<String, String>> {
        let sides = [self.object, self.old_object].into_iter().flatten();
        sides.map(|object| labels_of(object.pointer("/metadata/labels")))
    }

    pub fn request(&self, resource: &str) -> Json {
        let Kind { group, version, kind } = self.kind;
        let (kind, resource) = (
            json!({"group": &**group, "version": &**version, "kind": &**kind}),
            json!({"group": &**group, "version": &**version, "resource": resource}),
        );
        json!({
            "operation": self.operation().as_str(),
            "kind": kind,
            "requestKind": kind,
            "resource": resource,
            "requestResource": resource,
            "name": self.name().unwrap_or_default(),
            "namespace": self.namespace().unwrap_or_default(),
            "dryRun": false,
        })
    }

    /// Null for objects without a namespace, as to the API server.
    pub fn namespace_object(&self) -> Json {
        match (self.namespace(), self.namespace_labels) {
            (Some(name), Some(labels)) => {
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
            }
            _ => Json::Null,
        }
    }
}

pub fn labels_of(labels: Option<&Json>) -> BTreeMap<String, String> {
    let labels = labels.and_then(Json::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
