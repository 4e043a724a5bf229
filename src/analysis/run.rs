//! Runs one task for each measurement that the overview requires.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::evaluation::{
    AnalysisExpressions, MeasurementAnswer, MeasurementTally, MeasurementVerdict, UnclearCount,
};
use super::probe::Prober;
use super::statuses::{CommitStatusReader, CommitStatusSource};
use crate::cluster::HomeCluster;
use crate::controller::{ConfigHead, RepositoryGrants};
use crate::metrics::Metrics;
use crate::model::{Analysis, AnalysisSpec, AppId, ClusterName, Probe, Revision};
use crate::report::{ClusterReport, Overview, RolloutReport, TargetReport, UnitReport, version};
use crate::rollout::{AllMeasurementOutcomes, Measurement, MeasurementGate, MeasurementOutcome, RolloutHold};

/// Queued reports of tasks.
const QUEUED_REPORTS: usize = 256;

#[derive(Debug)]
pub struct AnalysisSettings {
    pub home: HomeCluster,
    pub grants: Arc<RepositoryGrants>,
    pub metrics: Metrics,
}

#[derive(Debug)]
pub struct AnalysisInputs {
    pub head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub overview: watch::Receiver<Arc<Overview>>,
    /// Outcomes of measurements.
    pub outcomes: watch::Sender<Arc<AllMeasurementOutcomes>>,
    /// Cancelled when this process leads; until then another one measures.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

type MeasurementKey = (AppId, Measurement);

#[derive(Clone, Debug, PartialEq)]
enum MeasurementJob {
    /// `None`: there is no such analysis.
    Analysis(Option<Arc<Analysis>>),
    Status {
        context: String,
        commit: Option<Revision>,
        place: Arc<CommitStatusSource>,
        /// A status that is missing after this time needs a person.
        deadline: Duration,
    },
}

struct RunningMeasurement {
    number: u64,
    job: MeasurementJob,
    /// Dropping it ends the task.
    _task: AbortOnDropHandle<()>,
}

struct MeasurementReport {
    key: MeasurementKey,
    number: u64,
    outcome: MeasurementOutcome,
}

struct MeasurementContext {
    /// Created for the first request.
    prober: OnceLock<Result<Prober, String>>,
    grants: Arc<RepositoryGrants>,
    home: HomeCluster,
    reader: CommitStatusReader,
    overview: watch::Receiver<Arc<Overview>>,
    reports: mpsc::Sender<MeasurementReport>,
}

/// Runs until it is stopped.
pub async fn run(settings: AnalysisSettings, mut inputs: AnalysisInputs) {
    let stop = inputs.stop.clone();
    let work = async {
        inputs.elected.cancelled().await;
        let (reports, mut received) = mpsc::channel(QUEUED_REPORTS);
        let AnalysisSettings { home, grants, metrics } = settings;
        let reader = CommitStatusReader::new(Arc::clone(&grants), home.clone(), metrics);
        let shared = Arc::new(MeasurementContext {
            prober: OnceLock::new(),
            grants,
            home,
            reader,
            overview: inputs.overview.clone(),
            reports,
        });
        let mut jobs = RunningMeasurements { shared, running: BTreeMap::new(), number: 0 };
        loop {
            remove_outcomes(&jobs.update_tasks(&mut inputs), &inputs.outcomes);
            tokio::select! {
                Ok(()) = inputs.head.changed() => {}
                Ok(()) = inputs.overview.changed() => {}
                Some(report) = received.recv() => jobs.publish_report(report, &inputs.outcomes),
                else => return,
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Removes outcomes that no rollout needs, or that are measured anew.
fn remove_outcomes(ended: &[MeasurementKey], measured: &watch::Sender<Arc<AllMeasurementOutcomes>>) {
    measured.send_if_modified(|all| {
        let has = |(app, measure): &&MeasurementKey| all.get(app).is_some_and(|of| of.contains_key(measure));
        if !ended.iter().any(|key| has(&key)) {
            return false;
        }
        let all = Arc::make_mut(all);
        for (app, measure) in ended {
            all.get_mut(app).and_then(|of| of.remove(measure));
        }
        all.retain(|_, of| !of.is_empty());
        true
    });
}

struct RunningMeasurements {
    shared: Arc<MeasurementContext>,
    running: BTreeMap<MeasurementKey, RunningMeasurement>,
    number: u64,
}

impl RunningMeasurements {
    /// Starts required tasks, ends others, and returns the keys of the ended ones.
    fn update_tasks(&mut self, inputs: &mut AnalysisInputs) -> Vec<MeasurementKey> {
        let Some(head) = inputs.head.borrow_and_update().clone() else { return Vec::new() };
        let overview = inputs.overview.borrow_and_update().clone();
        let wanted = required_jobs(&overview, &head);
        let is_over =
            |key: &MeasurementKey, running: &mut RunningMeasurement| wanted.get(key) != Some(&running.job);
        let ended: Vec<MeasurementKey> = self.running.extract_if(.., is_over).map(|(key, _)| key).collect();
        for (key, job) in wanted {
            if self.running.contains_key(&key) {
                continue;
            }
            self.number += 1;
            let task = tokio::spawn(run_job(Arc::clone(&self.shared), key.clone(), self.number, job.clone()));
            let running =
                RunningMeasurement { number: self.number, job, _task: AbortOnDropHandle::new(task) };
            self.running.insert(key, running);
        }
        ended
    }

    /// Publishes the report of a running task.
    fn publish_report(
        &self,
        report: MeasurementReport,
        measured: &watch::Sender<Arc<AllMeasurementOutcomes>>,
    ) {
        let MeasurementReport { key, number, outcome } = report;
        if self.running.get(&key).is_none_or(|running| running.number != number) {
            return;
        }
        let (app, measure) = key;
        measured.send_if_modified(|all| {
            if all.get(&app).and_then(|of| of.get(&measure)) == Some(&outcome) {
                return false;
            }
            let name = match &measure.gate {
                MeasurementGate::Analysis(name) | MeasurementGate::Status(name) => name,
            };
            tracing::info!(%app, wave = measure.wave, name, ?outcome, "measured after a wave");
            Arc::make_mut(all).entry(app.clone()).or_default().insert(measure.clone(), outcome.clone());
            true
        });
    }
}

fn required_jobs(overview: &Overview, head: &ConfigHead) -> BTreeMap<MeasurementKey, MeasurementJob> {
    let mut wanted = BTreeMap::new();
    for rollout in &overview.rollouts {
        for measured in &rollout.measures {
            let job = match &measured.measure.gate {
                MeasurementGate::Analysis(name) => {
                    MeasurementJob::Analysis(head.fleet.analyses.get(name).cloned())
                }
                MeasurementGate::Status(context) => MeasurementJob::Status {
                    context: context.clone(),
                    commit: commit_of(rollout, &measured.measure.wave),
                    place: Arc::new(CommitStatusSource::of(&head.fleet.instance)),
                    deadline: { head.fleet.apps.get(&rollout.app) }
                        .map(|app| app.rollout.deadline())
                        .unwrap_or_default(),
                },
            };
            wanted.insert((rollout.app.clone(), measured.measure.clone()), job);
        }
    }
    wanted
}

/// The commit of a wave: that of its newest unit.
pub(super) fn commit_of(rollout: &RolloutReport, wave: &str) -> Option<Revision> {
    let of_wave = rollout.units.iter().filter(|unit| unit.wave == wave && unit.is_at_head);
    let newest = of_wave.filter(|unit| unit.revision.is_some()).max_by_key(|unit| unit.since);
    newest.and_then(|unit| unit.revision.clone()).or_else(|| rollout.commit.clone())
}

async fn run_job(shared: Arc<MeasurementContext>, key: MeasurementKey, number: u64, job: MeasurementJob) {
    let say = async |outcome: MeasurementOutcome| {
        // A closed queue means that measuring has stopped.
        let _ = shared.reports.send(MeasurementReport { key: key.clone(), number, outcome }).await;
    };
    match job {
        MeasurementJob::Status { commit: None, .. } => {
            say(MeasurementOutcome::Inconclusive("the commit of the wave is not known".into())).await;
        }
        MeasurementJob::Status { context, commit: Some(commit), place, deadline } => {
            let (began, mut unclear) = (Instant::now(), UnclearCount::default());
            loop {
                let is_late = began.elapsed() >= deadline;
                let outcome = match shared.reader.outcome(&place, &commit, &context, is_late).await {
                    Ok(outcome) => {
                        unclear = UnclearCount::default();
                        outcome
                    }
                    Err(why) => unclear.add(&why),
                };
                say(outcome).await;
                tokio::time::sleep(place.pause).await;
            }
        }
        MeasurementJob::Analysis(None) => {
            say(MeasurementOutcome::Inconclusive("no Analysis of this name is below policies/".into())).await;
        }
        MeasurementJob::Analysis(Some(analysis)) => match &analysis.spec {
            None => say(MeasurementOutcome::Inconclusive("its manifest has an error".into())).await,
            Some(spec) => {
                let mut tally = MeasurementTally::default();
                tokio::time::sleep(spec.initial_delay).await;
                loop {
                    let outcome = tally.add(spec, &take_measurement(&shared, &key, spec).await);
                    let is_over =
                        matches!(outcome, MeasurementOutcome::Success(_) | MeasurementOutcome::Failure(_));
                    say(outcome).await;
                    if is_over {
                        return;
                    }
                    tokio::time::sleep(spec.interval).await;
                }
            }
        },
    }
}

async fn take_measurement(
    shared: &MeasurementContext,
    (app, measure): &MeasurementKey,
    spec: &AnalysisSpec,
) -> MeasurementVerdict {
    let overview = shared.overview.borrow().clone();
    let Some(rollout) = overview.rollout_of(app) else {
        return MeasurementVerdict::Unclear("the rollout is not known".to_owned());
    };
    let subject = MeasuredWave::of(&overview, rollout, &measure.wave);
    if subject.units.is_empty() {
        return MeasurementVerdict::Unclear("no cluster of the wave takes part".to_owned());
    }
    let prober = shared.prober.get_or_init(|| Prober::new(Arc::clone(&shared.grants), shared.home.clone()));
    let prober = match prober {
        Ok(prober) => prober,
        Err(why) => return MeasurementVerdict::NotAsked(format!("the HTTP client cannot be created: {why}")),
    };
    let answer = match prober.prepare(&spec.probe, &subject.values()).await {
        Ok(None) => Ok(MeasurementAnswer::Units(subject.units())),
        Ok(Some(ready)) => match tokio::time::timeout(spec.timeout, ready.send()).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer after {} s", spec.timeout.as_secs())),
        },
        Err(verdict) => return verdict,
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return MeasurementVerdict::Unclear(why),
    };
    match AnalysisExpressions::of(spec) {
        Ok(judge) => judge.evaluate(&answer),
        Err(why) => MeasurementVerdict::Unclear(why),
    }
}

/// The units of one wave, on clusters that answer.
pub(super) struct MeasuredWave<'a> {
    app: &'a AppId,
    wave: &'a str,
    units: Vec<(&'a UnitReport, Option<&'a TargetReport>)>,
}

impl<'a> MeasuredWave<'a> {
    pub(super) fn of(overview: &'a Overview, rollout: &'a RolloutReport, wave: &'a str) -> Self {
        let clusters: BTreeSet<&ClusterName> =
            rollout.units.iter().filter(|it| it.wave == wave).map(|it| &it.unit.cluster).collect();
        let targets: BTreeMap<&ClusterName, &TargetReport> = overview
            .targets
            .iter()
            .filter(|it| it.app == rollout.app && clusters.contains(&it.cluster))
            .map(|it| (&it.cluster, it))
            .collect();
        // The last observation of an offline or unread cluster says nothing about the version.
        let answers = |it: &&ClusterReport| it.state == "Ready";
        let is_unread = |unit: &UnitReport| matches!(unit.hold, Some(RolloutHold::Unread));
        let answering: BTreeSet<&ClusterName> =
            overview.clusters.iter().filter(answers).map(|it| &it.name).collect();
        let of_wave = rollout.units.iter().filter(|it| it.wave == wave);
        let of_wave = of_wave.filter(|it| answering.contains(&it.unit.cluster) && !is_unread(it));
        let units = of_wave.map(|unit| (unit, targets.get(&unit.unit.cluster).copied())).collect();
        Self { app: &rollout.app, wave, units }
    }

    fn targets(&self) -> impl Iterator<Item = &'a TargetReport> {
        self.units.iter().filter_map(|(_, target)| *target)
    }

    /// The values for templates.
    pub(super) fn values(&self) -> Json {
        let joined = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join("|");
        let rings = joined(self.targets().filter_map(|target| target.ring.as_deref()).collect());
        let clusters = joined(self.units.iter().map(|(unit, _)| unit.unit.cluster.as_str()).collect());
        let version = version::merge_versions(self.units.iter().map(|unit| version_of(*unit)));
        let mut values = Probe::template_values(("", "", ""), self.wave, "", "");
        values["app"] = json!({
            "namespace": safe_value(&self.app.namespace), "name": safe_value(&self.app.name), "version": safe_value(&version),
        });
        (values["ring"], values["clusters"]) = (safe_value(&rings), safe_value(&clusters));
        values
    }

    pub(super) fn units(&self) -> Json {
        let unit = |(unit, target): &(&UnitReport, Option<&TargetReport>)| {
            let pods = target.map(|target| pods_of(unit, target)).unwrap_or_default();
            json!({
                "app": self.app.to_string(),
                "cluster": unit.unit.cluster,
                "ring": target.and_then(|target| target.ring.as_deref()).unwrap_or_default(),
                "podSet": &*unit.unit.pod_set,
                "version": version_of((unit, *target)),
                "phase": target.map(|target| target.phase.as_str()).unwrap_or_default(),
                "desired": pods.desired,
                "available": pods.available,
            })
        };
        self.units.iter().map(unit).collect()
    }
}

/// Only safe characters: the value cannot end a quoted text or change a URL. Otherwise null.
pub(super) fn safe_value(text: &str) -> Json {
    let is_safe = |it: char| it.is_ascii_alphanumeric() || "._-|".contains(it);
    if text.chars().all(is_safe) { Json::from(text) } else { Json::Null }
}

fn pods_of(unit: &UnitReport, target: &TargetReport) -> crate::model::PodCount {
    let of_set = target.pod_sets.iter().find(|set| set.name == *unit.unit.pod_set);
    of_set.map_or(target.pods, |set| set.pods)
}

fn version_of<'a>((unit, target): (&UnitReport, Option<&'a TargetReport>)) -> &'a str {
    let Some(target) = target else { return "" };
    let of_set = target.pod_sets.iter().find(|set| set.name == *unit.unit.pod_set);
    of_set.map_or(&target.version, |set| &set.version)
}
