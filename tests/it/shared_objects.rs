//! One object in two apps of one cluster: one app keeps it, and the other is refused this object only.

use serde_json::Value;

use crate::support::fleet::{TestFleet, describe_overview, phases};
use crate::support::live_objects::{get, required_text};
use crate::support::manifests::{INSTANCE, namespace, objects_app};
use crate::support::program::CommandFixture;

fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\ndata: {{a: {value:?}}}\n"
    )
}

#[tokio::test]
async fn plan_names_the_app_that_owns_an_object() {
    let (a, b, shop) = (objects_app("shop", "a"), objects_app("shop", "b"), namespace("shop"));
    let (of_a, of_b) = (config_map("m-a", "1"), config_map("m-b", "2"));
    let stage = CommandFixture::new(&[
        ("tutti.yaml", INSTANCE),
        ("apps/a/app.yaml", &a),
        ("apps/a/objects/ns.yaml", &shop),
        ("apps/a/objects/cm.yaml", &of_a),
        ("apps/b/app.yaml", &b),
        ("apps/b/objects/ns.yaml", &shop),
        ("apps/b/objects/cm.yaml", &of_b),
    ])
    .await;
    let (output, errors, code) = stage.run(&["plan", "-o", "json"]).await;
    let plan: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}{errors}"));
    let text = plan.to_string();
    assert!(
        text.contains("\"owner\":\"shop/a\"") || text.contains("app shop/a already manages this object"),
        "{code} {text}"
    );
    let (output, errors, _) = stage.run(&["run", "--once"]).await;
    let told = format!("{output}{errors}");
    assert!(told.contains("app shop/a already manages this object"), "{told}");
    for name in ["m-a", "m-b"] {
        assert!(get(&stage.sandbox, "ConfigMap", "shop", name).await.is_some(), "{name} {told}");
    }
}

/// The live object's owner decides, not the order of the files. The second app gets it when the owner drops it.
#[tokio::test]
async fn second_app_waits_until_owner_drops_object() {
    let (b, shop, first) = (objects_app("shop", "b"), namespace("shop"), config_map("m", "of b"));
    let files =
        [("apps/b/app.yaml", &*b), ("apps/b/objects/ns.yaml", &*shop), ("apps/b/objects/cm.yaml", &*first)];
    let fleet = TestFleet::new(&["bj1"], &files);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;

    let (a, second, more) = (objects_app("shop", "a"), config_map("m", "of a"), config_map("more", "of a"));
    let changes = [
        ("apps/a/app.yaml", Some(&*a)),
        ("apps/a/objects/cm.yaml", Some(&*second)),
        ("apps/a/objects/more.yaml", Some(&*more)),
    ];
    let commit = fleet.push(&running, "Newcomer", &changes).await;
    let seen = running
        .until("a refusal", |overview| {
            overview.revision.as_ref() == Some(&commit)
                && describe_overview(overview).contains("shop/b already manages this object")
        })
        .await;
    assert!(
        phases(&seen).iter().any(|it| it.contains("shop/b") && it.contains("Running")),
        "{:?}",
        phases(&seen)
    );
    let data = async || {
        let live = get(fleet.cluster("bj1"), "ConfigMap", "shop", "m").await.expect("it is there");
        required_text(&live, "/data/a")
    };
    assert_eq!(data().await, "of b");
    assert!(get(fleet.cluster("bj1"), "ConfigMap", "shop", "more").await.is_some());

    let commit = fleet.push(&running, "Drop", &[("apps/b/objects/cm.yaml", None)]).await;
    running.until_converged(&commit).await;
    assert_eq!(data().await, "of a");
    running.stop().await;
}
