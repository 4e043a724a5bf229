//! Health rules of the repository judge objects of custom kinds, from the watch to the overview.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{INSTANCE, config_map, objects_app};
use crate::support::program;
use crate::support::repository::TestRepository;

const EXPRESSION_RULE: &str = "
apiVersion: tutti.dev/v1alpha1
kind: HealthRule
spec:
  failed: has(status.phase) && status.phase == 'Broken'
  current: has(status.phase) && status.phase == 'Up'
";

const SCRIPT_RULE: &str = r#"
hs = {}
if obj.status ~= nil and obj.status.phase == "Broken" then
  hs.status = "Degraded"
  hs.message = "phase " .. obj.status.phase
  return hs
end
if obj.status ~= nil and obj.status.phase == "Up" then
  hs.status = "Healthy"
  return hs
end
hs.status = "Progressing"
hs.message = "Waiting for a phase"
return hs
"#;

fn kind_definition(kind: &str) -> String {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
    .to_string()
}

fn custom_object(kind: &str, name: &str) -> String {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": {"size": 1},
    });
    format!("---\n{object}\n")
}

/// Sets the status that the kind's controller would write.
async fn set_status_phase(fleet: &TestFleet, kind: &str, name: &str, phase: &str) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", kind));
    let client = kube::Client::new(fleet.cluster("bj1").service(), "default");
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let patch = Patch::Merge(json!({"status": {"phase": phase}}));
    api.patch(name, &PatchParams::default(), &patch).await.expect("patched");
}

/// Waits until the app is in the phase, and returns its detail.
async fn wait_for_phase(running: &RunningController, app: &str, phase: TargetPhase) -> String {
    let name = format!("{app} {}", phase.as_str());
    let stands = |now: &Overview| now.targets.iter().any(|it| it.app.to_string() == app && it.phase == phase);
    target(&*running.until(&name, stands).await, "bj1", app).detail.clone()
}

fn fleet(rules: &[(&str, &str)]) -> TestFleet {
    let definitions = [kind_definition("Database"), kind_definition("Cache")].join("\n---\n");
    let (kinds, shop, till) =
        (objects_app("default", "kinds"), objects_app("default", "shop"), objects_app("default", "till"));
    let (orders, sessions) = (custom_object("Database", "orders"), custom_object("Cache", "sessions"));
    let files = [
        ("apps/kinds/app.yaml", kinds.as_str()),
        ("apps/kinds/objects/definitions.yaml", &definitions),
        ("apps/shop/app.yaml", &shop),
        ("apps/shop/objects/orders.yaml", &orders),
        ("apps/till/app.yaml", &till),
        ("apps/till/objects/sessions.yaml", &sessions),
    ];
    TestFleet::new(&["bj1"], &[&files, rules].concat())
}

const EXPRESSION_FILE: &str = "health/example.com/Database.yaml";
const SCRIPT_FILE: &str = "health/example.com/Cache/health.lua";

#[tokio::test(start_paused = true)]
async fn app_health_follows_its_rules() {
    let fleet = fleet(&[(EXPRESSION_FILE, EXPRESSION_RULE), (SCRIPT_FILE, SCRIPT_RULE)]);
    let running = fleet.start().await;
    let waits = wait_for_phase(&running, "default/till", TargetPhase::Progressing).await;
    assert_eq!(waits, "Cache default/sessions: Waiting for a phase");
    let waits = wait_for_phase(&running, "default/shop", TargetPhase::Progressing).await;
    assert_eq!(waits, "Database default/orders: none of the expressions holds");

    for (kind, name, app) in [("Database", "orders", "default/shop"), ("Cache", "sessions", "default/till")] {
        set_status_phase(&fleet, kind, name, "Broken").await;
        let why = wait_for_phase(&running, app, TargetPhase::Degraded).await;
        assert!(
            ["Database default/orders: `failed` holds", "Cache default/sessions: phase Broken"]
                .contains(&&*why),
            "{why}"
        );
        set_status_phase(&fleet, kind, name, "Up").await;
        wait_for_phase(&running, app, TargetPhase::Running).await;
    }
    running.until_converged(&fleet.first_commit).await;
}

/// ConfigMaps are watched by metadata. With a rule they are watched whole, from the commit that adds the rule.
#[tokio::test(start_paused = true)]
async fn changed_rule_reevaluates_existing_objects() {
    let rule = |wanted: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: HealthRule\nspec: {{current: \"data.value == '{wanted}'\"}}\n"
        )
    };
    let (app, map) = (objects_app("default", "settings"), config_map("default", "one", "first"));
    let fleet = TestFleet::new(
        &["bj1"],
        &[("apps/settings/app.yaml", &app), ("apps/settings/objects/one.yaml", &map)],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();

    let path = "health/core/ConfigMap.yaml";
    fleet.push(&running, "A rule", &[(path, Some(&rule("second")))]).await;
    wait_for_phase(&running, "default/settings", TargetPhase::Progressing).await;
    let fits = fleet.push(&running, "Another", &[(path, Some(&rule("first")))]).await;
    running.until_converged(&fits).await;
    fleet.push(&running, "The first again", &[(path, Some(&rule("second")))]).await;
    wait_for_phase(&running, "default/settings", TargetPhase::Progressing).await;
    let gone = fleet.push(&running, "None", &[(path, None)]).await;
    running.until_converged(&gone).await;
    assert_eq!(
        fleet.request_counts(),
        ["4 stream configmaps"],
        "nothing is written, and each rule lists its kind once"
    );
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.is_some());
}

