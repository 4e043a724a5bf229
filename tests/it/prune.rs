//! Deleting: only what Git no longer wants, only from a whole and valid view, never many at once.

use std::time::Duration;

use sandbox::{Fault, RequestMatch, Sandbox};
use serde_json::json;
use tutti::manifest::approval_to_yaml;
use tutti::model::{Approval, Digest, Mode};
use tutti::report::Overview;

use crate::support::fleet::{Fleet, Running, target};
use crate::support::live;
use crate::support::manifests::{INSTANCE, config_map, deployment, objects};
use crate::support::wires::Wires;

const MANY: usize = 12;

fn maps(names: impl IntoIterator<Item = String>) -> String {
    names.into_iter().map(|name| config_map("default", &name, "first")).collect::<Vec<_>>().join("---\n")
}

fn numbered(numbers: std::ops::Range<usize>) -> String {
    maps(numbers.map(|number| format!("map-{number}")))
}

fn settings(files: &[(&str, &str)]) -> Fleet {
    let app = objects("default", "settings");
    let mut all = vec![("apps/settings/app.yaml", app.as_str())];
    all.extend(files.iter().copied());
    Fleet::new(&["bj1"], &all)
}

fn deletes(sandbox: &Sandbox) -> usize {
    sandbox.count_requests(&RequestMatch::any().verb("delete"))
}

async fn names(sandbox: &Sandbox) -> Vec<String> {
    live::managed(sandbox).await.into_keys().collect()
}

