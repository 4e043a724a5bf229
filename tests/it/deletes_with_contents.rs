//! Namespaces and definitions: deleting one deletes its objects. So neither is deleted while an app desires such an
//! object, whether it exists yet or not.

use std::time::Duration;

use sandbox::{Fault, RequestMatch};
use tutti::manifest::approval_to_yaml;
use tutti::report::Overview;

use crate::support::fleet::{TestFleet, deletion_causes};
use crate::support::live_objects::{self, delete_count};
use crate::support::manifests::{config_map, definition, namespace, objects_app};

const MENU: &str = "apiVersion: example.com/v1\nkind: Menu\nmetadata: {name: inside, namespace: default}\n";

const HOLDER_FILE: &str = "apps/holder/objects/holder.yaml";
const INSIDE_FILE: &str = "apps/user/objects/inside.yaml";

/// One app drops the holder, and the delete is approved in a commit in which another app adds an object in it that
/// cannot be applied yet. The holder is deleted once no app desires an object in it.
async fn check_stays_while_content_desired(holder: &str, kind: &str, name: &str, inside: &str) {
    let (holders, users) = (objects_app("default", "holder"), objects_app("default", "user"));
    let (one, two) = (config_map("default", "one", "first"), config_map("default", "two", "first"));
    let fleet = TestFleet::new(
        &["bj1"],
        &[
            ("apps/holder/app.yaml", &holders),
            ("apps/holder/objects/one.yaml", &one),
            (HOLDER_FILE, holder),
            ("apps/user/app.yaml", &users),
            ("apps/user/objects/two.yaml", &two),
        ],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.push(&running, "Give it up", &[(HOLDER_FILE, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let approval = approval_to_yaml(&now.approvals_wanted[0]);

    let cluster = fleet.cluster("bj1");
    cluster.fail_next(RequestMatch::any().verb("apply").name("inside"), 5, Fault::internal_error());
    let approved = [("approvals/gone.yaml", Some(approval.as_str())), (INSIDE_FILE, Some(inside))];
    fleet.push(&running, "Approve, and want something in it", &approved).await;
    let waits = |now: &Overview| deletion_causes(now).iter().any(|cause| cause["code"] == "waitsForContents");
    let now = running.until("it waits", waits).await;
    let cause = deletion_causes(&now)[0].to_string();
    assert!(cause.contains("inside"), "{cause}");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(delete_count(cluster), 0);
    assert!(live_objects::api(cluster, kind, None).get_opt(name).await.expect("an answer").is_some());

    let revision = fleet.push(&running, "Want it no longer", &[(INSIDE_FILE, None)]).await;
    running.until_converged(&revision).await;
    assert!(live_objects::api(cluster, kind, None).get_opt(name).await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn namespace_stays_while_objects_in_it_are_desired() {
    let inside = config_map("team", "inside", "first");
    check_stays_while_content_desired(&namespace("team"), "Namespace", "team", &inside).await;
}

#[tokio::test(start_paused = true)]
async fn definition_stays_while_its_objects_are_desired() {
    check_stays_while_content_desired(
        &definition("example.com", "v1", "Menu"),
        "CustomResourceDefinition",
        "menus.example.com",
        MENU,
    )
    .await;
}
