//! Runs one schedule.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sandbox::{PodMode, Release, Sandbox, SandboxOptions};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tutti::controller::ManifestOrigin;
use tutti::manifest::approval_to_yaml;
use tutti::model::{Approval, Revision};
use tutti::report::{Overview, TargetPhase, statuses};

use super::change;
use super::desired::DesiredRepository;
use super::object::ChaosObjectId;
use super::random::pick;
use super::report::ChaosReport;
use super::schedule::{ChaosSchedule, ChaosStep};
use super::trouble::{ActiveFaults, ClusterFault};
use super::write_monitor::WriteMonitor;
use super::{direct_client, live_state, steady_state, write_limits};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, describe_overview};
use crate::support::repository::{FileTextChange, TestRepository};

/// The duration of a request without a fault.
const LATENCY: Duration = Duration::from_millis(1);
/// The sum of the longest pauses of all retries.
const CONVERGENCE_LIMIT: Duration = Duration::from_secs(3_600);
/// The time from the definition of a kind until it is served.
const UNTIL_SERVED: Duration = Duration::from_secs(5);
/// The server ends a silent watch after this time, and missed changes are read.
const WATCH_TIMEOUT: Duration = Duration::from_secs(400);

/// A cluster that does not answer for this long is offline, and is connected to again.
const OFFLINE_TIMEOUT: Duration = Duration::from_secs(40);

pub struct ChaosRun {
    fleet: TestFleet,
    pub desired: DesiredRepository,
    pub write_monitor: Arc<WriteMonitor>,
    files: BTreeMap<String, String>,
    head: Revision,
    troubles: BTreeMap<String, ActiveFaults>,
    process: Option<ChaosProcess>,
    /// The last time that tutti was told to fetch.
    last_wake: Instant,
    report: ChaosReport,
}

struct ChaosProcess {
    running: RunningController,
    wires: ProcessConnections,
    observer: JoinHandle<()>,
}

/// The result of a schedule.
pub struct ChaosOutcome {
    pub violations: Vec<String>,
    pub log: Vec<String>,
    pub report: ChaosReport,
}

pub async fn run(schedule: &ChaosSchedule) -> ChaosOutcome {
    let mut run = ChaosRun::new(schedule);
    tokio::time::sleep(UNTIL_SERVED).await;
    run.start().await;
    for (gap, step) in &schedule.steps {
        tokio::time::sleep(*gap).await;
        run.replace_dead_process().await;
        run.step(step).await;
    }
    run.check_convergence(schedule).await;
    run.outcome()
}

impl ChaosRun {
    fn new(schedule: &ChaosSchedule) -> Self {
        let options = |name: &str| {
            let start = if schedule.slow_pods { 3 } else { 0 };
            // Uids must differ between clusters.
            let seed = name.bytes().fold(schedule.seed, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
            // One release streams lists, the other sends pages.
            let minor = if seed.is_multiple_of(3) { 30 } else { 36 };
            let release = Release::new(minor).expect("a release that there was");
            SandboxOptions {
                seed,
                pods: PodMode::Virtual,
                pod_start: (Duration::from_secs(start / 3), Duration::from_secs(start)),
                epoch: SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000),
                ..SandboxOptions::instant(name).running(release)
            }
        };
        let sandboxes =
            schedule.initial.clusters.keys().map(|name| (name.clone(), Sandbox::new(options(name))));
        let clusters: BTreeMap<String, Sandbox> = sandboxes.collect();
        for sandbox in clusters.values() {
            sandbox.set_latency(LATENCY);
        }
        let witness = Arc::new(WriteMonitor::new(clusters.clone()));
        steady_state::create_unrelated_objects(&clusters, &mut witness.state.lock().external_changes);
        // A file on disk would take most of the time.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let repository = TestRepository::in_subfolder(&folder);
        let files = schedule.initial.files();
        let changes: Vec<FileTextChange<'_>> =
            files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        let begin = repository.commit("Begin", &changes);
        witness.record_commit(&begin, &schedule.initial, None);
        Self {
            fleet: TestFleet { repository, first_commit: begin.clone(), clusters, charts: Arc::default() },
            desired: schedule.initial.clone(),
            write_monitor: witness,
            files,
            head: begin,
            troubles: BTreeMap::new(),
            process: None,
            last_wake: Instant::now(),
            report: ChaosReport::default(),
        }
    }

