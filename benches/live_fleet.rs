//! A fleet of apps on one real API server: installed, changed whole (the image, the host), one app changed, and a commit that
//! changes nothing; each from `git push` to the commit's success, which is when the last object is healthy. Then each app gets a
//! pod, and another image, with which one of them crashes.
//!
//! Beside it, from the same run: what the API server was asked, what tutti and the server used, and what the server itself
//! takes from a plain loop of applies with 1, 16 and 64 in flight, and needs for the whole of it with its controllers.
//!
//! `cargo bench --bench live_fleet -- 100 1000` names the sizes; with `flux` behind them kustomize-controller of Flux 2 does
//! the same steps on a server of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "live_fleet/flux.rs"]
mod flux;
#[path = "shared/goals.rs"]
mod goals;
#[path = "live_fleet/measure.rs"]
mod measure;
#[path = "live_fleet/pods.rs"]
mod pods;
#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/live/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use goals::{at_most, figure, goal};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use live::{FluxController, LiveCluster, LiveEnvironment, LiveSetup, Tier};
use measure::{LIMIT, MeasuredProcess, StepCost, measure_step, objects, wait_until_quiet};
use serde_json::Value;
use support::{HOOK_SECRET, LiveFixture, objects_app, print_uncaptured};

const SIZES: [usize; 2] = [100, 1000];
/// In a smaller fleet what is the same for each commit is a larger part.
const SIZE_OF_GOALS: usize = 1000;
/// At least 65 % of what the server takes, from the loop that applies the same and waits for the controllers.
const OF_THE_LOOP: f64 = 100.0 / 0.65;
/// A tenth of its time to install, a fortieth to change every app, and a twentieth of its processor time.
const INSTALL_OF_FLUX: f64 = 100.0 / 10.0;
const CHANGE_OF_FLUX: f64 = 100.0 / 40.0;
const CPU_OF_FLUX: f64 = 100.0 / 20.0;
/// Apps that the plain loop applies at each number of requests in flight.
const RAW_APPS: usize = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let programs = match tokio::task::spawn_blocking(Tier::from_env).await.expect("no panic") {
        Ok(Tier::Ready(programs)) => programs,
        Ok(Tier::Absent(line)) => return print_uncaptured(&line),
        Err(error) => panic!("{error}"),
    };
    let mut sizes: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let flux = std::env::args()
        .any(|word| word == "flux")
        .then(|| FluxController::ensure(&print_uncaptured).expect("Flux"));
    for size in sizes {
        // A server of its own for each: what an earlier one left would weigh on the next.
        let mut rival = None;
        if let Some(flux) = &flux {
            let live = LiveEnvironment::start(&programs, &LiveSetup::new(1).without_gitea())
                .await
                .expect("a server");
            measure_raw_applies(live.cluster(0), size, "flux").await;
            rival = Some(flux::fleet(&live, flux, size).await);
        }
        let live = LiveEnvironment::start(&programs, &LiveSetup::new(1)).await.expect("servers");
        let live: &'static LiveEnvironment = Box::leak(Box::new(live));
        fleet(live, size, rival).await;
    }
    goals::check();
}

