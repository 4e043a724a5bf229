//! Runs one schedule.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{PodMode, Sandbox, SandboxOptions, Scenario};
use serde_json::{Value, json};
use tokio::time::Instant;
use tutti::controller::ManifestOrigin;
use tutti::model::Snapshot;
use tutti::report::{Overview, RolloutReport};

use super::SeedOutcome;
use super::repository::{APP, WavesRepository, image};
use super::schedule::{WavesSchedule, WavesStep};
use crate::chaos::direct_client;
use crate::chaos::random::pick;
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, describe_overview};
use crate::support::oracle::{Oracle, OracleEvent};
use crate::support::repository::{FileTextChange, TestRepository};

/// How long the end may take, in the time of a cluster.
const CONVERGENCE_LIMIT: Duration = Duration::from_secs(6 * 3_600);
const LONG_PAUSE: Duration = Duration::from_secs(1_500);
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

struct WavesRun<'a> {
    schedule: &'a WavesSchedule,
    fleet: TestFleet,
    oracle: Arc<Oracle>,
    process: Option<(RunningController, ProcessConnections)>,
    repository: WavesRepository,
    files: BTreeMap<String, String>,
    newest_version: u64,
    versions: Vec<u64>,
    /// Digests with waves that a person was asked to confirm.
    requested_confirmations: Vec<(String, String)>,
    started_at: Instant,
    log: Vec<(Duration, String)>,
    violations: Vec<String>,
}

pub async fn run(schedule: &WavesSchedule) -> SeedOutcome {
    let mut run = WavesRun::new(schedule);
    run.start().await;
    run.settle(Duration::from_secs(60)).await;
    for (gap, step) in &schedule.steps {
        tokio::time::sleep(*gap).await;
        run.replace_dead_process().await;
        run.step(*step).await;
    }
    run.check_convergence().await;
    let waves = [schedule.plan.waves()];
    let mut violations = run.oracle.violations(&waves);
    violations.append(&mut run.violations);
    let story = run.oracle.story();
    let mut writes = 0;
    let mut log = std::mem::take(&mut run.log);
    for (at, event) in &story.events {
        let OracleEvent::Write(write) = event else { continue };
        writes += 1;
        let what = write.applied.as_ref().map_or("delete".to_owned(), |applied| {
            let content = applied.content.map(|content| content.short());
            let revision = applied.revision.get(..7).unwrap_or_default();
            let previous = applied.previous.get(..7).unwrap_or("-");
            format!("apply {} of {revision}, before {previous},", content.unwrap_or_default())
        });
        log.push((*at, format!("  {what} {} on {}", write.object, write.cluster)));
    }
    log.sort_by_key(|(at, _)| *at);
    let line = |(at, words): (Duration, String)| format!("{:>10.3} {words}", at.as_secs_f64());
    SeedOutcome { violations, log: log.into_iter().map(line).collect(), writes }
}

