//! Mistakes in the config repository and refusals by clusters: the message says what and where, and other
//! objects are not affected.

use std::time::Duration;

use sandbox::{Fault, RequestMatch};
use tutti::controller::{ManifestOrigin, RunEnding, RunUntil};
use tutti::report::{Overview, TargetPhase};
use tutti::source::{ConfigRepository, ErrorKind};

use crate::drift::write_requests;
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, WAIT_LIMIT, phases, target};
use crate::support::live_objects;
use crate::support::manifests::{INSTANCE, RINGS, cluster, component, config_map, deployment, objects_app};
use crate::support::repository::{FileTextChange, TestRepository};

const MAPS_FILE: &str = "apps/settings/objects/maps.yaml";

/// Two valid apps on two clusters.
fn fleet() -> TestFleet {
    let maps: String = ["one", "two"].map(|name| config_map("default", name, "first")).join("---\n");
    TestFleet::new(
        &["bj1", "gz1"],
        &[
            ("apps/web/app.yaml", &component("web", "registry.example.com/web:1")),
            ("apps/settings/app.yaml", &objects_app("default", "settings")),
            (MAPS_FILE, &maps),
        ],
    )
}

fn diagnostic_messages(overview: &Overview) -> Vec<String> {
    overview.diagnostics.iter().map(ToString::to_string).collect()
}

/// The detail of the settings app when both clusters refuse it.
async fn wait_for_refusal_on_both_clusters(running: &RunningController) -> String {
    let is_refused =
        |now: &Overview| now.targets.iter().filter(|it| it.phase == TargetPhase::Refused).count() == 2;
    let now = running.until("a refusal", is_refused).await;
    target(&now, "bj1", "default/settings").detail.clone()
}

/// A refused object is retried a few times in ten minutes.
async fn check_few_retries(fleet: &TestFleet) {
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let tries = fleet.requests().into_iter().filter(|(name, it)| name == "bj1" && it.is_write()).count();
    assert!((1..=6).contains(&tries), "{tries} tries in ten minutes");
}

