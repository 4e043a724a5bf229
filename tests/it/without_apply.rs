//! Kinds whose own server knows no server-side apply: objects are created, and changed by merge patches.

mod built_in;
mod foreseen;
mod upgrade;

use std::time::Duration;

use kube::api::DeleteParams;
use sandbox::{Fault, FaultPlan, Mutation, RequestMatch, Sandbox, SandboxOptions, Webhook};
use serde_json::{Value, json};
use tutti::model::Revision;
use tutti::report::Phase;

use crate::diff::plain;
use crate::drift::{APP, MANIFESTS, app, settle};
use crate::support::fleet::{Fleet, Running, is_list, target};
use crate::support::live::{self, create_as, edit_as};
use crate::support::manifests::{config_map, objects};

const FIELDS: &str = "tutti.dev/fields";

fn options(name: &str) -> SandboxOptions {
    SandboxOptions { without_apply: vec!["accounts.example.com".to_owned()], ..SandboxOptions::instant(name) }
}

/// A kind with defaults, also in the items of a list.
fn definition() -> Value {
    let defaulted = |default: &str| json!({"type": "string", "default": default});
    let open = |properties: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    let ports = json!({"type": "array", "items": open(json!({"protocol": defaulted("TCP")}))});
    let schema = open(json!({"spec": open(json!({"tier": defaulted("free"), "ports": ports}))}));
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "accounts.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "accounts", "singular": "account", "kind": "Account"}},
    })
}

fn account(spec: &Value) -> String {
    let metadata = json!({"name": "web", "namespace": "default"});
    json!({"apiVersion": "example.com/v1", "kind": "Account", "metadata": metadata, "spec": spec}).to_string()
}

