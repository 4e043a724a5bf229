//! `tutti init` and `tutti new`: the written files pass lint and run.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::program;

fn run_tutti(folder: &Path, command: &str) -> (String, String, i32) {
    program::run(folder, &command.split_whitespace().collect::<Vec<_>>())
}

#[track_caller]
fn run_successfully(folder: &Path, command: &str) -> String {
    let (output, errors, code) = run_tutti(folder, command);
    assert_eq!(code, 0, "{command}: {output}{errors}");
    output
}

/// Lint passes after each step.
#[track_caller]
fn check_written_files(folder: &Path, command: &str, files: &[&str]) {
    let output = run_successfully(folder, command);
    for file in files {
        assert!(output.contains(&format!("wrote {file}\n")), "{command}: no {file} in {output}");
    }
    assert_eq!(output.matches("wrote").count(), files.len(), "{command}: {output}");
    run_successfully(folder, "lint --strict");
}

#[test]
fn written_files_pass_lint() {
    let temporary = tempfile::tempdir().expect("a folder");
    let outside = temporary.path();
    run_successfully(
        outside,
        "init config --name dev --namespace shop --forge https://gitea.example.com --forge-repository a/b",
    );
    let folder = &outside.join("config");
    run_successfully(folder, "lint --strict");
    check_written_files(
        folder,
        "new cluster bj5 --kubeconfig bj5.yaml --context admin --label environment=prod",
        &["clusters/bj5.yaml"],
    );
    check_written_files(folder, "new cluster try --sandbox", &["clusters/try.yaml"]);
    check_written_files(folder, "new cluster home --in-cluster", &["clusters/home.yaml"]);
    check_written_files(folder, "new app web", &["apps/web/app.yaml"]);
    check_written_files(
        folder,
        "new app night --workload CronJob --run-type task --language go",
        &["apps/night/app.yaml"],
    );
    check_written_files(
        folder,
        "new app db --workload StatefulSet --port 5432 --replicas 3 --adopt",
        &["apps/db/app.yaml"],
    );
    check_written_files(
        folder,
        "new app shop --kind AppSet --run-type worker --language java",
        &["apps/shop/app.yaml"],
    );
    let files = ["apps/conf/app.yaml", "apps/conf/objects/settings.yaml"];
    check_written_files(folder, "new app conf --kind objects --namespace infra", &files);
    check_written_files(folder, "new template base", &["templates/base/values.yaml"]);
    check_written_files(folder, "new template language/rust", &["templates/language/rust/values.yaml"]);
    check_written_files(folder, "new app rusty --language rust", &["apps/rusty/app.yaml"]);
    let files = ["apps/web/layer/deployment.yaml.j2", "apps/web/layer/values.yaml"];
    check_written_files(folder, "new template app/web --extend deployment.yaml.j2", &files);
    let files = ["templates/cluster/prod/layer.yaml", "templates/cluster/prod/values.yaml"];
    check_written_files(folder, "new template cluster/prod --label environment=prod", &files);
    check_written_files(
        folder,
        "new notification prod --service feishu --language zh",
        &["notifications/prod.yaml"],
    );
    check_written_files(folder, "new notification chat --service teams", &["notifications/chat.yaml"]);
    let server = "new server web-1 --expires 2099-12-31 --address 10.0.0.7 --provider aliyun --cluster bj5";
    check_written_files(folder, server, &["servers/web-1.yaml"]);
    check_written_files(folder, "new server web-0 --expires 2020-02-29", &["servers/web-0.yaml"]);
    let listed = run_successfully(folder, "new policy");
    assert_eq!(listed.lines().count(), 10, "{listed}");
    assert!(
        listed.lines().all(|line| line.split_once("  ").is_some_and(|(_, why)| why.ends_with('.'))),
        "{listed}"
    );
    check_written_files(folder, "new policy no-node-port", &["policies/no-node-port.yaml"]);
    check_written_files(folder, "new policy no-latest-tag", &["policies/no-latest-tag.yaml"]);
    assert!(run_successfully(folder, "policy test").contains("no-node-port"));
    let (_, errors, code) = run_tutti(folder, "new policy none");
    assert!(code != 0 && errors.contains("run-as-non-root"), "{errors}");
    let (_, errors, code) = run_tutti(folder, "new policy no-node-port");
    assert!(code != 0 && errors.contains("policies/no-node-port.yaml"), "{errors}");
    assert!(run_successfully(folder, "lint").starts_with("6 apps on 3 clusters"));
    assert!(run_successfully(folder, "render rusty --cluster try").contains("kind: Deployment"));
}