async fn fleet(live: &'static LiveEnvironment, size: usize, rival: Option<BTreeMap<&'static str, StepCost>>) {
    let name: &'static str = Box::leak(format!("fleet-{size}").into_boxed_str());
    let scene = LiveFixture::on_environment(live, name).await;
    let cluster = scene.cluster(0);
    measure_raw_applies(cluster, size, "fleet").await;
    scene.write_instance("poll: 2h");
    let first = scene.worktree.publish("empty");
    let account = scene.folder().join("account.yaml");
    let user = cluster.create_account(name, "tutti", &account).await.expect("an account");
    scene.start(&["--cluster", &format!("{}={}#admin", cluster.name(), account.display())]).await;
    scene.until_succeeded(&first).await;
    scene.gitea().create_hook(name, &scene.hook_url(), HOOK_SECRET, &["push"]).await.expect("a hook");

    let bench = FleetBench { scene, size, user };
    let all = |image: usize, host: usize| (0..size).for_each(|app| bench.write(app, image, host));
    let install = bench.step("install", || all(1, 1)).await;
    // A new image is a new ReplicaSet: most of the work is that of the cluster's controllers. With a host they have none.
    let images = bench.step("change_all", || all(2, 1)).await;
    let hosts = bench.step("change_all_hosts", || all(2, 2)).await;
    let one = bench.step("change_one", || bench.write(size / 2, 3, 2)).await;
    let write_readme = || bench.scene.worktree.write("README.md", "Nothing that is rendered.");
    let nothing = bench.step("nothing", write_readme).await;
    // Nobody else takes this step: it is about what tutti asks.
    pods::rollout(&bench).await;
    bench.scene.running(|tutti| tutti.stop());
    let [install_loop, change_loop] = apply_loop_seconds(bench.scene.cluster(0), size).await;

    let name = |what: &str| format!("fleet_{size}_{what}");
    let percent = |ours: f64, theirs: f64| ours / theirs * 100.0;
    let mut shares = vec![
        ("install_of_the_loop_percent".to_owned(), percent(install.seconds, install_loop), OF_THE_LOOP),
        ("change_all_of_the_loop_percent".to_owned(), percent(images.seconds, change_loop), OF_THE_LOOP),
    ];
    let steps = [
        ("install", &install, INSTALL_OF_FLUX, install_loop),
        ("change_all", &images, CHANGE_OF_FLUX, change_loop),
        ("change_all_hosts", &hosts, CHANGE_OF_FLUX, 0.0),
    ];
    for (what, ours, most, alone) in steps {
        let Some(theirs) = rival.as_ref().map(|steps| &steps[what]) else { continue };
        // Nobody is faster than the server and its controllers, which may take more of Flux's time than that by themselves.
        let alone = percent(alone, theirs.seconds);
        if alone > most {
            print_uncaptured(&format!(
                "{what}: the server alone takes {alone:.1} % of Flux's time, more than the {most} % of the goal"
            ));
        }
        let most = if alone > most { alone * OF_THE_LOOP / 100.0 } else { most };
        shares.push((format!("{what}_of_flux_percent"), percent(ours.seconds, theirs.seconds), most));
        shares.push((format!("{what}_cpu_of_flux_percent"), percent(ours.cpu, theirs.cpu), CPU_OF_FLUX));
    }
    for (what, share, _) in &shares {
        figure(&name(what), *share, "%");
    }
    if size != SIZE_OF_GOALS {
        return;
    }
    for (what, share, most) in &shares {
        goal(&name(what), *share, "%", *most);
    }
    goal(&name("change_one_s"), one.seconds, "s", 1.0);
    goal(&name("change_one_tutti_requests"), one.requests as f64, "requests", 10.0);
    goal(&name("nothing_tutti_requests"), nothing.requests as f64, "requests", 0.0);
    at_most(&name("tutti_peak_of_all_mib"), nothing.peak, "MiB", 80.0);
    if rival.is_none() {
        print_uncaptured("Flux was not measured: `flux` behind the sizes has it take the same steps");
    }
}

struct FleetBench {
    scene: LiveFixture,
    size: usize,
    /// The account of tutti.
    user: String,
}

impl FleetBench {
    /// With these numbers in the image and in the host.
    fn write(&self, app: usize, image: usize, host: usize) {
        let name = format!("app-{app:04}");
        let worktree = &self.scene.worktree;
        worktree.write(&format!("apps/{name}/app.yaml"), &objects_app(self.scene.name(), &name));
        let objects: Vec<String> = objects(&name, image, host).iter().map(Value::to_string).collect();
        worktree.write(&format!("apps/{name}/objects/all.yaml"), &objects.join("\n---\n"));
    }

