//! A fleet for tests: embedded clusters, a config repository, and the controller between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{RequestRecord, Sandbox, SandboxOptions};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tutti::analysis;
use tutti::chart;
use tutti::cluster::{ClusterLink, HomeCluster, WritePermit};
use tutti::controller::{
    self, ConfigHead, ControllerInputs, ControllerOutputs, ControllerSettings, ManifestOrigin,
    RepositoryGrants, RunEnding, RunUntil,
};
use tutti::forge::ForgeHostRules;
use tutti::metrics::Metrics;
use tutti::model::{Connection, DecryptionKeys, Hosts, Instance, InstanceMode, Revision};
use tutti::report::{Overview, TargetReport};

use super::connections::ProcessConnections;
use super::manifests;
use super::repository::{FileTextChange, TestRepository};

/// The longest wait of a test, on its own clock: a paused one passes it at once.
pub const WAIT_LIMIT: Duration = Duration::from_secs(900);

/// The forge of a test is local, and its token is in a file of the test's folder.
pub fn local_grants() -> RepositoryGrants {
    let forge = ForgeHostRules::new(".", Hosts::new(["127.0.0.1"]), Hosts::default());
    RepositoryGrants {
        forge,
        folder: Some(std::env::temp_dir()),
        analysis_hosts: Hosts::new(["127.0.0.1"]),
        ..RepositoryGrants::default()
    }
}

pub struct TestFleet {
    pub repository: TestRepository,
    pub first_commit: Revision,
    pub clusters: BTreeMap<String, Sandbox>,
    pub charts: Arc<chart::ChartService>,
}

impl TestFleet {
    /// Clusters whose pods are ready at once, and a repository with `files` and a manifest for each
    /// cluster.
    pub fn new(clusters: &[&str], files: &[(&str, &str)]) -> Self {
        Self::with_options(clusters, files, |name| SandboxOptions::instant(name))
    }

    pub fn with_options(
        clusters: &[&str],
        files: &[(&str, &str)],
        options: fn(&str) -> SandboxOptions,
    ) -> Self {
        let repository = TestRepository::empty();
        let manifests: Vec<(String, String)> = clusters
            .iter()
            .map(|name| (format!("clusters/{name}.yaml"), manifests::cluster(name)))
            .chain([("tutti.yaml".to_owned(), manifests::INSTANCE.to_owned())])
            .collect();
        let mut all: BTreeMap<&str, &str> =
            manifests.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        all.extend(files.iter().copied());
        let changes: Vec<FileTextChange<'_>> =
            all.into_iter().map(|(path, text)| (path, Some(text))).collect();
        let begin = repository.commit("Begin", &changes);
        let clusters =
            clusters.iter().map(|name| ((*name).to_owned(), Sandbox::new(options(name)))).collect();
        Self { repository, first_commit: begin, clusters, charts: Arc::default() }
    }

    pub fn cluster(&self, name: &str) -> &Sandbox {
        &self.clusters[name]
    }

    pub async fn start(&self) -> RunningController {
        self.start_with(&ProcessConnections::unlimited(), |_| {}).await
    }

    pub async fn start_with(
        &self,
        wires: &ProcessConnections,
        change: impl FnOnce(&mut ControllerSettings),
    ) -> RunningController {
        let origin = ManifestOrigin::Repository(self.repository.open().await);
        self.start_from_origin(origin, wires, change)
    }