    async fn start(&mut self) {
        // A new process keeps nothing of the one before, not even its clone.
        let origin = ManifestOrigin::Repository(self.fleet.repository.open().await);
        let wires = ProcessConnections::observed_by(self.write_monitor.clone());
        let running = self.fleet.start_from_origin(origin, &wires, |_| {});
        self.write_monitor.process_started();
        self.last_wake = Instant::now();
        let (witness, mut overview) = (self.write_monitor.clone(), running.overview.clone());
        let observer = tokio::spawn(async move {
            while overview.changed().await.is_ok() {
                let now = overview.borrow_and_update().clone();
                witness.record_overview(&now);
                // A head that was just read is rendered in the same moment.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let now = overview.borrow().clone();
                witness.record_overview(&now);
                witness.check_healthy_targets(&now);
            }
        });
        self.process = Some(ChaosProcess { running, wires, observer });
    }

    /// Replaces a process that has died.
    async fn replace_dead_process(&mut self) {
        if self.process.as_ref().is_some_and(|process| process.wires.is_dead()) {
            self.crash().await;
        }
    }

    async fn crash(&mut self) {
        let Some(ChaosProcess { running, wires, observer }) = self.process.take() else { return };
        self.write_monitor.log_line("crash");
        wires.die_after(0);
        running.kill().await;
        observer.abort();
        self.start().await;
    }

    async fn step(&mut self, step: &ChaosStep) {
        self.report.steps += 1;
        self.write_monitor.record_overview(&self.overview());
        match step {
            ChaosStep::Commit { changes, told } => {
                let mut wanted = self.desired.clone();
                let done: Vec<String> =
                    changes.iter().filter_map(|change| change.apply(&mut wanted)).collect();
                for change in changes {
                    self.report.count(&format!("commit {:?}", change.kind));
                }
                self.commit(wanted, &done.join(", "), *told);
            }
            ChaosStep::Edit(edit) => {
                let clusters: Vec<Sandbox> = self.fleet.clusters.values().cloned().collect();
                let Some(sandbox) = pick(&clusters, edit.cluster) else { return };
                let done =
                    edit.apply(&self.desired, sandbox, &mut self.write_monitor.state.lock().external_changes);
                if let Some(done) = done {
                    self.report.count(&format!("edit {:?}", edit.kind));
                    self.write_monitor.log_line(&done);
                }
            }
            ChaosStep::Fault { cluster, trouble, per_mille, lasting } => {
                let names: Vec<String> = self.fleet.clusters.keys().cloned().collect();
                let Some(name) = pick(&names, *cluster) else { return };
                self.write_monitor
                    .log_line(&format!("{trouble:?} {per_mille}/1000 on {name} for {lasting:?}"));
                self.report.count_fault(*trouble);
                {
                    let mut state = self.write_monitor.state.lock();
                    state.fault_starts.entry(name.clone()).or_insert_with(Instant::now);
                    if *trouble == ClusterFault::StaleList {
                        state.stale_clusters.insert(name.clone());
                        state.ever_stale_clusters.insert(name.clone());
                    }
                }
                let troubles = self.troubles.entry(name.clone()).or_default();
                troubles.add(self.fleet.cluster(name), *trouble, *per_mille, *lasting);
            }
            ChaosStep::Crash { writes } => {
                self.report.count("crash");
                match &self.process {
                    Some(process) if *writes > 0 => {
                        self.write_monitor.log_line(&format!("crash after {writes} writes"));
                        process.wires.die_after(*writes);
                    }
                    _ => self.crash().await,
                }
            }
            ChaosStep::Restart => {
                self.report.count("restart");
                self.write_monitor.log_line("restart");
                let Some(process) = self.process.take() else { return };
                process.running.stop().await;
                process.wires.die_after(0);
                process.observer.abort();
                self.start().await;
            }
            ChaosStep::Fetch => self.wake(),
            ChaosStep::Approve => {
                self.report.count("approve");
                self.approve();
            }
        }
    }

    fn wake(&mut self) {
        self.last_wake = Instant::now();
        if let Some(process) = &self.process {
            self.write_monitor.record_wake();
            // A full queue wakes the process too.
            let _ = process.running.wake.try_send(());
        }
    }

    fn commit(&mut self, wanted: DesiredRepository, words: &str, told: bool) {
        // A fetch at this very moment reads it.
        let told = told || self.last_wake == Instant::now();
        let files = wanted.files();
        let gone =
            self.files.keys().filter(|path| !files.contains_key(*path)).map(|path| (path.as_str(), None));
        let new = files.iter().filter(|(path, text)| self.files.get(*path) != Some(text));
        let changes: Vec<FileTextChange<'_>> =
            gone.chain(new.map(|(path, text)| (path.as_str(), Some(text.as_str())))).collect();
        if changes.is_empty() {
            return;
        }
        self.head = self.fleet.repository.commit(words, &changes);
        self.report.commits += 1;
        self.write_monitor.log_line(&format!(
            "commit {} {words}{}",
            self.head.short(),
            if told { "" } else { " (unseen)" }
        ));
        self.write_monitor.record_commit(&self.head, &wanted, Some(&self.desired));
        (self.desired, self.files) = (wanted, files);
        if told {
            self.wake();
        }
    }