    /// From the push of what `change` writes to the success of its commit.
    async fn step(&self, what: &str, change: impl FnOnce()) -> StepCost {
        change();
        let commit = self.scene.worktree.commit(what);
        let who = MeasuredProcess {
            name: "tutti",
            process: self.scene.running(|tutti| tutti.id()),
            user: self.user.clone(),
        };
        measure_step(self.scene.cluster(0), &who, &format!("fleet_{}_{what}", self.size), async || {
            let start = Instant::now();
            tokio::task::block_in_place(|| self.scene.worktree.push());
            loop {
                match self.scene.status(&commit, "deploy").await {
                    Some((state, _)) if state == "success" => break,
                    Some((state, text)) if state == "failure" => panic!("{what}: {text}"),
                    found => assert!(start.elapsed() < LIMIT, "{what}: {found:?}"),
                }
                // To one part in a hundred: a forge that is asked all the time takes a tenth of this machine.
                tokio::time::sleep((start.elapsed() / 100).max(Duration::from_millis(20))).await;
            }
        })
        .await
    }
}

// ---- the server alone ----

/// The server's time for a plain loop of the same applies.
async fn measure_raw_applies(cluster: &LiveCluster, size: usize, prefix: &str) {
    let client = client(cluster).await;
    for in_flight in [1, 16, 64] {
        let namespace = format!("raw-{in_flight}");
        cluster.create_namespace(&namespace).await.expect("a namespace");
        for (what, number) in [("create", 1), ("change", 2)] {
            let start = Instant::now();
            let applies = (0..RAW_APPS).flat_map(|app| {
                let [account, service, deployment, ingress] = objects(&format!("app-{app:04}"), number, 1);
                // The same field as in the step that changes all.
                if number == 1 { vec![account, service, deployment, ingress] } else { vec![deployment] }
            });
            let client = &client;
            let namespace = &namespace;
            let done = futures::stream::iter(applies)
                .map(async |object| apply(client, namespace, &object).await)
                .buffer_unordered(in_flight)
                .count()
                .await;
            let rate = done as f64 / start.elapsed().as_secs_f64();
            figure(&format!("{prefix}_{size}_raw_{what}_per_s_{in_flight}_in_flight"), rate, "requests/s");
        }
    }
}

/// What the server and its controllers need for the same work when a plain loop applies it: until each Deployment was observed.
/// Answers with the seconds of the installation and of the change.
async fn apply_loop_seconds(cluster: &LiveCluster, size: usize) -> [f64; 2] {
    let client = client(cluster).await;
    let namespace = "raw-whole";
    cluster.create_namespace(namespace).await.expect("a namespace");
    let mut taken = [0.0; 2];
    for ((what, number), taken) in [("install", 1), ("change_all", 2)].into_iter().zip(&mut taken) {
        wait_until_quiet(cluster).await;
        let start = Instant::now();
        let applies = (0..size).flat_map(|app| {
            let [account, service, deployment, ingress] = objects(&format!("app-{app:04}"), number, 1);
            if number == 1 { vec![account, service, deployment, ingress] } else { vec![deployment] }
        });
        let client = &client;
        let applies =
            futures::stream::iter(applies).map(async |object| apply(client, namespace, &object).await);
        applies.buffer_unordered(16).for_each(|()| async {}).await;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        let is_behind = |it: &Deployment| {
            it.status.as_ref().and_then(|status| status.observed_generation) != it.metadata.generation
        };
        while deployments.list(&ListParams::default()).await.expect("a list").iter().any(is_behind) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        figure(&format!("fleet_{size}_raw_whole_{what}_s"), seconds, "s");
        *taken = seconds;
    }
    taken
}

async fn client(cluster: &LiveCluster) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn apply(client: &kube::Client, namespace: &str, object: &Value) {
    let text = |field: &str| object[field].as_str().expect("a field").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let plural = if kind == "Ingress" { "ingresses".to_owned() } else { format!("{}s", kind.to_lowercase()) };
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.clone(),
        kind,
        plural,
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let name = object["metadata"]["name"].as_str().expect("a name");
    api.patch(name, &PatchParams::apply("raw").force(), &Patch::Apply(object)).await.expect("an apply");
}