/// Commits a mistake together with a change of a valid app. The change is applied, the mistake is reported,
/// and nothing is deleted.
async fn check_mistake(mistake: &[FileTextChange<'_>], expected: &[&str]) {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let change = config_map("default", "one", "second");
    let mut changes = vec![(MAPS_FILE, Some(change.as_str()))];
    changes.extend(mistake);
    let revision = fleet.push(&running, "An error", &changes).await;
    let now =
        running.until("its errors", |now| now.revision.as_ref() == Some(&revision) && now.has_errors()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let shown = running.overview.borrow().clone();
    assert_eq!(diagnostic_messages(&shown), expected, "first {:?}", diagnostic_messages(&now));
    for (name, sandbox) in &fleet.clusters {
        let one = live_objects::get(sandbox, "ConfigMap", "default", "one").await.expect("one");
        assert_eq!(one["data"]["value"], "second", "{name}: an app without an error goes on");
        assert!(live_objects::get(sandbox, "ConfigMap", "default", "two").await.is_some(), "{name}: deleted");
        assert!(
            live_objects::get(sandbox, "Deployment", "default", "web").await.is_some(),
            "{name}: deleted"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn missing_repository_is_reported() {
    let folder = tempfile::tempdir().expect("folder");
    let mut options = TestRepository::empty().options();
    options.url = folder.path().display().to_string();
    let error = ConfigRepository::open(options).await.expect_err("not a repository");
    assert_eq!(
        error.to_string(),
        format!("failed to open {}: not a Git repository", folder.path().display())
    );
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.help().is_some());
}

/// A lost instance file must not end observe mode; a lost ring changes a value.
#[tokio::test(start_paused = true)]
async fn mistake_in_instance_or_rings_writes_nothing() {
    let observe = INSTANCE.replace("spec: {}", "spec: {mode: observe}");
    for (path, text) in [("tutti.yaml", &*observe), ("rings.yaml", RINGS)] {
        for broken in [format!("{text}<<<<<<< HEAD\n"), text.replace("kind: ", "kind: x"), String::new()] {
            let fleet = fleet();
            let running = fleet.start().await;
            running.until_converged(&fleet.first_commit).await;
            let right = fleet.push(&running, "Right", &[(path, Some(text))]).await;
            running.until("the right one", |now| now.revision.as_ref() == Some(&right)).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            fleet.clear_requests();
            let web = component("web", "registry.example.com/web:2");
            let changes =
                [(path, Some(&*broken)), ("apps/web/app.yaml", Some(&*web)), (MAPS_FILE, Some("# none\n"))];
            let wrong = fleet.push(&running, "Wrong", &changes).await;
            running
                .until("the wrong one", |now| now.revision.as_ref() == Some(&wrong) && now.has_errors())
                .await;
            tokio::time::sleep(Duration::from_secs(300)).await;
            assert_eq!(write_requests(&fleet), Vec::<String>::new(), "{path} {broken:?}");
            // A process that starts with the mistake behaves the same.
            drop(running);
            let until = RunUntil::Settled { timeout: Duration::from_secs(60) };
            let running =
                fleet.start_with(&ProcessConnections::unlimited(), |settings| settings.until = until).await;
            let (ending, overview) = running.until_ended().await;
            assert!(
                matches!(ending, RunEnding::Settled) && overview.has_errors(),
                "{path} {broken:?}: {ending:?}"
            );
            assert_eq!(write_requests(&fleet), Vec::<String>::new(), "{path} {broken:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn repository_without_commits_is_reported() {
    let fleet = fleet();
    let empty = TestRepository::empty();
    let origin = ManifestOrigin::Repository(empty.open().await);
    let running = fleet.start_from_origin(origin, &ProcessConnections::unlimited(), |_| {});
    let (ending, _) = running.until_ended().await;
    let RunEnding::Unreadable(error) = ending else { panic!("{ending:?}") };
    assert_eq!(
        error.message,
        format!("failed to read {}: the repository is empty, it has no commit", empty.path().display())
    );
    assert_eq!(error.kind, ErrorKind::Configuration);
}

#[tokio::test(start_paused = true)]
async fn invalid_yaml_is_reported() {
    check_mistake(
        &[("apps/bad/app.yaml", Some("apiVersion: tutti.dev/v1alpha1\nkind: {Component\n"))],
        &["error[E1102]: invalid YAML: did not find expected ',' or '}' at apps/bad/app.yaml:3:1"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_field_is_reported() {
    let bad = component("bad", "registry.example.com/bad:1") + "  prot: 8080\n";
    check_mistake(
        &[("apps/bad/app.yaml", Some(&bad))],
        &["error[E1201]: unknown field `prot` in `spec` at apps/bad/app.yaml:10:3"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn mistake_in_running_app_changes_nothing() {
    let bad = component("web", "registry.example.com/web:2") + "  prot: 8080\n";
    check_mistake(
        &[("apps/web/app.yaml", Some(&bad))],
        &["error[E1201]: unknown field `prot` in `spec` at apps/web/app.yaml:10:3"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_template_variable_is_reported() {
    check_mistake(
        &[("apps/web/layer/more.yaml.j2", Some("# A comment.\nname: {{ app.nmae }}\n"))],
        &["error[E3002]: app.nmae is undefined in apps/web/layer/more.yaml.j2 at apps/web/layer/more.yaml.j2:2:10"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_template_is_reported() {
    check_mistake(&[("apps/web/layer/more.yaml.j2", Some("{% if app.name %}\nname: x\n"))], &["error[E3001]: apps/web/layer/more.yaml.j2 is not a template: unexpected end of input, expected end of block at apps/web/layer/more.yaml.j2:1:18"]).await;
}

#[tokio::test(start_paused = true)]
async fn duplicate_manifest_name_is_reported() {
    check_mistake(
        &[("apps/second/app.yaml", Some(&component("web", "registry.example.com/other:1")))],
        &["error[E2001]: the app default/web has a manifest already, at apps/web/app.yaml:3:18 at apps/second/app.yaml:3:18"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn missing_kubeconfig_is_reported() {
    let fleet = fleet();
    let running = fleet.start().await;
    let revision = fleet.push(&running, "A third", &[("clusters/hk1.yaml", Some(&cluster("hk1")))]).await;
    let now = running
        .until("the others healthy", |now| {
            now.revision.as_ref() == Some(&revision)
                && now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count() == 4
                && now.targets.iter().filter(|it| it.phase == TargetPhase::Unreachable).count() == 2
        })
        .await;
    let hk1 = now.clusters.iter().find(|it| it.name.as_str() == "hk1").expect("hk1");
    let path = fleet.repository.path().join("hk1.kubeconfig");
    assert_eq!(hk1.state, "Offline");
    assert_eq!(hk1.detail, format!("kubeconfig {}: No such file or directory (os error 2)", path.display()));
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_reported() {
    let fleet = fleet();
    fleet.cluster("gz1").fail_next(RequestMatch::any(), 1_000_000, Fault::unauthorized());
    let running = fleet.start().await;
    let now = running
        .until("one cluster healthy", |now| {
            now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count() == 2
                && now.targets.iter().filter(|it| it.phase == TargetPhase::Unreachable).count() == 2
        })
        .await;
    let gz1 = now.clusters.iter().find(|it| it.name.as_str() == "gz1").expect("gz1");
    assert_eq!(gz1.detail, "not allowed: Unauthorized: injected by the sandbox");
}

#[tokio::test(start_paused = true)]
async fn ended_run_names_the_missing_cluster() {
    let fleet = fleet();
    fleet.cluster("gz1").set_down(true);
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |it| {
            it.until = RunUntil::Settled { timeout: WAIT_LIMIT }
        })
        .await;
    let (ending, overview) = running.until_ended().await;
    assert!(matches!(ending, RunEnding::Settled), "{ending:?}");
    assert_eq!(
        phases(&overview),
        [
            "bj1 default/settings Running",
            "gz1 default/settings Unreachable",
            "bj1 default/web Running",
            "gz1 default/web Unreachable",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn immutable_field_change_is_refused() {
    let fleet = fleet();
    let running = fleet.start().await;
    let first = deployment("default", "db", "db", "registry.example.com/db:1");
    let revision =
        fleet.push(&running, "A database", &[("apps/settings/objects/db.yaml", Some(&first))]).await;
    running.until_converged(&revision).await;
    let second = deployment("default", "db", "database", "registry.example.com/db:1");
    fleet.push(&running, "Another selector", &[("apps/settings/objects/db.yaml", Some(&second))]).await;
    let detail = wait_for_refusal_on_both_clusters(&running).await;
    assert!(detail.contains("Deployment default/db"), "{detail}");
    assert!(detail.contains("spec.selector"), "{detail}");
    assert!(detail.contains("field is immutable"), "{detail}");
    check_few_retries(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_field_is_refused() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    // Another manager adds a field that Git lacks: no drift. Then Git adds it too.
    let extra =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\ndata: {extra: theirs}\n";
    live_objects::apply_as(fleet.cluster("bj1"), "kubectl", extra).await;
    let maps = ["one", "two"].map(|name| config_map("default", name, "second") + "  extra: ours\n");
    let maps = maps.join("---\n").replace("data: {value: \"second\"}", "data:\n  value: \"second\"");
    fleet.push(&running, "A change", &[(MAPS_FILE, Some(&maps))]).await;
    let now =
        running.until("a refusal", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Refused)).await;
    assert_eq!(
        target(&now, "bj1", "default/settings").detail,
        "failed to apply ConfigMap default/one: conflict with \"kubectl\" over .data.extra; \
         `force: true` in the app takes the fields that others set"
    );
    let one = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "one").await.expect("one");
    assert_eq!((&one["data"]["value"], &one["data"]["extra"]), (&"first".into(), &"theirs".into()));
    let two = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "two").await.expect("two");
    assert_eq!(two["data"]["value"], "second", "its neighbour is applied");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let now = running.overview.borrow().clone();
    assert_eq!(target(&now, "gz1", "default/settings").phase, TargetPhase::Running);
    assert_eq!(target(&now, "bj1", "default/web").phase, TargetPhase::Running);
}

#[tokio::test(start_paused = true)]
async fn refused_object_does_not_block_repairs() {
    let fleet = fleet();
    let running = fleet.start().await;
    let web = deployment("default", "side", "side", "registry.example.com/side:1");
    let revision = fleet.push(&running, "Side", &[("apps/settings/objects/side.yaml", Some(&web))]).await;
    running.until_converged(&revision).await;
    let bj1 = fleet.cluster("bj1");
    let extra =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\ndata: {extra: theirs}\n";
    live_objects::apply_as(bj1, "kubectl", extra).await;
    let wanted = config_map("default", "one", "second").replace("data: {", "data: {extra: ours, ");
    fleet.push(&running, "A field of others", &[(MAPS_FILE, Some(&wanted))]).await;
    running
        .until("a refusal", |now| target(now, "bj1", "default/settings").phase == TargetPhase::Refused)
        .await;

    // The Deployment comes after the refused ConfigMap.
    let images = web.replace("side:1", "side:9");
    live_objects::apply_as(bj1, "kubectl", &images).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let side = live_objects::get(bj1, "Deployment", "default", "side").await.expect("a deployment");
    let image = side.pointer("/spec/template/spec/containers/0/image").expect("an image");
    assert_eq!(image, "registry.example.com/side:1");
    let now = running.overview.borrow().clone();
    assert_eq!(target(&now, "bj1", "default/settings").phase, TargetPhase::Refused);
}

#[tokio::test(start_paused = true)]
async fn schema_violation_is_refused_with_few_requests() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\nimmutable: 'no'\n";
    fleet.push(&running, "A text", &[(MAPS_FILE, Some(text))]).await;
    let detail = wait_for_refusal_on_both_clusters(&running).await;
    assert!(detail.contains(".immutable: expected boolean, got"), "{detail}");
    check_few_retries(&fleet).await;
}

/// The refusal lists `metadata.uid` among the supported fields. It must not be taken for a UID conflict, which is retried.
#[tokio::test(start_paused = true)]
async fn invalid_variable_value_is_refused_for_good() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let with_variable =
        "{name: main, env: [{name: LABELS, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}],";
    let side = deployment("default", "side", "side", "registry.example.com/side:1");
    let side = side.replace("{name: main,", with_variable);
    fleet.push(&running, "Side", &[("apps/settings/objects/side.yaml", Some(&side))]).await;
    let detail = wait_for_refusal_on_both_clusters(&running).await;
    assert!(detail.contains("Unsupported value: \"metadata.labels\""), "{detail}");
    assert!(detail.contains("\"metadata.uid\""), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn foreign_object_is_refused_until_deleted() {
    let fleet = fleet();
    // The values are equal, so an apply would adopt the object without a conflict.
    live_objects::apply_as(fleet.cluster("bj1"), "kubectl", &config_map("default", "one", "first")).await;
    fleet.clear_requests();
    let running = fleet.start().await;
    let now = running
        .until("a refusal", |now| {
            now.targets.iter().any(|it| it.phase == TargetPhase::Refused)
                && now.targets.iter().filter(|it| it.phase == TargetPhase::Running).count() == 3
        })
        .await;
    assert_eq!(
        target(&now, "bj1", "default/settings").detail,
        "ConfigMap default/one: tutti does not manage it (managers: kubectl); `adopt: true` in the app takes it over"
    );
    let touched = RequestMatch::writes().resource("configmaps").name("one");
    assert_eq!(fleet.cluster("bj1").count_requests(&touched), 0);
    assert!(
        live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "two").await.is_some(),
        "its neighbour"
    );

    // The foreign object is deleted; no push is needed.
    let maps = live_objects::api(fleet.cluster("bj1"), "ConfigMap", Some("default"));
    maps.delete("one", &Default::default()).await.expect("delete");
    running.until_converged(&fleet.first_commit).await;
}
