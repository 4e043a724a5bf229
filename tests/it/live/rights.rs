//! An account with exactly the rights that `tutti cluster rbac` prints: everything works, on the newest and the oldest
//! Kubernetes. With one right less, the error and `tutti doctor` name it.

mod account;
mod removed_right;

use std::path::Path;

use live::LiveCluster;
use serde_json::{Value, json};

use self::account::RestrictedAccount;
use self::removed_right::RemovedRight;
use super::support::{
    LiveFixture, approval_digests, configmap, deployment, objects_app, print_uncaptured, service,
};
use crate::support::folders;

/// Names of objects end in the round, so that each round reads, creates, changes, and deletes.
fn objects(round: usize) -> Vec<Value> {
    let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}]);
    let group = "rbac.authorization.k8s.io";
    let name = |base: &str| format!("{base}-{round}");
    let subjects = json!([{"kind": "Group", "apiGroup": group, "name": "dev"}]);
    let binding = |name: String, kind: &str, role: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": kind, "name": role}, "subjects": subjects,
        })
    };
    vec![
        deployment("web", &format!("shop/web:1.{round}"), 1),
        service("web"),
        configmap(&name("settings"), "a", "1"),
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": name("deployer")}, "rules": rules}),
        binding(name("deployers"), "Role", &name("deployer")),
        binding(name("viewers"), "ClusterRole", "view"),
    ]
}

/// An app's own namespace with an object in it, and a definition with an object of its kind.
fn write_foundations(scene: &LiveFixture) {
    let own = format!("{}-own", scene.name());
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}});
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": own},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    });
    scene.write_app("space", &[space, limits]);
    let (group, kind) = (format!("{}.example.com", scene.name()), "Badge");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("badges.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            "names": {"plural": "badges", "singular": "badge", "kind": kind},
        },
    });
    let badge = json!({"apiVersion": format!("{group}/v1"), "kind": kind,
        "metadata": {"name": "first", "namespace": scene.name()}, "spec": {"colour": "red"}});
    scene.write_app("badges", &[definition, badge]);
}

/// An object of kubectl, with a field that adoption removes.
async fn create_legacy_objects(scene: &LiveFixture, name: &str) {
    let make = ["create", "configmap", name, "--from-literal=a=1", "--from-literal=b=2", "-n", scene.name()];
    for cluster in scene.clusters() {
        cluster.kubectl(&make).await.expect("made");
    }
    scene.write_objects("legacy", &[configmap(name, "a", "1")]);
    let adopting = objects_app(scene.name(), "legacy") + "  adopt: true\n";
    scene.worktree.write("apps/legacy/app.yaml", &adopting);
}

/// A repository with all of it, and an account with the rights printed for it.
async fn account_with_printed_rights(name: &'static str, legacy: &str) -> Option<RestrictedAccount> {
    let account = RestrictedAccount::pair(name).await?;
    let scene = &account.scene;
    write_foundations(scene);
    scene.write_app("web", &objects(0));
    create_legacy_objects(scene, legacy).await;
    scene.worktree.publish("first");
    account.grant(&account.printed_roles().await).await;
    account.log_in().await;
    account.until_missing(0, &[]).await;
    Some(account)
}

