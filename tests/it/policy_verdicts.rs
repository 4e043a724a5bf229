//! Results of policies in lint, render and plan.

use crate::support::manifests::objects_app;
use crate::support::program::{CommandFixture, run};

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";
const POLICY: &str = "policies/rules.yaml";

/// Allowed colours, no decrease, and no delete of kept objects.
const POLICY_RULES: &str = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: colours}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]}
  validations:
    - expression: object.data.colour in params.colours
      messageExpression: \"'no ' + object.data.colour + ' on ' + cluster.name\"
    - expression: oldObject == null || int(object.data.step) >= int(oldObject.data.step)
      messageExpression: \"'a step back from %s to %s'.format([oldObject.data.step, object.data.step])\"
  params: {colours: [red, blue]}
---
apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: keep}
spec:
  action: warn
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [DELETE]}]}
  validations: [{expression: 'false', message: look twice}]
";

fn config_maps(maps: &[(&str, &str, u32)]) -> String {
    let map = |(name, colour, step): &(&str, &str, u32)| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: default\ndata:\n  colour: {colour}\n  step: '{step}'\n"
        )
    };
    maps.iter().map(map).collect::<Vec<_>>().join("---\n")
}

async fn stage_with_policy(maps: &[(&str, &str, u32)]) -> CommandFixture {
    let app = objects_app("default", "web");
    CommandFixture::new(&[(APP, &app), (MANIFESTS, &config_maps(maps)), (POLICY, POLICY_RULES)]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_object_is_an_error_at_its_field() {
    let stage = stage_with_policy(&[("a", "red", 1), ("b", "green", 1)]).await;
    let lint = ["lint", ".", "--revision", "HEAD"];
    let (said, told, code) = run(stage.repository.path(), &lint);
    assert_eq!(code, 2, "{said}{told}");
    let words = "error[E3111]: policy colours denies ConfigMap default/b on bj1: no green on bj1";
    assert!(told.contains(words) || said.contains(words), "{said}{told}");
    assert!(
        told.contains(&format!("{MANIFESTS}:16")) || said.contains(&format!("{MANIFESTS}:16")),
        "{said}{told}"
    );
    assert!(!told.contains("default/a"), "{told}");
    let (said, told, code) = run(stage.repository.path(), &["render", "web", "--revision", "HEAD"]);
    assert_eq!(code, 2, "{said}{told}");
    assert!(said.contains("colour: green") && told.contains(words), "{said}{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_evaluates_changed_objects() {
    let stage = stage_with_policy(&[("a", "red", 2), ("b", "green", 2), ("c", "blue", 1)]).await;
    let maps = config_maps(&[("a", "red", 1), ("b", "green", 2)]);
    stage.repository.commit("Change", &[(MANIFESTS, Some(maps.as_str()))]);
    let (said, told, code) = stage.run(&["plan", "--base", "HEAD~1", "--head", "HEAD", "-o", "json"]).await;
    assert_eq!(code, 2, "{said}{told}");
    let plan: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let messages = |field: &str| -> Vec<String> {
        let list = plan[field].as_array().cloned().unwrap_or_default();
        list.iter().map(|it| it["message"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(
        messages("errors"),
        ["policy colours denies ConfigMap default/a on bj1: a step back from 2 to 1"]
    );
    // A violation that the base has too is no error of this change.
    assert_eq!(
        messages("knownErrors"),
        ["policy colours denies ConfigMap default/b on bj1: no green on bj1"]
    );
    assert_eq!(
        messages("warnings"),
        ["policy keep warns of the delete of ConfigMap default/c on bj1: look twice"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_policy_is_evaluated_for_all_objects() {
    let app = objects_app("default", "web");
    let stage = CommandFixture::new(&[(APP, &app), (MANIFESTS, &config_maps(&[("a", "green", 1)]))]).await;
    stage.repository.commit("Rules", &[(POLICY, Some(POLICY_RULES))]);
    let (said, told, code) = stage.run(&["plan", "--base", "HEAD~1", "--head", "HEAD"]).await;
    assert_eq!(code, 2, "{said}{told}");
    assert!(format!("{said}{told}").contains("E3111"), "{said}{told}");
}
