//! Annotations of other tools on real servers: twenty objects with annotations of Argo CD, Flux or Helm equal those of kubectl
//! from the same manifest, and stay or are deleted as annotated.

use serde_json::{Value, json};

use super::support::{LiveFixture, configmap, dry_run_by_kubectl, without_identity};

/// What happens to an object when its manifest is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ObjectEnd {
    Stays,
    Goes,
    /// It is never created.
    NeverThere,
}

const ARGO: &str = "argocd.argoproj.io";
const FLUX: &str = "kustomize.toolkit.fluxcd.io";

/// Annotations of each ConfigMap, and its end.
fn annotated_objects() -> Vec<(Value, ObjectEnd)> {
    let argo = |key: &str, value: &str| json!({format!("{ARGO}/{key}"): value});
    let flux = |key: &str, value: &str| json!({format!("{FLUX}/{key}"): value});
    vec![
        (argo("sync-options", "Prune=false"), ObjectEnd::Stays),
        (argo("sync-options", "Replace=true, Prune=false"), ObjectEnd::Stays),
        (argo("sync-options", "Delete=false"), ObjectEnd::Stays),
        (argo("sync-options", "Prune=confirm"), ObjectEnd::Goes),
        (argo("sync-options", "prune=false"), ObjectEnd::Goes),
        (argo("sync-options", "ServerSideApply=true"), ObjectEnd::Goes),
        (argo("sync-options", "Force=true"), ObjectEnd::Goes),
        (argo("compare-options", "IgnoreExtraneous"), ObjectEnd::Goes),
        (argo("hook", "PostSync"), ObjectEnd::Goes),
        (argo("hook", "Sync"), ObjectEnd::Goes),
        (argo("hook", "Skip"), ObjectEnd::NeverThere),
        (argo("hook", "SyncFail"), ObjectEnd::NeverThere),
        (flux("prune", "disabled"), ObjectEnd::Stays),
        (flux("prune", "Disabled"), ObjectEnd::Stays),
        (flux("prune", "enabled"), ObjectEnd::Goes),
        (flux("reconcile", "disabled"), ObjectEnd::Goes),
        (flux("ssa", "Merge"), ObjectEnd::Goes),
        (json!({"helm.sh/resource-policy": "keep"}), ObjectEnd::Stays),
        (json!({"helm.sh/hook": "pre-install"}), ObjectEnd::Goes),
        (json!({"helm.sh/resource-policy": "keep", "tutti.dev/prune": "delete"}), ObjectEnd::Goes),
    ]
}

#[tokio::test]
async fn annotated_objects_match_kubectl_and_their_marks() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("marks").await else { return };
    let name = |number: usize| format!("map-{number}");
    let object = |number: usize, annotations: &Value| {
        let mut map = configmap(&name(number), "a", "1");
        map["metadata"]["annotations"] = annotations.clone();
        map
    };
    let table = annotated_objects();
    assert_eq!(table.len(), 20);
    let marked: Vec<Value> = table.iter().enumerate().map(|(number, (it, _))| object(number, it)).collect();
    let mut all = marked.clone();
    all.push(configmap("rest", "a", "1"));
    scene.write_app("web", &all);
    scene.worktree.write(
        "tutti.yaml",
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: marks}\nspec: {caps: {deletes: 100, deletePercent: 100}}\n",
    );
    scene.worktree.publish("all of them");
    let once = async |what: &str| {
        let ended = scene.run(&scene.local_arguments(&["run", "--once"], &[])).await;
        assert_eq!(ended.code, Some(0), "{what}: {}{}", ended.stdout, ended.stderr);
    };
    once("install").await;
    for cluster in scene.clusters() {
        for (number, (manifest, (annotations, end))) in marked.iter().zip(&table).enumerate() {
            let found = scene.object(cluster, "configmaps", &name(number)).await.ok();
            assert_eq!(
                found.is_some(),
                *end != ObjectEnd::NeverThere,
                "{annotations} on {}",
                cluster.version()
            );
            let Some(found) = found else { continue };
            let theirs = dry_run_by_kubectl(cluster, scene.name(), manifest).await;
            assert_eq!(
                without_identity(&found),
                without_identity(&theirs),
                "{annotations} on {}",
                cluster.version()
            );
        }
    }

    scene.write_objects("web", &[configmap("rest", "a", "1")]);
    scene.worktree.publish("none of them");
    once("removal").await;
    for cluster in scene.clusters() {
        for (number, (annotations, end)) in table.iter().enumerate() {
            let found = scene.object(cluster, "configmaps", &name(number)).await.is_ok();
            assert_eq!(found, *end == ObjectEnd::Stays, "{annotations} on {}", cluster.version());
        }
    }
}
