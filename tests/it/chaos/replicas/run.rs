//! Runs one schedule of two processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use sandbox::{Fault, RequestMatch, Sandbox, SandboxOptions};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tutti::cluster::HomeCluster;
use tutti::controller::ManifestOrigin;
use tutti::leader::{LeaderCandidate, LeaderRole, Leadership};

use super::network::{ObservedWrite, ProcessNetwork, WriteLog};
use crate::chaos::direct_client;
use crate::chaos::random::SeededRandom;
use crate::chaos::seed_runner::SeedOutcome;
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet};
use crate::support::manifests::{INSTANCE, config_map, objects_app};

const CLUSTERS: [&str; 2] = ["bj1", "bj2"];
const APPS: [&str; 3] = ["pay", "shop", "web"];
/// The largest difference between clocks, in milliseconds.
const MAX_CLOCK_SKEW: u64 = 2_000;
/// How long convergence with the last commit may take after all faults.
const CONVERGENCE_LIMIT: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
enum ReplicaEvent {
    Commit,
    Kill,
    Stall,
    Stop,
    HomeClusterFault,
    SlowClusters,
    NoEvent,
}

struct ReplicaProcess {
    name: String,
    network: ProcessNetwork,
    leadership: Leadership,
    running: RunningController,
}

struct ReplicaRun {
    draw: SeededRandom,
    /// The longest delay of a request.
    max_delay: Duration,
    fleet: TestFleet,
    home: Sandbox,
    write_log: WriteLog,
    processes: Vec<ReplicaProcess>,
    /// When replacements of ended processes start.
    pending_starts: Vec<Instant>,
    started: u64,
    /// The value of the ConfigMap of each app.
    desired_values: BTreeMap<&'static str, String>,
    /// Apps with a second ConfigMap of the same value.
    apps_with_second_map: BTreeSet<&'static str>,
    commits: u64,
    started_at: Instant,
    log: Vec<String>,
}

pub async fn run(seed: u64, longest: Duration) -> SeedOutcome {
    let mut run = ReplicaRun::begin(seed, longest);
    let steps = run.draw.in_range(20..40);
    for _ in 0..steps {
        let pause = run.draw.in_range(100..5_000);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        run.start_due().await;
        run.step().await;
    }
    let settled = run.settle().await;
    let ReplicaRun { write_log: seen, mut log, started_at: began, processes, .. } = run;
    for process in processes {
        process.network.die();
        process.running.kill().await;
    }
    let seen = seen.lock();
    let mut violations: Vec<String> = writes_without_lease(&seen, began);
    violations.extend(settled.err());
    log.extend(seen.iter().map(|write| describe_write(write, began)));
    let writes = seen.iter().filter(|write| write.holder.is_none()).count() as u64;
    SeedOutcome { violations, log, writes }
}

/// Writes by a process that did not hold the Lease at their arrival.
fn writes_without_lease(seen: &[ObservedWrite], began: Instant) -> Vec<String> {
    let mut holder = "";
    let mut violations = Vec::new();
    for write in seen {
        match &write.holder {
            Some(taken) if write.succeeded => holder = taken,
            Some(_) => {}
            None if *write.process == *holder => {}
            None => violations.push(format!("{holder:?} leads, but {}", describe_write(write, began))),
        }
    }
    violations
}

fn describe_write(write: &ObservedWrite, began: Instant) -> String {
    let ObservedWrite {
        arrived_at: at,
        process,
        cluster,
        request_line: what,
        holder,
        succeeded: went_through,
    } = write;
    let time = at.duration_since(began).as_secs_f64();
    let holder = holder.as_ref().map(|holder| format!(" for {holder:?}")).unwrap_or_default();
    let refused = if *went_through { "" } else { ", refused" };
    format!("{time:.3} {process}: {what} on {cluster}{holder}{refused}")
}

impl ReplicaRun {
    fn begin(seed: u64, longest: Duration) -> Self {
        let wanted: BTreeMap<&str, String> = APPS.iter().map(|app| (*app, "0".to_owned())).collect();
        let files: Vec<(String, String)> = APPS
            .iter()
            .flat_map(|app| {
                [
                    (format!("apps/{app}/app.yaml"), objects_app("default", app)),
                    (format!("apps/{app}/objects/map.yaml"), config_map("default", app, "0")),
                ]
            })
            .collect();
        let mut files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let instance = INSTANCE.replace("spec: {", "spec: {caps: {deletes: 100, deletePercent: 100}, ");
        files.push(("tutti.yaml", &instance));
        let now = Instant::now();
        Self {
            draw: SeededRandom::new(seed),
            max_delay: longest,
            fleet: TestFleet::new(&CLUSTERS, &files),
            home: Sandbox::new(SandboxOptions::instant("home")),
            write_log: WriteLog::default(),
            processes: Vec::new(),
            pending_starts: vec![now, now],
            started: 0,
            desired_values: wanted,
            apps_with_second_map: BTreeSet::new(),
            commits: 0,
            started_at: now,
            log: Vec::new(),
        }
    }

