//! `status` in a manifest: kept if the kind has no status subresource, and never repaired.

use std::time::Duration;

use crate::support::fleet::TestFleet;
use crate::support::live_objects::get;
use crate::support::manifests::{definition, objects_app};

const ACCOUNT: &str = "apiVersion: example.com/v1\nkind: Account\nmetadata: {name: main, namespace: default}\nspec: {a: 1}\nstatus: {open: true}\n";

/// The definition is in another app: only the cluster knows about the status subresource.
async fn check_status_field(has_status: bool) {
    let open = definition("example.com", "v1", "Account");
    let with_status = format!("{open}      subresources: {{status: {{}}}}\n");
    let (defs, accounts) = (objects_app("default", "defs"), objects_app("default", "accounts"));
    let fleet = TestFleet::new(
        &["bj1"],
        &[
            ("apps/defs/app.yaml", &defs),
            ("apps/defs/objects/crd.yaml", if has_status { &with_status } else { &open }),
            ("apps/accounts/app.yaml", &accounts),
            ("apps/accounts/objects/account.yaml", ACCOUNT),
        ],
    );
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let cluster = fleet.cluster("bj1");
    let live = get(cluster, "Account", "default", "main").await.expect("it is there");
    assert_eq!(live["status"]["open"] == true, !has_status, "{live:#}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new(), "with a status of its own: {has_status}");

    let closed = ACCOUNT.replace("open: true", "open: false");
    let changes = [("apps/accounts/objects/account.yaml", Some(&*closed))];
    let commit = fleet.push(&running, "Close", &changes).await;
    running.until_converged(&commit).await;
    let live = get(cluster, "Account", "default", "main").await.expect("it is there");
    assert_eq!(live["status"]["open"] == false, !has_status, "{live:#}");
}

#[tokio::test(start_paused = true)]
async fn status_without_subresource_is_kept_at_no_cost() {
    check_status_field(false).await;
}

#[tokio::test(start_paused = true)]
async fn status_with_subresource_costs_nothing() {
    check_status_field(true).await;
}
