//! From `git push` to the last PATCH: one app changed, four real clusters, a real Gitea that calls a hook.
//!
//! Beside it, from the same run, what the machine itself takes: `git push` alone, and one PATCH on each of
//! the four clusters side by side. `TUTTI_BENCH_PUSHES` says how many pushes; 60 without it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/revisions.rs"]
mod revisions;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/live/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use revisions::{SeenRevision, client, watch_all, write_app};
use support::{HOOK_SECRET, LiveFixture, configmap, print_uncaptured};
use tokio::sync::mpsc;

/// The first pushes warm connections and caches; they are not counted.
const WARM_UP: usize = 3;

/// When each step of one push was over.
struct PushTimes {
    start: SystemTime,
    /// `git push` returned.
    returned: SystemTime,
    /// The webhook was accepted; `read` and `patched` may well come before `git push` returns.
    hook: SystemTime,
    /// The revision was read and checked.
    read: SystemTime,
    /// The last of the four clusters had the object.
    patched: SystemTime,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let pushes = std::env::var("TUTTI_BENCH_PUSHES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let Some(scene) = LiveFixture::new("push-benchmark", 4).await else { return };
    scene.write_instance("poll: 2h");
    write_app(&scene, 0);
    let first = scene.worktree.publish("first");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    scene.gitea().create_hook(scene.name(), &scene.hook_url(), HOOK_SECRET, &["push"]).await.expect("a hook");

    let mut seen = watch_all(scene.clusters(), scene.name()).await;
    let mut measured = Vec::new();
    for number in 1..=WARM_UP + pushes {
        let push = push_once(&scene, &mut seen, number).await;
        if number > WARM_UP {
            measured.push(push);
        }
    }
    let process = scene.running(|tutti| tutti.id());
    report(&measured);
    floor(&scene, pushes).await;
    println!("figure run_rss_mib {:.1} MiB", resident_mib(process, "VmRSS:"));
    println!("figure run_rss_peak_mib {:.1} MiB", resident_mib(process, "VmHWM:"));
    binary_size(&scene.folder());
}

async fn push_once(
    scene: &LiveFixture,
    seen: &mut mpsc::UnboundedReceiver<SeenRevision>,
    number: usize,
) -> PushTimes {
    write_app(scene, number);
    let commit = scene.worktree.commit(&format!("web {number}"));
    let start = SystemTime::now();
    let returned = tokio::task::block_in_place(|| {
        scene.worktree.push();
        SystemTime::now()
    });
    let mut missing = scene.clusters().len();
    let mut patched = start;
    let arrival = async {
        while missing > 0 {
            let one = seen.recv().await.expect("the watches go on");
            if one.revision == commit {
                missing -= 1;
                patched = patched.max(one.at);
            }
        }
    };
    let arrived = tokio::time::timeout(Duration::from_secs(60), arrival).await;
    assert!(arrived.is_ok(), "push {number}: {missing} clusters without it");
    // The next push comes to a quiet fleet, as a person's does.
    scene.until_succeeded(&commit).await;
    let log = scene.running(|tutti| tutti.log());
    let at = |words: &str, id: &str| {
        let line = log.lines().find(|line| line.contains(words) && line.contains(id));
        let line = line.unwrap_or_else(|| panic!("no line {words:?} for {id}"));
        let stamp = line.split_whitespace().next().expect("a first word");
        SystemTime::from(stamp.parse::<jiff::Timestamp>().expect("a time stamp"))
    };
    let hook = at("webhook accepted", &commit);
    let read = at("read the config repository", &commit[..7]);
    PushTimes { start, returned, hook, read, patched }
}

/// The time of the bare requests.
async fn floor(scene: &LiveFixture, times: usize) {
    let clients = join_all(scene.clusters().iter().map(|cluster| client(cluster.kubeconfig()))).await;
    let maps: Vec<Api<ConfigMap>> =
        clients.into_iter().map(|client| Api::namespaced(client, scene.name())).collect();
    let parameters = PatchParams::apply("floor");
    let mut durations = Vec::new();
    for number in 0..WARM_UP + times {
        let body = Patch::Apply(configmap("floor", "number", &number.to_string()));
        let start = SystemTime::now();
        for answer in join_all(maps.iter().map(|maps| maps.patch("floor", &parameters, &body))).await {
            answer.expect("a PATCH");
        }
        if number >= WARM_UP {
            durations.push(milliseconds(start, SystemTime::now()));
        }
    }
    figures("patch_on_four_clusters", durations);
}

fn report(pushes: &[PushTimes]) {
    print_uncaptured(&format!(
        "{:>6} {:>6} {:>6} {:>6} {:>6}  ms from the start",
        "push", "hook", "read", "patch", ""
    ));
    for push in pushes {
        let since = |end| milliseconds(push.start, end).round();
        let (returned, hook, read, patched) =
            (since(push.returned), since(push.hook), since(push.read), since(push.patched));
        print_uncaptured(&format!("{returned:>6} {hook:>6} {read:>6} {patched:>6}"));
    }
    let all = |between: fn(&PushTimes) -> (SystemTime, SystemTime)| -> Vec<f64> {
        pushes.iter().map(between).map(|(start, end)| milliseconds(start, end)).collect()
    };
    println!("figure pushes {} pushes", pushes.len());
    figures("push_to_last_patch", all(|push| (push.start, push.patched)));
    figures("hook_to_last_patch", all(|push| (push.hook, push.patched)));
    figures("push_returned_to_last_patch", all(|push| (push.returned, push.patched)));
    figures("push_to_hook", all(|push| (push.start, push.hook)));
    figures("hook_to_read", all(|push| (push.hook, push.read)));
    figures("read_to_last_patch", all(|push| (push.read, push.patched)));
    figures("git_push", all(|push| (push.start, push.returned)));
}

fn figures(name: &str, mut durations: Vec<f64>) {
    durations.sort_by(f64::total_cmp);
    for (suffix, part) in [("p50", 0.50), ("p99", 0.99)] {
        let rank = (durations.len() as f64 * part).ceil() as usize;
        let value = durations.get(rank.saturating_sub(1)).expect("at least one measurement");
        println!("figure {name}_{suffix}_ms {value:.1} ms");
    }
}

/// Negative when the end came first, by less than the clocks' grain.
fn milliseconds(start: SystemTime, end: SystemTime) -> f64 {
    match end.duration_since(start) {
        Ok(duration) => duration.as_secs_f64() * 1000.0,
        Err(error) => -error.duration().as_secs_f64() * 1000.0,
    }
}

fn resident_mib(process: u32, key: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("a line of memory");
    let kibibytes: f64 = line.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number");
    kibibytes / 1024.0
}

/// Of what a release ships when it was built, else of this benchmark's binary without its symbols.
fn binary_size(folder: &Path) {
    let built = Path::new(env!("CARGO_BIN_EXE_tutti"));
    let dist = built.parent().and_then(Path::parent).map(|target| target.join("dist/tutti"));
    let (name, path) = match dist.filter(|path| path.exists()) {
        Some(path) => ("binary_mib", path),
        None => {
            let stripped = folder.join("stripped");
            let done = Command::new("strip").arg("-o").arg(&stripped).arg(built).status();
            if !done.is_ok_and(|status| status.success()) {
                return;
            }
            ("binary_release_stripped_mib", stripped)
        }
    };
    let bytes = fs::metadata(path).expect("a file").len();
    println!("figure {name} {:.1} MiB", bytes as f64 / (1024.0 * 1024.0));
}
