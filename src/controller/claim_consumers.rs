//! The workloads that use the PersistentVolumeClaims of a render.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::model::{HealthStatus, LiveObject, ObjectId, Observation, RenderedObject};

/// The claims of a render, with the workloads that use them. Computed once per render.
#[derive(Debug, Default)]
pub struct ClaimConsumers {
    consumers: BTreeMap<ObjectId, Vec<ClaimConsumer>>,
}

#[derive(Debug)]
struct ClaimConsumer {
    id: ObjectId,
    /// It was not rendered with zero replicas.
    wants_pods: bool,
}

impl ClaimConsumers {
    pub fn of(objects: &[RenderedObject]) -> Self {
        let claims = objects.iter().map(|object| &object.id).filter(|id| is_claim(id));
        let claims: BTreeMap<(Option<&str>, &str), &ObjectId> =
            claims.map(|id| ((id.namespace.as_deref(), &*id.name), id)).collect();
        let mut consumers: BTreeMap<ObjectId, Vec<ClaimConsumer>> = BTreeMap::new();
        // The Jobs of a CronJob may never run.
        let users = objects
            .iter()
            .filter(|object| !claims.is_empty() && !is_claim(&object.id) && &*object.id.kind != "CronJob");
        for object in
            users.filter(|object| object.body.contains_text("laim") || object.body.contains_text("LAIM"))
        {
            let fields = object.body.fields();
            let mut named = BTreeSet::new();
            note_claims(&fields, &mut named);
            let namespace = object.id.namespace.as_deref();
            for claim in named.into_iter().filter_map(|name| claims.get(&(namespace, name))) {
                let wants_pods = fields.pointer("/spec/replicas") != Some(&Value::from(0));
                let consumer = ClaimConsumer { id: object.id.clone(), wants_pods };
                consumers.entry((*claim).clone()).or_default().push(consumer);
            }
        }
        Self { consumers }
    }

    pub fn is_in_use(&self, claim: &ObjectId, observation: &Observation) -> bool {
        let live = |consumer: &ClaimConsumer| observation.objects.get(&consumer.id).map(Arc::as_ref);
        let consumers = self.consumers.get(claim);
        consumers.into_iter().flatten().any(|consumer| consumer.may_run(live(consumer)))
    }
}

impl ClaimConsumer {
    /// Whether it has pods or will have some. A workload that is not there yet will.
    fn may_run(&self, live: Option<&LiveObject>) -> bool {
        let Some(live) = live else { return self.wants_pods };
        let has_ended = &*self.id.kind == "Job"
            && matches!(live.health.status, HealthStatus::Current | HealthStatus::Failed);
        match live.pods {
            _ if live.health.status == HealthStatus::Suspended || has_ended => false,
            Some(pods) => pods.desired > 0,
            None => self.wants_pods,
        }
    }
}

fn is_claim(id: &ObjectId) -> bool {
    id.group.is_empty() && &*id.kind == "PersistentVolumeClaim"
}

/// Claims that fields name: `claimName` of a pod's volume, `existingClaim` of a custom kind.
fn note_claims<'f>(value: &'f Value, named: &mut BTreeSet<&'f str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(name) if key.to_ascii_lowercase().contains("claim") => {
                        named.insert(name);
                    }
                    _ => note_claims(value, named),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| note_claims(item, named)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workloads_use_claims_they_name() {
        let object = |kind: &str, namespace: &str, name: &str, spec: Value| {
            let version = if kind == "PersistentVolumeClaim" { "v1" } else { "apps/v1" };
            let metadata = json!({"name": name, "namespace": namespace});
            let body = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
            RenderedObject::for_test(&body, None)
        };
        let claim =
            |name: &str| object("PersistentVolumeClaim", "shop", name, json!({"storageClassName": "late"}));
        let mounts = |name: &str| json!({"template": {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": name}}]}}});
        let objects = [
            claim("data"),
            claim("other"),
            object("Deployment", "shop", "web", mounts("data")),
            object("Deployment", "till", "web", mounts("data")),
            object("CronJob", "shop", "nightly", mounts("data")),
            object("Deployment", "shop", "words", json!({"note": "data", "claims": ["data"]})),
            object("Database", "shop", "db", json!({"replicas": 0, "storage": {"existingClaim": "other"}})),
            object("Deployment", "shop", "elsewhere", mounts("unknown")),
        ];
        let uses = ClaimConsumers::of(&objects);
        let told: Vec<(&str, Vec<(&str, bool)>)> = uses
            .consumers
            .iter()
            .map(|(claim, consumers)| {
                (&*claim.name, consumers.iter().map(|it| (&*it.id.name, it.wants_pods)).collect())
            })
            .collect();
        assert_eq!(told, [("data", vec![("web", true)]), ("other", vec![("db", false)])]);
    }
}
