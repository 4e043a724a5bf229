//! Messages of routes for commits of a small repository.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::preview_messages;
use crate::compare::{ComparedRevision, ComparisonCache, compare, fleet_after};
use crate::manifest;
use crate::model::{NoCharts, Revision, Snapshot};
use crate::notification::message_text::CommitText;
use crate::render::DiscoveredCapabilities;

type Texts = BTreeMap<String, String>;

const KIND: &str = "apiVersion: tutti.dev/v1alpha1\nkind: ";

/// Ring `test` with one cluster, ring `prod` with two; apps `pay` and `cart`; one route with these lines.
fn repository(route: &str) -> Texts {
    let mut texts = Texts::new();
    let mut put = |path: &str, text: String| _ = texts.insert(path.to_owned(), format!("{KIND}{text}"));
    put(
        "tutti.yaml",
        "Instance\nmetadata: {name: main}\nspec: {defaults: {namespace: shop}, pageUrl: https://tutti.example.com}\n".to_owned(),
    );
    for (name, ring) in [("t1", "test"), ("p1", "prod"), ("p2", "prod")] {
        let spec = "spec: {connection: {sandbox: {}}}";
        put(
            &format!("clusters/{name}.yaml"),
            format!("Cluster\nmetadata: {{name: {name}, labels: {{ring: {ring}}}}}\n{spec}\n"),
        );
    }
    put(
        "rings.yaml",
        "Rings\nmetadata: {name: rings}\nspec:\n  rings:\n    - {name: test, clusters: {matchLabels: {ring: test}}, confirm: true}\n    \
         - {name: prod, clusters: {matchLabels: {ring: prod}}}\n"
            .to_owned(),
    );
    put("apps/pay/app.yaml", component("pay", "1.0.0", 2));
    put("apps/cart/app.yaml", component("cart", "2.0.0", 2));
    put(
        "notifications/chat.yaml",
        format!(
            "Notification\nmetadata: {{name: chat}}\nspec:\n  service: teams\n  url: {{env: TUTTI_SECRET_URL}}\n{route}"
        ),
    );
    texts
}

fn component(name: &str, version: &str, replicas: usize) -> String {
    format!(
        "Component\nmetadata: {{name: {name}}}\nspec:\n  workloadType: Deployment\n  developLanguage: java\n  runType: worker\n  image: \
         registry.example.com/{name}:{version}\n  replicas: {replicas}\n"
    )
}

fn set(texts: &mut Texts, path: &str, text: &str) {
    texts.insert(path.to_owned(), format!("{KIND}{text}"));
}

fn snapshot(texts: &Texts, revision: &str) -> Snapshot {
    let snapshot = Snapshot::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    Snapshot { revision: Revision::from(revision), ..snapshot }
}

/// One line for each message: the phase, the failure it is for, the delay, and its text.
fn told(route: &str, at: &str, change: impl FnOnce(&mut Texts)) -> Vec<String> {
    let base = repository(route);
    let mut head = base.clone();
    change(&mut head);
    let (base, head) = (snapshot(&base, "ba5eba5e"), snapshot(&head, "4ead4ead"));
    let mut reading = manifest::ManifestCache::default();
    let before = fleet_after(&base, &mut reading, None);
    let after = fleet_after(&head, &mut reading, Some(&before));
    assert_eq!(before.diagnostics, [], "the base has no error");
    let side = |fleet, snapshot| ComparedRevision {
        fleet,
        snapshot,
        charts: &NoCharts,
        discovered: DiscoveredCapabilities::new(),
    };
    let plan = compare(&side(&before, &base), &side(&after, &head), &mut ComparisonCache::default(), None);
    let commit =
        CommitText { subject: "Change".to_owned(), author: "li".to_owned(), ..CommitText::default() };
    let at: Timestamp = at.parse().expect("a time");
    let sent = preview_messages(&plan, &after, &after.notifications, &commit, at);
    let line = |it: &super::PreviewMessage| {
        let fails =
            it.if_fails.as_ref().map(|(app, cluster)| format!(" if {app} on {cluster}")).unwrap_or_default();
        let held = it.held_until.map(|until| format!(" held until {until}")).unwrap_or_default();
        let lines =
            [&it.message.title, &it.message.place, &it.message.cause].map(|text| text.replace('\n', " / "));
        assert!(it.message.links.iter().all(|link| link.url == "https://tutti.example.com"), "{it:?}");
        format!("{}{fails}{held}: {}", it.message.happened.as_str(), lines.join(" | "))
    };
    sent.iter().map(line).collect()
}

#[track_caller]
fn check(route: &str, change: impl FnOnce(&mut Texts), expected: &[&str]) {
    assert_eq!(told(route, "2026-11-27T04:00:00Z", change), expected, "{route}");
}

