//! A definition and its objects, in the same app and in another one, in one commit, on the newest and the oldest Kubernetes.

use std::time::Duration;

use serde_json::{Value, json};

use super::drift::{AuditedCluster, request_names};
use super::support::{LiveFixture, approval_digests, configmap, print_uncaptured};

const SCENE: &str = "definitions";
const DEFINITION: &str = "looms.definitions.example.com";
/// Long enough for all further requests.
const QUIET_TIME: Duration = Duration::from_secs(6);
/// A cluster's kinds are read on connect and twice after a definition changed: `/api` and `/apis` each time. Other tests
/// define kinds meanwhile.
const MAX_DISCOVERY_REQUESTS: usize = 60;

fn definition() -> Value {
    let weight = json!({"type": "integer", "minimum": 1});
    let spec = json!({"type": "object", "properties": {"weight": weight}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "definitions.example.com", "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            "names": {"plural": "looms", "singular": "loom", "kind": "Loom"},
        },
    })
}

fn loom(name: &str, weight: u32) -> Value {
    json!({"apiVersion": "definitions.example.com/v1", "kind": "Loom",
        "metadata": {"name": name, "namespace": SCENE}, "spec": {"weight": weight}})
}

/// The weight of each loom, by name.
async fn looms(counted: &AuditedCluster) -> String {
    let columns = "jsonpath={range .items[*]}{.metadata.name}={.spec.weight} {end}";
    let found = counted.cluster.kubectl(&["get", DEFINITION, "-n", SCENE, "-o", columns]).await;
    found.map_or_else(|error| error.to_string(), |text| text.trim().to_owned())
}

/// The requests about looms, and the number of discovery requests.
fn requests_of_looms(counted: &AuditedCluster) -> (Vec<String>, usize) {
    let (of_looms, others) =
        counted.all_requests().into_iter().partition::<Vec<_>, _>(|it| it.resource == DEFINITION);
    let of_looms = of_looms.into_iter().filter(|it| it.verb != "watch").collect::<Vec<_>>();
    (request_names(&of_looms), others.iter().filter(|it| it.resource.starts_with("/api")).count())
}

async fn assert_no_failed_status(scene: &LiveFixture, commit: &str) {
    for context in scene.contexts() {
        let history = scene.status_history(commit, context).await;
        // A kind that is not served yet is no failure: its definition is in the same commit.
        let is_good = |(state, text): &(String, String)| {
            let text = text.replace("not served yet", "");
            matches!(state.as_str(), "pending" | "success")
                && !["not serve", "failed", "refused"].iter().any(|word| text.contains(word))
        };
        assert!(history.iter().all(is_good), "{context}: {history:?}");
    }
}

#[tokio::test]
async fn a_definition_is_deleted_only_after_approval() {
    let Some(scene) = LiveFixture::new(SCENE, 4).await else { return };
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    scene.write_instance("poll: 1s\n  caps: {deletes: 10, deletePercent: 100}");
    let names: Vec<&str> = clusters.iter().map(|it| it.cluster.name()).collect();
    let placement = format!("placement: {{clusters: {{names: [{}]}}}}", names.join(", "));
    // The app that waits comes first by name.
    let apps = [("a-weaver", loom("theirs", 1)), ("looms", loom("own", 2))];
    for (app, loom) in &apps {
        scene.write_spec(app, &[&placement]);
        let mut objects = vec![loom.clone(), configmap(app, "a", "1")];
        if *app == "looms" {
            objects.push(definition());
        }
        scene.write_objects(app, &objects);
    }
    let commit = scene.worktree.publish("a definition and two of its kind");
    scene.start(&["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option]).await;
    scene.until_succeeded(&commit).await;
    assert_no_failed_status(&scene, &commit).await;
    let log = scene.running(|tutti| tutti.log());
    assert!(!log.contains("not applied"), "{log}");
    tokio::time::sleep(QUIET_TIME).await;

    for counted in &clusters {
        assert_eq!(looms(counted).await, "own=2 theirs=1");
        let (of_looms, discovery) = requests_of_looms(counted);
        let count = |what: &str| of_looms.iter().filter(|it| it.as_str() == what).count();
        let (patches, lookups) = (format!("patch {DEFINITION}"), format!("get {DEFINITION}"));
        assert_eq!((count(&patches), count(&lookups)), (2, 2), "{of_looms:?}");
        // One list, if lists are not streamed.
        let lists = usize::from(!counted.has_streamed_lists());
        assert_eq!(of_looms.len(), 4 + lists, "{of_looms:?}");
        assert!(discovery <= MAX_DISCOVERY_REQUESTS, "{discovery} times");
        let version = counted.cluster.version();
        print_uncaptured(&format!(
            "a definition on Kubernetes {version}: what is served was asked {discovery} times"
        ));
    }

    // A change of one object costs one request.
    scene.write_objects("a-weaver", &[loom("theirs", 3), configmap("a-weaver", "a", "1")]);
    let changed = scene.worktree.publish("another weight");
    scene.until_succeeded(&changed).await;
    for counted in &clusters {
        assert_eq!(looms(counted).await, "own=2 theirs=3");
        assert_eq!(requests_of_looms(counted).0.iter().filter(|it| it.starts_with("patch ")).count(), 3);
    }

    // All are removed: the objects at once, the definition after approval.
    for (app, _) in &apps {
        scene.write_objects(app, &[configmap(app, "a", "1")]);
    }
    let gone = scene.worktree.publish("none of them");
    let text = scene.until_status(&gone, "deploy/test", "pending", &["wait", "tutti approve "]).await;
    let digest = approval_digests(&text).first().copied().expect("a digest");
    for counted in &clusters {
        scene
            .eventually("the objects are gone", async || match looms(counted).await {
                found if found.is_empty() => Ok(()),
                found => Err(found),
            })
            .await;
        counted.cluster.kubectl(&["get", "crd", DEFINITION]).await.expect("it waits");
    }
    tokio::time::sleep(QUIET_TIME).await;
    for counted in &clusters {
        let of_looms = requests_of_looms(counted).0;
        let deletes: Vec<_> = of_looms.iter().filter(|it| it.starts_with("delete ")).collect();
        assert_eq!(deletes.len(), 2, "{of_looms:?}");
        counted.cluster.kubectl(&["get", "crd", DEFINITION]).await.expect("it waits still");
    }
    let approve = scene.local_arguments(
        &["approve", digest, "--commit"],
        &["--cluster", &clusters[0].cluster_option, "--cluster", &clusters[1].cluster_option],
    );
    let ended = scene.run(&approve).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    scene.worktree.push();
    for counted in &clusters {
        scene
            .eventually("the definition is gone", async || {
                match counted.cluster.kubectl(&["get", "crd", DEFINITION]).await {
                    Err(error) if error.to_string().contains("NotFound") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
    }
    scene.until_succeeded(&scene.worktree.head()).await;
    scene.until_succeeded(&gone).await;
}
