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

use super::network::{Network, Seen, Write};
use crate::chaos::draw::Draw;
use crate::chaos::hands;
use crate::chaos::side_by_side::Outcome;
use crate::support::fleet::{Fleet, Running};
use crate::support::manifests::{INSTANCE, config_map, objects};
use crate::support::wires::Wires;

const CLUSTERS: [&str; 2] = ["bj1", "bj2"];
const APPS: [&str; 3] = ["pay", "shop", "web"];
/// The largest difference between clocks, in milliseconds.
const SKEW: u64 = 2_000;
/// How long convergence with the last commit may take after all faults.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Commit,
    Die,
    Stall,
    Stop,
    Home,
    Slow,
    Calm,
}

struct Process {
    name: String,
    network: Network,
    leadership: Leadership,
    running: Running,
}

struct Run {
    draw: Draw,
    /// The longest delay of a request.
    longest: Duration,
    fleet: Fleet,
    home: Sandbox,
    seen: Seen,
    processes: Vec<Process>,
    /// When replacements of ended processes start.
    starts: Vec<Instant>,
    started: u64,
    /// The value of the ConfigMap of each app.
    wanted: BTreeMap<&'static str, String>,
    /// Apps with a second ConfigMap of the same value.
    doubled: BTreeSet<&'static str>,
    commits: u64,
    began: Instant,
    log: Vec<String>,
}

pub async fn run(seed: u64, longest: Duration) -> Outcome {
    let mut run = Run::begin(seed, longest);
    let steps = run.draw.within(20..40);
    for _ in 0..steps {
        let pause = run.draw.within(100..5_000);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        run.revive().await;
        run.step().await;
    }
    let settled = run.settle().await;
    let Run { seen, mut log, began, processes, .. } = run;
    for process in processes {
        process.network.die();
        process.running.kill().await;
    }
    let seen = seen.lock();
    let mut violations: Vec<String> = double_writes(&seen, began);
    violations.extend(settled.err());
    log.extend(seen.iter().map(|write| told(write, began)));
    let writes = seen.iter().filter(|write| write.holder.is_none()).count() as u64;
    Outcome { violations, log, writes }
}

/// Writes by a process that did not hold the Lease at their arrival.
fn double_writes(seen: &[Write], began: Instant) -> Vec<String> {
    let mut holder = "";
    let mut violations = Vec::new();
    for write in seen {
        match &write.holder {
            Some(taken) if write.went_through => holder = taken,
            Some(_) => {}
            None if *write.process == *holder => {}
            None => violations.push(format!("{holder:?} leads, but {}", told(write, began))),
        }
    }
    violations
}

fn told(write: &Write, began: Instant) -> String {
    let Write { at, process, cluster, what, holder, went_through } = write;
    let time = at.duration_since(began).as_secs_f64();
    let holder = holder.as_ref().map(|holder| format!(" for {holder:?}")).unwrap_or_default();
    let refused = if *went_through { "" } else { ", refused" };
    format!("{time:.3} {process}: {what} on {cluster}{holder}{refused}")
}

