//! A standby process reads, renders and watches, and writes nothing until it is elected.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tutti::cluster::{LeaderTerm, WritePermit};
use tutti::model::InstanceMode;

use crate::support::fleet::{Fleet, Running, phases};
use crate::support::forge::Gitea;
use crate::support::manifests::config_map;
use crate::support::wires::Wires;
use crate::write_permit::{fleet, push, writes};

const A_WHILE: Duration = Duration::from_secs(120);
/// The term of a leader that keeps renewing.
const LONG: Duration = Duration::from_secs(1 << 30);

async fn stand_by(fleet: &Fleet) -> (Running, Arc<LeaderTerm>) {
    let term = Arc::new(LeaderTerm::default());
    let permit = WritePermit::of(Arc::clone(&term));
    let running = fleet
        .start_with(&Wires::lasting(), move |settings| {
            settings.permit = permit;
            settings.is_standby = true;
        })
        .await;
    (running, term)
}

fn elect(running: &Running, term: &LeaderTerm) {
    term.extend(Instant::now() + LONG);
    running.elected.cancel();
}

#[tokio::test(start_paused = true)]
async fn standby_process_writes_nothing_before_election() {
    let gitea = Gitea::start().await;
    let fleet = fleet(&gitea);
    let (running, term) = stand_by(&fleet).await;
    running.until("a look", |now| now.revision.as_ref() == Some(&fleet.begin)).await;
    tokio::time::sleep(A_WHILE).await;
    let overview = Arc::clone(&running.overview.borrow());
    assert_eq!(overview.mode, InstanceMode::Observe);
    assert_eq!(phases(&overview), ["bj1 default/goes OutOfSync", "bj1 default/stays OutOfSync"]);
    assert_eq!((writes(&fleet), gitea.posts().len()), (0, 0));

    elect(&running, &term);
    running.converged(&fleet.begin).await;
    gitea.until(&fleet.begin, "success").await;
    assert_eq!(writes(&fleet), 2);
    let revision = push(&fleet, &running).await;
    running.converged(&revision).await;
    gitea.until(&revision, "success").await;
    assert_eq!(writes(&fleet), 5, "{:?}", fleet.counted());
    gitea.assert_nothing_repeated();
    running.stop().await;
}

/// The standby compares another process's writes, and neither repeats nor reports them.
#[tokio::test(start_paused = true)]
async fn elected_process_continues_the_leaders_work() {
    let gitea = Gitea::start().await;
    let fleet = fleet(&gitea);
    let leader = fleet.start().await;
    let (next, term) = stand_by(&fleet).await;
    leader.converged(&fleet.begin).await;
    gitea.until(&fleet.begin, "success").await;
    let revision = push(&fleet, &leader).await;
    next.wake.send(()).await.expect("it runs");
    leader.converged(&revision).await;
    gitea.until(&revision, "success").await;
    next.until("the same", |now| {
        now.revision.as_ref() == Some(&revision) && now.targets.iter().all(|target| target.phase.is_done())
    })
    .await;
    leader.stop().await;
    let (before, posted) = (writes(&fleet), gitea.posts().len());
    fleet.forget_requests();

    elect(&next, &term);
    next.until("leads", |now| now.mode == InstanceMode::Enforce).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(gitea.posts().len(), posted, "{:?}", gitea.posts());
    assert_eq!(fleet.counted(), Vec::<String>::new());
    assert_eq!(before, 5);
    let last = fleet
        .repository
        .commit("Third", &[("apps/stays/objects/map.yaml", Some(&config_map("default", "stays", "third")))]);
    next.wake.send(()).await.expect("it runs");
    next.converged(&last).await;
    gitea.until(&last, "success").await;
    assert_eq!(writes(&fleet), 1);
    gitea.assert_nothing_repeated();
    next.stop().await;
}

/// The home cluster is offline for a while: nothing is written meanwhile, and everything afterwards.
#[tokio::test(start_paused = true)]
async fn leader_writes_only_with_a_valid_term() {
    let gitea = Gitea::start().await;
    let fleet = fleet(&gitea);
    let (running, term) = stand_by(&fleet).await;
    elect(&running, &term);
    running.converged(&fleet.begin).await;
    gitea.until(&fleet.begin, "success").await;
    let (before, posted) = (writes(&fleet), gitea.posts().len());
    term.extend(Instant::now());
    let revision = push(&fleet, &running).await;
    let words = "this process did not renew the lease of the leader in time";
    running.until("the reason", |now| now.targets.iter().any(|target| target.detail.contains(words))).await;
    tokio::time::sleep(15 * A_WHILE).await;
    assert_eq!((writes(&fleet), gitea.posts().len()), (before, posted));
    term.extend(Instant::now() + LONG);
    let renewed = Instant::now();
    running.converged(&revision).await;
    // The length of the outage does not matter.
    assert!(renewed.elapsed() < Duration::from_secs(10), "{:?}", renewed.elapsed());
    gitea.until(&revision, "success").await;
    assert_eq!(writes(&fleet), before + 3, "{:?}", fleet.counted());
    running.stop().await;
}
