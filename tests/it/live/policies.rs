//! Policies on a real Gitea and a real cluster: a pull request that breaks a rule fails at the line; a push past the
//! pull request is not deployed.

use serde_json::json;

use super::support::{ForgeUsers, LiveFixture, configmap};

/// Limits the colours of ConfigMaps.
const POLICY: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: colours}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]}
  validations:
    - expression: object.data.value in params.colours
      messageExpression: \"'the colour is ' + object.data.value\"
  params: {colours: [red, blue]}
";

const MANIFEST: &str = "apps/paint/objects/one.yaml";

fn manifest(scene: &LiveFixture, colour: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: paint\n  namespace: {}\ndata:\n  value: {colour}\n",
        scene.name()
    )
}

#[tokio::test]
async fn broken_rule_is_red_at_its_line_and_not_deployed() {
    let Some(scene) = LiveFixture::new("policies", 1).await else { return };
    let people = ForgeUsers::of(&scene);
    scene.write_instance("poll: 1s");
    scene.worktree.write("policies/colours.yaml", POLICY);
    scene.write_app("other", &[configmap("other", "value", "red")]);
    scene.write_spec("paint", &[]);
    scene.worktree.write(MANIFEST, &manifest(&scene, "red"));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    people.create_webhook().await;

    // A pull request that breaks the rule.
    scene.worktree.git(&["checkout", "-q", "-b", "paint"]);
    scene.worktree.write(MANIFEST, &manifest(&scene, "green"));
    let broken = scene.worktree.commit("green");
    scene.worktree.push_branch("paint");
    let number = people.open("paint").await;
    let place = format!("{MANIFEST}:7");
    scene
        .until_status(
            &broken,
            "validate",
            "failure",
            &["policy colours denies", "the colour is green", &place],
        )
        .await;
    people
        .until_plan_contains(number, &[place.as_str(), "policy colours denies", "the colour is green"])
        .await;

    // Corrected by a push.
    scene.worktree.write(MANIFEST, &manifest(&scene, "blue"));
    let mended = scene.worktree.commit("blue");
    scene.worktree.push_branch("paint");
    scene.until_status(&mended, "validate", "success", &["valid, 0 warnings"]).await;
    let merge = json!({"Do": "merge", "head_commit_id": mended});
    people.request("POST", &format!("/pulls/{number}/merge"), Some(&merge)).await;
    let merged = people.request("GET", &format!("/pulls/{number}"), None).await;
    let merged = merged["merge_commit_sha"].as_str().expect("a commit").to_owned();
    scene.until_succeeded(&merged).await;

    // A push past the pull request deploys nothing that is denied, and all the rest.
    scene.worktree.git(&["checkout", "-q", "main"]);
    scene.worktree.git(&["pull", "-q", &scene.gitea().remote(scene.name()), "main"]);
    scene.worktree.write(MANIFEST, &manifest(&scene, "green"));
    scene.write_objects("other", &[configmap("other", "value", "blue")]);
    let past = scene.worktree.publish("past the rule");
    let words = "ConfigMap policies/paint: policy colours denies it: the colour is green";
    scene.until_status(&past, "deploy", "failure", &[words]).await;
    let value = |name: &'static str| {
        let (cluster, namespace) = (scene.cluster(0), scene.name());
        async move {
            let arguments = ["get", "configmap", name, "-n", namespace, "-o", "jsonpath={.data.value}"];
            cluster.kubectl(&arguments).await.expect("a ConfigMap")
        }
    };
    assert_eq!((value("paint").await.as_str(), value("other").await.as_str()), ("blue", "blue"));
}
