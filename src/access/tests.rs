use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::manifest;
use crate::model::{
    App, AppId, Approval, ApprovedAction, Digest, GroupVersionKind, Instance, InstanceMode, NoCharts,
    PruneMode, RenderedTarget, Snapshot,
};
use crate::render::FleetRenderer;

const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {connection: {sandbox: {}}}\n";

/// `fields`: further fields of the app's spec.
fn rights(instance: &Instance, fields: &str, objects: &[Value]) -> BTreeSet<String> {
    rights_of(instance, fields, objects, false, None)
}

fn rights_of(
    instance: &Instance,
    fields: &str,
    objects: &[Value],
    namespaces_exist: bool,
    leaving: Option<&[Approval]>,
) -> BTreeSet<String> {
    let app = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: web, namespace: shop}}\nspec: {{files: [all.yaml]{fields}}}\n"
    );
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    let all = texts.join("\n---\n");
    let files = [("clusters/one.yaml", CLUSTER), ("apps/web/app.yaml", &*app), ("apps/web/all.yaml", &*all)];
    let snapshot = Snapshot::of_texts(files);
    let fleet = crate::fleet::assemble(manifest::read(&snapshot), &snapshot);
    let errors: Vec<_> = fleet.diagnostics.iter().filter(|it| it.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let renderer = FleetRenderer::new(&fleet, &snapshot, &NoCharts);
    let target = fleet.targets().remove(0);
    let rendered = renderer.render(&target).expect("a render");
    let renders: Vec<(&App, RenderedTarget)> = vec![(&fleet.apps[&target.app], rendered)];
    let known = |_: &GroupVersionKind| None;
    let needs = required_rights(&AccessInput {
        instance,
        renders: &renders,
        known_plural: &known,
        namespaces_exist,
        removal_approvals: leaving,
    });
    let own = |why: &RightReason| *why != RightReason::Serving;
    needs.rights.iter().filter(|(_, why)| own(why)).map(|(right, _)| right.to_string()).collect()
}

/// Discovery watches definitions too, but a rendered definition must be observed for its app to finish.
#[test]
fn rendered_definitions_need_observing_rights() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "looms.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "looms", "singular": "loom", "kind": "Loom"},
            "versions": [{"name": "v1", "served": true, "storage": true}]}});
    let list = "list customresourcedefinitions.apiextensions.k8s.io";
    assert!(rights(&Instance::default(), "", &[definition]).contains(list));
    assert!(!rights(&Instance::default(), "", &[settings()]).contains(list));
}

fn check(instance: &Instance, fields: &str, objects: &[Value], expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|&it| it.to_owned()).collect();
    assert_eq!(rights(instance, fields, objects), expected, "{fields}");
}

fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
}

const READ: [&str; 3] = ["list configmaps", "watch configmaps", "get configmaps in namespace shop"];
const WRITE: [&str; 2] = ["create configmaps in namespace shop", "patch configmaps in namespace shop"];
const DELETE: [&str; 1] = ["delete configmaps in namespace shop"];
const TAKE_OVER: [&str; 2] = ["update configmaps in namespace shop", "patch configmaps in namespace shop"];

#[test]
fn verbs_depend_on_mode_and_prune() {
    let enforce = Instance::default();
    let observe = Instance { mode: InstanceMode::Observe, ..Instance::default() };
    let mut lasting = Instance::default();
    lasting.defaults.prune = PruneMode::Never;
    let objects = [settings()];
    let mut kept = settings();
    kept["metadata"]["annotations"] = json!({"tutti.dev/prune": "keep"});

    check(&enforce, "", &objects, &[&READ[..], &WRITE, &DELETE].concat());
    check(&observe, "", &objects, &READ);
    check(&lasting, "", &objects, &[&READ[..], &WRITE].concat());
    // A replace deletes the object, whatever is pruned.
    check(&lasting, ", replace: true", &objects, &[&READ[..], &WRITE, &DELETE].concat());
    check(&lasting, ", prune: always", &objects, &[&READ[..], &WRITE, &DELETE].concat());
    // Its objects have the annotation, also after its file is removed.
    check(&enforce, ", prune: never", &objects, &[&READ[..], &WRITE].concat());
    check(
        &enforce,
        ", createNamespace: true",
        &objects,
        &[
            "list configmaps",
            "watch configmaps",
            "create namespaces",
            "get configmaps",
            "create configmaps",
            "patch configmaps",
            "delete configmaps",
        ],
    );
    let all_there = rights_of(&enforce, ", createNamespace: true", &objects, true, None);
    let expected = [&READ[..], &WRITE, &DELETE, &["create namespaces"]].concat();
    assert_eq!(all_there, expected.into_iter().map(str::to_owned).collect());
    check(&observe, ", createNamespace: true", &objects, &READ);
    check(&enforce, "", &[kept], &[&READ[..], &WRITE].concat());
    check(&enforce, ", adopt: true", &objects, &[&READ[..], &WRITE, &DELETE, &TAKE_OVER].concat());
    check(&observe, ", adopt: true", &objects, &[&READ[..], &TAKE_OVER].concat());
}

#[test]
fn claims_need_their_storage_class() {
    let check = |spec: Value, expected: Option<&str>| {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec});
        let found = rights(&Instance::default(), "", &[claim]);
        let classes: Vec<&str> =
            found.iter().map(String::as_str).filter(|it| it.contains("storageclasses")).collect();
        assert_eq!(classes, Vec::from_iter(expected));
    };
    check(json!({"storageClassName": "late"}), Some("get storageclasses.storage.k8s.io late"));
    check(json!({}), Some("get storageclasses.storage.k8s.io"));
    check(json!({"storageClassName": ""}), None);
}