    fn log_line(&mut self, words: &str) {
        self.log.push(format!("{:.3} {words}", self.started_at.elapsed().as_secs_f64()));
    }

    /// Starts due processes, and a replacement for one that lost the Lease.
    async fn start_due(&mut self) {
        let mut lost = Vec::new();
        for place in (0..self.processes.len()).rev() {
            if matches!(*self.processes[place].leadership.role.borrow(), LeaderRole::Lost { .. }) {
                lost.push(self.processes.remove(place));
            }
        }
        for process in lost {
            self.log_line(&format!("{} lost the lease", process.name));
            process.running.stop().await;
            self.pending_starts.push(Instant::now());
        }
        let now = Instant::now();
        let due = self.pending_starts.iter().filter(|at| **at <= now).count();
        self.pending_starts.retain(|at| *at > now);
        for _ in 0..due {
            self.start().await;
        }
    }

    async fn start(&mut self) {
        self.started += 1;
        let name = format!("p{}", self.started);
        let ahead = SignedDuration::from_millis(
            self.draw.in_range(0..2 * MAX_CLOCK_SKEW) as i64 - MAX_CLOCK_SKEW as i64,
        );
        let network = ProcessNetwork::new(&name, &self.write_log, self.draw.next(), self.max_delay, ahead);
        let (told, _) = mpsc::channel(1);
        let leadership = loop {
            let candidate = LeaderCandidate {
                home: HomeCluster::at(network.link(&self.home)),
                lease: "tutti".to_owned(),
                holder: name.clone(),
                repository: "config.git".to_owned(),
            };
            match Leadership::start(candidate, told.clone()).await {
                Ok(leadership) => break leadership,
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        };
        let (permit, clusters, wire) =
            (leadership.permit.clone(), self.fleet.clusters.clone(), network.clone());
        let origin = ManifestOrigin::Repository(self.fleet.repository.open().await);
        let running =
            self.fleet.start_from_origin(origin, &ProcessConnections::unlimited(), move |settings| {
                settings.permit = permit;
                settings.is_standby = true;
                settings.link_resolver = Arc::new(move |cluster| wire.link(&clusters[cluster.name.as_str()]));
            });
        let (mut role, elected) = (leadership.role.clone(), running.election.clone());
        tokio::spawn(async move {
            if role.wait_for(|role| *role == LeaderRole::Leads).await.is_ok() {
                elected.cancel();
            }
        });
        self.log_line(&format!("{name} starts, its clock {ahead:?} ahead"));
        self.processes.push(ReplicaProcess { name, network, leadership, running });
    }

    async fn step(&mut self) {
        let trouble = self.draw.choose_weighted(&[
            (35, ReplicaEvent::Commit),
            (10, ReplicaEvent::Kill),
            (15, ReplicaEvent::Stall),
            (8, ReplicaEvent::Stop),
            (10, ReplicaEvent::HomeClusterFault),
            (8, ReplicaEvent::SlowClusters),
            (14, ReplicaEvent::NoEvent),
        ]);
        match trouble {
            ReplicaEvent::Commit => self.commit().await,
            ReplicaEvent::Kill => {
                if let Some(process) = self.take_random_process() {
                    self.log_line(&format!("{} dies", process.name));
                    process.network.die();
                    process.running.kill().await;
                    let later = self.draw.in_range(0..12_000);
                    self.pending_starts.push(Instant::now() + Duration::from_millis(later));
                }
            }
            ReplicaEvent::Stall => {
                let seconds = self.draw.in_range(1..25);
                if let Some(process) = self.take_random_process() {
                    self.log_line(&format!("{} stands still for {seconds} s", process.name));
                    process.network.stall(Duration::from_secs(seconds));
                    self.processes.push(process);
                }
            }
            ReplicaEvent::Stop => {
                if let Some(process) = self.take_random_process() {
                    self.log_line(&format!("{} is stopped", process.name));
                    process.running.stop().await;
                    process.leadership.withdraw().await;
                    self.pending_starts.push(Instant::now());
                }
            }
            ReplicaEvent::HomeClusterFault => {
                let times = self.draw.in_range(1..10) as usize;
                self.log_line(&format!("the home cluster fails {times} times"));
                self.home.fail_next(RequestMatch::any(), times, Fault::unavailable());
            }
            ReplicaEvent::SlowClusters => {
                let cluster = self.draw.choose(&CLUSTERS);
                let latency = Duration::from_millis(self.draw.in_range(0..1_500));
                self.log_line(&format!("{cluster} takes {latency:?}"));
                self.fleet.cluster(cluster).set_latency(latency);
            }
            ReplicaEvent::NoEvent => {}
        }
    }

    fn take_random_process(&mut self) -> Option<ReplicaProcess> {
        let place = self.draw.in_range(0..self.processes.len() as u64) as usize;
        (place < self.processes.len()).then(|| self.processes.remove(place))
    }

    async fn commit(&mut self) {
        self.commits += 1;
        let value = self.commits.to_string();
        let apps: Vec<&'static str> = APPS.iter().copied().filter(|_| self.draw.percent_chance(70)).collect();
        let mut files: Vec<(String, Option<String>)> = Vec::new();
        for app in &apps {
            files.push((format!("apps/{app}/objects/map.yaml"), Some(config_map("default", app, &value))));
            // Something to create and to delete.
            let second = format!("apps/{app}/objects/second.yaml");
            if self.draw.percent_chance(40) {
                self.apps_with_second_map.insert(app);
                files.push((second, Some(config_map("default", &format!("{app}-second"), &value))));
            } else if self.apps_with_second_map.remove(app) {
                files.push((second, None));
            }
        }
        let changes: Vec<(&str, Option<&str>)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_deref())).collect();
        self.fleet.repository.commit(&format!("Value {value}"), &changes);
        self.log_line(&format!("commit {value} of {apps:?}"));
        for app in apps {
            self.desired_values.insert(app, value.clone());
        }
        for process in &self.processes {
            // A full queue wakes the process too.
            let _ = process.running.wake.try_send(());
        }
    }

    /// After all faults: one process leads, and everything agrees with the last commit.
    async fn settle(&mut self) -> Result<(), String> {
        for cluster in CLUSTERS {
            self.fleet.cluster(cluster).set_latency(Duration::ZERO);
        }
        let end = Instant::now() + CONVERGENCE_LIMIT;
        loop {
            self.start_due().await;
            for process in &self.processes {
                let _ = process.running.wake.try_send(());
            }
            let missing = self.differences();
            let leads =
                self.processes.iter().filter(|it| *it.leadership.role.borrow() == LeaderRole::Leads).count();
            if missing.is_empty() && leads == 1 {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("{leads} lead, and in the end {missing:?}"));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn differences(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for cluster in CLUSTERS {
            for (app, value) in &self.desired_values {
                let second = Some(value).filter(|_| self.apps_with_second_map.contains(app));
                for (name, value) in [((*app).to_owned(), Some(value)), (format!("{app}-second"), second)] {
                    let path = format!("/api/v1/namespaces/default/configmaps/{name}");
                    let found = direct_client::get(self.fleet.cluster(cluster), &path);
                    let found = found.map(|map| map["data"]["value"].as_str().unwrap_or_default().to_owned());
                    if found.as_ref() != value {
                        missing.push(format!("{name} on {cluster} has {found:?} and not {value:?}"));
                    }
                }
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_without_the_lease_is_a_violation() {
        let at = Instant::now();
        let write = |process: &str, holder: Option<&str>, went_through: bool| ObservedWrite {
            arrived_at: at,
            process: process.into(),
            cluster: "bj1".into(),
            request_line: "PATCH".to_owned(),
            holder: holder.map(ToOwned::to_owned),
            succeeded: went_through,
        };
        let check = |seen: &[(&str, Option<&str>, bool)], expected: usize| {
            let seen: Vec<ObservedWrite> =
                seen.iter().map(|(one, holder, through)| write(one, *holder, *through)).collect();
            assert_eq!(writes_without_lease(&seen, at).len(), expected, "{seen:?}");
        };
        let (one, two) = (("p1", Some("p1"), true), ("p2", Some("p2"), true));
        let (of_one, of_two) = (("p1", None, true), ("p2", None, true));
        check(&[one, of_one, two, of_two], 0);
        check(&[one, of_two], 1);
        check(&[one, two, of_one, of_two], 1);
        check(&[of_one], 1);
        // A refused write of the Lease changes nothing; a released Lease has no holder.
        check(&[one, ("p2", Some("p2"), false), of_one], 0);
        check(&[one, ("p1", Some(""), true), of_one], 1);
    }
}
