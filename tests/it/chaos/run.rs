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
use super::draw::pick;
use super::object::Name;
use super::report::Report;
use super::schedule::{Schedule, Step};
use super::trouble::{Trouble, Troubles};
use super::wanted::Wanted;
use super::witness::Witness;
use super::{budget, hands, quiet, truth};
use crate::support::fleet::{Fleet, Running, described};
use crate::support::repository::{Change, TestRepository};
use crate::support::wires::Wires;

/// The duration of a request without a fault.
const LATENCY: Duration = Duration::from_millis(1);
/// The sum of the longest pauses of all retries.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The time from the definition of a kind until it is served.
const UNTIL_SERVED: Duration = Duration::from_secs(5);
/// The server ends a silent watch after this time, and missed changes are read.
const SILENT: Duration = Duration::from_secs(400);

/// A cluster that does not answer for this long is offline, and is connected to again.
const OFFLINE: Duration = Duration::from_secs(40);

pub struct Run {
    fleet: Fleet,
    pub wanted: Wanted,
    pub witness: Arc<Witness>,
    files: BTreeMap<String, String>,
    head: Revision,
    troubles: BTreeMap<String, Troubles>,
    process: Option<Process>,
    /// The last time that tutti was told to fetch.
    woken: Instant,
    report: Report,
}

struct Process {
    running: Running,
    wires: Wires,
    observer: JoinHandle<()>,
}

/// The result of a schedule.
pub struct Outcome {
    pub violations: Vec<String>,
    pub log: Vec<String>,
    pub report: Report,
}

pub async fn run(schedule: &Schedule) -> Outcome {
    let mut run = Run::begin(schedule);
    tokio::time::sleep(UNTIL_SERVED).await;
    run.start().await;
    for (gap, step) in &schedule.steps {
        tokio::time::sleep(*gap).await;
        run.revive().await;
        run.step(step).await;
    }
    run.end(schedule).await;
    run.outcome()
}

impl Run {
    fn begin(schedule: &Schedule) -> Self {
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
            schedule.begin.clusters.keys().map(|name| (name.clone(), Sandbox::new(options(name))));
        let clusters: BTreeMap<String, Sandbox> = sandboxes.collect();
        for sandbox in clusters.values() {
            sandbox.set_latency(LATENCY);
        }
        let witness = Arc::new(Witness::new(clusters.clone()));
        quiet::neighbours(&clusters, &mut witness.state.lock().traces);
        // A file on disk would take most of the time.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let repository = TestRepository::within(&folder);
        let files = schedule.begin.files();
        let changes: Vec<Change<'_>> =
            files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        let begin = repository.commit("Begin", &changes);
        witness.committed(&begin, &schedule.begin, None);
        Self {
            fleet: Fleet { repository, begin: begin.clone(), clusters, charts: Arc::default() },
            wanted: schedule.begin.clone(),
            witness,
            files,
            head: begin,
            troubles: BTreeMap::new(),
            process: None,
            woken: Instant::now(),
            report: Report::default(),
        }
    }

    async fn start(&mut self) {
        // A new process keeps nothing of the one before, not even its clone.
        let origin = ManifestOrigin::Repository(self.fleet.repository.open().await);
        let wires = Wires::seen_by(self.witness.clone());
        let running = self.fleet.start_from(origin, &wires, |_| {});
        self.witness.follows();
        self.woken = Instant::now();
        let (witness, mut overview) = (self.witness.clone(), running.overview.clone());
        let observer = tokio::spawn(async move {
            while overview.changed().await.is_ok() {
                let now = overview.borrow_and_update().clone();
                witness.sees(&now);
                // A head that was just read is rendered in the same moment.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let now = overview.borrow().clone();
                witness.sees(&now);
                witness.is_told_the_truth(&now);
            }
        });
        self.process = Some(Process { running, wires, observer });
    }

    /// Replaces a process that has died.
    async fn revive(&mut self) {
        if self.process.as_ref().is_some_and(|process| process.wires.is_dead()) {
            self.crash().await;
        }
    }

    async fn crash(&mut self) {
        let Some(Process { running, wires, observer }) = self.process.take() else { return };
        self.witness.say("crash");
        wires.die_after(0);
        running.kill().await;
        observer.abort();
        self.start().await;
    }

