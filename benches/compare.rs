//! The cost of comparing a pull request: one app of 10,000 changed, base in memory.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;
#[path = "render/repository.rs"]
#[allow(dead_code, reason = "other benchmarks use the rest")]
mod repository;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tutti::compare::{ComparedRevision, ComparisonCache, compare, fleet_after};
use tutti::manifest;
use tutti::model::NoCharts;
use tutti::render::DiscoveredCapabilities;
use tutti::report::{PlanCommentContext, plan_comment};
use tutti::source::{ConfigRepository, GitCredentials, SourceOptions};

const APPS: usize = 10_000;
const CLUSTERS: usize = 40;
const CHANGED: usize = 4711;
const ROUNDS: usize = 5;
/// Beside the time of the forge. The whole way from the delivery has 2 s.
const MOST_MS: f64 = 1000.0;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(folder.path()));
    goals::check();
}

/// A repository with the base on `main`, one more commit there, and a head that changes one app.
fn write(folder: &Path) {
    let snapshot = repository::with_cluster_layers(repository::of_components(APPS, CLUSTERS));
    for path in snapshot.files.keys() {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, snapshot.text(path).expect("a text")).expect("written");
    }
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A"]);
    commit(folder, "base");
    git(folder, &["branch", "head"]);
    fs::write(folder.join(repository::path_of(1)), repository::component(1, "1.0.1")).expect("written");
    commit(folder, "more");
    git(folder, &["checkout", "-q", "head"]);
    for round in 0..ROUNDS {
        let tag = format!("2.{round}.0");
        fs::write(folder.join(repository::path_of(CHANGED)), repository::component(CHANGED, &tag))
            .expect("written");
        commit(folder, &tag);
    }
    git(folder, &["checkout", "-q", "main"]);
}

fn commit(folder: &Path, message: &str) {
    git(folder, &["-c", "user.name=Li", "-c", "user.email=li@example.com", "commit", "-qam", message]);
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git").arg("-C").arg(folder).args(arguments).status().expect("git");
    assert!(status.success(), "{arguments:?}");
}

async fn measure(folder: &Path) {
    let options = SourceOptions {
        url: folder.display().to_string(),
        branch: Some("main".to_owned()),
        path: ".".to_owned(),
        outside_file_lister: manifest::listed_beside,
        credentials: GitCredentials::None,
        state_folder: folder.join(".state"),
    };
    let repository = ConfigRepository::open(options).await.expect("opened");
    let base = repository.fetch().await.expect("fetched");
    let before = repository.snapshot(&base).await.expect("read");
    let mut reading = manifest::ManifestCache::default();
    let fleet = fleet_after(&before, &mut reading, None);
    assert!(fleet.is_valid(), "{:?}", fleet.diagnostics);
    // Who deploys knows what the apps of the base define.
    let mut kept = ComparisonCache::default();
    kept.set_defined(&base, tutti::render::DefinedKindsByCluster::new());
    let mut worst: f64 = 0.0;
    for round in 0..ROUNDS {
        let head = repository.resolve(&format!("head~{}", ROUNDS - 1 - round)).await.expect("a commit");
        let begun = Instant::now();
        let merged = repository.preview_merge(&base, &head).await.expect("merged");
        let merge = ms(begun);
        let after = fleet_after(&merged.snapshot, &mut reading, Some(&fleet));
        let read = ms(begun);
        let side = |fleet, snapshot| ComparedRevision {
            fleet,
            snapshot,
            charts: &NoCharts,
            discovered: DiscoveredCapabilities::new(),
        };
        let plan = compare(&side(&fleet, &before), &side(&after, &merged.snapshot), &mut kept, None);
        let compared = ms(begun);
        let names = PlanCommentContext {
            prefix: "tutti".to_owned(),
            base: "main".to_owned(),
            head: "head".to_owned(),
            url: None,
        };
        let comment = plan_comment(&plan, &names);
        let all = ms(begun);
        assert_eq!((plan.apps.len(), plan.errors.len()), (1, 0), "{comment}");
        assert!(comment.contains("2."), "{comment}");
        println!(
            "round {round}: {all:.0} ms ({merge:.0} merged, {:.0} read, {:.0} compared, {:.0} written), {} renders",
            read - merge,
            compared - read,
            all - compared,
            plan.renders
        );
        assert!(plan.renders <= 8, "{} renders", plan.renders);
        worst = worst.max(all);
    }
    goals::at_most("pull_plan_ms", worst, "ms", MOST_MS);
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}
