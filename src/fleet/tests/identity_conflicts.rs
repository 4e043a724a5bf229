//! Duplicate identities: the manifest that had the identity first keeps it, the other one is refused.

use super::super::{Fleet, assemble, assemble_after};
use super::{BJ, component, objects, project, route};
use crate::manifest;
use crate::model::{DiagnosticScope, Snapshot};

type Files<'a> = [(&'a str, &'a str)];

/// What is refused when the files of a newcomer join those of a holder: once with the holder known from before, once from a
/// cold start with both.
fn check(holder: &Files<'_>, newcomer: &Files<'_>, expected: &[(&str, &str)]) {
    let base = [BJ, ("tutti.yaml", super::OBSERVE)];
    let snapshot = |files: &[&Files<'_>]| {
        Snapshot::of_texts(base.iter().chain(files.iter().copied().flatten()).copied())
    };
    let before = snapshot(&[holder]);
    let before = assemble(manifest::read(&before), &before);
    assert!(before.is_valid(), "{:#?}", before.diagnostics);
    let now = snapshot(&[holder, newcomer]);
    let now = assemble_after(manifest::read(&now), &now, &before.identity_owners);
    let told: Vec<_> = now.diagnostics.iter().filter(|it| it.is_error()).collect();
    let told: Vec<_> =
        told.iter().map(|it| (it.code, &*it.location.as_ref().expect("a place").file)).collect();
    assert_eq!(told, expected, "{:#?}", now.diagnostics);
    assert!(is_kept(&before, &now), "{:#?}", now.diagnostics);
    // The holders stay the same in the next revision.
    assert_eq!(
        before.identity_owners.iter().find(|(scope, file)| now.identity_owners.get(scope) != Some(file)),
        None
    );
}

/// All targets of the previous fleet stay.
fn is_kept(before: &Fleet, now: &Fleet) -> bool {
    let is_same = |target| now.apps.get(&target) == before.apps.get(&target);
    let targets = now.targets();
    before.targets().into_iter().all(|target| targets.contains(&target) && is_same(target.app))
        && before.clusters.iter().all(|(name, cluster)| now.clusters.get(name) == Some(cluster))
}

#[test]
fn second_manifest_of_an_app_is_refused() {
    let (web, other) = (component("web", ""), objects("web", "x.yaml"));
    for text in [&other, &other.replace("spec: {", "spec: {no: 1, ")] {
        for file in ["apps/a/app.yaml", "apps/z/app.yaml"] {
            let object = file.replace("app.yaml", "x.yaml");
            let newcomer = [(file, &**text), (&*object, super::CONFIG_MAP)];
            let expected = [("E2001", file), ("E1201", file)];
            let expected = if *text == other { &expected[..1] } else { &expected };
            check(&[("apps/web/app.yaml", &web)], &newcomer, expected);
        }
    }
}

#[test]
fn second_manifest_of_a_cluster_is_refused() {
    let web = component("web", "");
    let holder = [("apps/web/app.yaml", &*web)];
    let broken = BJ.1.replace("spec: {", "spec: {no: 1, ");
    check(&holder, &[("apps/a/c.yaml", BJ.1)], &[("E2001", "apps/a/c.yaml")]);
    check(&holder, &[("apps/a/c.yaml", &broken)], &[("E2001", "apps/a/c.yaml"), ("E1201", "apps/a/c.yaml")]);
}

#[test]
fn second_project_of_a_namespace_is_refused() {
    let (shop, web) = (project("shop", ""), super::in_shop("web", ""));
    let holder = [("projects/shop.yaml", &*shop), ("apps/web/app.yaml", &web)];
    for newcomer in
        [project("a", "namespace: shop, allow: {kinds: [AppSet]}"), project("a", "namespace: shop, no: 1")]
    {
        let expected = [("E2051", "apps/a/p.yaml"), ("E1201", "apps/a/p.yaml")];
        let expected = if newcomer.contains("no: 1") { &expected[..] } else { &expected[..1] };
        check(&holder, &[("apps/a/p.yaml", &newcomer)], expected);
    }
    let same = project("shop", "allow: {kinds: [AppSet]}");
    check(&holder, &[("apps/a/p.yaml", &same)], &[("E2001", "apps/a/p.yaml")]);
    // Its mistakes affect the apps of its folder only.
    let broken = project("shop", "no: 1");
    check(&holder[1..], &[("apps/a/p.yaml", &broken)], &[("E1201", "apps/a/p.yaml")]);
}

#[test]
fn second_route_or_pod_set_name_is_refused() {
    let web = component("web", ", routes: [{host: a.io}]");
    let holder = [("apps/web/app.yaml", &*web)];
    let a = component("a", "");
    let newcomer = [("apps/a/app.yaml", &*a), ("apps/a/r.yaml", &*route("more", "host: a.io"))];
    check(&holder, &newcomer, &[("E2061", "apps/a/r.yaml")]);
    let set = super::app_set("a", "", "{name: bj, podSets: [{name: web, replicas: 1}]}");
    check(&holder, &[("apps/a/app.yaml", &set)], &[("E2013", "apps/a/app.yaml")]);
}

#[test]
fn holder_with_a_mistake_stays_the_holder() {
    let snapshot = Snapshot::of_texts([BJ, ("z.yaml", &*component("web", ""))]);
    let first = assemble(manifest::read(&snapshot), &snapshot);
    let broken = component("web", ", no: 1");
    let newcomer = component("web", "");
    let snapshot = Snapshot::of_texts([BJ, ("z.yaml", &*broken), ("a.yaml", &newcomer)]);
    let now = assemble_after(manifest::read(&snapshot), &snapshot, &first.identity_owners);
    assert_eq!(now.identity_owners, first.identity_owners);
    assert!(now.targets().is_empty() && now.broken_apps.len() == 1);
    assert!(now.diagnostics.iter().any(|it| it.scope == DiagnosticScope::File("a.yaml".to_owned())));
}