#[tokio::test]
async fn printed_rights_suffice_to_empty_a_cluster() {
    let Some(scene) = LiveFixture::new("rights-last", 2).await else { return };
    let (stays, leaves) = (scene.cluster(0), scene.cluster(1));
    let account = RestrictedAccount::for_clusters(scene, vec![(leaves.name(), leaves)]).await;
    let scene = &account.scene;
    write_foundations(scene);
    scene.write_app("web", &objects(0));
    scene.worktree.publish("first");
    let installed = scene.run(&scene.arguments(&["run", "--once"], &["--timeout", "60"])).await;
    assert_eq!(installed.code, Some(0), "{}{}", installed.stdout, installed.stderr);

    // A namespace and a definition wait for approval.
    let path = format!("clusters/{}.yaml", leaves.name());
    let file = std::fs::read_to_string(scene.worktree.folder().join(&path)).expect("a file");
    scene.worktree.write(&path, &file.replace("spec:\n", "spec:\n  state: Removed\n"));
    scene.worktree.publish("without the second");
    account.grant(&account.printed_roles().await).await;
    account.log_in().await;
    account.until_missing(0, &[]).await;
    let (code, said) = account.run_once("60").await;
    assert!(!said.contains("forbidden"), "{said}");
    for app in ["space", "badges"] {
        assert!(said.contains(&format!("1 delete of rights-last/{app} wait for approval")), "{said}");
    }
    assert_eq!(code, Some(1), "{said}");
    let kinds =
        "deployments,services,configmaps,roles,rolebindings,limitranges,badges.rights-last.example.com";
    let label = "tutti.dev/managed-by=rights-last";
    let ours = async |cluster: &LiveCluster, kinds: &str| {
        let all = cluster.kubectl(&["get", kinds, "-A", "-l", label, "-o", "name"]).await.expect("a list");
        all.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ours(leaves, kinds).await, Vec::<String>::new());
    assert_eq!(ours(stays, kinds).await.len(), 8);
    let foundations = "namespaces,customresourcedefinitions";
    assert_eq!(ours(leaves, foundations).await.len(), 2);

    // They are approved.
    let digests = approval_digests(&said);
    assert_eq!(digests.len(), 2, "{said}");
    for digest in digests {
        let approve = scene.local_arguments(&["approve", digest, "--commit"], &account.cluster_options());
        let ended = scene.run(&approve).await;
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
    scene.worktree.push();
    let (code, said) = account.run_once("60").await;
    assert!(code == Some(0) && !said.contains("forbidden"), "{code:?} {said}");
    assert_eq!(ours(leaves, foundations).await, Vec::<String>::new());
    assert_eq!(ours(stays, foundations).await.len(), 2);
}

#[tokio::test]
async fn with_the_printed_rights_everything_works() {
    let Some(account) = account_with_printed_rights("rights-all", "legacy").await else { return };
    let scene = &account.scene;
    account.check_administrator().await;

    let (code, said) = account.run_once("60").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("forbidden") && said.contains("tutti may not list some kinds"), "{said}");
    for cluster in scene.clusters() {
        scene.until_ready(cluster, "web", "shop/web:1.0", 1).await;
        let legacy = scene.object(cluster, "configmaps", "legacy").await.expect("there");
        assert_eq!(legacy["data"], json!({"a": "1"}));
        let badge = [
            "get",
            "badges.rights-all.example.com",
            "first",
            "-n",
            scene.name(),
            "-o",
            "jsonpath={.spec.colour}",
        ];
        assert_eq!(cluster.kubectl(&badge).await.expect("a badge"), "red");
    }

    scene.start(&account.cluster_options()).await;
    let delete = ["delete", "configmap", "settings-0", "-n", scene.name()];
    let edit = ["patch", "configmap", "legacy", "-n", scene.name(), "-p", r#"{"data": {"a": "2"}}"#];
    for cluster in scene.clusters() {
        cluster.kubectl(&delete).await.expect("deleted");
        cluster.kubectl(&edit).await.expect("edited");
    }
    for cluster in scene.clusters() {
        let again = "what was deleted by hand is back";
        scene.eventually(again, async || scene.object(cluster, "configmaps", "settings-0").await).await;
        scene
            .eventually("what was edited by hand is as in Git", async || {
                let found = scene.object(cluster, "configmaps", "legacy").await?;
                if found["data"]["a"] == "1" { Ok(()) } else { Err(found["data"].to_string()) }
            })
            .await;
    }

    // The causes among its pods are read.
    scene.write_objects("web", &[&[deployment("bad", "shop/bad:broken-1", 1)], &objects(0)[..]].concat());
    let bad = scene.worktree.publish("an image that is not there");
    scene.until_status(&bad, "deploy", "failure", &["ImagePullBackOff", "bad-", "0/2 healthy"]).await;
    scene.until_logged_for_each(&["rights-all/web", "ImagePullBackOff bad-"]).await;

    scene.write_objects("web", &objects(0)[..2]);
    let commit = scene.worktree.publish("less");
    scene.until_succeeded(&commit).await;
    for cluster in scene.clusters() {
        scene
            .eventually("what Git wants no longer is gone", async || {
                match scene.managed_objects(cluster, "configmaps").await.len() {
                    1 => Ok(()),
                    left => Err(format!("{left} left")),
                }
            })
            .await;
    }
    check_replace_and_orphan(scene).await;
    let log = scene.running(|tutti| tutti.log());
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("forbidden")).collect();
    assert!(log.contains("tutti may not list some kinds") && refused.is_empty(), "{refused:#?}");
}