/// On a cluster that is being removed, only deletes and orphans are written.
#[test]
fn removed_cluster_needs_delete_only() {
    let enforce = Instance::default();
    let observe = Instance { mode: InstanceMode::Observe, ..Instance::default() };
    let orphan = |app: &str, action| Approval {
        name: "word".to_owned(),
        app: AppId::new("shop", app),
        action,
        rendered: Digest::of(b"any"),
        objects: Vec::new(),
        location: None,
        is_alone: true,
    };
    let check = |instance: &Instance, fields: &str, approvals: &[Approval], more: &[&str]| {
        let found = rights_of(instance, fields, &[settings()], false, Some(approvals));
        let expected: BTreeSet<String> = READ.iter().chain(more).map(ToString::to_string).collect();
        assert_eq!(found, expected, "{fields} {approvals:?}");
    };
    check(&enforce, "", &[], &DELETE);
    check(&enforce, ", adopt: true, replace: true", &[], &DELETE);
    check(&enforce, ", prune: never", &[], &[]);
    check(&observe, "", &[], &[]);
    let patch = "patch configmaps in namespace shop";
    check(&enforce, "", &[orphan("web", ApprovedAction::Orphan)], &[DELETE[0], patch]);
    check(&enforce, "", &[orphan("other", ApprovedAction::Orphan)], &DELETE);
    check(&enforce, "", &[orphan("web", ApprovedAction::Delete)], &DELETE);

    // Pods are not read, and deleting a role needs none of its rules.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
    let found = rights_of(&enforce, "", &[role, workload], false, Some(&[]));
    assert!(found.contains("delete deployments.apps in namespace shop"), "{found:?}");
    for verb in ["create", "patch", "escalate", "pods"] {
        assert!(!found.iter().any(|right| right.contains(verb)), "{verb}: {found:?}");
    }
}

#[test]
fn own_namespaces_need_cluster_role() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let found = rights(&Instance::default(), "", &[namespace, settings()]);
    assert!(found.contains("patch configmaps") && found.contains("delete namespaces"), "{found:?}");
    assert!(!found.iter().any(|right| right.contains("in namespace")), "{found:?}");
}

#[test]
fn rule_grants_only_missing_rights() {
    let right = |resource: &str, name: Option<&str>, verb: Verb| Right {
        namespace: None,
        group: "".into(),
        resource: resource.to_owned(),
        name: name.map(ToOwned::to_owned),
        verb,
    };
    let missing = [right("secrets", None, Verb::Patch), right("configmaps", None, Verb::Patch)];
    let expected = "- apiGroups: [\"\"]\n  resources: [configmaps, secrets]\n  verbs: [patch]\n";
    assert_eq!(rules_for(&missing), expected);
    let named = [right("clusterroles", Some("view"), Verb::Bind)];
    let expected =
        "- apiGroups: [\"\"]\n  resources: [clusterroles]\n  resourceNames: [view]\n  verbs: [bind]\n";
    assert_eq!(rules_for(&named), expected);
}

#[test]
fn home_rights_cover_secrets_and_lease() {
    let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec:\n  \
        forge: {type: gitea, url: 'https://a', repository: a/b, credentials: {token: {secret: {namespace: tutti, name: forge, key: token}}}}\n  \
        receivers: [{name: a, type: gitea, secrets: [{env: HOOK}, {secret: {namespace: tutti, name: hooks, key: a}}]}]\n  \
        clusterRegistry: {configMaps: {}}\n";
    let kept =
        CLUSTER.replace("sandbox: {}", "kubeconfigSecret: {namespace: fleet, name: bj5, key: kubeconfig}");
    let snapshot = Snapshot::of_texts([("tutti.yaml", instance), ("clusters/one.yaml", kept.as_str())]);
    let fleet = crate::fleet::assemble(manifest::read(&snapshot), &snapshot);
    assert!(fleet.is_valid(), "{:?}", fleet.diagnostics);
    let lease = Some(LeaseName { namespace: "tutti", name: "leader" });
    let needs = home_rights(&fleet.instance, fleet.clusters.values(), lease);
    let rights: Vec<String> = needs.rights.keys().map(ToString::to_string).collect();
    let expected = [
        "get secrets bj5 in namespace fleet",
        "get configmaps in namespace sym-admin",
        "list configmaps in namespace sym-admin",
        "watch configmaps in namespace sym-admin",
        "get secrets forge in namespace tutti",
        "get secrets hooks in namespace tutti",
        "create leases.coordination.k8s.io in namespace tutti",
        "get leases.coordination.k8s.io leader in namespace tutti",
        "update leases.coordination.k8s.io leader in namespace tutti",
    ];
    assert_eq!(rights, expected);
    let text = rbac_manifest(RbacScope::Home, "main", &needs, None);
    assert!(text.contains("name: tutti-main-home\n") && !text.contains("ClusterRole"), "{text}");
}

/// Only events report refused pods of these kinds; others report them in their status.
#[test]
fn events_are_read_for_pod_owners() {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    let workload = |version: &str, kind: &str| {
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec})
    };
    let list = "list events in namespace shop";
    for (version, kind, expected) in [
        ("batch/v1", "Job", true),
        ("apps/v1", "StatefulSet", true),
        ("apps/v1", "DaemonSet", true),
        ("apps/v1", "Deployment", false),
        ("apps/v1", "ReplicaSet", false),
    ] {
        let found = rights(&Instance::default(), "", &[workload(version, kind)]);
        assert_eq!(found.contains(list), expected, "{kind}: {found:?}");
    }
}
