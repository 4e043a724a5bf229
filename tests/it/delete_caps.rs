//! Delete caps and the approvals that lift them: many deletes at once need an approval.

use std::time::Duration;

use sandbox::{Fault, FaultPlan, FaultRule, RequestMatch};
use serde_json::json;
use tutti::manifest::approval_to_yaml;
use tutti::model::{Approval, Digest, InstanceMode, Revision};
use tutti::report::Overview;

use super::prune::{MAP_COUNT, config_maps, numbered_maps, settings_fleet};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, deletion_causes, wait_for_effects};
use crate::support::live_objects::{delete_count, managed_names};
use crate::support::manifests::{INSTANCE, config_map, deployment, objects_app};

const MAPS_FILE: &str = "apps/settings/objects/maps.yaml";
const KEPT_FILE: &str = "apps/settings/objects/stay.yaml";

/// A fleet where one commit removes all of many objects.
async fn fleet_over_the_cap() -> (TestFleet, RunningController, Approval) {
    let fleet = settings_fleet(&[
        (MAPS_FILE, &numbered_maps(0..MAP_COUNT)),
        ("apps/settings/objects/stays.yaml", &config_map("default", "stays", "first")),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Clean up", &[(MAPS_FILE, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let [approval] = now.approvals_wanted.as_slice() else { panic!("{:?}", now.approvals_wanted) };
    (fleet, running, approval.clone())
}

fn waiting_delete_count(overview: &Overview) -> usize {
    overview.deletions.iter().filter(|deletion| deletion.waits).count()
}

#[tokio::test(start_paused = true)]
async fn many_deletes_wait_for_an_approval() {
    let (fleet, running, approval) = fleet_over_the_cap().await;
    assert_eq!(approval.objects.len(), MAP_COUNT);
    let now = running.overview.borrow().clone();
    assert_eq!(waiting_delete_count(&now), MAP_COUNT);
    let digest = approval.digest();
    let expected = json!({"code": "overCap", "pending": MAP_COUNT, "cap": 3, "digest": digest});
    assert!(deletion_causes(&now).iter().all(|cause| *cause == expected), "{:?}", now.deletions[0]);
    assert_eq!(now.deletions[0].approval, Some(digest.short()));
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);

    // Another commit frees nothing.
    fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);

    let file = approval_to_yaml(&approval);
    let revision = fleet.push(&running, "Approve", &[("approvals/clean-up.yaml", Some(&file))]).await;
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), MAP_COUNT);
    assert_eq!(managed_names(fleet.cluster("bj1")).await, ["ConfigMap default/stays"]);
}