#[test]
fn existing_or_invalid_files_are_not_written() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path();
    run_successfully(folder, "init");
    let check = |command: &str, words: &str| {
        let (output, errors, code) = run_tutti(folder, command);
        assert_eq!(code, 2, "{command}: {output}{errors}");
        assert!(errors.contains(words), "{command}: no {words:?} in {errors}");
        assert_eq!(output, "", "{command}");
    };
    check("init", "these files exist already: .gitignore, README.md, tutti.yaml; nothing was written");
    check("new app shop --kind appset", "there is none yet: tutti new cluster NAME");
    run_successfully(folder, "new cluster try --sandbox");
    run_successfully(folder, "new app web");
    let before = fs::read_to_string(folder.join("apps/web/app.yaml")).expect("a file");
    check("new app web --image x:2", "these files exist already: apps/web/app.yaml; nothing was written");
    check("new app Web_1", "\"Web_1\" is not a valid name");
    check("new app ../../evil", "is not a valid name");
    check("new app web2 --language cobol", "cobol");
    check("new template app/web --extend nothing.yaml.j2", "no lower layer has a file of its name");
    check("new template app/..", "there is no layer app/..");
    check("new template unknown/x", "there is no layer unknown/x");
    check("new cluster other --label environment", "expected KEY=VALUE");
    check("new policy freeze", "possible values: allowed-registries");
    assert_eq!(fs::read_to_string(folder.join("apps/web/app.yaml")).expect("a file"), before);
    for path in ["apps/Web_1", "apps/web2", "apps/web/layer", "clusters/other.yaml"] {
        assert!(!folder.join(path).exists(), "{path}");
    }
    assert!(!folder.parent().expect("a parent").join("evil").exists());
}

#[test]
fn the_quick_start_of_the_readme_works() {
    let temporary = tempfile::tempdir().expect("a folder");
    let outside = temporary.path();
    run_successfully(outside, "init config");
    let folder = &outside.join("config");
    run_successfully(folder, "new cluster try --sandbox");
    run_successfully(folder, "new app hello --image registry.example.com/hello:1.0.0 --port 8080");
    let read = |path: &str| fs::read_to_string(folder.join(path)).expect("a file");
    let texts = ["tutti.yaml", "clusters/try.yaml", "apps/hello/app.yaml"].map(|path| (path, read(path)));
    let changes: Vec<_> = texts.iter().map(|(path, text)| (*path, Some(text.as_str()))).collect();
    crate::support::repository::TestRepository::at(folder).commit("Hello", &changes);
    assert!(run_successfully(folder, "run --once --repo .").contains("default/hello"));
}

