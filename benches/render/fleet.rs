//! A large fleet, from Git to objects: cold, and commit by commit.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tutti::fleet::{Fleet, assemble};
use tutti::manifest;
use tutti::model::{NoCharts, Snapshot};
use tutti::render::{FleetRenderer, RenderCache, Renders};
use tutti::source::{ConfigRepository, GitCredentials, SourceOptions};

use crate::figure;
use crate::repository::{component, of_components, path_of, with_cluster_layers, with_names_of_clusters};

const APPS: usize = 10_000;
const CLUSTERS: usize = 10;
const COMMITS: usize = 20;

/// Reads and renders one revision after the other, as the controller does.
struct RevisionReader {
    repository: ConfigRepository,
    runtime: tokio::runtime::Runtime,
    manifests: manifest::ManifestCache,
    renders: RenderCache,
}

/// How long the steps of one revision took.
struct RevisionTimes {
    snapshot: Duration,
    read: Duration,
    assemble: Duration,
    render: Duration,
}

impl RevisionReader {
    fn open(path: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let options = SourceOptions {
            url: path.display().to_string(),
            branch: None,
            path: ".".to_owned(),
            outside_file_lister: manifest::listed_beside,
            credentials: GitCredentials::default(),
            state_folder: path.join(".git"),
        };
        let repository = runtime.block_on(ConfigRepository::open(options)).expect("a repository");
        Self {
            repository,
            runtime,
            manifests: manifest::ManifestCache::default(),
            renders: RenderCache::default(),
        }
    }

    fn revision(&mut self) -> (Renders, RevisionTimes) {
        let tip = self.runtime.block_on(self.repository.fetch()).expect("a tip");
        let (snapshot, of_snapshot) =
            timed(|| self.runtime.block_on(self.repository.snapshot(&tip)).expect("a snapshot"));
        let (manifests, read) = timed(|| manifest::read_incremental(&snapshot, &mut self.manifests));
        let (fleet, assembled) = timed(|| assemble(manifests, &snapshot));
        assert!(fleet.is_valid(), "{:?}", fleet.diagnostics.first());
        let (renders, render) =
            timed(|| FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut self.renders));
        assert!(renders.results().all(Result::is_ok));
        (renders, RevisionTimes { snapshot: of_snapshot, read, assemble: assembled, render })
    }
}

impl RevisionTimes {
    fn total(&self) -> Duration {
        self.snapshot + self.read + self.assemble + self.render
    }

    fn say(&self, what: &str) {
        let Self { snapshot, read, assemble, render } = self;
        println!(
            "{what}: snapshot {snapshot:.1?}, manifests {read:.1?}, fleet {assemble:.1?}, render {render:.1?}"
        );
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let made = work();
    (made, start.elapsed())
}

/// How many objects come out of the shipped layers: all that the targets have, and, of them, those that were made anew.
pub fn throughput() {
    let shared = of_components(APPS, CLUSTERS);
    let apart = with_names_of_clusters(of_components(APPS / 5, CLUSTERS));
    for (name, snapshot) in [("objects_per_second", shared), ("unshared_objects_per_second", apart)] {
        let fleet = fleet(&snapshot);
        let (renders, took) = timed(|| {
            FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default())
        });
        let objects: usize =
            renders.results().map(|result| result.as_ref().expect("a render").objects.len()).sum();
        println!(
            "{} targets, {objects} objects, {} renders: {took:.1?}",
            renders.results().count(),
            renders.render_count
        );
        figure(name, objects as f64 / took.as_secs_f64(), "1/s");
    }
}

fn fleet(snapshot: &Snapshot) -> Fleet {
    let fleet = assemble(manifest::read(snapshot), snapshot);
    assert!(fleet.is_valid(), "{:?}", fleet.diagnostics.first());
    fleet
}

/// Cold from a repository in Git, then commits of one app and of a cluster layer.
pub fn commits() {
    let folder = tempfile::tempdir().expect("a folder");
    commit_all(folder.path(), &with_cluster_layers(of_components(APPS, CLUSTERS)));
    let mut reader = RevisionReader::open(folder.path());
    let (renders, steps) = reader.revision();
    steps.say("cold");
    println!("{} renders for {} targets", renders.render_count, renders.results().count());
    figure("cold_10000x10_s", steps.total().as_secs_f64(), "s");
    figure("cold_10000x10_peak_mib", peak(), "MiB");

    let mut took: Vec<Duration> = (0..COMMITS)
        .map(|number| {
            write(folder.path(), &path_of(number * 7), &component(number * 7, "2.0.0"));
            commit(folder.path());
            let (renders, steps) = reader.revision();
            // The zones have layers of their own, and the first cluster has one more.
            assert_eq!(renders.render_count, 3, "one app on three kinds of clusters");
            if number == 0 {
                steps.say("one app");
            }
            steps.total()
        })
        .collect();
    took.sort();
    figure("one_app_of_10000_ms", took[took.len() / 2].as_secs_f64() * 1e3, "ms");
    figure("one_app_of_10000_worst_ms", took[took.len() - 1].as_secs_f64() * 1e3, "ms");

    write(folder.path(), "templates/cluster/first/values.yaml", "env: {FIRST: \"2\"}\n");
    commit(folder.path());
    let (renders, steps) = reader.revision();
    steps.say("a layer of one cluster");
    assert_eq!(renders.render_count, APPS, "every app on that cluster, and nothing else");
    figure("cluster_layer_renders", renders.render_count as f64, "renders");
    figure("cluster_layer_ms", steps.total().as_secs_f64() * 1e3, "ms");
}

/// The same cold, but no cluster has anything in common with another.
pub fn unshared() {
    let folder = tempfile::tempdir().expect("a folder");
    commit_all(folder.path(), &with_names_of_clusters(of_components(APPS, CLUSTERS)));
    let (renders, steps) = RevisionReader::open(folder.path()).revision();
    steps.say("cold, nothing shared");
    assert_eq!(renders.render_count, APPS * CLUSTERS);
    figure("cold_unshared_10000x10_s", steps.total().as_secs_f64(), "s");
    figure("cold_unshared_10000x10_peak_mib", peak(), "MiB");
}

fn commit_all(folder: &Path, snapshot: &Snapshot) {
    for (path, file) in &*snapshot.files {
        write(folder, path, std::str::from_utf8(&file.content).expect("a text"));
    }
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["config", "user.name", "bench"]);
    git(folder, &["config", "user.email", "bench@example.com"]);
    commit(folder);
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("written");
}

fn commit(folder: &Path) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "change"]);
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git").arg("-C").arg(folder).args(arguments).status().expect("git");
    assert!(status.success(), "git {arguments:?}");
}

/// The most memory that this process ever had.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    let kib: f64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number");
    kib / 1024.0
}