/// Long enough for everything that would happen to have happened.
async fn a_while() {
    tokio::time::sleep(Duration::from_secs(120)).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_anything_is_wrong_in_the_repository() {
    let fleet = settings(&[("apps/settings/objects/maps.yaml", &numbered(0..3))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;

    let broken =
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: other}\nspec: {file: [x]}\n";
    let revision = fleet
        .push(
            &running,
            "One map less, and a mistake elsewhere",
            &[
                ("apps/settings/objects/maps.yaml", Some(&numbered(0..2))),
                ("apps/other/app.yaml", Some(broken)),
            ],
        )
        .await;
    let now = running.until("a delete that waits", |now| now.deletions.len() == 1).await;
    assert_eq!(now.deletions[0].reason, "nothing is deleted while the config repository has errors");
    assert!(now.deletions[0].waits);
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0, "at {}", revision.short());

    let revision = fleet.push(&running, "Without the mistake", &[("apps/other/app.yaml", None)]).await;
    running.converged(&revision).await;
    assert_eq!(names(fleet.cluster("bj1")).await, ["ConfigMap default/map-0", "ConfigMap default/map-1"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_a_template_does_not_render() {
    let fleet = settings(&[("apps/settings/objects/maps.yaml", &numbered(0..3))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let app = objects("default", "settings").replace("[objects/*.yaml]", "[objects/*.yaml, objects/*.j2]");
    fleet
        .push(
            &running,
            "A template of its own",
            &[
                ("apps/settings/app.yaml", Some(&app)),
                ("apps/settings/objects/maps.yaml", Some(&numbered(0..1))),
                ("apps/settings/objects/more.yaml.j2", Some("value: {{ nobody_knows }}\n")),
            ],
        )
        .await;
    running.until("a mistake", |now| now.has_errors()).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);
    assert_eq!(names(fleet.cluster("bj1")).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_away_loses_its_objects_when_it_is_back() {
    let app = objects("default", "settings");
    let fleet = Fleet::new(
        &["bj1", "gz1"],
        &[("apps/settings/app.yaml", &app), ("apps/settings/objects/maps.yaml", &numbered(0..3))],
    );
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.cluster("gz1").set_down(true);
    running.until("gz1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;

    let revision =
        fleet.push(&running, "One less", &[("apps/settings/objects/maps.yaml", Some(&numbered(0..2)))]).await;
    a_while().await;
    fleet.cluster("gz1").set_down(false);
    running.converged(&revision).await;
    for sandbox in fleet.clusters.values() {
        assert_eq!(names(sandbox).await, ["ConfigMap default/map-0", "ConfigMap default/map-1"]);
    }
}

/// A fleet where a commit has taken away all of many objects.
async fn over_the_cap() -> (Fleet, Running, Approval) {
    let fleet = settings(&[
        ("apps/settings/objects/maps.yaml", &numbered(0..MANY)),
        ("apps/settings/objects/stays.yaml", &config_map("default", "stays", "first")),
    ]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "Clean up", &[("apps/settings/objects/maps.yaml", None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let [approval] = now.approvals_wanted.as_slice() else { panic!("{:?}", now.approvals_wanted) };
    (fleet, running, approval.clone())
}

fn waiting(overview: &Overview) -> usize {
    overview.deletions.iter().filter(|deletion| deletion.waits).count()
}

#[tokio::test(start_paused = true)]
async fn many_deletes_wait_until_they_are_approved() {
    let (fleet, running, approval) = over_the_cap().await;
    assert_eq!(approval.objects.len(), MANY);
    let now = running.overview.borrow().clone();
    assert_eq!(waiting(&now), MANY);
    let expected =
        format!("12 deletes are more than the cap of 3, waits for approval {}", approval.digest().short());
    assert!(now.deletions.iter().all(|it| it.reason == expected), "{:?}", now.deletions[0]);
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);

    // Another commit frees nothing.
    fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);

    let file = approval_to_yaml(&approval);
    let revision = fleet.push(&running, "Approve", &[("approvals/clean-up.yaml", Some(&file))]).await;
    running.converged(&revision).await;
    assert_eq!(deletes(fleet.cluster("bj1")), MANY);
    assert_eq!(names(fleet.cluster("bj1")).await, ["ConfigMap default/stays"]);
}

/// The share is of what there is when a commit is read, and not of what went before by somebody's word.
#[tokio::test(start_paused = true)]
async fn to_take_back_an_approval_that_was_used_frees_nothing_else() {
    let others = |number: usize| maps((0..number).map(|number| format!("other-{number}")));
    let (app, ten, five) = (objects("default", "others"), others(10), others(5));
    let path = "apps/others/objects/maps.yaml";
    let fleet = settings(&[
        ("apps/settings/objects/maps.yaml", &numbered(0..30)),
        ("apps/settings/objects/stays.yaml", &config_map("default", "stays", "first")),
        ("apps/others/app.yaml", &app),
        (path, &ten),
    ]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let fewer = [("apps/settings/objects/maps.yaml", None), (path, Some(five.as_str()))];
    fleet.push(&running, "Fewer", &fewer).await;
    let now = running.until("wishes for approvals", |now| now.approvals_wanted.len() == 2).await;
    let approval = now.approvals_wanted.iter().find(|it| it.objects.len() == 30).expect("of the thirty");
    let file = approval_to_yaml(approval);
    fleet.push(&running, "Approve", &[("approvals/thirty.yaml", Some(&file))]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 30);

    fleet.push(&running, "It was used", &[("approvals/thirty.yaml", None)]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 30);
    assert_eq!(waiting(&running.overview.borrow().clone()), 5);
}

/// Whatever hides some of it for a while, or makes the rest fewer.
#[tokio::test(start_paused = true)]
async fn what_was_over_the_cap_goes_by_somebodys_word_alone() {
    let (fleet, running, _) = over_the_cap().await;
    let (app, maps) = ("apps/settings/app.yaml", "apps/settings/objects/maps.yaml");
    let settings = objects("default", "settings");
    let paused = settings.replace("spec: {", "spec: {paused: true, ");
    let broken =
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: other}\nspec: {file: [x]}\n";
    let observing = INSTANCE.replace("spec: {}", "spec: {mode: observe}");
    let check = async |changes: &[(&str, Option<&str>)]| {
        fleet.push(&running, "A change", changes).await;
        a_while().await;
        assert_eq!(deletes(fleet.cluster("bj1")), 0, "{changes:?}");
    };
    check(&[("apps/other/app.yaml", Some(broken))]).await;
    check(&[("apps/other/app.yaml", None)]).await;
    check(&[(app, Some(&paused))]).await;
    check(&[(app, Some(&settings))]).await;
    check(&[("tutti.yaml", Some(&observing))]).await;
    check(&[("tutti.yaml", Some(INSTANCE))]).await;
    // Ten of the twelve are wanted again: the two that are left are fewer than the cap.
    check(&[(maps, Some(&numbered(2..MANY)))]).await;
    let now = running.overview.borrow().clone();
    assert_eq!(waiting(&now), 2);
    assert!(now.deletions[0].reason.starts_with("was over the cap before, waits for approval"), "{now:?}");
    // What is wanted again begins anew.
    check(&[(maps, Some(&numbered(0..MANY)))]).await;
    let revision = fleet.push(&running, "Two", &[(maps, Some(&numbered(2..MANY)))]).await;
    running.converged(&revision).await;
    assert_eq!(deletes(fleet.cluster("bj1")), 2);
}

/// Six of twelve were approved, and went: the file is not needed any more, and the other six were never approved.
#[tokio::test(start_paused = true)]
async fn to_clean_up_an_approval_of_some_frees_no_others() {
    let fleet = settings(&[
        ("apps/settings/objects/maps.yaml", &numbered(0..MANY)),
        ("apps/settings/objects/stay.yaml", &maps((0..60).map(|number| format!("stays-{number}")))),
    ]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "Clean up", &[("apps/settings/objects/maps.yaml", None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let mut approval = now.approvals_wanted[0].clone();
    approval.objects.truncate(6);
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve six", &[("approvals/six.yaml", Some(&file))]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 6);
    fleet.push(&running, "They are gone", &[("approvals/six.yaml", None)]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 6);
    let now = running.overview.borrow().clone();
    let rest = approval_to_yaml(&now.approvals_wanted[0]);
    let revision = fleet.push(&running, "Approve the rest", &[("approvals/rest.yaml", Some(&rest))]).await;
    running.converged(&revision).await;
    assert_eq!(deletes(fleet.cluster("bj1")), MANY);
}

/// While a cluster cannot be read, what waits there is not forgotten.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_away_frees_nothing_on_others() {
    let app = objects("default", "web").replace("spec: {", "spec: {prune: always, ");
    let (eight, four) = (numbered(0..8), maps((0..4).map(|number| format!("more-{number}"))));
    let only_gz1 = objects("default", "more")
        .replace("spec: {", "spec: {prune: always, placement: {clusters: {names: [gz1]}}, ");
    let only_bj1 = app.replace("spec: {", "spec: {placement: {clusters: {names: [bj1]}}, ");
    let files = [
        ("apps/web/app.yaml", only_bj1.as_str()),
        ("apps/web/objects/maps.yaml", &eight),
        ("apps/more/app.yaml", &only_gz1),
        ("apps/more/objects/maps.yaml", &four),
    ];
    let (settings, stay) =
        (objects("default", "settings"), maps((0..60).map(|number| format!("stays-{number}"))));
    let others = [("apps/settings/app.yaml", &*settings), ("apps/settings/objects/stay.yaml", &*stay)];
    let fleet = Fleet::new(&["bj1", "gz1"], &[&files[..], &others].concat());
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let gone = files.map(|(path, _)| (path, None));
    fleet.push(&running, "Both go", &gone).await;
    running.until("deletes that wait", |now| waiting(now) == 12).await;
    fleet.cluster("gz1").set_down(true);
    a_while().await;
    fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    a_while().await;
    fleet.cluster("gz1").set_down(false);
    a_while().await;
    let file = [("clusters/gz1.yaml", None)];
    fleet.push(&running, "Without gz1", &file).await;
    a_while().await;
    assert_eq!((deletes(fleet.cluster("bj1")), deletes(fleet.cluster("gz1"))), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_another_render_is_void() {
    let (fleet, running, mut approval) = over_the_cap().await;
    approval.rendered = Digest::of(b"something else");
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve", &[("approvals/clean-up.yaml", Some(&file))]).await;
    let now = running.until("an approval without use", |now| !now.approvals_unused.is_empty()).await;
    assert_eq!(now.approvals_unused, [approval.name.clone()]);
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);
    assert_eq!(waiting(&running.overview.borrow().clone()), MANY);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_void_when_the_app_renders_to_something_else() {
    let (fleet, running, approval) = over_the_cap().await;
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
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_some_frees_only_those() {
    let (fleet, running, mut approval) = over_the_cap().await;
    approval.objects.truncate(6);
    let file = approval_to_yaml(&approval);
    fleet.push(&running, "Approve six", &[("approvals/clean-up.yaml", Some(&file))]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 6);
    assert_eq!(waiting(&running.overview.borrow().clone()), 6);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_moves_takes_its_object_along() {
    let other = objects("default", "other");
    let fleet = settings(&[
        ("apps/settings/objects/maps.yaml", &numbered(0..2)),
        ("apps/other/app.yaml", &other),
        ("apps/other/objects/own.yaml", &maps(["own".to_owned()])),
    ]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let before = live::get(fleet.cluster("bj1"), "ConfigMap", "default", "map-1").await.expect("map-1");
    fleet.forget_requests();

    // To another file of the same app: nothing at all happens.
    let revision = fleet
        .push(
            &running,
            "To a file of its own",
            &[
                ("apps/settings/objects/maps.yaml", Some(&numbered(0..1))),
                ("apps/settings/objects/second.yaml", Some(&numbered(1..2))),
            ],
        )
        .await;
    running.converged(&revision).await;
    assert_eq!(fleet.counted(), Vec::<String>::new());

    // To another app: its annotations change hands, and the object stays the same.
    let revision = fleet
        .push(
            &running,
            "To another app",
            &[
                ("apps/settings/objects/second.yaml", None),
                ("apps/other/objects/second.yaml", Some(&numbered(1..2))),
            ],
        )
        .await;
    running.converged(&revision).await;
    a_while().await;
    assert_eq!(fleet.counted(), ["1 apply configmaps"]);
    let after = live::get(fleet.cluster("bj1"), "ConfigMap", "default", "map-1").await.expect("map-1");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["annotations"]["tutti.dev/app"], "default/other");
}

#[tokio::test(start_paused = true)]
async fn the_old_goes_when_the_new_is_healthy() {
    let blue = deployment("default", "web-blue", "web-blue", "registry.example.com/web:1");
    let fleet = settings(&[("apps/settings/objects/web.yaml", &blue)]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;

    let green = deployment("default", "web-green", "web-green", "registry.example.com/web:broken-2");
    fleet.push(&running, "Green for blue", &[("apps/settings/objects/web.yaml", Some(&green))]).await;
    let now = running
        .until("a broken green", |now| {
            now.targets.iter().all(|it| it.phase == tutti::report::Phase::Degraded)
        })
        .await;
    assert_eq!(now.deletions[0].reason, "no longer rendered, goes when its app is healthy");
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);

    let green = deployment("default", "web-green", "web-green", "registry.example.com/web:2");
    let revision =
        fleet.push(&running, "A green that runs", &[("apps/settings/objects/web.yaml", Some(&green))]).await;
    let now = running.converged(&revision).await;
    assert_eq!(target(&now, "bj1", "default/settings").pods.available, 2);
    assert_eq!(names(fleet.cluster("bj1")).await, ["Deployment default/web-green"]);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_goes_takes_its_objects_along() {
    let fleet = settings(&[("apps/settings/objects/maps.yaml", &numbered(0..3))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet
        .push(
            &running,
            "No longer needed",
            &[("apps/settings/app.yaml", None), ("apps/settings/objects/maps.yaml", None)],
        )
        .await;
    a_while().await;
    assert_eq!(names(fleet.cluster("bj1")).await, Vec::<String>::new());
    assert_eq!(deletes(fleet.cluster("bj1")), 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_says_keep_stays() {
    let kept = config_map("default", "kept", "first")
        .replace("name: kept,", "name: kept, annotations: {tutti.dev/prune: keep},");
    let fleet = settings(&[
        ("apps/settings/objects/kept.yaml", &kept),
        ("apps/settings/objects/maps.yaml", &numbered(0..1)),
    ]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "Without it", &[("apps/settings/objects/kept.yaml", None)]).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 0);
    assert_eq!(names(fleet.cluster("bj1")).await.len(), 2);
}

/// While a process starts, the lists of a kind fail: what is left of it goes as soon as it can be listed.
#[tokio::test(start_paused = true)]
async fn a_kind_that_could_not_be_listed_at_the_start_is_listed_again() {
    let errors = [(Fault::internal_error(), 3), (Fault::unauthorized(), 1)];
    for (fault, times) in errors {
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 80}]}\n";
        let fleet = settings(&[
            ("apps/settings/objects/maps.yaml", &numbered(0..1)),
            ("apps/settings/objects/service.yaml", service),
        ]);
        let running = fleet.start().await;
        running.converged(&fleet.begin).await;
        running.stop().await;
        fleet.repository.commit("Without the Service", &[("apps/settings/objects/service.yaml", None)]);
        let lists = RequestMatch::any().verb("list").resource("services");
        fleet.cluster("bj1").fail_next(lists, times, fault.clone());
        let _running = fleet.start().await;
        a_while().await;
        assert_eq!(names(fleet.cluster("bj1")).await, ["ConfigMap default/map-0"], "{fault:?}");
    }
}

/// Takes one map out of Git, and changes it in the cluster while its delete is under way.
async fn changed_meanwhile(change: serde_json::Value) -> (Fleet, Running) {
    let fleet = settings(&[("apps/settings/objects/maps.yaml", &numbered(0..2))]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.forget_requests();
    let bj1 = fleet.cluster("bj1");
    let delete = RequestMatch::any().verb("delete");
    bj1.fail_next(delete.clone(), 1, Fault::Delay(Duration::from_secs(5)));
    fleet.push(&running, "One less", &[("apps/settings/objects/maps.yaml", Some(&numbered(0..1)))]).await;
    while bj1.count_requests(&delete) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    live::edit_as(bj1, "kubectl-edit", ("ConfigMap", "map-1"), &change).await;
    a_while().await;
    (fleet, running)
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changed_while_it_was_deleted_is_read_again() {
    let (fleet, running) = changed_meanwhile(json!({"data": {"value": "second"}})).await;
    // One delete is answered with 409; what is read is still ours, and goes with its new version.
    let expected = ["2 delete configmaps", "1 get configmaps", "1 patch configmaps"];
    let mut counted = fleet.counted();
    counted.sort_by_key(|line| line.split(' ').nth(1).map(ToOwned::to_owned));
    assert_eq!(counted, expected);
    assert_eq!(names(fleet.cluster("bj1")).await, ["ConfigMap default/map-0"]);
    assert!(running.overview.borrow().deletions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_says_keep_at_the_last_moment_stays() {
    let keep = json!({"metadata": {"annotations": {"tutti.dev/prune": "keep"}}});
    let (fleet, running) = changed_meanwhile(keep).await;
    assert_eq!(deletes(fleet.cluster("bj1")), 1);
    assert_eq!(names(fleet.cluster("bj1")).await.len(), 2);
    let now = running.overview.borrow().clone();
    assert_eq!((now.deletions.len(), now.orphans.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_given_away_at_the_last_moment_stays() {
    let nobodys = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
    let (fleet, _running) = changed_meanwhile(nobodys).await;
    assert_eq!(deletes(fleet.cluster("bj1")), 1);
    assert!(live::get(fleet.cluster("bj1"), "ConfigMap", "default", "map-1").await.is_some());
}

/// A cluster that comes back brings more than the cap. Whoever looks anew, to approve that, sees only what is left.
#[tokio::test(start_paused = true)]
async fn what_waits_because_of_what_went_is_freed_by_no_other_commit_and_can_be_approved() {
    let app = objects("default", "web").replace("spec: {", "spec: {prune: always, ");
    let all = numbered(0..4);
    let fleet =
        Fleet::new(&["bj1", "gz1"], &[("apps/web/app.yaml", &app), ("apps/web/objects/maps.yaml", &all)]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    running.stop().await;
    let (bj1, gz1) = (fleet.cluster("bj1"), fleet.cluster("gz1"));
    gz1.set_down(true);
    let fewer = numbered(0..2);
    fleet.repository.commit("Fewer", &[("apps/web/objects/maps.yaml", Some(&fewer))]);
    let running = fleet.start().await;
    a_while().await;
    assert_eq!(deletes(bj1), 2);
    gz1.set_down(false);
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let wanted = now.approvals_wanted[0].digest();
    fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    a_while().await;
    assert_eq!(deletes(gz1), 0);

    let looking = fleet.start_with(&Wires::lasting(), |settings| settings.mode = Some(Mode::Observe)).await;
    let offers = |now: &Overview| now.approvals_early.iter().any(|it| it.digest() == wanted);
    let now = looking.until("an approval that may be given", offers).await;
    let approval = approval_to_yaml(&now.approvals_early[0]);
    looking.stop().await;
    let revision = fleet.push(&running, "Approve", &[("approvals/fewer.yaml", Some(&approval))]).await;
    running.converged(&revision).await;
    assert_eq!(deletes(gz1), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_does_not_make_the_cap_smaller() {
    // 20 % of 40 objects are 8, which go phase by phase.
    let web = deployment("default", "web", "web", "registry.example.com/web:1");
    let maps: Vec<String> =
        (0..7).map(|number| config_map("default", &format!("web-{number}"), "first")).collect();
    let all = format!("{web}---\n{}", maps.join("---\n"));
    let app = objects("default", "web");
    let fleet = settings(&[
        ("apps/settings/objects/maps.yaml", &numbered(0..32)),
        ("apps/web/app.yaml", &app),
        ("apps/web/objects/all.yaml", &all),
    ]);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    let gone = [("apps/web/app.yaml", None), ("apps/web/objects/all.yaml", None)];
    let revision = fleet.push(&running, "Without the web", &gone).await;
    running.converged(&revision).await;
    assert_eq!(deletes(fleet.cluster("bj1")), 8);

    // And the next nine do not.
    fleet.push(&running, "Fewer", &[("apps/settings/objects/maps.yaml", Some(&numbered(0..23)))]).await;
    running.until("deletes that wait", |now| waiting(now) == 9).await;
    a_while().await;
    assert_eq!(deletes(fleet.cluster("bj1")), 8);
}