/// An immutable object is replaced, then orphaned.
async fn check_replace_and_orphan(scene: &LiveFixture) {
    let fixed = |value: &str| {
        let mut fixed = configmap("fixed", "a", value);
        fixed["immutable"] = json!(true);
        fixed["metadata"]["annotations"] = json!({"tutti.dev/replace": "true"});
        fixed
    };
    let mut identities = Vec::new();
    for value in ["1", "2"] {
        scene.write_app("fixed", &[fixed(value)]);
        let commit = scene.worktree.publish(&format!("fixed to {value}"));
        scene.until_succeeded(&commit).await;
        for cluster in scene.clusters() {
            let object = scene.object(cluster, "configmaps", "fixed").await.expect("there");
            assert_eq!(object["data"]["a"], value);
            identities.push(object["metadata"]["uid"].clone());
        }
    }
    assert!(identities[0] != identities[2] && identities[1] != identities[3], "{identities:?}");

    scene.worktree.remove("apps/fixed/app.yaml");
    scene.worktree.remove("apps/fixed/objects/all.yaml");
    let approval = "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {name: fixed}\n";
    let orphan = format!("{approval}spec: {{app: {}/fixed, action: orphan}}\n", scene.name());
    scene.worktree.write("approvals/fixed.yaml", &orphan);
    let commit = scene.worktree.publish("let fixed go");
    scene.until_succeeded(&commit).await;
    for cluster in scene.clusters() {
        scene
            .eventually("it is nobody's", async || {
                let object = scene.object(cluster, "configmaps", "fixed").await?;
                let metadata = object["metadata"].to_string();
                if metadata.contains("tutti.dev/managed-by") { Err(metadata) } else { Ok(()) }
            })
            .await;
    }
}

#[tokio::test]
async fn the_example_rolls_out_with_the_printed_rights() {
    // The first two clusters have the samples, whose apps are in the example too.
    let Some(scene) = LiveFixture::new("rights-example", 3).await else { return };
    let server = scene.cluster(2);
    let account = RestrictedAccount::for_clusters(scene, vec![("bj-prod", server)]).await;
    let scene = &account.scene;
    for cluster in ["cluster-1", "cluster-2", "cluster-3"] {
        scene.worktree.remove(&format!("clusters/{cluster}.yaml"));
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/repo");
    for (path, text) in folders::read(&example) {
        scene.worktree.write(&path, &text);
    }
    scene.worktree.publish("the example");
    account.grant(&account.printed_roles().await).await;
    account.log_in().await;

    let ways = [&["--cluster", "*=sandbox"], &account.cluster_options()[..]].concat();
    scene
        .eventually("all rights are there", async || {
            let ended = scene.run(&scene.local_arguments(&["doctor"], &ways)).await;
            if ended.code == Some(0) { Ok(()) } else { Err(ended.stdout) }
        })
        .await;
    let ended = scene.run(&scene.local_arguments(&["run", "--once", "--timeout", "90"], &ways)).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("forbidden"), "{}", ended.stderr);
    let deployment = server.get("/apis/apps/v1/namespaces/shop/deployments/shop-web").await;
    assert_eq!(deployment.expect("there")["metadata"]["labels"]["tutti.dev/managed-by"], "main");
}

