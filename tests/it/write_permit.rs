//! A process that loses its write permit sends nothing more: no apply, no delete, no status.

use std::time::Duration;

use sandbox::{Fault, RequestMatch};
use tutti::cluster::WritePermit;
use tutti::controller::RunEnding;
use tutti::model::Revision;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::forge::GiteaStatusServer;
use crate::support::manifests::{config_map, objects_app};

const SOME_MINUTES: Duration = Duration::from_secs(120);

/// Two apps; the next commit changes one and removes the other.
pub fn permit_fleet(gitea: &GiteaStatusServer) -> TestFleet {
    let instance =
        gitea.instance_manifest().replace("spec: {", "spec: {caps: {deletes: 100, deletePercent: 100}, ");
    TestFleet::new(
        &["bj1"],
        &[
            ("tutti.yaml", &instance),
            ("apps/stays/app.yaml", &objects_app("default", "stays")),
            ("apps/stays/objects/map.yaml", &config_map("default", "stays", "first")),
            ("apps/goes/app.yaml", &objects_app("default", "goes")),
            ("apps/goes/objects/map.yaml", &config_map("default", "goes", "first")),
        ],
    )
}

async fn start_with_permit(fleet: &TestFleet) -> (RunningController, WritePermit) {
    let permit = WritePermit::default();
    let given = permit.clone();
    let running =
        fleet.start_with(&ProcessConnections::unlimited(), move |settings| settings.permit = given).await;
    (running, permit)
}

/// Objects to create, change and delete.
pub async fn push_changes(fleet: &TestFleet, running: &RunningController) -> Revision {
    let changes = [
        ("apps/stays/objects/map.yaml", Some(config_map("default", "stays", "second"))),
        ("apps/comes/app.yaml", Some(objects_app("default", "comes"))),
        ("apps/comes/objects/map.yaml", Some(config_map("default", "comes", "first"))),
        ("apps/goes/app.yaml", None),
        ("apps/goes/objects/map.yaml", None),
    ];
    let changes: Vec<_> = changes.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    fleet.push(running, "Second", &changes).await
}

pub fn write_count(fleet: &TestFleet) -> usize {
    fleet.cluster("bj1").count_requests(&RequestMatch::writes())
}

#[tokio::test(start_paused = true)]
async fn revoked_permit_stops_all_writes() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = permit_fleet(&gitea);
    let (running, permit) = start_with_permit(&fleet).await;
    running.until_converged(&fleet.first_commit).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    let (before, posted) = (write_count(&fleet), gitea.posts().len());

    permit.revoke();
    let revision = push_changes(&fleet, &running).await;
    running.until("the commit", |now| now.revision.as_ref() == Some(&revision)).await;
    tokio::time::sleep(SOME_MINUTES).await;
    assert_eq!((write_count(&fleet), gitea.posts().len()), (before, posted));
    let (ending, _) = running.stop().await;
    assert!(matches!(ending, RunEnding::Stopped), "{ending:?}");
    assert_eq!((write_count(&fleet), gitea.posts().len()), (before, posted));

    // The next process applies everything.
    let (running, _) = start_with_permit(&fleet).await;
    running.until_converged(&revision).await;
    gitea.until_status(&revision, "success").await;
    assert_eq!(write_count(&fleet), before + 3, "{:?}", fleet.request_counts());
    running.stop().await;
}

/// A task looks up new objects before it writes: the permit is lost in between.
#[tokio::test(start_paused = true)]
async fn permit_lost_during_task_stops_its_writes() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = permit_fleet(&gitea);
    let lookups = RequestMatch::any().verb("get").resource("configmaps");
    fleet.cluster("bj1").fail_next(lookups.clone(), 100, Fault::Delay(Duration::from_secs(20)));
    let (running, permit) = start_with_permit(&fleet).await;
    gitea.until_status(&fleet.first_commit, "pending").await;
    while fleet.cluster("bj1").count_requests(&lookups) < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    permit.revoke();
    let posted = gitea.posts().len();
    tokio::time::sleep(SOME_MINUTES).await;
    assert_eq!((write_count(&fleet), gitea.posts().len()), (0, posted));
    running.stop().await;
    assert_eq!((write_count(&fleet), gitea.posts().len()), (0, posted));
}

/// A stop revokes only the permit for cluster writes: pending statuses are still posted.
#[tokio::test(start_paused = true)]
async fn stop_still_posts_statuses() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = permit_fleet(&gitea);
    let (running, permit) = start_with_permit(&fleet).await;
    running.until_converged(&fleet.first_commit).await;
    gitea.until_status(&fleet.first_commit, "success").await;
    gitea.set_down(true);
    let revision = push_changes(&fleet, &running).await;
    while gitea.refused_requests() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    gitea.set_down(false);
    assert_eq!(gitea.statuses_of(&revision), Vec::<String>::new());
    running.stop().await;
    assert!(!permit.is_revoked());
    assert_ne!(gitea.statuses_of(&revision), Vec::<String>::new());
}
