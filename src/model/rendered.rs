//! The render of an app for one cluster, and its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    AppId, CapabilityQueries, ClusterName, Diagnostic, Digest, EncryptedValues, GroupVersionKind, LiveObject,
    Location, ObjectBody, ObjectHook, ObjectId, ObjectRolloutAnnotations, Revision, SyncWave,
    UnitRolloutAnnotations,
};

/// One desired object. Debug output hides secret values, and it is never written to disk.
#[derive(Clone, PartialEq)]
pub struct RenderedObject {
    pub id: ObjectId,
    pub kind: GroupVersionKind,
    /// Complete with labels and annotations, except `tutti.dev/hash` and `tutti.dev/revision`.
    pub body: ObjectBody,
    /// Of `body` in canonical form; with a salt when something of it is encrypted in the repository.
    pub hash: Digest,
    /// The template or file that it came from.
    pub source: Location,
    /// Its values that are encrypted in the repository.
    pub encrypted_values: Option<EncryptedValues>,
    /// When a chart calls it a hook.
    pub hook: Option<ObjectHook>,
    /// Its sync wave, by annotation.
    pub wave: SyncWave,
    /// Group and kind that a CustomResourceDefinition defines. Cached, because definitions are long and all objects are checked.
    pub defines: Option<(Box<str>, Box<str>)>,
    /// The podSets that render it alike; empty where no podSet does.
    pub pod_sets: Arc<[Arc<str>]>,
}

impl RenderedObject {
    /// For tests: an object of which this is encrypted in the repository.
    #[cfg(test)]
    pub(crate) fn for_test(body: &Value, sealed: Option<EncryptedValues>) -> Self {
        Self {
            id: ObjectId::of(body).expect("an identity"),
            kind: GroupVersionKind::of(body).expect("a kind"),
            hash: Digest::of_json(body),
            body: body.clone().into(),
            source: Location::new("a.yaml", 1, 1),
            encrypted_values: sealed,
            hook: None,
            wave: SyncWave::default(),
            defines: None,
            pod_sets: Arc::default(),
        }
    }

    /// Group and kind that it defines, if it is the definition of a custom kind.
    pub fn defines(&self) -> Option<(&str, &str)> {
        self.defines.as_ref().map(|(group, kind)| (&**group, &**kind))
    }

    /// The value for [`Self::defines`] of an object with these fields.
    pub fn custom_kind_of(id: &ObjectId, fields: &Value) -> Option<(Box<str>, Box<str>)> {
        if (&*id.group, &*id.kind) != ("apiextensions.k8s.io", "CustomResourceDefinition") {
            return None;
        }
        let text = |pointer| fields.pointer(pointer).and_then(Value::as_str).map(Into::into);
        Some((text("/spec/group")?, text("/spec/names/kind")?))
    }

    /// The value of a boolean annotation.
    pub fn annotation_flag(&self, annotation: &str) -> Option<bool> {
        match self.annotation(annotation)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub fn annotation(&self, name: &str) -> Option<String> {
        if !self.body.contains_text(name) {
            return None;
        }
        let fields = self.body.fields();
        fields.pointer("/metadata/annotations")?.get(name)?.as_str().map(str::to_owned)
    }

    /// It makes pods, by itself or on a schedule.
    pub fn makes_pods(&self) -> bool {
        let templates = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];
        templates.iter().any(|pointer| self.body.field(pointer).is_some())
    }

    /// Whether its values must not be shown.
    pub fn holds_secrets(&self) -> bool {
        self.encrypted_values.is_some() || is_secret_kind(&self.kind.kind)
    }
}

/// Whether its values are secret as a whole; in any group, as a kind of that name elsewhere is likely to hold
/// secrets too.
pub fn is_secret_kind(kind: &str) -> bool {
    kind == "Secret"
}

/// Whether the kind routes requests to pods.
fn routes_traffic(id: &ObjectId) -> bool {
    match (&*id.group, &*id.kind) {
        ("", kind) => kind == "Service",
        ("networking.k8s.io" | "extensions", kind) => kind == "Ingress",
        ("gateway.networking.k8s.io", kind) => kind.ends_with("Route"),
        _ => false,
    }
}

