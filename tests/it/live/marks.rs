//! Annotations of other tools on real servers: twenty objects with annotations of Argo CD, Flux or Helm equal those of kubectl
//! from the same manifest, and stay or are deleted as annotated.

use serde_json::{Value, json};

use super::support::{Scene, as_kubectl, bare, configmap};

/// What happens to an object when its manifest is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Stays,
    Goes,
    /// It is never created.
    Never,
}

const ARGO: &str = "argocd.argoproj.io";
const FLUX: &str = "kustomize.toolkit.fluxcd.io";

/// Annotations of each ConfigMap, and its end.
fn table() -> Vec<(Value, End)> {
    let argo = |key: &str, value: &str| json!({format!("{ARGO}/{key}"): value});
    let flux = |key: &str, value: &str| json!({format!("{FLUX}/{key}"): value});
    vec![
        (argo("sync-options", "Prune=false"), End::Stays),
        (argo("sync-options", "Replace=true, Prune=false"), End::Stays),
        (argo("sync-options", "Delete=false"), End::Stays),
        (argo("sync-options", "Prune=confirm"), End::Goes),
        (argo("sync-options", "prune=false"), End::Goes),
        (argo("sync-options", "ServerSideApply=true"), End::Goes),
        (argo("sync-options", "Force=true"), End::Goes),
        (argo("compare-options", "IgnoreExtraneous"), End::Goes),
        (argo("hook", "PostSync"), End::Goes),
        (argo("hook", "Sync"), End::Goes),
        (argo("hook", "Skip"), End::Never),
        (argo("hook", "SyncFail"), End::Never),
        (flux("prune", "disabled"), End::Stays),
        (flux("prune", "Disabled"), End::Stays),
        (flux("prune", "enabled"), End::Goes),
        (flux("reconcile", "disabled"), End::Goes),
        (flux("ssa", "Merge"), End::Goes),
        (json!({"helm.sh/resource-policy": "keep"}), End::Stays),
        (json!({"helm.sh/hook": "pre-install"}), End::Goes),
        (json!({"helm.sh/resource-policy": "keep", "tutti.dev/prune": "delete"}), End::Goes),
    ]
}

#[tokio::test]
async fn annotated_objects_match_kubectl_and_their_marks() {
    let Some(scene) = Scene::pair("marks").await else { return };
    let name = |number: usize| format!("map-{number}");
    let object = |number: usize, annotations: &Value| {
        let mut map = configmap(&name(number), "a", "1");
        map["metadata"]["annotations"] = annotations.clone();
        map
    };
    let table = table();
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
            assert_eq!(found.is_some(), *end != End::Never, "{annotations} on {}", cluster.version());
            let Some(found) = found else { continue };
            let theirs = as_kubectl(cluster, scene.name(), manifest).await;
            assert_eq!(bare(&found), bare(&theirs), "{annotations} on {}", cluster.version());
        }
    }

    scene.write_objects("web", &[configmap("rest", "a", "1")]);
    scene.worktree.publish("none of them");
    once("removal").await;
    for cluster in scene.clusters() {
        for (number, (annotations, end)) in table.iter().enumerate() {
            let found = scene.object(cluster, "configmaps", &name(number)).await.is_ok();
            assert_eq!(found, *end == End::Stays, "{annotations} on {}", cluster.version());
        }
    }
}