    pub fn start_from_origin(
        &self,
        origin: ManifestOrigin,
        wires: &ProcessConnections,
        change: impl FnOnce(&mut ControllerSettings),
    ) -> RunningController {
        let (clusters, wires) = (self.clusters.clone(), wires.clone());
        let folder = self.repository.path().to_owned();
        let links: controller::LinkResolver = Arc::new(move |cluster| {
            match (clusters.get(cluster.name.as_str()), &cluster.connection) {
                (Some(sandbox), _) => wires.link(sandbox),
                // A cluster that the test has not made is reached as its manifest says.
                (None, Connection::Kubeconfig { path, context }) => {
                    ClusterLink::Kubeconfig { path: folder.join(path), context: context.clone() }
                }
                (None, other) => panic!("no way to {}: {other:?}", cluster.name),
            }
        });
        let mut settings = ControllerSettings {
            origin,
            link_resolver: links,
            home: HomeCluster::default(),
            grants: Arc::new(local_grants()),
            charts: Arc::clone(&self.charts),
            keys: DecryptionKeys::default(),
            until: RunUntil::Stopped,
            mode: None,
            dry_runs: false,
            posts_statuses: true,
            permit: WritePermit::default(),
            is_standby: false,
            metrics: Metrics::default(),
        };
        change(&mut settings);
        let (wake, wakes) = mpsc::channel(8);
        let (hint, hints) = mpsc::channel(8);
        let (overview, seen) = watch::channel(Arc::default());
        let (instance, instances) = watch::channel(None);
        let (head, heads) = watch::channel(None);
        let stop = CancellationToken::new();
        let elected = CancellationToken::new();
        let (measure, measured) = watch::channel(Arc::default());
        let of_analysis = analysis::AnalysisSettings {
            home: settings.home.clone(),
            grants: Arc::clone(&settings.grants),
            metrics: settings.metrics.clone(),
        };
        let of_stop = stop.clone();
        let beside = analysis::AnalysisInputs {
            head: heads.clone(),
            overview: seen.clone(),
            outcomes: measure,
            elected: elected.clone(),
            stop: of_stop,
        };
        if !settings.is_standby {
            elected.cancel();
        }
        tokio::spawn(analysis::run(of_analysis, beside));
        let inputs = ControllerInputs {
            wakes,
            hints,
            measurements: measured,
            elected: elected.clone(),
            stop: stop.clone(),
        };
        let task =
            tokio::spawn(controller::run(settings, inputs, ControllerOutputs { overview, instance, head }));
        RunningController {
            overview: seen,
            instance: instances,
            head: heads,
            wake,
            hint,
            election: elected,
            stop,
            task,
        }
    }

    /// Commits, and wakes the controller.
    pub async fn push(
        &self,
        running: &RunningController,
        subject: &str,
        changes: &[FileTextChange<'_>],
    ) -> Revision {
        let revision = self.repository.commit(subject, changes);
        running.wake.send(()).await.expect("it runs");
        revision
    }

    /// Requests of all clusters since [`Self::clear_requests`], without watches and probes. A watch that begins with a
    /// list counts: its verb is `stream`.
    pub fn requests(&self) -> Vec<(String, RequestRecord)> {
        let of_interest = |record: &RequestRecord| !record.is_watch() && record.resource != "/version";
        self.all_requests().into_iter().filter(|(_, record)| of_interest(record)).collect()
    }

    /// All requests, also watches and probes.
    pub fn all_requests(&self) -> Vec<(String, RequestRecord)> {
        let as_counted = |mut record: RequestRecord| {
            if record.is_watch() && record.query.contains("sendInitialEvents=true") {
                "stream".clone_into(&mut record.verb);
            }
            record
        };
        let of_all = self.clusters.iter();
        of_all
            .flat_map(|(name, sandbox)| {
                sandbox.requests().into_iter().map(|record| (name.clone(), as_counted(record)))
            })
            .collect()
    }

    /// Those requests, as `2 apply configmaps` each, sorted.
    pub fn request_counts(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, record) in self.requests() {
            *counts.entry(format!("{} {}", record.verb, record.resource)).or_default() += 1;
        }
        counts.into_iter().map(|(what, number)| format!("{number} {what}")).collect()
    }

    pub fn clear_requests(&self) {
        for sandbox in self.clusters.values() {
            sandbox.reset_requests();
        }
    }
}

/// Of [`TestFleet::request_counts`]: a start reads existing objects, as a stream or page by page.
pub fn is_list(counted: &str) -> bool {
    counted.contains(" stream ") || counted.contains(" list ")
}

/// A running controller.
pub struct RunningController {
    pub overview: watch::Receiver<Arc<Overview>>,
    pub instance: watch::Receiver<Option<Arc<Instance>>>,
    pub head: watch::Receiver<Option<Arc<ConfigHead>>>,
    pub wake: mpsc::Sender<()>,
    pub hint: mpsc::Sender<tutti::forge::WebhookHint>,
    /// Makes a standby process the leader.
    pub election: CancellationToken,
    pub stop: CancellationToken,
    task: JoinHandle<(RunEnding, Arc<Overview>)>,
}