/// The cap counts objects that exist when a commit is read, without earlier approved deletes.
#[tokio::test(start_paused = true)]
async fn removing_a_used_approval_frees_nothing_else() {
    let others = |number: usize| config_maps((0..number).map(|number| format!("other-{number}")));
    let (app, ten, five) = (objects_app("default", "others"), others(10), others(5));
    let path = "apps/others/objects/maps.yaml";
    let fleet = settings_fleet(&[
        (MAPS_FILE, &numbered_maps(0..30)),
        ("apps/settings/objects/stays.yaml", &config_map("default", "stays", "first")),
        ("apps/others/app.yaml", &app),
        (path, &ten),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let fewer = [(MAPS_FILE, None), (path, Some(five.as_str()))];
    fleet.push(&running, "Fewer", &fewer).await;
    let now = running.until("wishes for approvals", |now| now.approvals_wanted.len() == 2).await;
    let approval = now.approvals_wanted.iter().find(|it| it.objects.len() == 30).expect("of the thirty");
    let file = approval_to_yaml(approval);
    fleet.push(&running, "Approve", &[("approvals/thirty.yaml", Some(&file))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 30);

    fleet.push(&running, "It was used", &[("approvals/thirty.yaml", None)]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 30);
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), 5);
}

/// Deletes stay held while part of them is hidden for a while, or when the rest becomes fewer.
#[tokio::test(start_paused = true)]
async fn deletes_over_the_cap_need_an_approval() {
    let (fleet, running, _) = fleet_over_the_cap().await;
    let (app, maps) = ("apps/settings/app.yaml", MAPS_FILE);
    let settings = objects_app("default", "settings");
    let paused = settings.replace("spec: {", "spec: {paused: true, ");
    let broken =
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: other}\nspec: {file: [x]}\n";
    let observing = INSTANCE.replace("spec: {}", "spec: {mode: observe}");
    let check = async |changes: &[(&str, Option<&str>)]| {
        fleet.push(&running, "A change", changes).await;
        wait_for_effects().await;
        assert_eq!(delete_count(fleet.cluster("bj1")), 0, "{changes:?}");
    };
    check(&[("apps/other/app.yaml", Some(broken))]).await;
    check(&[("apps/other/app.yaml", None)]).await;
    check(&[(app, Some(&paused))]).await;
    check(&[(app, Some(&settings))]).await;
    check(&[("tutti.yaml", Some(&observing))]).await;
    check(&[("tutti.yaml", Some(INSTANCE))]).await;
    // Ten of the twelve are desired again: the remaining two are below the cap.
    check(&[(maps, Some(&numbered_maps(2..MAP_COUNT)))]).await;
    let now = running.overview.borrow().clone();
    assert_eq!(waiting_delete_count(&now), 2);
    let cause = &deletion_causes(&now)[0];
    let count = |field: &str| cause[field].as_u64().expect("a count");
    assert!(cause["code"] == "overCap" && count("pending") <= count("cap"), "{now:?}");
    // An object that was desired again starts over.
    check(&[(maps, Some(&numbered_maps(0..MAP_COUNT)))]).await;
    let revision = fleet.push(&running, "Two", &[(maps, Some(&numbered_maps(2..MAP_COUNT)))]).await;
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 2);
}

/// Six of twelve were approved and deleted. Removing the file does not approve the other six.
#[tokio::test(start_paused = true)]
async fn removing_a_partial_approval_frees_no_others() {
    let fleet = settings_fleet(&[
        (MAPS_FILE, &numbered_maps(0..MAP_COUNT)),
        (KEPT_FILE, &config_maps((0..60).map(|number| format!("stays-{number}")))),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Clean up", &[(MAPS_FILE, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let mut approval = now.approvals_wanted[0].clone();
    approval.objects.truncate(6);
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve six", &[("approvals/six.yaml", Some(&file))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 6);
    fleet.push(&running, "They are gone", &[("approvals/six.yaml", None)]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 6);
    let now = running.overview.borrow().clone();
    let rest = approval_to_yaml(&now.approvals_wanted[0]);
    let revision = fleet.push(&running, "Approve the rest", &[("approvals/rest.yaml", Some(&rest))]).await;
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), MAP_COUNT);
}

/// Deletes that wait on an unreadable cluster stay held.
#[tokio::test(start_paused = true)]
async fn offline_cluster_frees_no_deletes_on_others() {
    let app = objects_app("default", "web").replace("spec: {", "spec: {prune: always, ");
    let (eight, four) = (numbered_maps(0..8), config_maps((0..4).map(|number| format!("more-{number}"))));
    let only_gz1 = objects_app("default", "more")
        .replace("spec: {", "spec: {prune: always, placement: {clusters: {names: [gz1]}}, ");
    let only_bj1 = app.replace("spec: {", "spec: {placement: {clusters: {names: [bj1]}}, ");
    let files = [
        ("apps/web/app.yaml", only_bj1.as_str()),
        ("apps/web/objects/maps.yaml", &eight),
        ("apps/more/app.yaml", &only_gz1),
        ("apps/more/objects/maps.yaml", &four),
    ];
    let (settings, stay) =
        (objects_app("default", "settings"), config_maps((0..60).map(|number| format!("stays-{number}"))));
    let others = [("apps/settings/app.yaml", &*settings), (KEPT_FILE, &*stay)];
    let fleet = TestFleet::new(&["bj1", "gz1"], &[&files[..], &others].concat());
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let gone = files.map(|(path, _)| (path, None));
    fleet.push(&running, "Both go", &gone).await;
    running.until("deletes that wait", |now| waiting_delete_count(now) == 12).await;
    fleet.cluster("gz1").set_down(true);
    wait_for_effects().await;
    fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    wait_for_effects().await;
    fleet.cluster("gz1").set_down(false);
    wait_for_effects().await;
    let file = [("clusters/gz1.yaml", None)];
    fleet.push(&running, "Without gz1", &file).await;
    wait_for_effects().await;
    assert_eq!((delete_count(fleet.cluster("bj1")), delete_count(fleet.cluster("gz1"))), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn approval_of_another_render_is_void() {
    let (fleet, running, mut approval) = fleet_over_the_cap().await;
    approval.rendered = Digest::of(b"something else");
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve", &[("approvals/clean-up.yaml", Some(&file))]).await;
    let now = running.until("an approval without use", |now| !now.approvals_unused.is_empty()).await;
    assert_eq!(now.approvals_unused, [approval.name.clone()]);
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), MAP_COUNT);
}

