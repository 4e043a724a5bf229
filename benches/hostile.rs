//! From `git push` to the last PATCH on two real clusters, in turns without hostile peers and beside them: a
//! cluster whose answers have no end, a chart repository likewise, and one whose answers come byte by byte.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/hostile/api_server.rs"]
mod api_server;
#[allow(dead_code, reason = "others use more of it")]
#[path = "shared/goals.rs"]
mod goals;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/support/http1.rs"]
mod http1;
#[path = "shared/revisions.rs"]
mod revisions;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/live/support/mod.rs"]
mod support;

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use api_server::{ApiAnswer, ApiServer, CHUNK};
use revisions::{SeenRevision, watch_all, write_app};
use support::{HOOK_SECRET, LiveFixture};
use tokio::sync::mpsc;

/// Turns: every other one is beside hostile peers.
const TURNS: usize = 8;
/// Pushes of a turn.
const PUSHES: usize = 8;
/// The first of a turn are not counted: what a turn changes has just been read.
const WARM_UP: usize = 2;
/// Until a push has arrived.
const PUSH_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two pushes.
const PAUSE: Duration = Duration::from_millis(700);
/// In percent of the time without hostile peers.
const MOST: f64 = 110.0;
const HOSTILE: &str = "hostile";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
    goals::check();
}

async fn measure() {
    let Some(scene) = LiveFixture::new("hostile-benchmark", 2).await else { return };
    let endless = || {
        let first = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":""#;
        ApiAnswer::endless(200, first, [b'a'; CHUNK])
    };
    let cluster = ApiServer::start(move |asked| (asked.path == "/api/v1").then(endless)).await;
    let index = || ApiAnswer::endless(200, "entries: {web: [", [b' '; CHUNK]);
    let registry = ApiServer::start(move |_| Some(index())).await;
    let drip = || ApiAnswer::endless(200, "entries: {web: [", [b' ']).pause(Duration::from_millis(200));
    let dripping = ApiServer::start(move |_| Some(drip())).await;

    let kubeconfig = scene.folder().join("hostile.yaml");
    fs::write(&kubeconfig, api_server::kubeconfig(&cluster.address)).expect("a file");
    scene.write_instance(&format!(
        "charts: {{repositories: [{{name: endless, url: '{}'}}, {{name: dripping, url: '{}'}}]}}",
        registry.address, dripping.address
    ));
    write_app(&scene, 0);
    scene.worktree.publish("first");
    scene.start(&["--cluster", &format!("{HOSTILE}={}#x", kubeconfig.display())]).await;
    let (hook, name) = (scene.hook_url(), scene.name());
    scene.gitea().create_hook(name, &hook, HOOK_SECRET, &["push"]).await.expect("a hook");

    let mut seen = watch_all(scene.clusters(), scene.name()).await;
    let (mut calm, mut attacked) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let is_attacked = turn % 2 == 1;
        write_peers(&scene, is_attacked);
        for number in 0..WARM_UP + PUSHES {
            let took = push(&scene, &mut seen, turn * (WARM_UP + PUSHES) + number + 1).await;
            if number >= WARM_UP {
                if is_attacked { &mut attacked } else { &mut calm }.push(took);
            }
        }
    }
    for (what, server) in
        [("the cluster", &cluster), ("the registry", &registry), ("the dripping one", &dripping)]
    {
        assert!(server.count(|_| true) > 0, "nobody asked {what}");
    }
    let (calm, attacked) = (median(calm), median(attacked));
    goals::figure("hostile_calm_p50_ms", calm, "ms");
    goals::figure("hostile_attacked_p50_ms", attacked, "ms");
    goals::at_most("hostile_ratio_percent", 100.0 * attacked / calm, "%", MOST);
}

/// The hostile cluster, and an app of a chart of each repository; or none of them.
fn write_peers(scene: &LiveFixture, are_there: bool) {
    let charts = ["endless", "dripping"];
    if !are_there {
        let files = [format!("clusters/{HOSTILE}.yaml")];
        let apps = charts.map(|chart| format!("apps/{chart}/app.yaml"));
        for file in files.iter().chain(&apps) {
            if scene.worktree.folder().join(file).exists() {
                scene.worktree.remove(file);
            }
        }
        return;
    }
    scene.write_cluster(HOSTILE, "test", "hostile.yaml");
    for chart in charts {
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: {chart}, namespace: {}}}\nspec:\n  \
             podSpec: {{deployType: Helm, chart: {{chartUrl: {{url: {chart}/web, chartVersion: 1.0.0}}}}}}\n  \
             clusterTopology: {{clusters: [{{name: {}, podSets: [{{name: {chart}}}]}}]}}\n",
            scene.name(),
            scene.cluster(0).name()
        );
        scene.worktree.write(&format!("apps/{chart}/app.yaml"), &text);
    }
}

/// In milliseconds.
async fn push(scene: &LiveFixture, seen: &mut mpsc::UnboundedReceiver<SeenRevision>, number: usize) -> f64 {
    write_app(scene, number);
    let commit = scene.worktree.commit(&format!("web {number}"));
    let start = SystemTime::now();
    tokio::task::block_in_place(|| scene.worktree.push());
    let (begun, mut missing, mut last) = (Instant::now(), scene.clusters().len(), start);
    while missing > 0 {
        let left = PUSH_TIMEOUT.saturating_sub(begun.elapsed());
        let one = tokio::time::timeout(left, seen.recv()).await;
        let log = || scene.running(|tutti| tutti.log());
        let one = one.unwrap_or_else(|_| panic!("push {number} does not arrive:\n{}", log()));
        let one = one.expect("the watches go on");
        if one.revision == commit {
            missing -= 1;
            last = last.max(one.at);
        }
    }
    tokio::time::sleep(PAUSE).await;
    last.duration_since(start).unwrap_or_default().as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
