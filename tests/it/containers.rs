//! What holds others: with a namespace goes what is in it, with a definition what it defines. So neither goes while anybody
//! wants such an object, whether or not that is there yet.

use std::time::Duration;

use sandbox::{Fault, RequestMatch, Sandbox};
use tutti::manifest::approval_to_yaml;

use crate::support::fleet::Fleet;
use crate::support::live;
use crate::support::manifests::{config_map, definition, namespace, objects};

const MENU: &str = "apiVersion: example.com/v1\nkind: Menu\nmetadata: {name: inside, namespace: default}\n";

const HOLDER: &str = "apps/holder/objects/holder.yaml";
const INSIDE: &str = "apps/user/objects/inside.yaml";

fn deletes(sandbox: &Sandbox) -> usize {
    sandbox.count_requests(&RequestMatch::any().verb("delete"))
}

/// One app gives it up, and somebody approves that in the commit in which another app begins to want something in it, which
/// cannot be applied for the moment. It goes when nobody wants that any more.
async fn stays_while_it_is_wanted(holder: &str, kind: &str, name: &str, inside: &str) {
    let (holders, users) = (objects("default", "holder"), objects("default", "user"));
    let (one, two) = (config_map("default", "one", "first"), config_map("default", "two", "first"));
    let fleet = Fleet::new(
        &["bj1"],
        &[
            ("apps/holder/app.yaml", &holders),
            ("apps/holder/objects/one.yaml", &one),
            (HOLDER, holder),
            ("apps/user/app.yaml", &users),
            ("apps/user/objects/two.yaml", &two),
        ],
    );
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    fleet.push(&running, "Give it up", &[(HOLDER, None)]).await;
    let now = running.until("a wish for an approval", |now| !now.approvals_wanted.is_empty()).await;
    let approval = approval_to_yaml(&now.approvals_wanted[0]);

    let cluster = fleet.cluster("bj1");
    cluster.fail_next(RequestMatch::any().verb("apply").name("inside"), 5, Fault::internal_error());
    let approved = [("approvals/gone.yaml", Some(approval.as_str())), (INSIDE, Some(inside))];
    fleet.push(&running, "Approve, and want something in it", &approved).await;
    let now = running
        .until("it waits", |now| now.deletions.iter().any(|it| it.reason.contains("kept while")))
        .await;
    assert!(now.deletions[0].reason.ends_with("inside in it is rendered"), "{:?}", now.deletions);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(deletes(cluster), 0);
    assert!(live::api(cluster, kind, None).get_opt(name).await.expect("an answer").is_some());

    let revision = fleet.push(&running, "Want it no longer", &[(INSIDE, None)]).await;
    running.converged(&revision).await;
    assert!(live::api(cluster, kind, None).get_opt(name).await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_stays_while_anybody_wants_something_in_it() {
    let inside = config_map("team", "inside", "first");
    stays_while_it_is_wanted(&namespace("team"), "Namespace", "team", &inside).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_stays_while_anybody_wants_an_object_of_it() {
    stays_while_it_is_wanted(
        &definition("example.com", "v1", "Menu"),
        "CustomResourceDefinition",
        "menus.example.com",
        MENU,
    )
    .await;
}