#[tokio::test(start_paused = true)]
async fn approval_is_void_when_the_render_changes() {
    let (fleet, running, approval) = fleet_over_the_cap().await;
    let file = approval_to_yaml(&approval);
    fleet
        .push(
            &running,
            "Approve, and change",
            &[
                ("approvals/clean-up.yaml", Some(&file)),
                ("apps/settings/objects/stays.yaml", Some(&config_map("default", "stays", "second"))),
            ],
        )
        .await;
    running.until("an approval without use", |now| !now.approvals_unused.is_empty()).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);
}

#[tokio::test(start_paused = true)]
async fn partial_approval_frees_only_its_objects() {
    let (fleet, running, mut approval) = fleet_over_the_cap().await;
    approval.objects.truncate(6);
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve six", &[("approvals/clean-up.yaml", Some(&file))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 6);
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), 6);
}

/// A returning cluster adds more deletes than the cap. A new observe run offers an approval for the remaining ones.
#[tokio::test(start_paused = true)]
async fn deletes_of_returning_cluster_need_their_own_approval() {
    let app = objects_app("default", "web").replace("spec: {", "spec: {prune: always, ");
    let all = numbered_maps(0..4);
    let fleet =
        TestFleet::new(&["bj1", "gz1"], &[("apps/web/app.yaml", &app), ("apps/web/objects/maps.yaml", &all)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let (bj1, gz1) = (fleet.cluster("bj1"), fleet.cluster("gz1"));
    gz1.set_down(true);
    let fewer = numbered_maps(0..2);
    fleet.repository.commit("Fewer", &[("apps/web/objects/maps.yaml", Some(&fewer))]);
    let running = fleet.start().await;
    wait_for_effects().await;
    assert_eq!(delete_count(bj1), 2);
    gz1.set_down(false);
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let wanted = now.approvals_wanted[0].digest();
    fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(gz1), 0);

    let looking = fleet
        .start_with(&ProcessConnections::unlimited(), |settings| settings.mode = Some(InstanceMode::Observe))
        .await;
    let offers = |now: &Overview| now.approvals_early.iter().any(|it| it.digest() == wanted);
    let now = looking.until("an approval that may be given", offers).await;
    let approval = approval_to_yaml(&now.approvals_early[0]);
    looking.stop().await;
    let revision = fleet.push(&running, "Approve", &[("approvals/fewer.yaml", Some(&approval))]).await;
    running.until_converged(&revision).await;
    assert_eq!(delete_count(gz1), 2);
}

#[tokio::test(start_paused = true)]
async fn finished_deletes_do_not_shrink_the_cap() {
    // 20 % of 40 objects are 8; they are deleted phase by phase.
    let web = deployment("default", "web", "web", "registry.example.com/web:1");
    let maps: Vec<String> =
        (0..7).map(|number| config_map("default", &format!("web-{number}"), "first")).collect();
    let all = format!("{web}---\n{}", maps.join("---\n"));
    let app = objects_app("default", "web");
    let fleet = settings_fleet(&[
        (MAPS_FILE, &numbered_maps(0..32)),
        ("apps/web/app.yaml", &app),
        ("apps/web/objects/all.yaml", &all),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let gone = [("apps/web/app.yaml", None), ("apps/web/objects/all.yaml", None)];
    let revision = fleet.push(&running, "Without the web", &gone).await;
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 8);

    // The next nine are over the cap.
    fleet.push(&running, "Fewer", &[(MAPS_FILE, Some(&numbered_maps(0..23)))]).await;
    running.until("deletes that wait", |now| waiting_delete_count(now) == 9).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 8);
}

fn kept_maps(count: usize) -> String {
    config_maps((0..count).map(|number| format!("stays-{number}")))
}

/// A commit removes more than a fifth of a small cluster's objects; another cluster has many. No process runs.
async fn seven_deletes_on_small_cluster() -> (TestFleet, Revision) {
    let here = |name: &str| {
        let place = format!("spec: {{placement: {{clusters: {{names: [{name}]}}}}, ");
        objects_app("default", name).replace("spec: {", &place)
    };
    let (small, large) = (here("bj1"), here("gz1"));
    let files = [
        ("apps/small/app.yaml", small.as_str()),
        ("apps/small/objects/maps.yaml", &numbered_maps(0..27)),
        ("apps/large/app.yaml", &large),
        ("apps/large/objects/stay.yaml", &kept_maps(60)),
    ];
    let fleet = TestFleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let fewer = numbered_maps(7..27);
    let revision = fleet.repository.commit("Seven less", &[("apps/small/objects/maps.yaml", Some(&fewer))]);
    (fleet, revision)
}

/// The cap is a share of all clusters, even if the small cluster answers first.
#[tokio::test(start_paused = true)]
async fn cap_needs_counts_of_the_whole_fleet() {
    let (fleet, revision) = seven_deletes_on_small_cluster().await;
    fleet.cluster("gz1").set_latency(Duration::from_secs(5));
    let running = fleet.start().await;
    let now = running.until("deletes that wait", |now| !now.deletions.is_empty()).await;
    let cause = &deletion_causes(&now)[0];
    assert_eq!((&cause["code"], &cause["pending"], &cause["cap"]), (&json!("overCap"), &json!(7), &json!(5)));
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 7);
}