impl Run {
    fn begin(seed: u64, longest: Duration) -> Self {
        let wanted: BTreeMap<&str, String> = APPS.iter().map(|app| (*app, "0".to_owned())).collect();
        let files: Vec<(String, String)> = APPS
            .iter()
            .flat_map(|app| {
                [
                    (format!("apps/{app}/app.yaml"), objects("default", app)),
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
            draw: Draw::new(seed),
            longest,
            fleet: Fleet::new(&CLUSTERS, &files),
            home: Sandbox::new(SandboxOptions::instant("home")),
            seen: Seen::default(),
            processes: Vec::new(),
            starts: vec![now, now],
            started: 0,
            wanted,
            doubled: BTreeSet::new(),
            commits: 0,
            began: now,
            log: Vec::new(),
        }
    }

    fn note(&mut self, words: &str) {
        self.log.push(format!("{:.3} {words}", self.began.elapsed().as_secs_f64()));
    }

    /// Starts due processes, and a replacement for one that lost the Lease.
    async fn revive(&mut self) {
        let mut lost = Vec::new();
        for place in (0..self.processes.len()).rev() {
            if matches!(*self.processes[place].leadership.role.borrow(), LeaderRole::Lost { .. }) {
                lost.push(self.processes.remove(place));
            }
        }
        for process in lost {
            self.note(&format!("{} lost the lease", process.name));
            process.running.stop().await;
            self.starts.push(Instant::now());
        }
        let now = Instant::now();
        let due = self.starts.iter().filter(|at| **at <= now).count();
        self.starts.retain(|at| *at > now);
        for _ in 0..due {
            self.start().await;
        }
    }

    async fn start(&mut self) {
        self.started += 1;
        let name = format!("p{}", self.started);
        let ahead = SignedDuration::from_millis(self.draw.within(0..2 * SKEW) as i64 - SKEW as i64);
        let network = Network::new(&name, &self.seen, self.draw.next(), self.longest, ahead);
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
        let running = self.fleet.start_from(origin, &Wires::lasting(), move |settings| {
            settings.permit = permit;
            settings.is_standby = true;
            settings.link_resolver = Arc::new(move |cluster| wire.link(&clusters[cluster.name.as_str()]));
        });
        let (mut role, elected) = (leadership.role.clone(), running.elected.clone());
        tokio::spawn(async move {
            if role.wait_for(|role| *role == LeaderRole::Leads).await.is_ok() {
                elected.cancel();
            }
        });
        self.note(&format!("{name} starts, its clock {ahead:?} ahead"));
        self.processes.push(Process { name, network, leadership, running });
    }

    async fn step(&mut self) {
        let trouble = self.draw.weighed(&[
            (35, Trouble::Commit),
            (10, Trouble::Die),
            (15, Trouble::Stall),
            (8, Trouble::Stop),
            (10, Trouble::Home),
            (8, Trouble::Slow),
            (14, Trouble::Calm),
        ]);
        match trouble {
            Trouble::Commit => self.commit().await,
            Trouble::Die => {
                if let Some(process) = self.any() {
                    self.note(&format!("{} dies", process.name));
                    process.network.die();
                    process.running.kill().await;
                    let later = self.draw.within(0..12_000);
                    self.starts.push(Instant::now() + Duration::from_millis(later));
                }
            }
            Trouble::Stall => {
                let seconds = self.draw.within(1..25);
                if let Some(process) = self.any() {
                    self.note(&format!("{} stands still for {seconds} s", process.name));
                    process.network.stall(Duration::from_secs(seconds));
                    self.processes.push(process);
                }
            }
            Trouble::Stop => {
                if let Some(process) = self.any() {
                    self.note(&format!("{} is stopped", process.name));
                    process.running.stop().await;
                    process.leadership.withdraw().await;
                    self.starts.push(Instant::now());
                }
            }
            Trouble::Home => {
                let times = self.draw.within(1..10) as usize;
                self.note(&format!("the home cluster fails {times} times"));
                self.home.fail_next(RequestMatch::any(), times, Fault::unavailable());
            }
            Trouble::Slow => {
                let cluster = self.draw.of(&CLUSTERS);
                let latency = Duration::from_millis(self.draw.within(0..1_500));
                self.note(&format!("{cluster} takes {latency:?}"));
                self.fleet.cluster(cluster).set_latency(latency);
            }
            Trouble::Calm => {}
        }
    }

    fn any(&mut self) -> Option<Process> {
        let place = self.draw.within(0..self.processes.len() as u64) as usize;
        (place < self.processes.len()).then(|| self.processes.remove(place))
    }

    async fn commit(&mut self) {
        self.commits += 1;
        let value = self.commits.to_string();
        let apps: Vec<&'static str> = APPS.iter().copied().filter(|_| self.draw.chance(70)).collect();
        let mut files: Vec<(String, Option<String>)> = Vec::new();
        for app in &apps {
            files.push((format!("apps/{app}/objects/map.yaml"), Some(config_map("default", app, &value))));
            // Something to create and to delete.
            let second = format!("apps/{app}/objects/second.yaml");
            if self.draw.chance(40) {
                self.doubled.insert(app);
                files.push((second, Some(config_map("default", &format!("{app}-second"), &value))));
            } else if self.doubled.remove(app) {
                files.push((second, None));
            }
        }
        let changes: Vec<(&str, Option<&str>)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_deref())).collect();
        self.fleet.repository.commit(&format!("Value {value}"), &changes);
        self.note(&format!("commit {value} of {apps:?}"));
        for app in apps {
            self.wanted.insert(app, value.clone());
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
        let end = Instant::now() + PATIENCE;
        loop {
            self.revive().await;
            for process in &self.processes {
                let _ = process.running.wake.try_send(());
            }
            let missing = self.missing();
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

    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for cluster in CLUSTERS {
            for (app, value) in &self.wanted {
                let second = Some(value).filter(|_| self.doubled.contains(app));
                for (name, value) in [((*app).to_owned(), Some(value)), (format!("{app}-second"), second)] {
                    let path = format!("/api/v1/namespaces/default/configmaps/{name}");
                    let found = hands::get(self.fleet.cluster(cluster), &path);
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
        let write = |process: &str, holder: Option<&str>, went_through: bool| Write {
            at,
            process: process.into(),
            cluster: "bj1".into(),
            what: "PATCH".to_owned(),
            holder: holder.map(ToOwned::to_owned),
            went_through,
        };
        let check = |seen: &[(&str, Option<&str>, bool)], expected: usize| {
            let seen: Vec<Write> =
                seen.iter().map(|(one, holder, through)| write(one, *holder, *through)).collect();
            assert_eq!(double_writes(&seen, at).len(), expected, "{seen:?}");
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
