//! Two revisions of a small repository, compared.

mod policies;

use std::collections::BTreeMap;

use super::{
    AppPresence, ComparedRevision, Comparison, ComparisonCache, ObjectChangeAction, PlacementTransition,
    RemovalOutcome, compare, fleet_after,
};
use crate::manifest;
use crate::model::{AppId, ClusterName, NoCharts, Revision, Snapshot};
use crate::render::{DiscoveredCapabilities, FleetRenderer, RenderCache};

type Texts = BTreeMap<String, String>;

const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: NAME, labels: {zone: NAME}}\n\
                       spec: {connection: {sandbox: {}}}\n";

/// Three clusters, and two apps that are the same on all of them.
fn repository() -> Texts {
    let mut texts = Texts::new();
    let mut put = |path: &str, text: &str| _ = texts.insert(path.to_owned(), text.to_owned());
    put(
        "tutti.yaml",
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {defaults: {namespace: shop}}\n",
    );
    for name in ["bj1", "bj2", "gz1"] {
        put(&format!("clusters/{name}.yaml"), &CLUSTER.replace("NAME", name));
    }
    put("apps/pay/app.yaml", &component("pay", "1.0.0"));
    put("apps/cart/app.yaml", &component("cart", "2.0.0"));
    texts
}

fn component(name: &str, version: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {{name: {name}}}\nspec:\n  workloadType: Deployment\n  \
         developLanguage: java\n  runType: worker\n  image: registry.example.com/{name}:{version}\n  replicas: 2\n"
    )
}

/// An Objects app of these documents.
fn objects(texts: &mut Texts, name: &str, documents: &str) {
    let manifest = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}}}\nspec: {{files: [objects.yaml]}}\n"
    );
    texts.insert(format!("apps/{name}/app.yaml"), manifest);
    texts.insert(format!("apps/{name}/objects.yaml"), documents.to_owned());
}

fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\ndata: {{level: {value}}}\n---\n"
    )
}

fn snapshot(texts: &Texts, revision: &str) -> Snapshot {
    let snapshot = Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    Snapshot { revision: Revision::from(revision), ..snapshot }
}

fn compared_with(base: &Texts, head: &Texts, kept: &mut ComparisonCache) -> Comparison {
    let (base, head) = (snapshot(base, "ba5eba5e"), snapshot(head, "4ead4ead"));
    let mut reading = manifest::ManifestCache::default();
    let before = fleet_after(&base, &mut reading, None);
    let after = fleet_after(&head, &mut reading, Some(&before));
    let side = |fleet, snapshot| ComparedRevision {
        fleet,
        snapshot,
        charts: &NoCharts,
        discovered: DiscoveredCapabilities::new(),
    };
    compare(&side(&before, &base), &side(&after, &head), kept, None)
}

fn compared(change: impl FnOnce(&mut Texts)) -> Comparison {
    compared_from(&repository(), change)
}

fn compared_from(base: &Texts, change: impl FnOnce(&mut Texts)) -> Comparison {
    let mut head = base.clone();
    change(&mut head);
    compared_with(base, &head, &mut ComparisonCache::default())
}

/// Each object with what becomes of it, and each of its fields, with the clusters.
fn told(plan: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for app in &plan.apps {
        for object in &app.objects {
            let on = |clusters: &[ClusterName]| {
                clusters.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
            };
            let was = object.was.as_ref().map(|was| format!(" was {}", was.name)).unwrap_or_default();
            let from = object.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
            lines.push(format!(
                "{} {:?} {}{was}{from} on {}",
                app.app,
                object.action,
                object.object,
                on(&object.clusters)
            ));
            for group in &object.fields {
                for field in &group.fields {
                    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                    let values = format!("{} → {}", value(&field.before), value(&field.after));
                    let by = field.set_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
                    lines.push(format!("  {} {values}{by} on {}", field.path, on(&group.clusters)));
                }
            }
        }
    }
    lines
}

#[track_caller]
fn check(plan: &Comparison, expected: &[&str]) {
    assert_eq!(told(plan), expected);
    assert_eq!(plan.errors, []);
}

fn put(texts: &mut Texts, path: &str, text: &str) {
    texts.insert(path.to_owned(), text.to_owned());
}