    async fn step(&mut self, step: &Step) {
        self.report.steps += 1;
        self.witness.sees(&self.overview());
        match step {
            Step::Commit { changes, told } => {
                let mut wanted = self.wanted.clone();
                let done: Vec<String> =
                    changes.iter().filter_map(|change| change.apply(&mut wanted)).collect();
                for change in changes {
                    self.report.count(&format!("commit {:?}", change.what));
                }
                self.commit(wanted, &done.join(", "), *told);
            }
            Step::Edit(edit) => {
                let clusters: Vec<Sandbox> = self.fleet.clusters.values().cloned().collect();
                let Some(sandbox) = pick(&clusters, edit.cluster) else { return };
                let done = edit.apply(&self.wanted, sandbox, &mut self.witness.state.lock().traces);
                if let Some(done) = done {
                    self.report.count(&format!("edit {:?}", edit.what));
                    self.witness.say(&done);
                }
            }
            Step::Trouble { cluster, trouble, per_mille, lasting } => {
                let names: Vec<String> = self.fleet.clusters.keys().cloned().collect();
                let Some(name) = pick(&names, *cluster) else { return };
                self.witness.say(&format!("{trouble:?} {per_mille}/1000 on {name} for {lasting:?}"));
                self.report.inject(*trouble);
                {
                    let mut state = self.witness.state.lock();
                    state.troubled.entry(name.clone()).or_insert_with(Instant::now);
                    if *trouble == Trouble::StaleList {
                        state.stale.insert(name.clone());
                        state.misled.insert(name.clone());
                    }
                }
                let troubles = self.troubles.entry(name.clone()).or_default();
                troubles.begin(self.fleet.cluster(name), *trouble, *per_mille, *lasting);
            }
            Step::Crash { writes } => {
                self.report.count("crash");
                match &self.process {
                    Some(process) if *writes > 0 => {
                        self.witness.say(&format!("crash after {writes} writes"));
                        process.wires.die_after(*writes);
                    }
                    _ => self.crash().await,
                }
            }
            Step::Restart => {
                self.report.count("restart");
                self.witness.say("restart");
                let Some(process) = self.process.take() else { return };
                process.running.stop().await;
                process.wires.die_after(0);
                process.observer.abort();
                self.start().await;
            }
            Step::Wake => self.wake(),
            Step::Approve => {
                self.report.count("approve");
                self.approve();
            }
        }
    }

    fn wake(&mut self) {
        self.woken = Instant::now();
        if let Some(process) = &self.process {
            self.witness.wakes();
            // A full queue wakes the process too.
            let _ = process.running.wake.try_send(());
        }
    }

    fn commit(&mut self, wanted: Wanted, words: &str, told: bool) {
        // A fetch at this very moment reads it.
        let told = told || self.woken == Instant::now();
        let files = wanted.files();
        let gone =
            self.files.keys().filter(|path| !files.contains_key(*path)).map(|path| (path.as_str(), None));
        let new = files.iter().filter(|(path, text)| self.files.get(*path) != Some(text));
        let changes: Vec<Change<'_>> =
            gone.chain(new.map(|(path, text)| (path.as_str(), Some(text.as_str())))).collect();
        if changes.is_empty() {
            return;
        }
        self.head = self.fleet.repository.commit(words, &changes);
        self.report.commits += 1;
        self.witness.say(&format!(
            "commit {} {words}{}",
            self.head.short(),
            if told { "" } else { " (unseen)" }
        ));
        self.witness.committed(&self.head, &wanted, Some(&self.wanted));
        (self.wanted, self.files) = (wanted, files);
        if told {
            self.wake();
        }
    }

