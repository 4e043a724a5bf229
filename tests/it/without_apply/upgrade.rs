//! Servers that do know server-side apply, whatever was thought of them.

use std::time::Duration;

use sandbox::{Fault, RequestMatch, SandboxOptions};
use serde_json::json;

use super::{FIELDS, Scene, account, definition, first, upgraded};
use crate::drift::{APP, MANIFESTS, settle};
use crate::support::fleet::Fleet;
use crate::support::live;
use crate::support::manifests::objects;

/// A gateway that does not know it may stand before the server for a while.
#[tokio::test(start_paused = true)]
async fn one_wrong_answer_makes_no_kind_one_of_merge_patches() {
    let no_apply = Fault::Status { code: 415, reason: "UnsupportedMediaType", retry_after: None };
    for of_the_first in [true, false] {
        let files = [(APP, &*objects("default", "web")), (MANIFESTS, &*account(&first()))];
        let fleet = Fleet::with(&["bj1"], &files, |name| SandboxOptions::instant(name));
        live::apply_as(fleet.cluster("bj1"), "admin", &definition().to_string()).await;
        settle().await;
        let applies = || RequestMatch::any().verb("apply").resource("accounts.example.com");
        if of_the_first {
            fleet.cluster("bj1").fail_next(applies(), 1, no_apply.clone());
        }
        let running = fleet.start().await;
        running.converged(&fleet.begin).await;
        settle().await;
        if !of_the_first {
            fleet.cluster("bj1").fail_next(applies(), 1, no_apply.clone());
        }
        let scene = Scene { fleet, running };
        assert_eq!(scene.get().await["metadata"]["annotations"].get(FIELDS).is_some(), of_the_first);
        scene.push(&json!({"owner": "bob"})).await;
        settle().await;
        let web = scene.get().await;
        assert_eq!(web["spec"], json!({"owner": "bob", "tier": "free"}), "{web}");
        assert!(web["metadata"]["annotations"].get(FIELDS).is_none(), "{web}");
        let entries = web["metadata"]["managedFields"].as_array().expect("entries");
        let is_ours = |it: &&serde_json::Value| it["manager"] == "tutti-main";
        let ours: Vec<_> = entries.iter().filter(is_ours).map(|it| &it["operation"]).collect();
        assert_eq!(ours, ["Apply"], "{web}");
        scene.fleet.forget_requests();
        scene.push(&json!({"owner": "eve"})).await;
        assert_eq!(scene.counted().await, ["1 apply accounts.example.com"]);
    }
}

/// The apply went through, and nothing after it.
#[tokio::test(start_paused = true)]
async fn a_handover_that_broke_off_is_finished_by_the_next_process() {
    let Scene { mut fleet, running } = Scene::new().await;
    running.stop().await;
    upgraded(&mut fleet);
    let mut fewer: serde_json::Value =
        serde_json::from_str(&account(&json!({"owner": "ada"}))).expect("JSON");
    let revision = fleet.repository.commit("Fewer", &[(MANIFESTS, Some(&fewer.to_string()))]);
    let patches = || RequestMatch::any().verb("patch").resource("accounts.example.com");
    fleet.cluster("bj1").fail_next(patches(), 100, Fault::internal_error());
    let running = fleet.start().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    running.stop().await;
    fewer = live::get(fleet.cluster("bj1"), "Account", "default", "web").await.expect("it is there");
    assert!(fewer["metadata"]["annotations"].get(FIELDS).is_some(), "{fewer}");
    assert!(fewer["spec"].get("limits").is_some(), "{fewer}");

    // The same objects, and no trouble any more.
    upgraded(&mut fleet);
    let running = fleet.start().await;
    running.converged(&revision).await;
    settle().await;
    let web = live::get(fleet.cluster("bj1"), "Account", "default", "web").await.expect("it is there");
    assert!(web["metadata"]["annotations"].get(FIELDS).is_none(), "{web}");
    assert_eq!(web["spec"], json!({"owner": "ada", "tier": "free"}), "{web}");
}