/// An app rendered for one cluster, objects sorted by id.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedTarget {
    pub app: AppId,
    pub cluster: ClusterName,
    /// The last commit that changed anything that this render read.
    pub revision: Revision,
    /// The podSets of an AppSet here, in the order of the waves: each is a unit. Empty for every other app, which is one unit.
    pub pod_sets: Arc<[Arc<str>]>,
    /// The units of an app in waves, by name; `None` for an app without waves.
    pub units: Option<Arc<BTreeMap<Arc<str>, UnitRender>>>,
    /// Shared by all clusters that the app renders to the same for.
    pub objects: Arc<[RenderedObject]>,
    /// Every patch by its location, with whether it matched an object. A patch that matches no object of any target is a mistake.
    pub patches: Arc<BTreeMap<Location, bool>>,
    /// Its queries about the capabilities of the cluster.
    pub capability_queries: Arc<CapabilityQueries>,
    /// Warnings of `lint`.
    pub warnings: Arc<[Diagnostic]>,
}

/// The commit that a unit is rendered at, and the rollout annotations of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitRender {
    pub revision: Revision,
    pub annotations: UnitRolloutAnnotations,
}

impl RenderedTarget {
    /// The commit that a unit is rendered at.
    pub fn revision_of(&self, unit: &str) -> &Revision {
        let of_unit = self.units.as_ref().and_then(|units| units.get(unit));
        of_unit.map_or(&self.revision, |unit| &unit.revision)
    }

    /// The rollout annotations for an object of a unit. An unchanged live object keeps its own.
    pub fn annotations_of(
        &self,
        unit: &str,
        object: &RenderedObject,
        live: Option<&LiveObject>,
    ) -> Option<ObjectRolloutAnnotations> {
        let of_unit = self.units.as_ref()?.get(unit)?;
        let content = Some(object.content());
        let own = live.filter(|live| live.content() == content && content.is_some());
        let mark =
            own.and_then(LiveObject::rollout_annotations).map_or(&of_unit.annotations, |own| &own.unit);
        let revision = own.and_then(|live| live.revision.as_deref()).map(Revision::from);
        Some(ObjectRolloutAnnotations { content, revision, unit: mark.clone() })
    }

    pub fn object(&self, id: &ObjectId) -> Option<&RenderedObject> {
        let place = self.objects.binary_search_by(|object| object.id.cmp(id)).ok()?;
        self.objects.get(place)
    }

    /// The podSet of the unit that an object belongs to; empty when the app is one unit. An object of several podSets belongs to the first
    /// one in wave order; one that routes traffic to all of them belongs to the last.
    pub fn unit_of<'a>(&'a self, object: &'a RenderedObject) -> &'a str {
        if let [only] = &*object.pod_sets {
            return only;
        }
        let renders = |pod_set: &&Arc<str>| object.pod_sets.is_empty() || object.pod_sets.contains(pod_set);
        let mut owners = self.pod_sets.iter().filter(renders);
        let owner = if routes_traffic(&object.id) { owners.next_back() } else { owners.next() };
        owner.map_or("", |name| name)
    }

    /// Over ids and hashes of all objects.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&json!(
            self.objects
                .iter()
                .map(|object| [object.id.origin(), object.hash.to_string()])
                .collect::<Vec<_>>()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_object_belongs_to_one_unit() {
        let names = |names: &[&str]| -> Arc<[Arc<str>]> { names.iter().map(|name| (*name).into()).collect() };
        let check = |kind: (&str, &str), pod_sets: &[&str], of: &[&str], expected: &str| {
            let body =
                json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": "a", "namespace": "b"}});
            let object = RenderedObject { pod_sets: names(of), ..RenderedObject::for_test(&body, None) };
            let rendered = RenderedTarget {
                app: AppId::new("shop", "pay"),
                cluster: ClusterName::from("bj1"),
                revision: Revision::from("c0ffee"),
                pod_sets: names(pod_sets),
                units: None,
                objects: Arc::default(),
                patches: Arc::default(),
                capability_queries: Arc::default(),
                warnings: Arc::default(),
            };
            assert_eq!(rendered.unit_of(&object), expected, "{kind:?} {of:?}");
        };
        let (map, service) = (("v1", "ConfigMap"), ("v1", "Service"));
        let route = ("gateway.networking.k8s.io/v1", "HTTPRoute");
        let waves = ["canary", "blue", "green"];
        check(map, &waves, &["blue"], "blue");
        check(map, &waves, &["green", "blue"], "blue");
        check(service, &waves, &["blue", "canary"], "blue");
        check(route, &waves, &["blue", "canary"], "blue");
        // Of no podSet: of all.
        check(("networking.k8s.io/v1", "Ingress"), &waves, &[], "green");
        check(map, &waves, &[], "canary");
        check(service, &[], &[], "");
    }
}