    /// Approves the deletes that wait.
    fn approve(&mut self) {
        let Some(process) = &self.process else { return };
        let asked = process.running.overview.borrow().approvals_wanted.clone();
        let mut wanted = self.wanted.clone();
        for approval in &asked {
            let objects = approval.objects.iter();
            wanted.approved.extend(objects.map(|object| (object.cluster.to_string(), object.uid.clone())));
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

    async fn end(&mut self, schedule: &Schedule) {
        self.witness.say("the trouble is over");
        let over = Instant::now();
        self.revive().await;
        if let Some(process) = &self.process {
            process.wires.live_on();
        }
        for (name, troubles) in &mut self.troubles {
            troubles.end(self.fleet.cluster(name));
        }
        if schedule.looks_before_settling {
            self.wake();
            tokio::time::sleep(Duration::from_secs(1_200)).await;
            self.witness.say("a look while it is quiet");
            quiet::look(self);
        }
        let mut wanted = self.wanted.clone();
        change::settle(&mut wanted);
        quiet::strangers_go(&wanted, &self.fleet.clusters, &mut self.witness.state.lock().traces);
        self.commit(wanted, "settle", true);
        let begin = Instant::now();
        let mut converged = self.converge().await;
        self.report.converged_after(begin.elapsed());
        tokio::time::sleep_until(over + SILENT).await;
        converged = converged && self.converge().await;
        if converged && self.connect_anew().await {
            converged = self.converge().await;
        }
        if converged {
            self.check_end(schedule).await;
        }
        budget::check(self);
    }

    /// Reconnects clusters that had stale lists, or a late write. A stale list may have hidden a kind from the process that
    /// connected then, which no real server does. A write that arrives after the end of its process may follow the first read
    /// of the next one, which reads again only after hours.
    async fn connect_anew(&mut self) -> bool {
        let unseen = {
            let mut state = self.witness.state.lock();
            let mut unseen = std::mem::take(&mut state.stale);
            unseen.append(&mut state.late);
            unseen
        };
        let set_down = |is_down| unseen.iter().for_each(|name| self.fleet.cluster(name).set_down(is_down));
        if unseen.is_empty() {
            return false;
        }
        self.witness.say(&format!("{unseen:?} go and come back"));
        set_down(true);
        tokio::time::sleep(OFFLINE).await;
        set_down(false);
        true
    }

    /// Waits until everything is healthy for a while and nothing waits.
    async fn converge(&mut self) -> bool {
        let give_up = Instant::now() + PATIENCE;
        let mut settled = 0;
        while settled < 3 {
            tokio::time::sleep(Duration::from_secs(if settled == 0 { 15 } else { 5 })).await;
            let now = self.overview();
            let done = now.revision.as_ref() == Some(&self.head)
                && now.targets.iter().all(|target| target.phase.is_done())
                && now.deletions.is_empty();
            settled = if done { settled + 1 } else { 0 };
            if Instant::now() > give_up {
                let words = described(&now);
                self.witness.violation(&format!("it does not converge: {words}"));
                return false;
            }
            if !done {
                self.approve();
                self.resolve(&now);
                self.tidy(&now);
            }
        }
        true
    }

    /// A person resolves a conflict between a commit and an edit by deleting the object. That is needed only if somebody
    /// removed what marks a field as ours.
    fn resolve(&mut self, overview: &Overview) {
        for target in overview.targets.iter().filter(|target| target.phase == TargetPhase::Refused) {
            let object = target
                .detail
                .strip_prefix("failed to apply ")
                .and_then(|rest| rest.split_once(": conflict with"));
            let Some((object, _)) = object else { continue };
            let Some(name) = Name::of_words(object) else { continue };
            let place = (target.cluster.to_string(), name.path());
            let mut state = self.witness.state.lock();
            if state.traces.unmarked.contains(&place) && !state.traces.resolved.contains(&place) {
                let sandbox = self.fleet.cluster(target.cluster.as_str());
                for (inside, _) in truth::inside(sandbox, &name) {
                    state.traces.edited((place.0.clone(), inside.path()));
                }
                hands::delete(sandbox, &place.1);
                state.traces.edited(place.clone());
                state.traces.resolved.insert(place);
                drop(state);
                self.report.count("conflict resolved by a person");
                self.witness.say(&format!("a person deletes {object}, which is in conflict"));
            }
        }
    }

    /// A person deletes kept objects that block the delete of their container.
    fn tidy(&mut self, overview: &Overview) {
        for deletion in &overview.deletions {
            let Some(name) = Name::of_words(&deletion.object) else { continue };
            let cluster = deletion.cluster.as_str();
            for (kept, live) in truth::inside(self.fleet.cluster(cluster), &name) {
                let is_wanted = self.wanted.owners(cluster, &kept).next().is_some();
                if is_wanted || live["metadata"]["annotations"]["tutti.dev/prune"] != "keep" {
                    continue;
                }
                hands::delete(self.fleet.cluster(cluster), &kept.path());
                let place = (cluster.to_owned(), kept.path());
                self.witness.state.lock().traces.edited(place);
                self.report.count("kept object deleted by a person");
                self.witness.say(&format!("a person deletes {kept}, which was to stay"));
            }
        }
    }

    async fn check_end(&mut self, schedule: &Schedule) {
        for sandbox in self.fleet.clusters.values() {
            let state = self.witness.state.lock();
            let differences = truth::differences(&self.wanted, sandbox, &state.traces);
            drop(state);
            differences.iter().for_each(|words| self.witness.violation(words));
        }
        let untrue = statuses_of_head(&self.overview(), &self.head);
        untrue.iter().for_each(|words| self.witness.violation(words));
        self.witness.state.lock().requests.clear();
        tokio::time::sleep(schedule.idle).await;
        let requests = std::mem::take(&mut self.witness.state.lock().requests);
        if !requests.is_empty() {
            self.witness
                .violation(&format!("{} requests while nothing happens: {requests:?}", requests.len()));
        }
    }

    fn outcome(mut self) -> Outcome {
        let mut state = self.witness.state.lock();
        for sandbox in self.fleet.clusters.values() {
            self.report.strike(&sandbox.fault_counts());
        }
        self.report.refused += state.refused;
        self.report.requests += state.total;
        self.report.most_failed = state.pace.check(&state.traces.edits).0;
        self.report.processes += state.processes as u64;
        let violations = std::mem::take(&mut state.violations);
        let log = std::mem::take(&mut state.log);
        drop(state);
        Outcome { violations, log, report: self.report }
    }

    pub fn clusters(&self) -> &BTreeMap<String, Sandbox> {
        &self.fleet.clusters
    }
}

/// The statuses of the last commit that are not success, once everything agrees with it.
pub fn statuses_of_head(overview: &Overview, head: &Revision) -> Vec<String> {
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
