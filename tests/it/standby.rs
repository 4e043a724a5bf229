//! A standby process reads, renders and watches, and writes nothing until it is elected.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tutti::cluster::{LeaderTerm, WritePermit};
use tutti::model::InstanceMode;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, phases};
use crate::support::forge::GiteaStatusServer;
use crate::support::manifests::config_map;
use crate::write_permit::{permit_fleet, push_changes, write_count};

const SOME_MINUTES: Duration = Duration::from_secs(120);
/// The term of a leader that keeps renewing.
const LONG_TERM: Duration = Duration::from_secs(1 << 30);

async fn start_standby(fleet: &TestFleet) -> (RunningController, Arc<LeaderTerm>) {
    let term = Arc::new(LeaderTerm::default());
    let permit = WritePermit::of(Arc::clone(&term));
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), move |settings| {
            settings.permit = permit;
            settings.is_standby = true;
        })
        .await;
    (running, term)
}

fn elect(running: &RunningController, term: &LeaderTerm) {
    term.extend(Instant::now() + LONG_TERM);
    running.election.cancel();
}

#[tokio::test(start_paused = true)]
async fn standby_process_writes_nothing_before_election() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = permit_fleet(&gitea);
    let (running, term) = start_standby(&fleet).await;
    running.until("a look", |now| now.revision.as_ref() == Some(&fleet.first_commit)).await;
    tokio::time::sleep(SOME_MINUTES).await;
    let overview = Arc::clone(&running.overview.borrow());
    assert_eq!(overview.mode, InstanceMode::Observe);
    assert_eq!(phases(&overview), ["bj1 default/goes OutOfSync", "bj1 default/stays OutOfSync"]);
    assert_eq!((write_count(&fleet), gitea.posts().len()), (0, 0));

    elect(&running, &term);
    running.until_converged(&fleet.first_commit).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    assert_eq!(write_count(&fleet), 2);
    let revision = push_changes(&fleet, &running).await;
    running.until_converged(&revision).await;
    gitea.until_status(&revision, "success").await;
    assert_eq!(write_count(&fleet), 5, "{:?}", fleet.request_counts());
    gitea.assert_no_repeated_status();
    running.stop().await;
}

/// The standby compares another process's writes, and neither repeats nor reports them.
#[tokio::test(start_paused = true)]
async fn elected_process_continues_the_leaders_work() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = permit_fleet(&gitea);
    let leader = fleet.start().await;
    let (next, term) = start_standby(&fleet).await;
    leader.until_converged(&fleet.first_commit).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let revision = push_changes(&fleet, &leader).await;
    next.wake.send(()).await.expect("it runs");
    leader.until_converged(&revision).await;
    gitea.until_status(&revision, "success").await;
    next.until("the same", |now| {
        now.revision.as_ref() == Some(&revision) && now.targets.iter().all(|target| target.phase.is_done())
    })
    .await;
    leader.stop().await;
    let (before, posted) = (write_count(&fleet), gitea.posts().len());
    fleet.clear_requests();

    elect(&next, &term);
    next.until("leads", |now| now.mode == InstanceMode::Enforce).await;
    tokio::time::sleep(SOME_MINUTES).await;
    assert_eq!(gitea.posts().len(), posted, "{:?}", gitea.posts());
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
    assert_eq!(before, 5);
    let last = fleet
        .repository
        .commit("Third", &[("apps/stays/objects/map.yaml", Some(&config_map("default", "stays", "third")))]);
    next.wake.send(()).await.expect("it runs");
    next.until_converged(&last).await;
    gitea.until_status(&last, "success").await;
    assert_eq!(write_count(&fleet), 1);
    gitea.assert_no_repeated_status();
    next.stop().await;
}

/// The home cluster is offline for a while: nothing is written meanwhile, and everything afterwards.
#[tokio::test(start_paused = true)]
async fn leader_writes_only_with_a_valid_term() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = permit_fleet(&gitea);
    let (running, term) = start_standby(&fleet).await;
    elect(&running, &term);
    running.until_converged(&fleet.first_commit).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let (before, posted) = (write_count(&fleet), gitea.posts().len());
    term.extend(Instant::now());
    let revision = push_changes(&fleet, &running).await;
    let words = "this process did not renew the lease of the leader in time";
    running.until("the reason", |now| now.targets.iter().any(|target| target.detail.contains(words))).await;
    tokio::time::sleep(15 * SOME_MINUTES).await;
    assert_eq!((write_count(&fleet), gitea.posts().len()), (before, posted));
    term.extend(Instant::now() + LONG_TERM);
    let renewed = Instant::now();
    running.until_converged(&revision).await;
    // The length of the outage does not matter.
    assert!(renewed.elapsed() < Duration::from_secs(10), "{:?}", renewed.elapsed());
    gitea.until_status(&revision, "success").await;
    assert_eq!(write_count(&fleet), before + 3, "{:?}", fleet.request_counts());
    running.stop().await;
}