#[test]
fn tutti_can_manage_its_own_installation() {
    let temporary = tempfile::tempdir().expect("a folder");
    let outside = temporary.path();
    let command = "init config --install https://gitea.corp/platform/config.git";
    let output = run_successfully(
        outside,
        &format!("{command} --forge https://gitea.corp --forge-repository platform/config"),
    );
    assert!(output.contains("\n  kubectl apply -f config/apps/tutti/objects/\n"), "{output}");
    assert!(output.contains("--from-file=token=FILE --from-file=hook=FILE"), "{output}");
    let folder = &outside.join("config");
    run_successfully(folder, "lint --strict");
    let read = |path: &str| fs::read_to_string(folder.join(path)).expect("a file");
    let instance = read("tutti.yaml");
    assert!(instance.contains("{token: {file: token}}") && instance.contains("[{file: hook}]"), "{instance}");
    assert!(read("clusters/home.yaml").contains("inCluster: {}"));
    assert!(read("apps/tutti/app.yaml").contains("adopt: true"));
    let rendered = run_successfully(folder, "render tutti");
    let image = concat!("image: ghcr.io/tutti-dev/tutti:", env!("CARGO_PKG_VERSION"), "\n");
    assert!(rendered.contains(image) && rendered.contains("kind: PodDisruptionBudget"), "{rendered}");
    assert!(rendered.contains("https://gitea.corp/platform/config.git"), "{rendered}");
    let rights = run_successfully(folder, "cluster rbac home --service-account tutti-system/tutti");
    assert!(rights.contains("resources: [namespaces]"), "{rights}");

    // An embedded cluster accepts all objects, and its pods are ready.
    let texts = crate::support::folders::read(folder);
    let changes: Vec<_> = texts.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    crate::support::repository::TestRepository::at(folder).commit("tutti", &changes);
    let output = run_successfully(folder, "run --once --repo . --cluster home=sandbox --timeout 60s");
    assert!(output.contains("tutti-system/tutti"), "{output}");

    let (output, errors, code) = run_tutti(outside, command);
    assert_eq!((code, output.as_str()), (2, ""), "{errors}");
    assert!(errors.contains("these files exist already: apps/tutti/app.yaml"), "{errors}");
}

#[test]
fn tutti_is_added_to_existing_repository() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path();
    run_successfully(folder, "init");
    run_successfully(folder, "new cluster mgmt --in-cluster");
    let output = run_successfully(folder, "init --install git@gitea.corp:platform/config.git");
    assert!(!output.contains("wrote clusters/") && !output.contains("wrote tutti.yaml"), "{output}");
    assert!(output.contains("--from-file=ssh-key=FILE"), "{output}");
    assert!(output.contains("tutti cluster rbac mgmt --repo ."), "{output}");
    run_successfully(folder, "lint --strict");
    let app = fs::read_to_string(folder.join("apps/tutti/app.yaml")).expect("a file");
    assert!(app.contains("names: [mgmt]"), "{app}");
    let (_, errors, code) = run_tutti(folder, "init other --install https://token@gitea.corp/a/b");
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("the address holds a user or token") && !folder.join("other").exists(),
        "{errors}"
    );
}

/// Commands that read only Git.
#[test]
fn routes_and_servers_are_listed() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path();
    run_successfully(folder, "init");
    assert_eq!(
        run_successfully(folder, "new server web-1 --expires 2099-12-31 --provider aliyun"),
        "wrote servers/web-1.yaml\n"
    );
    run_successfully(folder, "new server web-0 --expires 2020-02-29");
    run_successfully(folder, "new notification chat --service teams");
    let texts = crate::support::folders::read(folder);
    let repository = crate::support::repository::TestRepository::at(folder);
    let changes: Vec<_> = texts.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    repository.commit("All", &changes);
    let list =
        |command: &str| -> Value { serde_json::from_str(&run_successfully(folder, command)).expect("JSON") };
    let servers = list("get servers -o json");
    let names: Vec<&str> =
        servers.as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["web-0", "web-1"], "those that end first are on top");
    let days = |at: usize| servers[at]["daysLeft"].as_i64().expect("a number");
    assert!(days(0) < -2000 && days(1) > 10_000, "{servers}");
    assert_eq!((&servers[1]["expiresAt"], &servers[1]["warnDays"]), (&"2099-12-31".into(), &14.into()));
    let lines = run_successfully(folder, "get servers");
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "ADDRESS", "PROVIDER", "CLUSTER", "EXPIRES", "DAYS-LEFT"]);
    assert_eq!(rows[2][..5], ["web-1", "-", "aliyun", "-", "2099-12-31"]);
    let routes = list("get notifications -o json");
    assert_eq!((&routes[0]["name"], &routes[0]["service"]), (&"chat".into(), &"teams".into()));
    repository.commit("An error", &[("notifications/wrong.yaml", Some("kind: Notification\n"))]);
    let (output, errors, code) = run_tutti(folder, "get notifications");
    assert!(output.contains("chat") && errors.contains("notifications/wrong.yaml:1:1"), "{output}{errors}");
    assert_eq!(code, 2, "one that is not listed is told");
}
