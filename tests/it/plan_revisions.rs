//! `tutti plan --base A --head B` compares two commits without a cluster.

use crate::support::manifests::{config_map, objects_app};
use crate::support::program::CommandFixture;

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";
const REVISIONS: [&str; 5] = ["plan", "--base", "HEAD~1", "--head", "HEAD"];

async fn plan_of_commit(files: &[(&str, &str)], arguments: &[&str]) -> (String, String, i32) {
    let app = objects_app("default", "web");
    let stage = CommandFixture::new(&[(APP, &app), (MANIFESTS, &config_map("default", "web", "one"))]).await;
    let changes: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
    stage.repository.commit("Change", &changes);
    stage.run(&[&REVISIONS[..], arguments].concat()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_is_shown_in_every_form() {
    let two = config_map("default", "web", "two");
    let change = [(MANIFESTS, two.as_str())];
    let (said, told, code) = plan_of_commit(&change, &[]).await;
    assert_eq!(code, 0, "{said}{told}");
    assert!(said.contains("~ ConfigMap default/web on bj1") && said.contains("one → two"), "{said}{told}");
    assert!(said.ends_with("\n1 app, 1 cluster: ~1\n"), "{said}");
    let (said, told, code) = plan_of_commit(&change, &["-o", "markdown", "--exit-code"]).await;
    assert_eq!(code, 1, "{said}{told}");
    assert!(
        said.starts_with("<!-- tutti:plan v1 prefix=tutti -->\n### tutti plan · `HEAD~1` ← `HEAD` @ "),
        "{said}"
    );
    let (said, told, code) = plan_of_commit(&change, &["-o", "json"]).await;
    assert_eq!(code, 0, "{said}{told}");
    let value: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(value["apps"][0]["app"], "default/web");
    assert_eq!(value["apps"][0]["objects"][0]["fields"][0]["fields"][0]["after"], "two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_head_exit_with_2() {
    let (said, told, code) = plan_of_commit(&[(MANIFESTS, "kind: [\n")], &["--exit-code"]).await;
    assert_eq!(code, 2, "{said}{told}");
    assert!(told.contains(MANIFESTS), "{told}");
    let (said, told, code) = plan_of_commit(&[("README.md", "words")], &["--exit-code"]).await;
    assert_eq!((code, said.lines().last()), (0, Some("no changes")), "{said}{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incompatible_arguments_are_refused() {
    let app = objects_app("default", "web");
    let stage = CommandFixture::new(&[(APP, &app), (MANIFESTS, &config_map("default", "web", "one"))]).await;
    for (arguments, words) in [
        (&["plan", "--base", "HEAD"][..], "--head"),
        (&["plan", "-o", "markdown"], "give --head"),
        (&["plan", "--head", "nowhere"], "failed to find revision nowhere"),
    ] {
        let (said, told, code) = stage.run(arguments).await;
        assert_eq!(code, 2, "{arguments:?}: {said}{told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}