#[test]
fn equal_changes_of_clusters_are_one() {
    let plan = compared(|head| put(head, "apps/pay/app.yaml", &component("pay", "1.1.0")));
    check(
        &plan,
        &[
            "shop/pay Change Deployment shop/pay on bj1 bj2 gz1",
            "  metadata.labels.app.kubernetes.io/version 1.0.0 → 1.1.0 by apps/pay/app.yaml:8 on bj1 bj2 gz1",
            "  spec.template.metadata.labels.app.kubernetes.io/version 1.0.0 → 1.1.0 by apps/pay/app.yaml:8 on bj1 bj2 gz1",
            "  spec.template.spec.containers[pay].image registry.example.com/pay:1.0.0 → registry.example.com/pay:1.1.0 \
             by apps/pay/app.yaml:8 on bj1 bj2 gz1",
        ],
    );
    let app = &plan.apps[0];
    assert_eq!((app.state, app.unchanged.len()), (AppPresence::Changed, 0));
    let version = &app.versions[0];
    assert_eq!((version.before.as_deref(), version.after.as_deref()), (Some("1.0.0"), Some("1.1.0")));
    assert_eq!(plan.counts().to_string(), "~3");
    assert_eq!((plan.totals.apps, plan.totals.clusters), (2, 3));
}

#[test]
fn change_of_one_cluster_names_its_layer() {
    let mut base = repository();
    put(&mut base, "templates/cluster/gz/layer.yaml", "clusters: {matchLabels: {zone: gz1}}\n");
    put(&mut base, "templates/cluster/gz/values.yaml", "# ours\nminReadySeconds: 1\n");
    let plan = compared_from(&base, |head| {
        put(head, "apps/pay/app.yaml", &component("pay", "1.1.0"));
        put(head, "templates/cluster/gz/values.yaml", "# ours\nminReadySeconds: 5\n");
    });
    check(
        &plan,
        &[
            "shop/cart Change Deployment shop/cart on gz1",
            "  spec.minReadySeconds 1 → 5 by templates/cluster/gz/values.yaml:2 on gz1",
            "shop/pay Change Deployment shop/pay on bj1 bj2 gz1",
            "  metadata.labels.app.kubernetes.io/version 1.0.0 → 1.1.0 by apps/pay/app.yaml:8 on bj1 bj2 gz1",
            "  spec.template.metadata.labels.app.kubernetes.io/version 1.0.0 → 1.1.0 by apps/pay/app.yaml:8 on bj1 bj2 gz1",
            "  spec.template.spec.containers[pay].image registry.example.com/pay:1.0.0 → registry.example.com/pay:1.1.0 \
             by apps/pay/app.yaml:8 on bj1 bj2 gz1",
            "  spec.minReadySeconds 1 → 5 by templates/cluster/gz/values.yaml:2 on gz1",
        ],
    );
}

#[test]
fn apps_come_and_go() {
    let plan = compared(|head| {
        head.remove("apps/cart/app.yaml");
        put(head, "apps/new/app.yaml", &component("new", "1.0.0"));
    });
    check(
        &plan,
        &[
            "shop/cart Delete Deployment shop/cart on bj1 bj2 gz1",
            "shop/new Create Deployment shop/new on bj1 bj2 gz1",
        ],
    );
    assert_eq!(
        plan.apps.iter().map(|app| app.state).collect::<Vec<_>>(),
        [AppPresence::Removed, AppPresence::New]
    );
    assert!(
        plan.apps[1].objects[0]
            .body
            .as_ref()
            .is_some_and(|body| body.contains("image: registry.example.com/new:1.0.0"))
    );
    assert_eq!(plan.deletes().count(), 1);
}

#[test]
fn only_apps_that_differ_are_rendered() {
    let mut base = repository();
    for number in 0..200 {
        put(&mut base, &format!("apps/a{number}/app.yaml"), &component(&format!("a{number}"), "1.0.0"));
    }
    let plan = compared_from(&base, |head| put(head, "apps/a7/app.yaml", &component("a7", "1.1.0")));
    assert_eq!((plan.apps.len(), plan.renders), (1, 2), "one on either side: clusters share them");
    let plan = compared_from(&base, |head| put(head, "README.md", "words"));
    assert_eq!((plan.apps.len(), plan.renders), (0, 0));
    let plan = compared_from(&base, |head| put(head, "apps/a7/layer/values.yaml", "minReadySeconds: 7\n"));
    assert_eq!((plan.apps.len(), plan.renders), (1, 2));
    // What all stand on: everything is compared, and what is the same is rendered once.
    let mut head = base.clone();
    put(&mut head, "templates/cluster/bj/layer.yaml", "clusters: {names: [bj1]}\n");
    put(&mut head, "templates/cluster/bj/values.yaml", "minReadySeconds: 3\n");
    let mut kept = ComparisonCache::default();
    let plan = compared_with(&base, &head, &mut kept);
    assert_eq!((plan.apps.len(), plan.renders), (202, 404));
    assert_eq!(plan.counts().to_string(), "~202");
    let again = compared_with(&base, &head, &mut kept);
    assert_eq!(again.renders, 202, "the base is kept");
    assert_eq!(again.apps, plan.apps);
}