fn first() -> Value {
    json!({"owner": "ada", "limits": {"max": 3, "min": 1}, "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]})
}

struct Scene {
    fleet: Fleet,
    running: Running,
}

impl Scene {
    /// A cluster with the kind, and nothing done yet.
    async fn bare(app: &str, spec: &Value) -> Fleet {
        let fleet = Fleet::with(&["bj1"], &[(APP, app), (MANIFESTS, &account(spec))], options);
        live::apply_as(fleet.cluster("bj1"), "admin", &definition().to_string()).await;
        // Until it is served.
        settle().await;
        fleet.forget_requests();
        fleet
    }

    async fn with(fields: &str, spec: &Value) -> Self {
        let fleet = Self::bare(&app(fields), spec).await;
        let running = fleet.start().await;
        running.converged(&fleet.begin).await;
        settle().await;
        fleet.forget_requests();
        Self { fleet, running }
    }

    async fn new() -> Self {
        Self::with("drift: repair", &first()).await
    }

    fn cluster(&self) -> &Sandbox {
        self.fleet.cluster("bj1")
    }

    async fn get(&self) -> Value {
        live::get(self.cluster(), "Account", "default", "web").await.expect("it is there")
    }

    async fn edit(&self, patch: Value) {
        edit_as(self.cluster(), "kubectl-edit", ("Account", "web"), &patch).await;
    }

    async fn push(&self, spec: &Value) -> Revision {
        let revision = self.fleet.push(&self.running, "Another", &[(MANIFESTS, Some(&account(spec)))]).await;
        self.running.converged(&revision).await;
        revision
    }

    /// Requests about accounts, after a while: those of tests too, but for their reads.
    async fn counted(&self) -> Vec<String> {
        settle().await;
        counted(&self.fleet)
    }

    /// Ends it, and starts another process.
    async fn again(self) -> Self {
        let Self { fleet, running } = self;
        running.stop().await;
        fleet.forget_requests();
        let running = fleet.start().await;
        Self { fleet, running }
    }
}

fn counted(fleet: &Fleet) -> Vec<String> {
    let is_of_accounts = |what: &String| what.contains("accounts") && !is_list(what);
    fleet.counted().into_iter().filter(is_of_accounts).collect()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_once_and_costs_nothing_then() {
    let fleet = Scene::bare(&objects("default", "web"), &first()).await;
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    let expected =
        ["1 apply accounts.example.com", "1 create accounts.example.com", "1 get accounts.example.com"];
    assert_eq!(counted(&fleet), expected, "the apply is refused, and not asked for again");
    let web = live::get(fleet.cluster("bj1"), "Account", "default", "web").await.expect("it is there");
    assert_eq!(web["spec"]["tier"], "free");
    assert!(web["metadata"].get("managedFields").is_none(), "{web}");
    fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(counted(&fleet), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_kind_is_not_applied_in_vain() {
    let scene = Scene::new().await;
    let two =
        [account(&first()), account(&first()).replace(r#""name":"web""#, r#""name":"two""#)].join("\n---\n");
    let revision = scene.fleet.push(&scene.running, "Two", &[(MANIFESTS, Some(&two))]).await;
    scene.running.converged(&revision).await;
    let expected = ["1 create accounts.example.com", "1 get accounts.example.com"];
    assert_eq!(scene.counted().await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_one_read_and_one_merge_patch() {
    let scene = Scene::new().await;
    let uid = scene.get().await["metadata"]["uid"].clone();
    scene.fleet.forget_requests();
    scene.push(&json!({"owner": "bob", "limits": {"max": 3, "min": 1}, "ports": [{"port": 81}]})).await;
    assert_eq!(scene.counted().await, ["1 get accounts.example.com", "1 patch accounts.example.com"]);
    let web = scene.get().await;
    assert_eq!(web["spec"]["owner"], "bob");
    assert_eq!(web["spec"]["ports"], json!([{"port": 81, "protocol": "TCP"}]));
    assert_eq!(web["metadata"]["uid"], uid);
}

#[tokio::test(start_paused = true)]
async fn what_git_says_no_more_goes_and_what_others_set_stays() {
    let scene = Scene::new().await;
    scene.edit(json!({"spec": {"limits": {"theirs": 7}, "note": "by hand"}, "metadata": {"labels": {"team": "x"}}})).await;
    settle().await;
    scene.push(&json!({"owner": "ada", "limits": {"max": 3}})).await;
    settle().await;
    let web = scene.get().await;
    let expected =
        json!({"owner": "ada", "limits": {"max": 3, "theirs": 7}, "note": "by hand", "tier": "free"});
    assert_eq!(web["spec"], expected);
    assert_eq!(web["metadata"]["labels"]["team"], "x");
    scene.push(&json!({"owner": "ada"})).await;
    assert_eq!(scene.get().await["spec"]["limits"], json!({"theirs": 7}));
}

/// Also by the next process, which learns what was ours from the object alone.
#[tokio::test(start_paused = true)]
async fn what_git_says_no_more_goes_after_a_restart_too() {
    let Scene { fleet, running } = Scene::new().await;
    running.stop().await;
    let fewer = account(&json!({"owner": "ada"}));
    let revision = fleet.repository.commit("Fewer", &[(MANIFESTS, Some(&fewer))]);
    fleet.forget_requests();
    let running = fleet.start().await;
    running.converged(&revision).await;
    let scene = Scene { fleet, running };
    let expected =
        ["1 apply accounts.example.com", "1 get accounts.example.com", "1 patch accounts.example.com"];
    assert_eq!(scene.counted().await, expected);
    assert_eq!(scene.get().await["spec"], json!({"owner": "ada", "tier": "free"}));
}

/// Somebody took the annotation too: what was ours is known from Git.
#[tokio::test(start_paused = true)]
async fn what_was_ours_is_known_from_git_when_the_annotation_is_gone() {
    let Scene { fleet, running } = Scene::new().await;
    running.stop().await;
    let off = json!({"metadata": {"annotations": {FIELDS: null}}});
    edit_as(fleet.cluster("bj1"), "kubectl-edit", ("Account", "web"), &off).await;
    let fewer = account(&json!({"owner": "ada"}));
    let revision = fleet.repository.commit("Fewer", &[(MANIFESTS, Some(&fewer))]);
    let running = fleet.start().await;
    running.converged(&revision).await;
    let scene = Scene { fleet, running };
    settle().await;
    assert_eq!(scene.get().await["spec"], json!({"owner": "ada", "tier": "free"}));
}

async fn check_repaired(edit: Value) {
    let scene = Scene::new().await;
    let before = scene.get().await;
    scene.fleet.forget_requests();
    scene.edit(edit.clone()).await;
    // The first patch is the edit.
    assert_eq!(
        scene.counted().await,
        ["1 get accounts.example.com", "2 patch accounts.example.com"],
        "{edit}"
    );
    assert_eq!(plain(scene.get().await), plain(before), "{edit}");
    scene.fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(counted(&scene.fleet), Vec::<String>::new(), "{edit}");
}

#[tokio::test(start_paused = true)]
async fn edits_of_people_are_put_back() {
    check_repaired(json!({"spec": {"owner": "eve"}})).await;
    check_repaired(json!({"spec": {"owner": null}})).await;
    check_repaired(json!({"spec": {"limits": {"max": 9}}})).await;
    check_repaired(json!({"spec": {"ports": [{"port": 80}]}})).await;
    let item = json!([{"port": 80, "name": "x"}, {"port": 53, "protocol": "UDP"}]);
    check_repaired(json!({"spec": {"ports": item}})).await;
    check_repaired(json!({"metadata": {"annotations": {FIELDS: null}}})).await;
    check_repaired(json!({"metadata": {"annotations": {FIELDS: "{}"}}})).await;
    check_repaired(json!({"metadata": {"annotations": {"tutti.dev/hash": null}}})).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_add_is_no_drift() {
    let scene = Scene::new().await;
    for edit in [
        json!({"spec": {"note": "by hand", "limits": {"theirs": 1}, "tier": "paid"}}),
        json!({"metadata": {"labels": {"team": "x"}, "finalizers": ["example.com/x"]}}),
        json!({"status": {"phase": "Ready"}}),
    ] {
        scene.edit(edit).await;
    }
    assert_eq!(scene.counted().await, ["3 patch accounts.example.com"], "those of the test");
}

#[tokio::test(start_paused = true)]
async fn drift_is_only_told_where_git_says_so() {
    let scene = Scene::with("drift: report", &first()).await;
    scene.edit(json!({"spec": {"owner": "eve"}})).await;
    assert_eq!(scene.counted().await, ["1 patch accounts.example.com"], "that of the test");
    let now = scene.running.overview.borrow().clone();
    let web = target(&now, "bj1", "default/web");
    assert!(web.detail.contains("values of ours were changed"), "{} {}", web.phase.as_str(), web.detail);
}

#[tokio::test(start_paused = true)]
async fn a_label_taken_off_is_put_back() {
    let scene = Scene::new().await;
    scene.edit(json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}})).await;
    // One read finds that it is ours still, the other is what the patch is made of.
    assert_eq!(scene.counted().await, ["2 get accounts.example.com", "2 patch accounts.example.com"]);
    assert_eq!(scene.get().await["metadata"]["labels"]["tutti.dev/managed-by"], "main");
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_by_hand_is_made_again() {
    let scene = Scene::new().await;
    let accounts = live::api(scene.cluster(), "Account", Some("default"));
    accounts.delete("web", &DeleteParams::default()).await.expect("deleted");
    let expected =
        ["1 create accounts.example.com", "1 delete accounts.example.com", "1 get accounts.example.com"];
    assert_eq!(scene.counted().await, expected);
    assert_eq!(scene.get().await["spec"]["owner"], "ada");
}

#[tokio::test(start_paused = true)]
async fn what_leaves_git_is_deleted() {
    let scene = Scene::new().await;
    let map = config_map("default", "other", "one");
    let revision = scene.fleet.push(&scene.running, "Without it", &[(MANIFESTS, Some(&map))]).await;
    scene.running.converged(&revision).await;
    assert_eq!(scene.counted().await, ["1 delete accounts.example.com"]);
    assert!(live::get(scene.cluster(), "Account", "default", "web").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_restart_asks_for_nothing_and_writes_nothing() {
    let scene = Scene::new().await.again().await;
    scene.running.converged(&scene.fleet.begin.clone()).await;
    assert_eq!(scene.counted().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_edit_while_no_process_ran_is_put_back() {
    let Scene { fleet, running } = Scene::new().await;
    running.stop().await;
    let edit = json!({"spec": {"owner": "eve"}});
    edit_as(fleet.cluster("bj1"), "kubectl-edit", ("Account", "web"), &edit).await;
    fleet.forget_requests();
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let scene = Scene { fleet, running };
    let expected =
        ["1 apply accounts.example.com", "1 get accounts.example.com", "1 patch accounts.example.com"];
    assert_eq!(scene.counted().await, expected);
    assert_eq!(scene.get().await["spec"]["owner"], "ada");
}

/// The server has its own mind about a value: what it made of ours is what ours is held to.
#[tokio::test(start_paused = true)]
async fn a_value_that_the_server_writes_otherwise_is_not_written_for_ever() {
    let fleet = Scene::bare(&objects("default", "web"), &first()).await;
    let path = ["spec", "owner"].map(str::to_owned).to_vec();
    let mutation = Mutation::Set { path, value: json!("ADA") };
    let plan =
        FaultPlan::default().webhook(Webhook { resource: "accounts.example.com".to_owned(), mutation });
    fleet.cluster("bj1").set_faults(&plan);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(counted(&fleet), Vec::<String>::new());
    // The next process finds out once.
    let scene = Scene { fleet, running }.again().await;
    scene.running.converged(&scene.fleet.begin.clone()).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let expected =
        ["1 apply accounts.example.com", "1 get accounts.example.com", "1 patch accounts.example.com"];
    assert_eq!(counted(&scene.fleet), expected);
}

#[tokio::test(start_paused = true)]
async fn what_others_made_is_refused() {
    let fleet = Scene::bare(&objects("default", "web"), &first()).await;
    create_as(fleet.cluster("bj1"), "kubectl", &account(&json!({"owner": "eve"}))).await;
    fleet.forget_requests();
    let running = fleet.start().await;
    settle().await;
    let now = running.overview.borrow().clone();
    let web = target(&now, "bj1", "default/web");
    assert_eq!(web.phase, Phase::Refused, "{}", web.detail);
    assert!(web.detail.contains("adopt"), "{}", web.detail);
    assert!(counted(&fleet).iter().all(|it| it.contains(" get ")), "{:?}", counted(&fleet));
}

#[tokio::test(start_paused = true)]
async fn what_others_made_is_adopted_as_asked_for() {
    let fleet = Scene::bare(&app("adopt: true"), &first()).await;
    let theirs = account(&json!({"owner": "eve", "old": true, "limits": {"max": 1, "old": 1}}));
    let made = create_as(fleet.cluster("bj1"), "kubectl", &theirs).await;
    let by_hand = json!({"spec": {"note": "by hand"}});
    edit_as(fleet.cluster("bj1"), "kubectl-edit", ("Account", "web"), &by_hand).await;
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    let web = live::get(fleet.cluster("bj1"), "Account", "default", "web").await.expect("it is there");
    assert_eq!(web["metadata"]["uid"], made["metadata"]["uid"]);
    let spec = json!({"owner": "ada", "limits": {"max": 3, "min": 1}, "note": "by hand", "tier": "free",
        "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]});
    assert_eq!(web["spec"], spec, "what kubectl applied goes, what nobody noted stays");
    let annotations = web["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("last-applied"), "{annotations}");
    fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(counted(&fleet), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_let_go_is_nobodys() {
    let scene = Scene::new().await;
    let approval = "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {name: hand-over}\n\
                    spec: {app: default/web, action: orphan}\n";
    let gone = [
        (APP, None),
        (MANIFESTS, None),
        ("approvals/web.yaml", Some(approval)),
        ("apps/other/app.yaml", Some(&*objects("default", "other"))),
        ("apps/other/objects/all.yaml", Some(&*config_map("default", "other", "one"))),
    ];
    let revision = scene.fleet.push(&scene.running, "Hand it over", &gone).await;
    scene.running.converged(&revision).await;
    assert_eq!(scene.counted().await, ["1 get accounts.example.com", "1 patch accounts.example.com"]);
    let web = scene.get().await;
    assert!(!web["metadata"].to_string().contains("tutti"), "{web}");
    assert_eq!(web["spec"]["owner"], "ada");
}

#[tokio::test(start_paused = true)]
async fn fields_that_are_left_to_others_stay_theirs() {
    let rule = "ignore: [{target: {kind: Account}, paths: [/spec/owner, /spec/ports/port=80/name]}]";
    let scene = Scene::with(rule, &first()).await;
    let ports = json!([{"port": 80, "name": "theirs"}, {"port": 53, "protocol": "UDP"}]);
    scene.edit(json!({"spec": {"owner": "eve", "ports": ports}})).await;
    assert_eq!(scene.counted().await, ["1 patch accounts.example.com"], "that of the test");
    scene.push(&json!({"owner": "ada", "limits": {"max": 4}, "ports": [{"port": 80}]})).await;
    settle().await;
    let spec = json!({"owner": "eve", "limits": {"max": 4}, "tier": "free",
        "ports": [{"port": 80, "name": "theirs", "protocol": "TCP"}]});
    assert_eq!(scene.get().await["spec"], spec);
    scene.push(&json!({"limits": {"max": 4}})).await;
    settle().await;
    assert_eq!(scene.get().await["spec"], json!({"owner": "eve", "limits": {"max": 4}, "tier": "free"}));
    // The next process sees nothing to do either.
    let scene = scene.again().await;
    assert_eq!(scene.counted().await, Vec::<String>::new());
}

/// The same objects behind a server that knows it, as after an upgrade.
fn upgraded(fleet: &mut Fleet) {
    let newer = Sandbox::new(SandboxOptions::instant("bj1"));
    newer.restore(&fleet.cluster("bj1").backup());
    fleet.clusters.insert("bj1".to_owned(), newer);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_learnt_it_is_given_our_entry() {
    let changed = json!({"owner": "bob", "limits": {"max": 3}, "ports": [{"port": 80}]});
    let fewer = json!({"owner": "ada", "limits": {"max": 3}});
    let more = json!({"owner": "ada", "limits": {"max": 3, "min": 1, "more": 7}, "ports": first()["ports"]});
    for spec in [changed, fewer, more] {
        let Scene { mut fleet, running } = Scene::new().await;
        running.stop().await;
        let by_hand = json!({"spec": {"note": "by hand"}});
        edit_as(fleet.cluster("bj1"), "kubectl-edit", ("Account", "web"), &by_hand).await;
        upgraded(&mut fleet);
        // What stays as it is stays with its annotation.
        let running = fleet.start().await;
        running.converged(&fleet.begin).await;
        settle().await;
        assert_eq!(counted(&fleet), Vec::<String>::new(), "{spec}");

        let scene = Scene { fleet, running };
        scene.push(&spec).await;
        settle().await;
        let web = scene.get().await;
        let mut expected = spec.clone();
        expected["note"] = json!("by hand");
        expected["tier"] = json!("free");
        for port in expected.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.get("protocol").is_none() {
                port["protocol"] = json!("TCP");
            }
        }
        assert_eq!(web["spec"], expected);
        assert!(web["metadata"]["annotations"].get(FIELDS).is_none(), "{web}");
        let entries = web["metadata"]["managedFields"].as_array().expect("entries");
        assert!(
            entries.iter().any(|it| it["manager"] == "tutti-main" && it["operation"] == "Apply"),
            "{web}"
        );
        scene.fleet.forget_requests();
        // As any other object from then on.
        scene.edit(json!({"spec": {"owner": "eve"}})).await;
        assert_eq!(scene.counted().await, ["1 apply accounts.example.com", "1 patch accounts.example.com"]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_was_quicker_is_read_again() {
    let scene = Scene::new().await;
    let patches = || RequestMatch::any().verb("patch").resource("accounts.example.com");
    scene.cluster().fail_next(patches(), 1, Fault::conflict());
    scene.push(&json!({"owner": "bob"})).await;
    assert_eq!(scene.counted().await, ["2 get accounts.example.com", "2 patch accounts.example.com"]);
    assert_eq!(scene.get().await["spec"], json!({"owner": "bob", "tier": "free"}));
    // Not for ever.
    scene.fleet.forget_requests();
    scene.cluster().fail_next(patches(), 3, Fault::conflict());
    scene.push(&json!({"owner": "eve"})).await;
    assert_eq!(scene.counted().await, ["4 get accounts.example.com", "4 patch accounts.example.com"]);
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_was_lost_is_found() {
    let fleet = Scene::bare(&objects("default", "web"), &first()).await;
    let creates = RequestMatch::any().verb("create").resource("accounts.example.com");
    fleet.cluster("bj1").fail_next(creates.clone(), 1, Fault::DropAfter);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    assert_eq!(fleet.cluster("bj1").count_requests(&creates), 1);
}

#[tokio::test(start_paused = true)]
async fn a_newer_commit_takes_over_between_the_read_and_the_patch() {
    let scene = Scene::new().await;
    scene.cluster().set_latency(Duration::from_secs(2));
    let older = account(&json!({"owner": "bob"}));
    scene.fleet.push(&scene.running, "Older", &[(MANIFESTS, Some(&older))]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(counted(&scene.fleet), ["1 get accounts.example.com"]);
    scene.push(&json!({"owner": "eve"})).await;
    assert_eq!(scene.counted().await, ["2 get accounts.example.com", "1 patch accounts.example.com"]);
    assert_eq!(scene.get().await["spec"]["owner"], "eve");
}
