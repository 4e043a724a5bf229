//! Compares parsed objects with `helm template`.

use std::sync::Arc;

use serde_json::{Value, json};
use tutti::chart::ChartRenderLimits;
use tutti::model::{ChartCapabilities, ChartRequest};

use super::support::{
    chart_of_folder, command_renderer, fixture_path, helm_programs, library_renderer, objects_by_name,
    request,
};

/// Both renderers produce these objects.
#[track_caller]
fn check_same_as_helm(request: &ChartRequest, expected: &[&str]) {
    let Some(helm) = helm_programs() else { return };
    let ours = library_renderer(&helm, ChartRenderLimits::default()).render(request).expect("our render");
    let theirs = command_renderer(&helm).render(request).expect("their render");
    let (ours, theirs) = (objects_by_name(&ours), objects_by_name(&theirs));
    assert_eq!(ours, theirs);
    assert_eq!(ours.keys().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn library_charts_tpl_files_and_functions() {
    let chart = chart_of_folder(&fixture_path("library"));
    let names = [
        "templates/configmap.yaml ConfigMap demo-library-user-config",
        "templates/configmap.yaml Secret demo-library-user-secret",
        "templates/deployment.yaml Deployment demo-library-user",
        "templates/end.yaml ConfigMap end",
    ];
    check_same_as_helm(&request(&chart, json!({})), &names);
    check_same_as_helm(
        &request(&chart, json!({"image": {"tag": null}, "big": 12_345_678_901_i64, "ratio": 1e-7})),
        &names,
    );
    let capabilities = ChartCapabilities {
        kube_version: Some("v1.19.3-gke.100".to_owned()),
        api_versions: vec!["gateway.networking.k8s.io/v1".to_owned()],
        complete: false,
    };
    check_same_as_helm(&ChartRequest { capabilities, ..request(&chart, json!({})) }, &names);
}

#[test]
fn subcharts_conditions_tags_aliases_import_values_and_globals() {
    let chart = chart_of_folder(&fixture_path("subcharts"));
    let parent = "templates/all.yaml ConfigMap demo-parent";
    let (db, replica) = (
        "charts/db/templates/db.yaml StatefulSet demo-db",
        "charts/replica/templates/db.yaml StatefulSet demo-replica",
    );
    let (cache, queue) = (
        "charts/cache/templates/s.yaml Service demo-cache",
        "charts/queue/templates/s.yaml Service demo-queue",
    );
    check_same_as_helm(&request(&chart, json!({})), &[db, parent]);
    check_same_as_helm(
        &request(
            &chart,
            json!({"replica": {"enabled": true}, "tags": {"fast": true}, "global": {"queue": true}}),
        ),
        &[cache, db, queue, replica, parent],
    );
    // Later layers win; null removes a value of the chart or an earlier layer.
    check_same_as_helm(
        &request(
            &chart,
            json!([{"own": {"drop": null, "more": [1]}, "db": {"nullable": {"a": null}}}, {"own": {"more": [2], "keep": 3}}]),
        ),
        &[db, parent],
    );
}

#[test]
fn hooks_definitions_and_notes() {
    let chart = chart_of_folder(&fixture_path("hooks"));
    check_same_as_helm(
        &request(&chart, json!({})),
        &[
            "crds/widgets.yaml CustomResourceDefinition gadgets.example.com",
            "crds/widgets.yaml CustomResourceDefinition widgets.example.com",
            "templates/account.yaml ServiceAccount demo-migrate",
            "templates/jobs.yaml Job demo-migrate",
            "templates/jobs.yaml PersistentVolumeClaim demo-data",
            "templates/jobs.yaml Pod demo-test",
            "templates/jobs.yaml Widget demo",
        ],
    );
    let Some(helm) = helm_programs() else { return };
    let output =
        library_renderer(&helm, ChartRenderLimits::default()).render(&request(&chart, json!({}))).unwrap();
    assert_eq!(output.notes.trim(), "Release demo in shop.");
    let hooks: Vec<_> = output.objects.iter().filter_map(|object| object.hook.clone()).collect();
    let seen: Vec<_> = hooks
        .iter()
        .map(|hook| (hook.events.join(","), hook.weight, hook.delete_policies.join(",")))
        .collect();
    let expected = [
        ("test".to_owned(), 0, String::new()),
        ("pre-install,pre-upgrade".to_owned(), -5, "before-hook-creation".to_owned()),
        ("pre-install,pre-upgrade".to_owned(), 5, "before-hook-creation,hook-succeeded".to_owned()),
    ];
    assert!(expected.iter().all(|hook| seen.contains(hook)), "{seen:?}");
}

#[test]
fn one_child_renders_many_charts_independently() {
    let Some(helm) = helm_programs() else { return };
    let renderer = library_renderer(&helm, ChartRenderLimits { children: 1, ..ChartRenderLimits::default() });
    let charts: Vec<_> =
        ["library", "subcharts", "hooks", "schema"].map(|name| chart_of_folder(&fixture_path(name))).into();
    let render = |chart: &Arc<_>, values: Value| renderer.render(&request(chart, values)).expect("a render");
    let first: Vec<_> = charts.iter().map(|chart| render(chart, json!({}))).collect();
    // A render must not see changes of an earlier one.
    render(&charts[1], json!({"replica": {"enabled": true}, "db": {"enabled": false}}));
    let second: Vec<_> = charts.iter().map(|chart| render(chart, json!({}))).collect();
    assert_eq!(first, second);
}