#[test]
fn kinds_of_the_base_are_rendered_at_most_once() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: rules.example.com}\n\
                      spec: {group: example.com, scope: Namespaced, names: {plural: rules, kind: Rule}, \
                      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n";
    let rule = |level: &str| {
        format!(
            "apiVersion: example.com/v1\nkind: Rule\nmetadata: {{name: web, namespace: shop}}\nspec: {{level: {level}}}\n"
        )
    };
    let mut base = repository();
    objects(&mut base, "kinds", definition);
    objects(&mut base, "web", &rule("info"));
    let mut head = base.clone();
    objects(&mut head, "web", &rule("debug"));
    let mut kept = ComparisonCache::default();
    let plan = compared_with(&base, &head, &mut kept);
    assert_eq!((plan.apps.len(), plan.counts().to_string().as_str()), (1, "~3"), "{:?}", plan.errors);
    assert!(plan.renders > 2, "nobody knew what the others define: {}", plan.renders);
    let again = compared_with(&base, &head, &mut kept);
    assert_eq!((again.renders, &again.apps), (2, &plan.apps));
    // Whoever deploys the base knows it from there.
    let of_base = snapshot(&base, "ba5eba5e");
    let fleet = fleet_after(&of_base, &mut manifest::ManifestCache::default(), None);
    let renders = FleetRenderer::new(&fleet, &of_base, &NoCharts).render_all(&mut RenderCache::default());
    let mut told = ComparisonCache::default();
    told.set_defined(&of_base.revision, renders.defined_kinds().clone());
    let told = compared_with(&base, &head, &mut told);
    assert_eq!((told.renders, told.apps), (2, plan.apps));
}

#[test]
fn object_named_by_its_content_is_one_change() {
    let mut base = repository();
    objects(&mut base, "web", &(config_map("web-7f9c2bd4mk", "info") + &config_map("fixed", "info")));
    let plan = compared_from(&base, |head| {
        objects(head, "web", &(config_map("web-8h2kd9tgcm", "debug") + &config_map("fixed", "info")));
    });
    check(
        &plan,
        &[
            "shop/web Rename ConfigMap shop/web-8h2kd9tgcm was web-7f9c2bd4mk on bj1 bj2 gz1",
            "  data.level info → debug on bj1 bj2 gz1",
        ],
    );
    assert_eq!(plan.counts().to_string(), "~3");
}

#[test]
fn final_digests_of_names_differ_from_words() {
    let check = |name: &str, expected: Option<&str>| {
        assert_eq!(super::objects::name_without_digest(name), expected, "{name}")
    };
    check("web-7f9c2bd4mk", Some("web"));
    check("web-settings-0123abcd", Some("web-settings"));
    check("web-frontend", None);
    check("web-backend", None);
    check("web-deadbeef", None);
    check("web-1", None);
    check("web", None);
    check("-0123abcd", None);
}

#[test]
fn objects_moved_between_apps_are_not_deleted() {
    let mut base = repository();
    objects(&mut base, "one", &(config_map("a", "x") + &config_map("b", "x")));
    objects(&mut base, "two", &config_map("c", "x"));
    let plan = compared_from(&base, |head| {
        objects(head, "one", &config_map("a", "x"));
        objects(head, "two", &(config_map("c", "x") + &config_map("b", "x")));
    });
    check(&plan, &["shop/two Move ConfigMap shop/b from shop/one on bj1 bj2 gz1"]);
    assert_eq!(plan.counts().to_string(), "~3");
}