    /// Approves the deletes that wait.
    fn approve(&mut self) {
        let Some(process) = &self.process else { return };
        let asked = process.running.overview.borrow().approvals_wanted.clone();
        let mut wanted = self.desired.clone();
        for approval in &asked {
            let objects = approval.objects.iter();
            wanted
                .approved_deletes
                .extend(objects.map(|object| (object.cluster.to_string(), object.uid.clone())));
            // Named as by `tutti approve`: earlier approvals of the same app stay.
            let name = format!("{}-{}", approval.name, approval.digest().short());
            let approval = Approval { name: name.clone(), ..approval.clone() };
            wanted.approvals.insert(name, approval_to_yaml(&approval));
        }
        self.commit(wanted, &format!("approve {}", asked.len()), true);
    }

    pub fn overview(&self) -> Arc<Overview> {
        let process = self.process.as_ref();
        process.map(|process| process.running.overview.borrow().clone()).unwrap_or_default()
    }

    async fn check_convergence(&mut self, schedule: &ChaosSchedule) {
        self.write_monitor.log_line("the trouble is over");
        let over = Instant::now();
        self.replace_dead_process().await;
        if let Some(process) = &self.process {
            process.wires.cancel_death();
        }
        for (name, troubles) in &mut self.troubles {
            troubles.clear(self.fleet.cluster(name));
        }
        if schedule.checks_steady_state {
            self.wake();
            tokio::time::sleep(Duration::from_secs(1_200)).await;
            self.write_monitor.log_line("a look while it is quiet");
            steady_state::check_phases(self);
        }
        let mut wanted = self.desired.clone();
        change::correct_everything(&mut wanted);
        steady_state::delete_blocking_objects(
            &wanted,
            &self.fleet.clusters,
            &mut self.write_monitor.state.lock().external_changes,
        );
        self.commit(wanted, "settle", true);
        let begin = Instant::now();
        let mut converged = self.wait_for_convergence().await;
        self.report.record_convergence(begin.elapsed());
        tokio::time::sleep_until(over + WATCH_TIMEOUT).await;
        converged = converged && self.wait_for_convergence().await;
        if converged && self.reconnect_stale_clusters().await {
            converged = self.wait_for_convergence().await;
        }
        if converged {
            self.check_end(schedule).await;
        }
        write_limits::check(self);
    }

    /// Reconnects clusters that had stale lists, or a late write. A stale list may have hidden a kind from the process that
    /// connected then, which no real server does. A write that arrives after the end of its process may follow the first read
    /// of the next one, which reads again only after hours.
    async fn reconnect_stale_clusters(&mut self) -> bool {
        let unseen = {
            let mut state = self.write_monitor.state.lock();
            let mut unseen = std::mem::take(&mut state.stale_clusters);
            unseen.append(&mut state.late_write_clusters);
            unseen
        };
        let set_down = |is_down| unseen.iter().for_each(|name| self.fleet.cluster(name).set_down(is_down));
        if unseen.is_empty() {
            return false;
        }
        self.write_monitor.log_line(&format!("{unseen:?} go and come back"));
        set_down(true);
        tokio::time::sleep(OFFLINE_TIMEOUT).await;
        set_down(false);
        true
    }

    /// Waits until everything is healthy for a while and nothing waits.
    async fn wait_for_convergence(&mut self) -> bool {
        let give_up = Instant::now() + CONVERGENCE_LIMIT;
        let mut settled = 0;
        while settled < 3 {
            tokio::time::sleep(Duration::from_secs(if settled == 0 { 15 } else { 5 })).await;
            let now = self.overview();
            let done = now.revision.as_ref() == Some(&self.head)
                && now.targets.iter().all(|target| target.phase.is_done())
                && now.deletions.is_empty();
            settled = if done { settled + 1 } else { 0 };
            if Instant::now() > give_up {
                let words = describe_overview(&now);
                self.write_monitor.violation(&format!("it does not converge: {words}"));
                return false;
            }
            if !done {
                self.approve();
                self.delete_conflicting_objects(&now);
                self.delete_kept_objects(&now);
            }
        }
        true
    }

