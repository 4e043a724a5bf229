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

use super::Outcome;
use super::fleet::{APP, Said, image};
use super::schedule::{Schedule, Step};
use crate::chaos::draw::pick;
use crate::chaos::hands;
use crate::support::fleet::{Fleet, Running, described};
use crate::support::oracle::{Event, Oracle};
use crate::support::repository::{Change, TestRepository};
use crate::support::wires::Wires;

/// How long the end may take, in the time of a cluster.
const PATIENCE: Duration = Duration::from_secs(6 * 3_600);
const JUMP: Duration = Duration::from_secs(1_500);
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

struct Run<'a> {
    schedule: &'a Schedule,
    fleet: Fleet,
    oracle: Arc<Oracle>,
    process: Option<(Running, Wires)>,
    said: Said,
    files: BTreeMap<String, String>,
    newest: u64,
    versions: Vec<u64>,
    /// Digests with waves that a person was asked to confirm.
    asked: Vec<(String, String)>,
    began: Instant,
    log: Vec<(Duration, String)>,
    violations: Vec<String>,
}

pub async fn run(schedule: &Schedule) -> Outcome {
    let mut run = Run::begin(schedule);
    run.start().await;
    run.settle(Duration::from_secs(60)).await;
    for (gap, step) in &schedule.steps {
        tokio::time::sleep(*gap).await;
        run.revive().await;
        run.step(*step).await;
    }
    run.end().await;
    let waves = [schedule.plan.waves()];
    let mut violations = run.oracle.violations(&waves);
    violations.append(&mut run.violations);
    let story = run.oracle.story();
    let mut writes = 0;
    let mut log = std::mem::take(&mut run.log);
    for (at, event) in &story.events {
        let Event::Write(write) = event else { continue };
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
    Outcome { violations, log: log.into_iter().map(line).collect(), writes }
}

impl<'a> Run<'a> {
    fn begin(schedule: &'a Schedule) -> Self {
        let options = |name: &str| {
            let seed = name.bytes().fold(schedule.seed, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
            let start = Duration::from_secs(schedule.slow);
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
        let repository = TestRepository::within(&folder);
        let oracle = Arc::new(Oracle::new(clusters.clone()));
        let said = Said::begin();
        let files = schedule.plan.files(&said);
        let changes: Vec<Change<'_>> = files.iter().map(|(path, text)| (&**path, Some(&**text))).collect();
        let begin = repository.commit("Begin", &changes);
        oracle.committed(&begin, &snapshot(&files));
        Self {
            schedule,
            fleet: Fleet { repository, begin, clusters, charts: Arc::default() },
            oracle,
            process: None,
            said,
            files,
            newest: 1,
            versions: vec![1],
            asked: Vec::new(),
            began: Instant::now(),
            log: Vec::new(),
            violations: Vec::new(),
        }
    }

    fn say(&mut self, words: &str) {
        self.log.push((self.began.elapsed(), words.to_owned()));
    }

    async fn start(&mut self) {
        let origin = ManifestOrigin::Repository(self.fleet.repository.open().await);
        let wires = Wires::seen_by(self.oracle.clone());
        let running = self.fleet.start_from(origin, &wires, |_| {});
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
    async fn revive(&mut self) {
        if self.process.as_ref().is_some_and(|(_, wires)| wires.is_dead()) {
            self.say("the process is dead");
            self.kill(false).await;
        }
    }

    fn overview(&self) -> Arc<Overview> {
        self.process.as_ref().map(|(running, _)| running.overview.borrow().clone()).unwrap_or_default()
    }

    async fn commit(&mut self, said: Said, words: &str) {
        let files = self.schedule.plan.files(&said);
        let gone = self.files.keys().filter(|path| !files.contains_key(*path)).map(|path| (&**path, None));
        let new = files.iter().filter(|(path, text)| self.files.get(*path) != Some(text));
        let changes: Vec<Change<'_>> = gone.chain(new.map(|(path, text)| (&**path, Some(&**text)))).collect();
        if changes.is_empty() {
            return;
        }
        let revision = self.fleet.repository.commit(words, &changes);
        self.oracle.committed(&revision, &snapshot(&files));
        self.say(&format!("commit {} {words}", revision.short()));
        (self.said, self.files) = (said, files);
        if let Some((running, _)) = &self.process {
            // A full queue wakes the process too.
            let _ = running.wake.try_send(());
        }
    }

    async fn step(&mut self, step: Step) {
        self.note_asked();
        let mut said = self.said.clone();
        match step {
            Step::Version => {
                self.newest += 1;
                self.versions.push(self.newest);
                (said.version, said.green) = (self.newest, None);
                self.commit(said, &format!("version {}", self.newest)).await;
            }
            Step::Back(steps) => {
                let place = self.versions.len().saturating_sub(1 + steps as usize);
                let version = self.versions[place];
                self.versions.push(version);
                (said.version, said.green) = (version, None);
                self.commit(said, &format!("back to {version}")).await;
            }
            Step::Green => {
                self.newest += 1;
                said.green = Some(self.newest);
                self.commit(said, &format!("green {}", self.newest)).await;
            }
            Step::Replicas(replicas) => {
                said.replicas = replicas;
                self.commit(said, &format!("{replicas} pods")).await;
            }
            Step::Port => {
                said.port = 80 + (said.port + 1) % 10;
                self.commit(said, "port").await;
            }
            Step::Note => {
                said.note += 1;
                self.commit(said, "note").await;
            }
            Step::Pause | Step::Resume => {
                said.paused = step == Step::Pause;
                self.commit(said, &format!("{step:?}")).await;
            }
            Step::Maintain(number) => {
                said.maintained.extend(pick(&self.schedule.plan.clusters(), number).cloned());
                self.commit(said, "maintain").await;
            }
            Step::EndMaintenance => {
                said.maintained.clear();
                self.commit(said, "end of maintenance").await;
            }
            Step::Confirm => self.confirm().await,
            Step::StaleConfirm(number) => {
                if let Some((digest, through)) = pick(&self.asked.clone(), number) {
                    self.word(digest, Some(through), "stale word").await;
                }
            }
            Step::Retry => {
                if let Some(rollout) = rollout(&self.overview()) {
                    self.word(&rollout.digest.to_string(), None, "retry").await;
                }
            }
            Step::Break(number) => self.break_image(number),
            Step::Mend => self.mend(),
            Step::Down(number) => {
                if let Some(cluster) = pick(&self.schedule.plan.clusters(), number) {
                    self.say(&format!("{cluster} is down"));
                    self.fleet.cluster(cluster).set_down(true);
                    self.oracle.note(Event::Down(cluster.clone()));
                }
            }
            Step::Up => self.up(),
            Step::Kill(0) => {
                self.say("kill");
                self.kill(false).await;
            }
            Step::Kill(writes) => {
                self.say(&format!("dies after {writes} writes"));
                if let Some((_, wires)) = &self.process {
                    wires.die_after(writes);
                }
            }
            Step::Wipe => {
                self.say("kill and wipe");
                self.kill(true).await;
            }
            Step::Delete(number) | Step::Edit(number) => self.touch(step, number),
            Step::Jump => {
                self.say("a long time");
                tokio::time::sleep(JUMP).await;
            }
        }
    }

    fn note_asked(&mut self) {
        let now = self.overview();
        let confirmation = rollout(&now).and_then(|rollout| rollout.confirmation.as_ref());
        if let Some(asked) = confirmation {
            let asked = (asked.digest.to_string(), asked.through.clone());
            if !self.asked.contains(&asked) {
                self.asked.push(asked);
            }
        }
    }

    async fn confirm(&mut self) {
        let now = self.overview();
        let asked = rollout(&now).and_then(|rollout| rollout.confirmation.clone());
        if let Some(asked) = asked {
            self.word(&asked.digest.to_string(), Some(&asked.through), "confirm").await;
        }
    }

    /// One file for each version and wave; a rewritten one is a newer approval.
    async fn word(&mut self, digest: &str, through: Option<&str>, words: &str) {
        let mut said = self.said.clone();
        let name = format!("pay-{}", through.unwrap_or("again"));
        let action =
            through.map_or("action: retry".to_owned(), |it| format!("action: rollout, through: {it}"));
        said.note += 1;
        let text = format!(
            "# {}\napiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {{name: {name}}}\nspec: {{app: {APP}, \
             {action}, digest: {digest}}}\n",
            said.note
        );
        said.words.insert(name, text);
        self.commit(said, &format!("{words} {} {}", &digest[..8], through.unwrap_or("-"))).await;
    }

    fn break_image(&mut self, number: u64) {
        let Some(cluster) = pick(&self.schedule.plan.clusters(), number).cloned() else { return };
        let rules = format!("rules: [{{image: '{}', fail: crash-loop}}]", image(self.newest));
        self.say(&format!("version {} crashes on {cluster}", self.newest));
        self.fleet.cluster(&cluster).set_scenario(Scenario::parse(&rules).expect("a scenario"));
        self.oracle.note(Event::Disturbed);
    }

    fn mend(&mut self) {
        self.say("nothing crashes");
        for sandbox in self.fleet.clusters.values() {
            sandbox.set_scenario(Scenario::default());
        }
        self.oracle.note(Event::Disturbed);
    }

    fn up(&mut self) {
        self.say("all clusters are up");
        for (name, sandbox) in &self.fleet.clusters {
            sandbox.set_down(false);
            self.oracle.note(Event::Up(name.clone()));
        }
    }

    fn touch(&mut self, step: Step, number: u64) {
        let Some(cluster) = pick(&self.schedule.plan.clusters(), number).cloned() else { return };
        let sandbox = self.fleet.cluster(&cluster);
        let workloads = hands::list(sandbox, DEPLOYMENTS, "tutti.dev/managed-by=main");
        let Some(name) = pick(&workloads, number / 7).and_then(|it| it["metadata"]["name"].as_str()) else {
            return;
        };
        let path = format!("{DEPLOYMENTS}/{name}");
        if matches!(step, Step::Delete(_)) {
            hands::delete(sandbox, &path);
        } else {
            let evil: Value = json!({"spec": {"template": {"spec": {"containers": [{"name": "pay", "image": "evil:9", "ports": [{"containerPort": 8080}]}]}}}});
            hands::merge(sandbox, "kubectl-edit", &path, &evil);
        }
        self.oracle.note(Event::Disturbed);
        let words = format!("{step:?} of {name} on {cluster}");
        self.say(&words);
    }

    /// Ends all faults, commits a last version, and confirms what waits.
    async fn end(&mut self) {
        self.revive().await;
        if let Some((_, wires)) = &self.process {
            wires.live_on();
        }
        self.say("the end");
        self.mend();
        self.up();
        self.newest += 1;
        let last = Said {
            version: self.newest,
            paused: false,
            green: None,
            maintained: Default::default(),
            ..self.said.clone()
        };
        self.commit(last, "the last version").await;
        self.settle(PATIENCE).await;
        let waves = [self.schedule.plan.waves()];
        let behind = self.oracle.behind(&waves);
        if !behind.is_empty() {
            let words = format!("{} at the end: {}", behind.join(", "), described(&self.overview()));
            self.violations.push(words);
        }
    }

    /// Waits until everything runs at the head for a while.
    async fn settle(&mut self, most: Duration) {
        let give_up = Instant::now() + most;
        let mut settled = 0;
        while settled < 3 && Instant::now() < give_up {
            tokio::time::sleep(Duration::from_secs(15)).await;
            self.revive().await;
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