#[test]
fn deleted_objects_have_an_outcome() {
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: shop}\nspec: {accessModes: [ReadWriteOnce]}\n---\n";
    let kept = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, namespace: shop, annotations: {tutti.dev/prune: keep}}\n---\n";
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop}\nspec:\n  serviceName: db\n  \
               selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: db, image: db:1}]}}\n  \
               volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]\n  \
               persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}\n---\n";
    let mut base = repository();
    objects(&mut base, "web", &[claim, kept, set, &config_map("a", "x"), &config_map("b", "x")].concat());
    let plan = compared_from(&base, |head| objects(head, "web", &config_map("a", "x")));
    let fates: Vec<(String, ObjectChangeAction, Option<RemovalOutcome>)> = plan.apps[0]
        .objects
        .iter()
        .map(|object| (object.object.to_string(), object.action, object.fate.clone()))
        .collect();
    let waits = |why: &str| Some(RemovalOutcome::WaitsForApproval(why.to_owned()));
    assert_eq!(
        fates,
        [
            ("ConfigMap shop/b".to_owned(), ObjectChangeAction::Delete, Some(RemovalOutcome::Deleted)),
            (
                "PersistentVolumeClaim shop/data".to_owned(),
                ObjectChangeAction::Delete,
                waits("its contents would be deleted with it")
            ),
            (
                "StatefulSet shop/db".to_owned(),
                ObjectChangeAction::Delete,
                waits("its volume claims would be deleted with it")
            ),
            (
                "ConfigMap shop/kept".to_owned(),
                ObjectChangeAction::Orphan,
                Some(RemovalOutcome::Kept("tutti.dev/prune is keep".to_owned()))
            ),
        ]
    );
    assert_eq!(plan.counts().to_string(), "-9");
}

#[test]
fn more_deletes_than_the_cap_wait() {
    let mut base = repository();
    let maps: String = (0..4).map(|number| config_map(&format!("m{number}"), "x")).collect();
    objects(&mut base, "web", &(maps + &config_map("stays", "x")));
    let removing = |maps: usize| {
        compared_from(&base, |head| {
            let left: String = (maps..4).map(|number| config_map(&format!("m{number}"), "x")).collect();
            objects(head, "web", &(left + &config_map("stays", "x")));
        })
    };
    let fates = |plan: &Comparison| plan.deletes().map(|(_, object)| object.fate.clone()).collect::<Vec<_>>();
    assert_eq!(fates(&removing(3)), vec![Some(RemovalOutcome::Deleted); 3]);
    let waits = Some(RemovalOutcome::WaitsForApproval("12 deletes, more than the cap of 10".to_owned()));
    assert_eq!(fates(&removing(4)), vec![waits; 4]);
}

#[test]
fn placement_changes_have_a_reason() {
    let placed = |names: &str, replicas: u32| {
        component("pay", "1.0.0").replace("replicas: 2", &format!("replicas: {replicas}"))
            + &format!(
                "  placement: {{clusters: {{matchExpressions: [{{key: zone, operator: In, values: [{names}]}}]}}}}\n"
            )
    };
    let mut base = repository();
    put(&mut base, "apps/pay/app.yaml", &placed("bj1, bj2", 2));
    let plan = compared_from(&base, |head| put(head, "apps/pay/app.yaml", &placed("bj2, gz1", 3)));
    let told = plan.apps[0].placement.iter();
    let told: Vec<_> =
        told.map(|it| (it.cluster.as_str(), it.kind, it.before, it.after, it.why.as_str())).collect();
    assert_eq!(
        told,
        [
            ("bj1", PlacementTransition::Goes, Some(2), None, "placement, apps/pay/app.yaml:10"),
            ("bj2", PlacementTransition::Stays, Some(2), Some(3), "apps/pay/app.yaml:9"),
            ("gz1", PlacementTransition::Comes, None, Some(3), "placement, apps/pay/app.yaml:10"),
        ]
    );
    let plan = compared_from(&base, |head| {
        let tainted = CLUSTER
            .replace("NAME", "bj1")
            .replace("spec: {", "spec: {taints: [{key: down, effect: NoExecute}], ");
        put(head, "clusters/bj1.yaml", &tainted);
    });
    let change = &plan.apps.iter().find(|app| *app.app.name == *"pay").expect("pay").placement[0];
    assert_eq!(
        (change.kind, change.why.as_str()),
        (PlacementTransition::Goes, "the taint down:NoExecute excludes the app")
    );
}