/// As above, with the other cluster offline at the start.
#[tokio::test(start_paused = true)]
async fn cap_waits_for_clusters_never_seen() {
    let (fleet, revision) = seven_deletes_on_small_cluster().await;
    fleet.cluster("gz1").set_down(true);
    let running = fleet.start().await;
    wait_for_effects().await;
    let now = running.overview.borrow().clone();
    let cause = &deletion_causes(&now)[0];
    assert_eq!((&cause["code"], &cause["pending"], &cause["cap"]), (&json!("overCap"), &json!(7), &json!(5)));
    fleet.cluster("gz1").set_down(false);
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 7);
}

/// Six of twelve objects are on an offline cluster: they count for the cap too.
#[tokio::test(start_paused = true)]
async fn approval_frees_nothing_on_a_returning_cluster() {
    let app = objects_app("default", "settings").replace("spec: {", "spec: {prune: always, ");
    let files = [
        ("apps/settings/app.yaml", app.as_str()),
        (MAPS_FILE, &numbered_maps(0..6)),
        (KEPT_FILE, &kept_maps(30)),
    ];
    let fleet = TestFleet::new(&["bj1", "gz1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.cluster("gz1").set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    fleet.push(&running, "Clean up", &[(MAPS_FILE, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    assert_eq!(now.approvals_wanted[0].objects.len(), 6);
    let file = approval_to_yaml(&now.approvals_wanted[0]);
    fleet.push(&running, "Approve six", &[("approvals/six.yaml", Some(&file))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 6);
    fleet.push(&running, "They are gone", &[("approvals/six.yaml", None)]).await;
    fleet.cluster("gz1").set_down(false);
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("gz1")), 0);
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), 6);
}