impl<'a> WavesRun<'a> {
    fn new(schedule: &'a WavesSchedule) -> Self {
        let options = |name: &str| {
            let seed = name.bytes().fold(schedule.seed, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
            let start = Duration::from_secs(schedule.pod_start_seconds);
            SandboxOptions {
                seed,
                pods: PodMode::Virtual,
                pod_start: (start / 3, start),
                ..SandboxOptions::instant(name)
            }
        };
        let clusters: BTreeMap<String, Sandbox> = schedule
            .plan
            .clusters()
            .into_iter()
            .map(|name| (name.clone(), Sandbox::new(options(&name))))
            .collect();
        clusters.values().for_each(|sandbox| sandbox.set_latency(Duration::from_millis(1)));
        // A file on disk would take most of the time.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let repository = TestRepository::in_subfolder(&folder);
        let oracle = Arc::new(Oracle::new(clusters.clone()));
        let said = WavesRepository::initial();
        let files = schedule.plan.files(&said);
        let changes: Vec<FileTextChange<'_>> =
            files.iter().map(|(path, text)| (&**path, Some(&**text))).collect();
        let begin = repository.commit("Begin", &changes);
        oracle.record_commit(&begin, &snapshot(&files));
        Self {
            schedule,
            fleet: TestFleet { repository, first_commit: begin, clusters, charts: Arc::default() },
            oracle,
            process: None,
            repository: said,
            files,
            newest_version: 1,
            versions: vec![1],
            requested_confirmations: Vec::new(),
            started_at: Instant::now(),
            log: Vec::new(),
            violations: Vec::new(),
        }
    }

    fn log_line(&mut self, words: &str) {
        self.log.push((self.started_at.elapsed(), words.to_owned()));
    }

    async fn start(&mut self) {
        let origin = ManifestOrigin::Repository(self.fleet.repository.open().await);
        let wires = ProcessConnections::observed_by(self.oracle.clone());
        let running = self.fleet.start_from_origin(origin, &wires, |_| {});
        self.process = Some((running, wires));
    }

    async fn kill(&mut self, wipes: bool) {
        let Some((running, wires)) = self.process.take() else { return };
        wires.die_after(0);
        running.kill().await;
        if wipes {
            // The folder is wiped; it may not exist.
            let _ = std::fs::remove_dir_all(self.fleet.repository.path().join(".git/tutti"));
        }
        self.start().await;
    }

    /// Replaces a process that has died.
    async fn replace_dead_process(&mut self) {
        if self.process.as_ref().is_some_and(|(_, wires)| wires.is_dead()) {
            self.log_line("the process is dead");
            self.kill(false).await;
        }
    }

    fn overview(&self) -> Arc<Overview> {
        self.process.as_ref().map(|(running, _)| running.overview.borrow().clone()).unwrap_or_default()
    }

    async fn commit(&mut self, said: WavesRepository, words: &str) {
        let files = self.schedule.plan.files(&said);
        let gone = self.files.keys().filter(|path| !files.contains_key(*path)).map(|path| (&**path, None));
        let new = files.iter().filter(|(path, text)| self.files.get(*path) != Some(text));
        let changes: Vec<FileTextChange<'_>> =
            gone.chain(new.map(|(path, text)| (&**path, Some(&**text)))).collect();
        if changes.is_empty() {
            return;
        }
        let revision = self.fleet.repository.commit(words, &changes);
        self.oracle.record_commit(&revision, &snapshot(&files));
        self.log_line(&format!("commit {} {words}", revision.short()));
        (self.repository, self.files) = (said, files);
        if let Some((running, _)) = &self.process {
            // A full queue wakes the process too.
            let _ = running.wake.try_send(());
        }
    }

    async fn step(&mut self, step: WavesStep) {
        self.record_requested_confirmation();
        let mut said = self.repository.clone();
        match step {
            WavesStep::NewVersion => {
                self.newest_version += 1;
                self.versions.push(self.newest_version);
                (said.version, said.green_version) = (self.newest_version, None);
                self.commit(said, &format!("version {}", self.newest_version)).await;
            }
            WavesStep::Revert(steps) => {
                let place = self.versions.len().saturating_sub(1 + steps as usize);
                let version = self.versions[place];
                self.versions.push(version);
                (said.version, said.green_version) = (version, None);
                self.commit(said, &format!("back to {version}")).await;
            }
            WavesStep::NewGreenVersion => {
                self.newest_version += 1;
                said.green_version = Some(self.newest_version);
                self.commit(said, &format!("green {}", self.newest_version)).await;
            }
            WavesStep::Replicas(replicas) => {
                said.replicas = replicas;
                self.commit(said, &format!("{replicas} pods")).await;
            }
            WavesStep::ChangePort => {
                said.port = 80 + (said.port + 1) % 10;
                self.commit(said, "port").await;
            }
            WavesStep::ChangeNothingRendered => {
                said.change_counter += 1;
                self.commit(said, "note").await;
            }
            WavesStep::Pause | WavesStep::Resume => {
                said.paused = step == WavesStep::Pause;
                self.commit(said, &format!("{step:?}")).await;
            }
            WavesStep::StartMaintenance(number) => {
                said.in_maintenance.extend(pick(&self.schedule.plan.clusters(), number).cloned());
                self.commit(said, "maintain").await;
            }
            WavesStep::EndMaintenance => {
                said.in_maintenance.clear();
                self.commit(said, "end of maintenance").await;
            }
            WavesStep::Confirm => self.confirm().await,
            WavesStep::StaleConfirm(number) => {
                if let Some((digest, through)) = pick(&self.requested_confirmations.clone(), number) {
                    self.commit_approval(digest, Some(through), "stale word").await;
                }
            }
            WavesStep::Retry => {
                if let Some(rollout) = rollout(&self.overview()) {
                    self.commit_approval(&rollout.digest.to_string(), None, "retry").await;
                }
            }
            WavesStep::FailPods(number) => self.break_image(number),
            WavesStep::ClearPodFaults => self.clear_pod_faults(),
            WavesStep::ClusterDown(number) => {
                if let Some(cluster) = pick(&self.schedule.plan.clusters(), number) {
                    self.log_line(&format!("{cluster} is down"));
                    self.fleet.cluster(cluster).set_down(true);
                    self.oracle.record_event(OracleEvent::Down(cluster.clone()));
                }
            }
            WavesStep::AllClustersUp => self.start_all_clusters(),
            WavesStep::Kill(0) => {
                self.log_line("kill");
                self.kill(false).await;
            }
            WavesStep::Kill(writes) => {
                self.log_line(&format!("dies after {writes} writes"));
                if let Some((_, wires)) = &self.process {
                    wires.die_after(writes);
                }
            }
            WavesStep::KillAndWipe => {
                self.log_line("kill and wipe");
                self.kill(true).await;
            }
            WavesStep::DeleteWorkload(number) | WavesStep::EditImage(number) => {
                self.change_workload(step, number)
            }
            WavesStep::LongPause => {
                self.log_line("a long time");
                tokio::time::sleep(LONG_PAUSE).await;
            }
        }
    }

    fn record_requested_confirmation(&mut self) {
        let now = self.overview();
        let confirmation = rollout(&now).and_then(|rollout| rollout.confirmation.as_ref());
        if let Some(asked) = confirmation {
            let asked = (asked.digest.to_string(), asked.through.clone());
            if !self.requested_confirmations.contains(&asked) {
                self.requested_confirmations.push(asked);
            }
        }
    }

    async fn confirm(&mut self) {
        let now = self.overview();
        let asked = rollout(&now).and_then(|rollout| rollout.confirmation.clone());
        if let Some(asked) = asked {
            self.commit_approval(&asked.digest.to_string(), Some(&asked.through), "confirm").await;
        }
    }

    /// One file for each version and wave; a rewritten one is a newer approval.
    async fn commit_approval(&mut self, digest: &str, through: Option<&str>, words: &str) {
        let mut said = self.repository.clone();
        let name = format!("pay-{}", through.unwrap_or("again"));
        let action =
            through.map_or("action: retry".to_owned(), |it| format!("action: rollout, through: {it}"));
        said.change_counter += 1;
        let text = format!(
            "# {}\napiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {{name: {name}}}\nspec: {{app: {APP}, \
             {action}, digest: {digest}}}\n",
            said.change_counter
        );
        said.approvals.insert(name, text);
        self.commit(said, &format!("{words} {} {}", &digest[..8], through.unwrap_or("-"))).await;
    }

    fn break_image(&mut self, number: u64) {
        let Some(cluster) = pick(&self.schedule.plan.clusters(), number).cloned() else { return };
        let rules = format!("rules: [{{image: '{}', fail: crash-loop}}]", image(self.newest_version));
        self.log_line(&format!("version {} crashes on {cluster}", self.newest_version));
        self.fleet.cluster(&cluster).set_scenario(Scenario::parse(&rules).expect("a scenario"));
        self.oracle.record_event(OracleEvent::Disturbed);
    }

    fn clear_pod_faults(&mut self) {
        self.log_line("nothing crashes");
        for sandbox in self.fleet.clusters.values() {
            sandbox.set_scenario(Scenario::default());
        }
        self.oracle.record_event(OracleEvent::Disturbed);
    }

    fn start_all_clusters(&mut self) {
        self.log_line("all clusters are up");
        for (name, sandbox) in &self.fleet.clusters {
            sandbox.set_down(false);
            self.oracle.record_event(OracleEvent::Up(name.clone()));
        }
    }

    fn change_workload(&mut self, step: WavesStep, number: u64) {
        let Some(cluster) = pick(&self.schedule.plan.clusters(), number).cloned() else { return };
        let sandbox = self.fleet.cluster(&cluster);
        let workloads = direct_client::list(sandbox, DEPLOYMENTS, "tutti.dev/managed-by=main");
        let Some(name) = pick(&workloads, number / 7).and_then(|it| it["metadata"]["name"].as_str()) else {
            return;
        };
        let path = format!("{DEPLOYMENTS}/{name}");
        if matches!(step, WavesStep::DeleteWorkload(_)) {
            direct_client::delete(sandbox, &path);
        } else {
            let evil: Value = json!({"spec": {"template": {"spec": {"containers": [{"name": "pay", "image": "evil:9", "ports": [{"containerPort": 8080}]}]}}}});
            direct_client::merge_patch(sandbox, "kubectl-edit", &path, &evil);
        }
        self.oracle.record_event(OracleEvent::Disturbed);
        let words = format!("{step:?} of {name} on {cluster}");
        self.log_line(&words);
    }

    /// Ends all faults, commits a last version, and confirms what waits.
    async fn check_convergence(&mut self) {
        self.replace_dead_process().await;
        if let Some((_, wires)) = &self.process {
            wires.cancel_death();
        }
        self.log_line("the end");
        self.clear_pod_faults();
        self.start_all_clusters();
        self.newest_version += 1;
        let last = WavesRepository {
            version: self.newest_version,
            paused: false,
            green_version: None,
            in_maintenance: Default::default(),
            ..self.repository.clone()
        };
        self.commit(last, "the last version").await;
        self.settle(CONVERGENCE_LIMIT).await;
        let waves = [self.schedule.plan.waves()];
        let behind = self.oracle.units_behind(&waves);
        if !behind.is_empty() {
            let words = format!("{} at the end: {}", behind.join(", "), describe_overview(&self.overview()));
            self.violations.push(words);
        }
    }

    /// Waits until everything runs at the head for a while.
    async fn settle(&mut self, most: Duration) {
        let give_up = Instant::now() + most;
        let mut settled = 0;
        while settled < 3 && Instant::now() < give_up {
            tokio::time::sleep(Duration::from_secs(15)).await;
            self.replace_dead_process().await;
            let now = self.overview();
            let is_done = now.revision == Some(self.fleet.repository.tip())
                && now.targets.iter().all(|target| target.phase.is_done())
                && now.deletions.is_empty();
            settled = if is_done { settled + 1 } else { 0 };
            if !is_done {
                self.confirm().await;
            }
        }
    }
}

fn snapshot(files: &BTreeMap<String, String>) -> Snapshot {
    Snapshot::of_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}

fn rollout(now: &Overview) -> Option<&RolloutReport> {
    now.rollouts.iter().find(|it| it.app.to_string() == APP)
}
