mod apply;
mod hooks;
mod order;
mod ownership;
mod properties;
mod prune;
mod release_phase;
mod sync_waves;

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApplySettings, PendingPrerequisites, Plan, PlanInput, compute, is_prerequisite};
use crate::model::{
    AppId, ClusterName, ClusterState, Digest, DriftMode, FieldOwnership, GroupVersionKind, Health,
    InstanceMode, LiveObject, Location, ObjectId, Observation, PruneMode, RenderedObject, RenderedTarget,
    Revision, SyncWave, UnmanagedObject,
};
use crate::render::ObjectClaims;

const KINDS: [(&str, &str, bool); 7] = [
    ("v1", "ConfigMap", true),
    ("v1", "Service", true),
    ("v1", "Namespace", false),
    ("v1", "PersistentVolumeClaim", true),
    ("apps/v1", "Deployment", true),
    ("policy/v1", "PodDisruptionBudget", true),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
];

fn app(name: &str) -> AppId {
    AppId::new("shop", name)
}

fn cluster(name: &str) -> ClusterName {
    ClusterName::from(name)
}

/// `v1/ConfigMap/shop/pay`, `v1/Namespace//shop`: the notation of objects in these tests.
fn parse(text: &str) -> (GroupVersionKind, ObjectId) {
    let parts: Vec<&str> = text.rsplitn(4, '/').collect();
    let [name, namespace, kind, api_version] = parts[..] else { panic!("{text}") };
    let kind = GroupVersionKind::from_api_version(api_version, kind);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let id = ObjectId::new(&kind.group, &kind.kind, namespace, name);
    (kind, id)
}

fn object(text: &str, content: &str) -> RenderedObject {
    let (kind, id) = parse(text);
    RenderedObject {
        id,
        kind,
        body: Value::Null.into(),
        hash: Digest::of(content.as_bytes()),
        source: Location::new("apps/pay.yaml", 1, 1),
        encrypted_values: None,
        hook: None,
        wave: SyncWave::default(),
        defines: None,
        pod_sets: Arc::default(),
    }
}

/// Every object has the content `a`.
fn rendered(name: &str, objects: &[&str]) -> RenderedTarget {
    let mut objects: Vec<RenderedObject> = objects.iter().map(|text| object(text, "a")).collect();
    objects.sort_by(|one, other| one.id.cmp(&other.id));
    RenderedTarget {
        app: app(name),
        cluster: cluster("bj5"),
        revision: Revision::from("c0ffee"),
        pod_sets: Arc::default(),
        units: None,
        objects: objects.into(),
        patches: Default::default(),
        capability_queries: Default::default(),
        warnings: Default::default(),
    }
}

/// A complete observation of a cluster that serves [`KINDS`] and has no object.
fn empty() -> Observation {
    let kind = |(api_version, kind, namespaced): &(&str, &str, bool)| {
        (GroupVersionKind::from_api_version(api_version, kind), *namespaced)
    };
    let served = Arc::new(KINDS.iter().map(kind).collect());
    Observation { complete: true, served_kinds: served, ..Observation::default() }
}

fn live(owner: &str, text: &str, content: &str) -> LiveObject {
    let (fields, values) = (NonZeroU64::new(1), NonZeroU64::new(2));
    let settled = FieldOwnership { fields, values, ..FieldOwnership::default() };
    LiveObject {
        uid: format!("uid-{text}").into(),
        resource_version: "7".into(),
        generation: 1,
        kind: parse(text).0.into(),
        app: app(owner).to_string().into(),
        hash: Some(Digest::of(content.as_bytes())),
        revision: None,
        annotations: None,
        keep: false,
        wave: SyncWave::default(),
        is_ended_run: false,
        deletes_volume_claims: false,
        is_overruled: false,
        deleting: false,
        health: Health::current(),
        pods: None,
        created: None,
        ownership: settled.clone(),
        settled_ownership: Some(settled),
        evidence: None,
        ignored: None,
    }
}