/// A mistake removes all objects; the fix restores some of them.
#[tokio::test(start_paused = true)]
async fn partial_placement_again_frees_nothing() {
    let app = objects_app("default", "settings");
    let nowhere =
        app.replace("spec: {", "spec: {placement: {clusters: {matchLabels: {environment: elsewhere}}}, ");
    let fleet = settings_fleet(&[(MAPS_FILE, &numbered_maps(0..MAP_COUNT))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "An error", &[("apps/settings/app.yaml", Some(&nowhere))]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    assert_eq!(deletion_causes(&now)[0]["code"], "placedNowhere", "{now:?}");
    let back =
        [("apps/settings/app.yaml", Some(app.as_str())), (MAPS_FILE, Some(&numbered_maps(2..MAP_COUNT)))];
    fleet.push(&running, "Most of it", &back).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), 0);
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), 2);
}

/// Objects held over the cap only by an earlier approval are freed when its file is removed.
#[tokio::test(start_paused = true)]
async fn used_approval_holds_other_deletes_until_removed() {
    let others = |count| config_maps((0..count).map(|number| format!("other-{number}")));
    let app = objects_app("default", "others");
    let fleet = settings_fleet(&[
        (MAPS_FILE, &numbered_maps(0..MAP_COUNT)),
        (KEPT_FILE, &kept_maps(1)),
        ("apps/others/app.yaml", &app),
        ("apps/others/objects/maps.yaml", &others(3)),
    ]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Clean up", &[(MAPS_FILE, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let file = approval_to_yaml(&now.approvals_wanted[0]);
    fleet.push(&running, "Approve", &[("approvals/all.yaml", Some(&file))]).await;
    wait_for_effects().await;
    assert_eq!(delete_count(fleet.cluster("bj1")), MAP_COUNT);
    let fewer = others(1);
    fleet.push(&running, "Two less", &[("apps/others/objects/maps.yaml", Some(&fewer))]).await;
    wait_for_effects().await;
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), 2);
    let revision = fleet.push(&running, "It was used", &[("approvals/all.yaml", None)]).await;
    running.until_converged(&revision).await;
    assert_eq!(delete_count(fleet.cluster("bj1")), MAP_COUNT + 2);
}

/// Objects that may not be listed for a while count as hidden, not deleted.
#[tokio::test(start_paused = true)]
async fn hidden_objects_over_the_cap_stay_held() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: stays}\n";
    let fleet = settings_fleet(&[(MAPS_FILE, &numbered_maps(0..MAP_COUNT)), (KEPT_FILE, secret)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Clean up", &[(MAPS_FILE, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let mut approval = now.approvals_wanted[0].clone();
    approval.objects.truncate(MAP_COUNT - 2);
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve ten", &[("approvals/ten.yaml", Some(&file))]).await;
    wait_for_effects().await;
    let bj1 = fleet.cluster("bj1");
    assert_eq!(delete_count(bj1), MAP_COUNT - 2);
    let denied = FaultRule::failing(RequestMatch::any().resource("configmaps"), Fault::forbidden());
    for (faults, changes) in [
        (FaultPlan::new(0).rule(denied), [("approvals/ten.yaml", None)]),
        (FaultPlan::new(0), [("README.md", Some("Words.\n"))]),
    ] {
        bj1.set_down(true);
        running.until("bj1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
        bj1.set_faults(&faults);
        bj1.set_down(false);
        running.until("bj1 back", |now| now.clusters.iter().all(|it| it.state == "Ready")).await;
        wait_for_effects().await;
        fleet.push(&running, "Words", &changes).await;
        wait_for_effects().await;
    }
    assert_eq!(delete_count(bj1), MAP_COUNT - 2);
    assert_eq!(waiting_delete_count(&running.overview.borrow().clone()), 2);
}