#[test]
fn change_passes_through_the_rings() {
    let release = |texts: &mut Texts| set(texts, "apps/pay/app.yaml", &component("pay", "1.1.0", 2));
    let done_in_test = "done: ✓ shop/pay 1.1.0: done in test | t1 · 1 of 1 healthy | “Change” by li";
    let failed_in_test = "failed if shop/pay on t1: ✗ shop/pay 1.1.0: failed in test | t1 · 0 of 1 healthy | t1 shop/pay: (the cause, in \
                          the words of the cluster) / what to do: git revert 4ead4ea / “Change” by li";
    let waiting = "waiting: ⏸ shop/pay 1.1.0: waits for confirmation in prod | p1, p2 · 0 of 2 healthy | to go on: tutti approve rollout \
                   shop/pay --through prod / “Change” by li";
    let done_in_prod = "done: ✓ shop/pay 1.1.0: done in prod | p1, p2 · 2 of 2 healthy | “Change” by li";
    let failed_in_prod = "failed if shop/pay on p1: ✗ shop/pay 1.1.0: failed in prod | p1, p2 · 1 of 2 healthy | p1 shop/pay: (the cause, \
                          in the words of the cluster) / what to do: git revert 4ead4ea / “Change” by li";
    check("", release, &[done_in_test, failed_in_test, waiting, done_in_prod, failed_in_prod]);
    check("  select: {rings: [prod], phases: [waiting]}\n", release, &[waiting]);
    check("  select: {apps: {names: [shop/cart]}}\n", release, &[]);
    check(
        "  select: {clusters: {names: [p2]}, phases: [started, done]}\n",
        release,
        &[
            "started: ▶ shop/pay 1.1.0: rollout started in prod | p2 · 0 of 1 healthy | “Change” by li",
            "done: ✓ shop/pay 1.1.0: done in prod | p2 · 1 of 1 healthy | “Change” by li",
        ],
    );
    check("", |_| {}, &[]);
}

#[test]
fn confirmations_of_apps_are_collected() {
    let release = |texts: &mut Texts| {
        set(texts, "apps/pay/app.yaml", &component("pay", "1.1.0", 2));
        set(texts, "apps/cart/app.yaml", &component("cart", "2.1.0", 2));
    };
    check(
        "  select: {phases: [waiting]}\n",
        release,
        &[
            "waiting: ⏸ 2 apps: waits for confirmation in prod | shop/cart, shop/pay · p1, p2 · 0 of 4 healthy | to go on: tutti approve rollout \
         shop/cart --through prod; tutti approve rollout shop/pay --through prod / “Change” by li",
        ],
    );
}

#[test]
fn unchanged_version_is_named() {
    let scale = |texts: &mut Texts| set(texts, "apps/pay/app.yaml", &component("pay", "1.0.0", 3));
    check(
        "  select: {rings: [test], phases: [done]}\n",
        scale,
        &["done: ✓ shop/pay 1.0.0: done in test | t1 · 1 of 1 healthy | “Change” by li"],
    );
}

#[test]
fn deleted_app_ends_as_deleted_objects() {
    let remove = |texts: &mut Texts| _ = texts.remove("apps/pay/app.yaml");
    check(
        "  select: {rings: [test], phases: [started, done, failed]}\n",
        remove,
        &[
            "started: ▶ shop/pay: rollout started in test | t1 | “Change” by li",
            "done: ✓ deletion of 1 object: done in test | t1 | “Change” by li",
        ],
    );
}

#[test]
fn errors_are_certain_failures() {
    let slip = |texts: &mut Texts| {
        let text = component("pay", "1.1.0", 2).replace("replicas: 2", "replicas: many");
        set(texts, "apps/pay/app.yaml", &text);
    };
    let lines = told("", "2026-11-27T04:00:00Z", slip);
    assert!(lines[0].starts_with("failed: ✗ commit 4ead4ea has errors |  | apps/pay/app.yaml:"), "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("failed: ")), "{lines:?}");
    let of_ring = told("  select: {rings: [test]}\n", "2026-11-27T04:00:00Z", slip);
    assert!(of_ring.iter().all(|line| !line.contains("has errors")), "{of_ring:?}");
    let of_app = told("  select: {apps: {names: [shop/cart]}}\n", "2026-11-27T04:00:00Z", slip);
    assert_eq!(of_app, [""; 0]);
}

#[test]
fn observe_mode_sends_nothing() {
    let observe = |texts: &mut Texts| {
        set(texts, "apps/pay/app.yaml", &component("pay", "1.1.0", 2));
        let text = texts["tutti.yaml"].replace("spec: {", "spec: {mode: observe, ");
        texts.insert("tutti.yaml".to_owned(), text);
    };
    check("", observe, &[]);
}

#[test]
fn quiet_hours_hold() {
    let route = "  select: {rings: [test]}\n  quietHours: [{from: \"22:00\", to: \"08:00\", timeZone: Asia/Shanghai, except: [failed]}]\n";
    let release = |texts: &mut Texts| set(texts, "apps/pay/app.yaml", &component("pay", "1.1.0", 2));
    let lines = told(route, "2026-11-27T15:00:00Z", release);
    let begins: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(begins, ["done held until 2026-11-28T00:00:00Z", "failed if shop/pay on t1"]);
    let lines = told(route, "2026-11-28T04:00:00Z", release);
    assert!(lines.iter().all(|line| !line.contains("held")), "{lines:?}");
}
