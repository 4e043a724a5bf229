use std::collections::BTreeSet;

use sandbox::{Fault, RequestMatch, Sandbox, SandboxOptions};

use super::*;
use crate::cluster::ClusterLink;

struct Process {
    leadership: Leadership,
    hints: mpsc::Receiver<String>,
}

async fn process(home: &Sandbox, holder: &str) -> Process {
    let (told, hints) = mpsc::channel(4);
    let candidate = LeaderCandidate {
        home: HomeCluster::at(ClusterLink::in_process(home.service())),
        lease: "tutti".to_owned(),
        holder: holder.to_owned(),
        repository: "config.git".to_owned(),
    };
    Process { leadership: Leadership::start(candidate, told).await.expect("a home"), hints }
}

impl Process {
    async fn until(&self, wanted: LeaderRole) {
        self.leadership.role.clone().wait_for(|role| *role == wanted).await.expect("it runs");
    }

    fn role(&self) -> LeaderRole {
        self.leadership.role.borrow().clone()
    }

    fn may_write(&self) -> bool {
        self.leadership.permit.is_valid()
    }
}

fn stands_by(leader: &str) -> LeaderRole {
    LeaderRole::StandsBy { leader: Some(leader.to_owned()) }
}

fn home() -> Sandbox {
    Sandbox::new(SandboxOptions::instant("home"))
}

/// Advances in steps of 100 ms; never do two processes have a permit.
async fn watch(processes: &[&Process], time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(processes.iter().filter(|it| it.may_write()).count() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn first_one_leads_and_goes_on_leading() {
    let home = home();
    let (one, two) = (process(&home, "one").await, process(&home, "two").await);
    assert_eq!((one.role(), two.role()), (LeaderRole::Leads, stands_by("one")));
    for _ in 0..100 {
        watch(&[&one, &two], Duration::from_secs(1)).await;
        assert_eq!((one.may_write(), two.may_write()), (true, false));
    }
}

#[tokio::test(start_paused = true)]
async fn standby_leads_within_fifteen_seconds_of_a_crash() {
    let home = home();
    let (one, two) = (process(&home, "one").await, process(&home, "two").await);
    watch(&[&one, &two], Duration::from_millis(3900)).await;
    let permit = one.leadership.permit.clone();
    let died = Instant::now();
    drop(one);
    while two.role() != LeaderRole::Leads {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // The permit of the dead process: had it only been stopped, its term would be over.
        assert!(!(permit.is_valid() && two.may_write()));
    }
    assert!(died.elapsed() < Duration::from_secs(15), "{:?}", died.elapsed());
    assert!(died.elapsed() > Duration::from_secs(7), "{:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn released_lease_is_taken_at_once() {
    let home = home();
    let (one, two) = (process(&home, "one").await, process(&home, "two").await);
    let (given, permit) = (Instant::now(), one.leadership.permit.clone());
    one.leadership.withdraw().await;
    assert!(!permit.is_valid());
    two.until(LeaderRole::Leads).await;
    assert!(given.elapsed() <= INTERVAL, "{:?}", given.elapsed());
    // A later process is a standby.
    assert_eq!(process(&home, "three").await.role(), stands_by("two"));
}

#[tokio::test(start_paused = true)]
async fn leader_pauses_while_the_home_cluster_is_away() {
    let home = home();
    let one = process(&home, "one").await;
    watch(&[&one], Duration::from_secs(5)).await;
    home.fail_next(RequestMatch::any(), 10, Fault::unavailable());
    tokio::time::sleep(WRITE_TERM + INTERVAL).await;
    assert!(!one.may_write());
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(one.may_write());
    assert_eq!(one.role(), LeaderRole::Leads);
}

#[tokio::test(start_paused = true)]
async fn replaced_leader_never_writes_again() {
    let home = home();
    let one = process(&home, "one").await;
    let writes =
        |fault: &Sandbox, times| fault.fail_next(RequestMatch::writes(), times, Fault::unavailable());
    // Writes fail for longer than the lease lasts.
    let two = process(&home, "two").await;
    writes(&home, 12);
    let mut led = BTreeSet::new();
    for _ in 0..600 {
        watch(&[&one, &two], Duration::from_millis(100)).await;
        for (name, process) in [("one", &one), ("two", &two)] {
            if process.role() == LeaderRole::Leads && process.may_write() {
                led.insert(name);
            }
        }
    }
    let lost = [&one, &two].iter().filter(|it| matches!(it.role(), LeaderRole::Lost { .. })).count();
    assert_eq!(lost, led.len() - 1, "{led:?}");
    if lost == 1 {
        assert_eq!(one.role(), LeaderRole::Lost { leader: Some("two".to_owned()) });
        assert!(one.leadership.permit.is_revoked());
    }
}

#[tokio::test(start_paused = true)]
async fn hint_of_a_standby_reaches_the_leader() {
    let home = home();
    let (mut one, two) = (process(&home, "one").await, process(&home, "two").await);
    let told = Instant::now();
    two.leadership.hints().send("now 1d50357".to_owned()).await.expect("it runs");
    assert_eq!(one.hints.recv().await.as_deref(), Some("now 1d50357"));
    assert!(told.elapsed() <= INTERVAL + MIN_INTERVAL, "{:?}", told.elapsed());
    // The hint arrives once.
    tokio::time::sleep(10 * INTERVAL).await;
    assert!(one.hints.try_recv().is_err());
    assert_eq!((one.role(), two.role()), (LeaderRole::Leads, stands_by("one")));
}

#[tokio::test(start_paused = true)]
async fn missing_right_fails_the_start() {
    let home = home();
    home.fail_next(RequestMatch::any(), 1, Fault::forbidden());
    let (told, _hints) = mpsc::channel(4);
    let candidate = LeaderCandidate {
        home: HomeCluster::at(ClusterLink::in_process(home.service())),
        lease: "tutti".to_owned(),
        holder: "one".to_owned(),
        repository: "config.git".to_owned(),
    };
    let error = Leadership::start(candidate, told).await.expect_err("it may not").to_string();
    assert!(error.starts_with("failed to read the Lease tutti, in the home cluster: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn leader_continues_after_an_outage() {
    let home = home();
    let (one, two) = (process(&home, "one").await, process(&home, "two").await);
    // For both, about 40 s.
    home.fail_next(RequestMatch::any(), 40, Fault::unavailable());
    watch(&[&one, &two], Duration::from_secs(20)).await;
    assert!(!one.may_write());
    watch(&[&one, &two], Duration::from_secs(60)).await;
    assert_eq!((one.role(), two.role(), one.may_write()), (LeaderRole::Leads, stands_by("one"), true));
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_does_not_end_the_term() {
    let home = home();
    let one = process(&home, "one").await;
    home.fail_next(RequestMatch::any(), 1, Fault::Delay(Duration::from_secs(600)));
    for _ in 0..200 {
        watch(&[&one], Duration::from_millis(100)).await;
        assert!(one.may_write());
    }
    assert_eq!(one.role(), LeaderRole::Leads);
}