fn with_live(mut observation: Observation, owner: &str, text: &str, content: &str) -> Observation {
    observation.objects.insert(parse(text).1, Arc::new(live(owner, text, content)));
    observation
}

fn with_absent(mut observation: Observation, texts: &[&str]) -> Observation {
    observation.absent.extend(texts.iter().map(|text| parse(text).1));
    observation
}

fn with_stranger(mut observation: Observation, text: &str, managers: &[&str]) -> Observation {
    let managers = managers.iter().map(|manager| (*manager).to_owned()).collect();
    observation.unmanaged_objects.insert(
        parse(text).1,
        UnmanagedObject {
            managers,
            adoption: None,
            uid: "uid".into(),
            resource_version: "1".into(),
            replicas: None,
        },
    );
    observation
}

fn pending<'a>(
    renders: impl IntoIterator<Item = &'a RenderedTarget>,
    observation: &Observation,
) -> PendingPrerequisites {
    let objects = renders.into_iter().flat_map(|it| it.objects.iter().map(move |object| (&it.app, object)));
    PendingPrerequisites::of(
        objects.filter(|(app, object)| is_prerequisite(app, object)),
        &ObjectClaims::default(),
        observation,
    )
}

static NOT_ASKED: BTreeSet<ObjectId> = BTreeSet::new();

static PLAIN: ApplySettings = ApplySettings {
    mode: InstanceMode::Enforce,
    cluster_state: ClusterState::Ready,
    paused: false,
    unmanaged: false,
    adopt: false,
    drift: DriftMode::Repair,
    force: false,
    replace: false,
    create_namespace: false,
    prune: PruneMode::WhenHealthy,
    ignore: Vec::new(),
    taint: None,
};

fn set(input: &mut PlanInput<'_>, change: impl FnOnce(&mut ApplySettings)) {
    let mut settings = input.settings.clone();
    change(&mut settings);
    input.settings = Box::leak(Box::new(settings));
}

/// With defaults.
fn input<'a>(
    rendered: &'a RenderedTarget,
    observation: &'a Observation,
    claims: &'a ObjectClaims,
    pending: &'a PendingPrerequisites,
    unrendered: &'a BTreeSet<AppId>,
) -> PlanInput<'a> {
    PlanInput {
        instance: "main",
        settings: &PLAIN,
        blocking_taint: None,
        recently_checked: &NOT_ASKED,
        expects_new_kinds: true,
        is_preview: false,
        rendered,
        observation,
        claims,
        pending,
        unrendered_apps: unrendered,
    }
}

/// The plan with defaults, changed by `change`.
fn plan_with(
    rendered: &RenderedTarget,
    observation: &Observation,
    change: impl Fn(&mut PlanInput<'_>),
) -> Plan {
    let claims = ObjectClaims::default();
    let pending = pending([rendered], observation);
    let unrendered = BTreeSet::new();
    let mut input = input(rendered, observation, &claims, &pending, &unrendered);
    change(&mut input);
    compute(&input)
}

/// One line for each step: `create ConfigMap shop/pay: new`.
fn lines(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| format!("{} {}: {}", step.action, step.object, step.reason)).collect()
}

#[test]
fn plans_are_shown_with_words_and_fields() {
    let rendered = rendered("pay", &["v1/ConfigMap/shop/pay"]);
    let plan = plan_with(&rendered, &with_absent(empty(), &["v1/ConfigMap/shop/pay"]), |_| {});
    let shown = serde_json::to_value(&plan).expect("a plan is JSON");
    assert_eq!(
        shown["steps"][0],
        json!({
            "object": "ConfigMap shop/pay", "kind": "v1/ConfigMap", "phase": "config", "action": "create",
            "reason": {"code": "new", "words": "new"}, "uid": null, "resourceVersion": null, "applied": null,
            "source": {"file": "apps/pay.yaml", "start": {"line": 1, "column": 1}, "end": null},
        })
    );
    assert_eq!(shown["app"], "shop/pay");
}
