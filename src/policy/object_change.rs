//! The change of one object, and its target, as the input of policies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::model::{AppId, ClusterFacts, GroupVersionKind, Operation, usual_plural};

/// An app on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct PolicyTarget<'a> {
    pub app: &'a AppId,
    pub app_labels: &'a BTreeMap<String, String>,
    /// `None`: no version, or several.
    pub version: Option<&'a str>,
    pub cluster: ClusterFacts<'a>,
    /// All rendered objects of the app there, without secrets.
    pub objects: &'a [Json],
}

#[derive(Clone, Copy, Debug)]
pub struct PolicyObjectChange<'a> {
    pub kind: &'a GroupVersionKind,
    /// Possible plural names of the kind, likeliest first. Empty: the usual one.
    pub plurals: &'a [String],
    /// After the change; `None`: it is deleted.
    pub object: Option<&'a Json>,
    /// Before the change; `None`: it is created.
    pub old_object: Option<&'a Json>,
    /// The labels of its namespace in Git. `None` for a namespaced object: not known yet.
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
    /// Messages must not show values of the object.
    pub hides_values: bool,
}

impl PolicyObjectChange<'_> {
    pub fn operation(&self) -> Operation {
        match (self.object, self.old_object) {
            (Some(_), None) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            (None, _) => Operation::Delete,
        }
    }

    pub fn resources(&self) -> Cow<'_, [String]> {
        match self.plurals {
            [] => Cow::Owned(vec![usual_plural(&self.kind.kind)]),
            plurals => Cow::Borrowed(plurals),
        }
    }

    /// Reads the object, or the deleted one.
    fn text(&self, pointer: &str) -> Option<&str> {
        self.object.or(self.old_object)?.pointer(pointer)?.as_str()
    }

    pub fn name(&self) -> Option<&str> {
        self.text("/metadata/name")
    }

    pub fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace").filter(|namespace| !namespace.is_empty())
    }

    /// The labels of the object and of the old object.
    pub fn labels(&self) -> impl Iterator<Item = BTreeMap<String, String>> {
        let sides = [self.object, self.old_object].into_iter().flatten();
        sides.map(|object| labels_of(object.pointer("/metadata/labels")))
    }

    pub fn request(&self, resource: &str) -> Json {
        let GroupVersionKind { group, version, kind } = self.kind;
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

    /// Null for objects without a namespace, as for the API server.
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

/// The labels of a namespace that is not in Git: the one that every namespace has.
pub fn default_namespace_labels(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}
