//! A pull request from a fork on the real Gitea: anybody may send one, and a writer decides that it is rendered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::support::{ForgeUsers, LiveFixture, component};

const APP: &str = "apps/web/app.yaml";

#[tokio::test]
async fn fork_is_rendered_once_it_has_its_label() {
    let Some(scene) = LiveFixture::new("forks", 2).await else { return };
    let people = ForgeUsers::of(&scene);
    scene.write_instance("poll: 1s");
    scene.worktree.write(APP, &component(scene.name(), "shop/web:1.0", ""));
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    people.create_webhook().await;

    // A user without rights forks the repository and opens a pull request.
    let gitea = scene.gitea();
    let eve = json!({"username": "forks-eve", "email": "forks-eve@example.com", "password": "only-on-loopback",
        "must_change_password": false});
    gitea.request("POST", "/api/v1/admin/users", Some(&eve)).await.expect("a user");
    people.request("PATCH", "", Some(&json!({"private": false}))).await;
    people.request("POST", "/forks?sudo=forks-eve", Some(&json!({}))).await;
    let known = people.request("GET", &format!("/contents/{APP}"), None).await["sha"].clone();
    let content = STANDARD.encode(component(scene.name(), "shop/web:6.6", ""));
    let change =
        json!({"content": content, "sha": known, "branch": "main", "new_branch": "mine", "message": "mine"});
    let path = format!("/api/v1/repos/forks-eve/forks/contents/{APP}?sudo=forks-eve");
    gitea.request("PUT", &path, Some(&change)).await.expect("a commit");
    let pull = json!({"head": "forks-eve:mine", "base": "main", "title": "mine", "body": ""});
    let pull = people.request("POST", "/pulls?sudo=forks-eve", Some(&pull)).await;
    let number = pull["number"].as_u64().expect("a number");
    let head = pull["head"]["sha"].as_str().expect("a commit").to_owned();
    for context in ["validate", "plan"] {
        scene.until_status(&head, context, "pending", &["from a fork", "tutti/ok-to-plan"]).await;
    }
    assert_eq!(people.plan_comments(number).await, [""; 0]);

    // A person sets the label.
    let plan = scene.arguments(&["plan"], &["--pr", &number.to_string()]);
    let ended = scene.run(&plan).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("shop/web:6.6"), "{}", ended.stdout);
    assert!(ended.stderr.contains("of a fork: encrypted files are not opened"), "{}", ended.stderr);
    assert_eq!(people.plan_comments(number).await, [""; 0], "a look writes nothing");

    let label = json!({"name": "tutti/ok-to-plan", "color": "#0e8a16"});
    let label = people.request("POST", "/labels", Some(&label)).await["id"].clone();
    people.request("POST", &format!("/issues/{number}/labels"), Some(&json!({"labels": [label]}))).await;
    people.until_plan_contains(number, &["shop/web:6.6"]).await;
    scene.until_status(&head, "validate", "success", &[]).await;
    scene.until_status(&head, "plan", "success", &["1 app, 2 clusters"]).await;
}