#[test]
fn clusters_without_a_file_keep_their_objects() {
    let plan = compared(|head| _ = head.remove("clusters/gz1.yaml"));
    check(&plan, &[]);
    assert_eq!(plan.clusters[2].state, super::ClusterPresence::Gone);
}

#[test]
fn errors_of_the_base_are_listed_separately() {
    let mut base = repository();
    put(
        &mut base,
        "apps/bad/app.yaml",
        &component("bad", "1").replace("developLanguage: java", "developLanguage: nobody"),
    );
    let plan = compared_from(&base, |head| put(head, "apps/pay/app.yaml", &component("pay", "1.1.0")));
    assert_eq!((plan.errors.len(), plan.known_errors.len()), (0, 1));
    assert_eq!(plan.apps.len(), 1);
    // One more line above it, and it is still the same.
    let moved = |texts: &mut Texts| {
        let text = texts["apps/bad/app.yaml"].clone();
        put(texts, "apps/bad/app.yaml", &format!("# a line\n{text}"));
    };
    let plan = compared_from(&base, moved);
    assert_eq!((plan.errors.len(), plan.known_errors.len()), (0, 1), "{:?}", plan.errors);
    // Mended: what it is on the clusters is not known here.
    let plan = compared_from(&base, |head| put(head, "apps/bad/app.yaml", &component("bad", "1")));
    assert_eq!((plan.errors.len(), plan.known_errors.len()), (0, 0));
    assert_eq!(
        (told(&plan).len(), plan.apps[0].mended.len(), plan.apps[0].state),
        (0, 3, AppPresence::Changed)
    );
}

#[test]
fn app_that_breaks_deletes_nothing() {
    let plan = compared(|head| {
        let text = component("pay", "1.1.0").replace("developLanguage: java", "developLanguage: nobody");
        put(head, "apps/pay/app.yaml", &text);
    });
    assert_eq!(told(&plan), Vec::<String>::new());
    assert_eq!((plan.errors.len(), plan.apps[0].broken.len()), (1, 3));
    assert_eq!(plan.apps[0].app, AppId::new("shop", "pay"));
    let plan = compared(|head| put(head, "apps/pay/app.yaml", "kind: [\n"));
    assert_eq!(told(&plan), Vec::<String>::new());
    assert!(!plan.errors.is_empty());
}

#[test]
fn values_of_secrets_are_digests() {
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: db, namespace: shop}}\nstringData: {{password: {value}}}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: db, namespace: shop}}\ndata: {{url: \"db://me:{value}@db\"}}\n---\n"
        )
    };
    let mut base = repository();
    objects(&mut base, "web", &secret("canary-one"));
    let plan = compared_from(&base, |head| {
        objects(head, "web", &secret("canary-two"));
        objects(head, "new", &secret("canary-three").replace("name: db", "name: other"));
    });
    let text = serde_json::to_string(&plan).expect("JSON");
    assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
    let lines = told(&plan);
    let password = lines.iter().find(|line| line.contains("data.password")).expect("a field");
    assert_eq!(password.matches("*** ").count(), 2, "{password}");
    let (before, after) = password.split_once(" → ").expect("two values");
    assert_ne!(before.get(before.len() - 8..), after.get(4..12));
    assert!(lines.iter().any(|line| line.contains("data.url db://me:***@db")), "{lines:?}");
}

#[test]
fn changed_clusters_are_listed_by_ring() {
    let mut base = repository();
    let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec:\n  rings:\n    \
                 - {name: test, clusters: {matchLabels: {zone: bj1}}, soak: 15m, confirm: true}\n    \
                 - {name: prod, clusters: {matchExpressions: [{key: zone, operator: NotIn, values: [bj1]}]}, soak: 1h}\n";
    put(&mut base, "rings.yaml", rings);
    let plan = compared_from(&base, |head| put(head, "apps/pay/app.yaml", &component("pay", "1.1.0")));
    let waves = serde_json::to_value(&plan.apps[0].waves).expect("JSON");
    assert_eq!(
        waves,
        serde_json::json!([
            {"name": "test", "clusters": ["bj1"], "confirm": true, "soak": 900},
            {"name": "prod", "clusters": ["bj2", "gz1"], "confirm": false},
        ])
    );
    assert_eq!(plan.clusters[0].ring.as_deref(), Some("test"));
}