    /// A person resolves a conflict between a commit and an edit by deleting the object. That is needed only if somebody
    /// removed what marks a field as ours.
    fn delete_conflicting_objects(&mut self, overview: &Overview) {
        for target in overview.targets.iter().filter(|target| target.phase == TargetPhase::Refused) {
            let object = target
                .detail
                .strip_prefix("failed to apply ")
                .and_then(|rest| rest.split_once(": conflict with"));
            let Some((object, _)) = object else { continue };
            let Some(name) = ChaosObjectId::from_display_name(object) else { continue };
            let place = (target.cluster.to_string(), name.path());
            let mut state = self.write_monitor.state.lock();
            if state.external_changes.without_markers.contains(&place)
                && !state.external_changes.deleted_conflicts.contains(&place)
            {
                let sandbox = self.fleet.cluster(target.cluster.as_str());
                for (inside, _) in live_state::managed_contents(sandbox, &name) {
                    state.external_changes.record_edit((place.0.clone(), inside.path()));
                }
                direct_client::delete(sandbox, &place.1);
                state.external_changes.record_edit(place.clone());
                state.external_changes.deleted_conflicts.insert(place);
                drop(state);
                self.report.count("conflict resolved by a person");
                self.write_monitor.log_line(&format!("a person deletes {object}, which is in conflict"));
            }
        }
    }

    /// A person deletes kept objects that block the delete of their container.
    fn delete_kept_objects(&mut self, overview: &Overview) {
        for deletion in &overview.deletions {
            let Some(name) = ChaosObjectId::from_display_name(&deletion.object) else { continue };
            let cluster = deletion.cluster.as_str();
            for (kept, live) in live_state::managed_contents(self.fleet.cluster(cluster), &name) {
                let is_wanted = self.desired.owners(cluster, &kept).next().is_some();
                if is_wanted || live["metadata"]["annotations"]["tutti.dev/prune"] != "keep" {
                    continue;
                }
                direct_client::delete(self.fleet.cluster(cluster), &kept.path());
                let place = (cluster.to_owned(), kept.path());
                self.write_monitor.state.lock().external_changes.record_edit(place);
                self.report.count("kept object deleted by a person");
                self.write_monitor.log_line(&format!("a person deletes {kept}, which was to stay"));
            }
        }
    }

    async fn check_end(&mut self, schedule: &ChaosSchedule) {
        for sandbox in self.fleet.clusters.values() {
            let state = self.write_monitor.state.lock();
            let differences = live_state::differences(&self.desired, sandbox, &state.external_changes);
            drop(state);
            differences.iter().for_each(|words| self.write_monitor.violation(words));
        }
        let untrue = wrong_head_statuses(&self.overview(), &self.head);
        untrue.iter().for_each(|words| self.write_monitor.violation(words));
        self.write_monitor.state.lock().requests.clear();
        tokio::time::sleep(schedule.idle).await;
        let requests = std::mem::take(&mut self.write_monitor.state.lock().requests);
        if !requests.is_empty() {
            self.write_monitor
                .violation(&format!("{} requests while nothing happens: {requests:?}", requests.len()));
        }
    }

    fn outcome(mut self) -> ChaosOutcome {
        let mut state = self.write_monitor.state.lock();
        for sandbox in self.fleet.clusters.values() {
            self.report.add_hit_requests(&sandbox.fault_counts());
        }
        self.report.refused_connections += state.refused_connections;
        self.report.requests += state.request_count;
        self.report.max_failed_writes = state.retries.check(&state.external_changes.edit_times).0;
        self.report.processes += state.processes as u64;
        let violations = std::mem::take(&mut state.violations);
        let log = std::mem::take(&mut state.log);
        drop(state);
        ChaosOutcome { violations, log, report: self.report }
    }

    pub fn clusters(&self) -> &BTreeMap<String, Sandbox> {
        &self.fleet.clusters
    }
}

/// The statuses of the last commit that are not success, once everything agrees with it.
pub fn wrong_head_statuses(overview: &Overview, head: &Revision) -> Vec<String> {
    let statuses = statuses::desired_statuses(overview);
    let of_head: Vec<_> = statuses.iter().filter(|((revision, _), _)| revision == head).collect();
    if of_head.is_empty() {
        return vec!["the last commit has no status".to_owned()];
    }
    let not_well = of_head.into_iter().filter(|(_, status)| status.state.as_str() != "success");
    not_well
        .map(|((_, context), status)| format!("{context} is {:?}: {}", status.state, status.description))
        .collect()
}