impl RunningController {
    /// Waits until the overview meets a condition.
    pub async fn until(&self, what: &str, mut done: impl FnMut(&Overview) -> bool) -> Arc<Overview> {
        let mut seen = self.overview.clone();
        let found = tokio::time::timeout(WAIT_LIMIT, seen.wait_for(|now| done(now))).await;
        let described = describe_overview(&self.overview.borrow());
        match found {
            Ok(Ok(overview)) => Arc::clone(&overview),
            Ok(Err(_)) => panic!("it ended before {what}: {described}"),
            Err(_) => panic!("it never came to {what}: {described}"),
        }
    }

    /// Waits until everything of this revision is healthy and nothing waits to be deleted, for two
    /// seconds: right after a push the healthy state is still that of the revision before.
    pub async fn until_converged(&self, revision: &Revision) -> Arc<Overview> {
        let done = |now: &Overview| {
            now.revision.as_ref() == Some(revision)
                && !now.targets.is_empty()
                && now.targets.iter().all(|target| target.phase.is_done())
                && now.deletions.is_empty()
        };
        loop {
            self.until(&format!("all healthy at {}", revision.short()), done).await;
            let moved = self.until("something else", |now| !done(now));
            if tokio::time::timeout(Duration::from_secs(2), moved).await.is_err() {
                return Arc::clone(&self.overview.borrow());
            }
        }
    }

    /// Stops the controller in order.
    pub async fn stop(self) -> (RunEnding, Arc<Overview>) {
        self.stop.cancel();
        self.until_ended().await
    }

    /// Waits until the controller ends by itself.
    pub async fn until_ended(self) -> (RunEnding, Arc<Overview>) {
        tokio::time::timeout(WAIT_LIMIT, self.task).await.expect("it ends").expect("it does not panic")
    }

    /// Ends the controller like SIGKILL; pass [`ProcessConnections`] that die, or pending requests continue.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled(), "it panicked before");
    }
}

/// `bj shop/web Running`, one line for each target.
pub fn phases(overview: &Overview) -> Vec<String> {
    overview
        .targets
        .iter()
        .map(|target| format!("{} {} {}", target.cluster, target.app, target.phase.as_str()))
        .collect()
}

pub fn target<'a>(overview: &'a Overview, cluster: &str, app: &str) -> &'a TargetReport {
    let found =
        overview.targets.iter().find(|it| it.cluster.as_str() == cluster && it.app.to_string() == app);
    found.unwrap_or_else(|| panic!("no {app} on {cluster}: {}", describe_overview(overview)))
}

/// Long enough for all expected and unexpected effects.
pub async fn wait_for_effects() {
    tokio::time::sleep(Duration::from_secs(120)).await;
}

/// Why each object is deleted, or why not yet, as programs read it: `code` and its fields.
pub fn deletion_causes(overview: &Overview) -> Vec<Value> {
    let causes = overview.deletions.iter().map(|it| serde_json::to_value(&it.cause));
    causes.collect::<Result<_, _>>().expect("causes as JSON")
}

/// Only plans, whatever the repository says.
pub fn set_observe_mode(settings: &mut ControllerSettings) {
    settings.mode = Some(InstanceMode::Observe);
}

/// The details that a failed test prints.
pub fn describe_overview(overview: &Overview) -> String {
    let mut lines = vec![format!("revision {:?}, {:?}", overview.revision, overview.source_error)];
    lines.extend(overview.clusters.iter().map(|it| format!("{} {} {}", it.name, it.state, it.detail)));
    lines.extend(
        overview
            .targets
            .iter()
            .map(|it| format!("{} {} {} {}", it.cluster, it.app, it.phase.as_str(), it.detail)),
    );
    lines.extend(overview.deletions.iter().map(|it| format!("{} {}: {}", it.cluster, it.object, it.reason)));
    lines.extend(overview.diagnostics.iter().map(ToString::to_string));
    lines.join("\n  ")
}
