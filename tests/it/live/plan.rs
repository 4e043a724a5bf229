//! A plan shows the changed fields of a commit, and the source of each.

use super::support::{LiveFixture, configmap};

const WEB: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Component
metadata: {name: web, namespace: plan}
spec:
  workloadType: Deployment
  developLanguage: go
  runType: server
  image: registry.example.com/web:1
  port: 8080
  replicas: 1
";

#[tokio::test]
async fn a_plan_names_fields_and_their_sources() {
    let Some(scene) = LiveFixture::new("plan", 1).await else { return };
    scene.write_app("settings", &[configmap("settings", "a", "1")]);
    scene.worktree.write("apps/web/app.yaml", WEB);
    scene.worktree.write("templates/language/go/values.yaml", "env: {A: one, B: two}\n");
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    scene.kill();

    scene.worktree.write("apps/web/app.yaml", &WEB.replace("web:1", "web:2"));
    scene.worktree.write("templates/language/go/values.yaml", "# Of all Go apps.\nenv: {A: other}\n");
    scene.worktree.publish("second");
    let ended = scene.run(&scene.local_arguments(&["plan", "--explain", "--exit-code"], &[])).await;
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let container = "spec.template.spec.containers[0]";
    for line in [
        format!(
            "      {container}.image: \"registry.example.com/web:1\" → \"registry.example.com/web:2\"  apps/web/app.yaml:8 (app)"
        ),
        format!(
            "      {container}.env[0].value: \"one\" → \"other\"  templates/language/go/values.yaml:2 (language go)"
        ),
        format!("      {container}.env[1].name goes"),
    ] {
        assert!(ended.stdout.lines().any(|found| found == line), "no line {line} in\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("settings"), "what stays is not told: {}", ended.stdout);
    let before = scene.run(&scene.local_arguments(&["plan", "--explain", "--worktree"], &[])).await;
    let steps = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(steps(&before.stdout), steps(&ended.stdout), "the folder is what was committed");
}
