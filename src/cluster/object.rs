//! Objects as the server sends them, as JSON values. kube's own type for objects of any kind copies all fields while
//! parsing and would have to be converted back, and lists of thousands are in memory at once.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope, Resource};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::response_bounds::OverBound;
use crate::model::{ObjectId, labels};

/// Bytes of a name, a uid or a resourceVersion. Those of Kubernetes have up to 253.
const LONGEST_NAME: usize = 512;

/// An object of any kind. With `METADATA`, only its metadata is requested.
#[derive(Clone, Debug)]
pub(super) struct ServerObject<const METADATA: bool> {
    /// The part that the client library needs.
    meta: ObjectMeta,
    value: Value,
}

pub(super) type WholeObject = ServerObject<false>;
pub(super) type MetadataObject = ServerObject<true>;

impl<const METADATA: bool> ServerObject<METADATA> {
    /// The object with apiVersion and kind, which list items lack and metadata requests change.
    pub fn into_value(self, api: &ApiResource) -> Value {
        let mut value = self.value;
        value["apiVersion"] = Value::String(api.api_version.clone());
        value["kind"] = Value::String(api.kind.clone());
        value
    }

    /// Namespace and name.
    pub fn name(&self) -> (Option<&str>, Option<&str>) {
        (self.meta.namespace.as_deref(), self.meta.name.as_deref())
    }

    /// Checks the length of everything that is stored for each object.
    pub fn check_name_lengths(&self) -> Result<(), OverBound> {
        let uid = self.value["metadata"]["uid"].as_str();
        let (namespace, name) = self.name();
        [name, namespace, self.version(), uid].into_iter().flatten().try_for_each(check_name)
    }

    /// Its resourceVersion, if set.
    pub fn version(&self) -> Option<&str> {
        self.meta.resource_version.as_deref().filter(|version| !version.is_empty())
    }
}

/// A name, a uid or a resourceVersion.
pub(super) fn check_name(name: &str) -> Result<(), OverBound> {
    if name.len() <= LONGEST_NAME {
        return Ok(());
    }
    Err(OverBound::new(format!("it sent a name or resourceVersion longer than {LONGEST_NAME} bytes")))
}

/// Whether the origin annotation names the object itself: copies name another one.
fn is_itself(object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    let origin = annotations.and_then(|all| all.get(labels::ORIGIN)?.as_str());
    let origin = origin.and_then(ObjectId::parse_origin);
    origin.is_some() && origin == ObjectId::of(object)
}

impl MetadataObject {
    /// Whether it is no copy of another object.
    pub fn matches_origin(self, api: &ApiResource) -> bool {
        is_itself(&self.into_value(api))
    }

    pub fn into_name(self) -> Option<String> {
        self.meta.name
    }
}

impl<const METADATA: bool> From<Value> for ServerObject<METADATA> {
    fn from(value: Value) -> Self {
        let text = |field: &str| value["metadata"][field].as_str().map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Self { meta, value }
    }
}

impl<'de, const METADATA: bool> Deserialize<'de> for ServerObject<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Anything but a map is an unreadable response.
        Map::deserialize(deserializer).map(|map| Self::from(Value::Object(map)))
    }
}

impl<const METADATA: bool> Serialize for ServerObject<METADATA> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<const METADATA: bool> Resource for ServerObject<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(api: &ApiResource) -> Cow<'_, str> {
        api.group.as_str().into()
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        api.version.as_str().into()
    }

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        api.kind.as_str().into()
    }

    fn api_version(api: &ApiResource) -> Cow<'_, str> {
        api.api_version.as_str().into()
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        api.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        METADATA
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
