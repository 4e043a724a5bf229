//! Requests of a process that starts when the fleet matches Git: discovery, one probe of each kind for our objects,
//! and one list of each kind in use. No request more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::core::discovery::verbs;
use kube::discovery::Discovery;
use sandbox::{Release, Sandbox, SandboxOptions};

use crate::drift::wait_for_repairs;
use crate::support::fleet::TestFleet;
use crate::support::manifests::{component, config_map, objects_app};

type RequestCounts = BTreeMap<String, usize>;

/// Resources the cluster serves that tutti can manage, as `deployments.apps`, read by another client. Events are left out.
async fn manageable_resources(sandbox: &Sandbox) -> BTreeSet<String> {
    let client = kube::Client::new(sandbox.service(), "default");
    let served = Discovery::new(client).run().await.expect("what is served");
    let resources = served.groups().flat_map(kube::discovery::ApiGroup::resources_by_stability);
    resources
        .filter(|(it, may)| {
            it.kind != "Event"
                && [verbs::LIST, verbs::WATCH, verbs::PATCH, verbs::DELETE]
                    .iter()
                    .all(|verb| may.supports_operation(verb))
        })
        .map(|(it, _)| if it.group.is_empty() { it.plural } else { format!("{}.{}", it.plural, it.group) })
        .collect()
}

/// Paths of all served API versions.
async fn group_version_paths(sandbox: &Sandbox) -> Vec<String> {
    let client = kube::Client::new(sandbox.service(), "default");
    let groups = client.list_api_groups().await.expect("groups").groups;
    let named = groups.into_iter().flat_map(|group| group.versions);
    named.map(|version| format!("get /apis/{}", version.group_version)).collect()
}

/// All requests until the first probe.
async fn start_requests(options: fn(&str) -> SandboxOptions) -> (TestFleet, RequestCounts) {
    let (web, settings) =
        (component("web", "registry.example.com/web:1"), objects_app("default", "settings"));
    let maps = ["one", "two"].map(|name| config_map("default", name, "first")).join("---\n");
    let files = [
        ("apps/web/app.yaml", web.as_str()),
        ("apps/settings/app.yaml", &settings),
        ("apps/settings/objects/maps.yaml", &maps),
    ];
    let fleet = TestFleet::with_options(&["bj1"], &files, options);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    wait_for_repairs().await;
    running.stop().await;
    fleet.clear_requests();
    let running = fleet.start().await;
    let start = tokio::time::Instant::now();
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep_until(start + Duration::from_millis(4_900)).await;
    let mut counts = RequestCounts::new();
    for (_, record) in fleet.all_requests() {
        *counts.entry(format!("{} {}", record.verb, record.resource)).or_default() += 1;
    }
    running.stop().await;
    (fleet, counts)
}

/// Deployments, Services, ConfigMaps, and the two kinds that describe the served API.
const WATCHED_KINDS: [&str; 5] = [
    "apiservices.apiregistration.k8s.io",
    "configmaps",
    "customresourcedefinitions.apiextensions.k8s.io",
    "deployments.apps",
    "services",
];

fn add_request(counts: &mut RequestCounts, what: &str) {
    *counts.entry(what.to_owned()).or_default() += 1;
}

async fn check_start_requests(options: fn(&str) -> SandboxOptions, is_aggregated: bool, streams: bool) {
    let (fleet, counts) = start_requests(options).await;
    let mut expected = RequestCounts::new();
    ["get /version", "get /apis", "get /api"].iter().for_each(|what| add_request(&mut expected, what));
    if !is_aggregated {
        ["get /api", "get /api/v1", "get /apis"].iter().for_each(|what| add_request(&mut expected, what));
        group_version_paths(fleet.cluster("bj1"))
            .await
            .iter()
            .for_each(|what| add_request(&mut expected, what));
    }
    let searched = manageable_resources(fleet.cluster("bj1")).await;
    assert!(searched.len() > 30, "{searched:?}");
    searched.iter().for_each(|kind| add_request(&mut expected, &format!("list {kind}")));
    for kind in WATCHED_KINDS {
        let told = if streams { "stream" } else { "list" };
        add_request(&mut expected, &format!("{told} {kind}"));
        if !streams {
            add_request(&mut expected, &format!("watch {kind}"));
        }
    }
    assert_eq!(counts, expected);
}

fn release_options(name: &str, minor: u32) -> SandboxOptions {
    SandboxOptions::instant(name).running(Release::new(minor).expect("a release"))
}

#[tokio::test(start_paused = true)]
async fn cold_start_probes_kinds_and_streams_used_ones() {
    check_start_requests(|name| release_options(name, 36), true, true).await;
}

#[tokio::test(start_paused = true)]
async fn cold_start_without_streams_lists_each_kind_once() {
    check_start_requests(|name| release_options(name, 30), true, false).await;
}

#[tokio::test(start_paused = true)]
async fn oldest_release_cold_start_discovers_each_group_once() {
    check_start_requests(|name| release_options(name, 20), false, false).await;
}