#[tokio::test]
async fn doctor_names_each_removed_right() {
    let Some(account) = account_with_printed_rights("rights-each", "legacy").await else { return };
    let scene = &account.scene;
    let whole = account.printed_roles().await;
    let all = removed_right::all_rights(&whole);
    for taken in &all {
        account.grant(&taken.remove_from(&whole)).await;
        // Watches and lists are over all namespaces.
        let own = (taken.resource == "limitranges" && !["list", "watch"].contains(&&*taken.verb))
            .then_some("rights-each-own");
        account.until_missing(exit_code_without(taken), &[&taken.doctor_name(own)]).await;
    }
    print_uncaptured(&format!("rights: {} taken one by one, each named", all.len()));

    account.grant(&removed_right::without_discovery(&whole)).await;
    scene
        .eventually("doctor says that we may not ask what is served", async || {
            let (code, clusters) = account.doctor().await;
            let is_told = |findings: &Value| findings.to_string().contains("cannot get path");
            if code == Some(5) && clusters.iter().all(is_told) {
                Ok(())
            } else {
                Err(format!("{code:?} {clusters:?}"))
            }
        })
        .await;
    let (code, said) = account.run_once("6").await;
    assert!(code != Some(0) && said.contains("cannot get path"), "{code:?} {said}");
}

/// tutti works without these, with less or later information: a warning. Definitions are rendered here, so they need more.
fn exit_code_without(taken: &RemovedRight) -> i32 {
    let may_be_missing = ["pods", "pods/log", "events", "apiservices", "storageclasses"];
    if may_be_missing.contains(&&*taken.resource) { 0 } else { 5 }
}

#[tokio::test]
async fn with_one_right_less_the_error_names_it() {
    let Some(account) = account_with_printed_rights("rights-less", "legacy-0").await else { return };
    let scene = &account.scene;
    let (code, said) = account.run_once("60").await;
    assert_eq!(code, Some(0), "{said}");

    // The removed right, the server's message, and the exit code of the run.
    let held = "attempting to grant RBAC permissions not currently held";
    let samples = [
        ("get", "configmaps", "cannot get resource \"configmaps\"", 3),
        ("create", "configmaps", "cannot create resource \"configmaps\"", 3),
        ("patch", "deployments", "cannot patch resource \"deployments\"", 3),
        ("update", "configmaps", "cannot update resource \"configmaps\"", 3),
        ("delete", "configmaps", "cannot delete resource \"configmaps\"", 4),
        ("list", "configmaps", "cannot list resource \"configmaps\"", 4),
        ("list", "customresourcedefinitions", "cannot list resource \"customresourcedefinitions\"", 4),
        // A single run needs only list.
        ("watch", "services", "cannot watch resource \"services\"", 0),
        ("escalate", "roles", held, 3),
        ("bind", "clusterroles", held, 3),
    ];
    for (index, (verb, resource, refused, exit)) in samples.iter().enumerate() {
        let round = index + 1;
        scene.write_objects("web", &objects(round));
        create_legacy_objects(scene, &format!("legacy-{round}")).await;
        scene.worktree.publish(&format!("round {round}"));
        let whole = account.printed_roles().await;
        let taken = removed_right::all_rights(&whole)
            .into_iter()
            .find(|it| it.verb == *verb && it.resource == *resource);
        let taken = taken.unwrap_or_else(|| panic!("{verb} {resource} is in no rule"));
        account.grant(&taken.remove_from(&whole)).await;
        account.until_missing(5, &[&taken.doctor_name(None)]).await;
        let (code, said) = account.run_once("6").await;
        let without = format!("without {verb} {resource}: {code:?} {said}");
        assert!(code == Some(*exit) && said.contains(refused), "{without}");
        if *verb == "list" {
            // The newest version streams lists, which needs the right to watch.
            let mut refusals = said.lines().filter(|line| line.contains(refused));
            assert!(refusals.all(|line| line.contains("cluster-4")), "{without}");
            assert!(
                said.contains("cluster-4 rights-less/") && said.contains(" cannot be watched: "),
                "{without}"
            );
        }
        account.grant(&whole).await;
        account.until_missing(0, &[]).await;
        let (code, said) = account.run_once("60").await;
        assert_eq!(code, Some(0), "with {verb} {resource} again: {said}");
    }
}