/// Scripts that never end, use all memory, or access the system: their objects are Unknown, others are judged.
#[tokio::test(start_paused = true)]
async fn hostile_script_is_refused_and_others_continue() {
    for (script, why) in [
        ("while true do end", "it ran for too long"),
        ("local t = {} while true do t[#t + 1] = string.rep('x', 1000000) end", "it needed too much memory"),
        (
            "os.execute('touch /tmp/tutti-was-here')",
            "health.lua:1: attempt to call a nil value (field 'execute')",
        ),
    ] {
        let fleet = fleet(&[(EXPRESSION_FILE, EXPRESSION_RULE), (SCRIPT_FILE, script)]);
        let running = fleet.start().await;
        let detail = wait_for_phase(&running, "default/till", TargetPhase::Pending).await;
        let detail = if detail.contains("health rule") {
            detail
        } else {
            let judged = running
                .until("judged", |now| target(now, "bj1", "default/till").detail.contains("health rule"));
            target(&*judged.await, "bj1", "default/till").detail.clone()
        };
        assert_eq!(detail, format!("Cache default/sessions: the health rule {SCRIPT_FILE}: {why}"));
        set_status_phase(&fleet, "Database", "orders", "Up").await;
        wait_for_phase(&running, "default/shop", TargetPhase::Running).await;
        running.stop().await;
    }
}

/// A rule with a mistake is reported and its objects are Unknown; the rest of the repository continues.
#[tokio::test(start_paused = true)]
async fn invalid_rule_affects_its_kind_only() {
    let broken = EXPRESSION_RULE.replace("== 'Up'", "==");
    let fleet = fleet(&[(EXPRESSION_FILE, &broken), (SCRIPT_FILE, SCRIPT_RULE)]);
    let running = fleet.start().await;
    set_status_when_created(&fleet, &running).await;
    wait_for_phase(&running, "default/till", TargetPhase::Running).await;
    let now = running
        .until("judged", |now| target(now, "bj1", "default/shop").detail.contains("health rule"))
        .await;
    assert_eq!(
        target(&now, "bj1", "default/shop").detail,
        format!("Database default/orders: the health rule {EXPRESSION_FILE}: it has an error")
    );
    let told: Vec<&str> = now.diagnostics.iter().map(|mistake| mistake.code).collect();
    assert_eq!(told, ["E2081"]);
}

/// Examples in `docs/reference/health.md` name their file in the first line.
#[test]
fn documented_examples_are_valid_rules() {
    let page = include_str!("../../docs/reference/health.md");
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let example = |(_, text): (&'static str, &'static str)| {
        let line = text.lines().next()?;
        let path = line.strip_prefix("# ").or_else(|| line.strip_prefix("-- "))?;
        Some((path, text))
    };
    let examples: Vec<_> = blocks.filter_map(example).collect();
    let paths: Vec<&str> = examples.iter().map(|(path, _)| *path).collect();
    assert_eq!(paths, [EXPRESSION_FILE, "health/example.com/Cache/health.lua"]);
    let repository = TestRepository::empty();
    repository.write("tutti.yaml", INSTANCE);
    examples.iter().for_each(|(path, text)| repository.write(path, text));
    let (output, errors, code) = program::run(repository.path(), &["lint"]);
    assert_eq!(code, 0, "{output}{errors}");
    repository.write(EXPRESSION_FILE, "kind: HealthRule");
    assert_eq!(program::run(repository.path(), &["lint"]).2, 2, "they are read");
}

async fn set_status_when_created(fleet: &TestFleet, running: &RunningController) {
    wait_for_phase(running, "default/till", TargetPhase::Progressing).await;
    set_status_phase(fleet, "Cache", "sessions", "Up").await;
}

/// A reverted canary: until its pod is gone, the counts are complete and both revisions are equal.
#[tokio::test(start_paused = true)]
async fn reverted_canary_is_progressing_until_its_pod_ends() {
    let set = |image: &str, partition: u32| {
        let labels = json!({"app": "db"});
        let template = json!({
            "metadata": {"labels": labels, "annotations": {"sim.tutti.dev/slow-terminate": "true"}},
            "spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": image}]},
        });
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        let spec = json!({"replicas": 3, "serviceName": "db", "selector": {"matchLabels": labels},
            "updateStrategy": strategy, "template": template});
        let metadata = json!({"name": "db", "namespace": "default"});
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
            .to_string()
    };
    let (app, manifest) = (objects_app("default", "db"), "apps/db/objects/set.yaml");
    let fleet = TestFleet::new(&["bj1"], &[("apps/db/app.yaml", &app), (manifest, &set("db:1", 0))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let canary = fleet.push(&running, "A canary", &[(manifest, Some(&set("db:2", 2)))]).await;
    running.until_converged(&canary).await;
    let back = fleet.push(&running, "Back", &[(manifest, Some(&set("db:1", 0)))]).await;
    let waits = |now: &Overview| {
        now.revision.as_ref() == Some(&back)
            && target(now, "bj1", "default/db").detail == "StatefulSet default/db: 2/3 replicas updated"
    };
    running.until("a pod that is to go", waits).await;
    let seen =
        live_objects::get(fleet.cluster("bj1"), "StatefulSet", "default", "db").await.expect("the set");
    let status = &seen["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"], "{status:#}");
    assert_eq!((&status["readyReplicas"], &status["updatedReplicas"]), (&json!(3), &json!(2)), "{status:#}");
    running.until_converged(&back).await;
}
