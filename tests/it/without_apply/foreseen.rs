//! What is told before it is written, and that telling writes nothing.

use std::sync::Arc;
use std::time::Duration;

use kube::api::DeleteParams;
use sandbox::SandboxOptions;
use serde_json::{Value, json};
use tutti::controller::{Settings, Until};
use tutti::model::Mode;
use tutti::report::{Overview, Phase};

use super::{Scene, account, definition, first, options};
use crate::diff::plain;
use crate::drift::{APP, MANIFESTS, app, settle};
use crate::support::fleet::{Fleet, target};
use crate::support::live::{self, create_as};
use crate::support::manifests::objects;
use crate::support::wires::Wires;

async fn run_once(fleet: &Fleet, change: impl FnOnce(&mut Settings)) -> Arc<Overview> {
    let running = fleet
        .start_with(&Wires::lasting(), |settings| {
            settings.until = Until::Settled { timeout: Duration::from_secs(300) };
            change(settings);
        })
        .await;
    running.ended().await.1
}

/// Before and after, as the cluster tells without writing.
async fn foreseen(fleet: &Fleet) -> Option<(Value, Value)> {
    fleet.forget_requests();
    let overview = run_once(fleet, |settings| {
        settings.mode = Some(Mode::Observe);
        settings.foresee = true;
    })
    .await;
    let writes = fleet.requests().into_iter().filter(|(_, request)| request.is_write()).count();
    assert_eq!(writes, 0, "a look writes nothing: {:?}", fleet.counted());
    let all = target(&overview, "bj1", "default/web").differences.clone()?;
    assert!(all.iter().all(|it| it.refused.is_none()), "{all:?}");
    all.iter().find(|it| it.is_any()).map(|it| (it.before.clone(), it.after.clone()))
}

async fn now(fleet: &Fleet) -> Value {
    let found = live::get(fleet.cluster("bj1"), "Account", "default", "web").await;
    found.map(plain).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn what_is_foreseen_is_what_is_then_written() {
    let fleet = Scene::bare(&objects("default", "web"), &first()).await;
    let specs = [
        first(),
        json!({"owner": "bob", "limits": {"max": 3}, "ports": [{"port": 80}]}),
        json!({"owner": {"name": "bob"}, "tier": "paid"}),
        json!({"limits": {}, "ports": []}),
    ];
    for spec in specs {
        fleet.repository.commit("Another", &[(MANIFESTS, Some(&account(&spec)))]);
        let before = now(&fleet).await;
        let (was, will) = foreseen(&fleet).await.expect("a difference");
        assert_eq!(was, before, "{spec}");
        assert_eq!(now(&fleet).await, before, "{spec}");
        run_once(&fleet, |_| {}).await;
        assert_eq!(plain(will), now(&fleet).await, "{spec}");
        assert!(foreseen(&fleet).await.is_none(), "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_foreseen_of_an_adoption_is_what_is_then_written() {
    let fleet = Scene::bare(&app("adopt: true"), &first()).await;
    create_as(fleet.cluster("bj1"), "kubectl", &account(&json!({"owner": "eve", "old": true}))).await;
    let (_, will) = foreseen(&fleet).await.expect("a difference");
    run_once(&fleet, |_| {}).await;
    assert_eq!(plain(will), now(&fleet).await);
}

/// A server that old may not know dry runs either, and would write what it is only asked about.
#[tokio::test(start_paused = true)]
async fn a_look_at_a_server_that_takes_no_dry_runs_writes_nothing() {
    let older = |name: &str| SandboxOptions {
        without_dry_run: vec!["accounts.example.com".to_owned()],
        ..options(name)
    };
    let files = [(APP, &*app("adopt: true")), (MANIFESTS, &*account(&first()))];
    let fleet = Fleet::with(&["bj1"], &files, older);
    live::apply_as(fleet.cluster("bj1"), "admin", &definition().to_string()).await;
    settle().await;
    let looked = async |what: &str| {
        let overview = run_once(&fleet, |settings| {
            settings.mode = Some(Mode::Observe);
            settings.foresee = true;
        })
        .await;
        let told = format!("{overview:?}");
        assert!(told.contains("takes no dry runs"), "{what}: {told}");
    };
    looked("new").await;
    assert_eq!(now(&fleet).await, Value::Null);
    // It is written all the same when that is what is asked for, and then looked at.
    run_once(&fleet, |_| {}).await;
    let before = now(&fleet).await;
    assert_eq!(before["spec"]["owner"], "ada");
    fleet.repository.commit("Another", &[(MANIFESTS, Some(&account(&json!({"owner": "bob"}))))]);
    looked("changed").await;
    assert_eq!(now(&fleet).await, before);

    // To adopt is to know what that changes.
    let accounts = live::api(fleet.cluster("bj1"), "Account", Some("default"));
    accounts.delete("web", &DeleteParams::default()).await.expect("deleted");
    create_as(fleet.cluster("bj1"), "kubectl", &account(&json!({"owner": "eve"}))).await;
    let overview = run_once(&fleet, |_| {}).await;
    let web = target(&overview, "bj1", "default/web");
    assert_eq!(web.phase, Phase::Refused, "{}", web.detail);
    assert!(web.detail.contains("takes no dry runs"), "{}", web.detail);
    assert_eq!(now(&fleet).await["spec"]["owner"], "eve");
}
