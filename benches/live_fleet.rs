//! A fleet of apps on one real API server: installed, changed whole (the image, the host), one app changed, and a commit that changes nothing; each
//! from `git push` to the commit's success, which is when the last object is healthy.
//!
//! Beside it, from the same run: what the API server was asked, what tutti and the server used, and what the server itself
//! takes from a plain loop of applies with 1, 16 and 64 in flight, and needs for the whole of it with its controllers. `cargo bench --bench live_fleet -- 100 1000` names the sizes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[allow(dead_code, unused_imports, reason = "the tests use more of it")]
#[path = "../tests/it/live/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use live::{Cluster, Live, Setup, Tier};
use serde_json::{Value, json};
use support::{SECRET, Scene, objects_app, say};

const SIZES: [usize; 2] = [100, 1000];
/// How long a step may take.
const LIMIT: Duration = Duration::from_secs(900);
/// Apps that the plain loop applies at each number of requests in flight.
const RAW_APPS: usize = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let programs = match tokio::task::spawn_blocking(Tier::from_env).await.expect("no panic") {
        Ok(Tier::Ready(programs)) => programs,
        Ok(Tier::Absent(line)) => return say(&line),
        Err(error) => panic!("{error}"),
    };
    let mut sizes: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    for size in sizes {
        // A server of its own for each size: what an earlier one left would weigh on the next.
        let live = Live::start(&programs, &Setup::new(1)).await.expect("servers");
        let live: &'static Live = Box::leak(Box::new(live));
        fleet(live, size).await;
    }
}

async fn fleet(live: &'static Live, size: usize) {
    let name: &'static str = Box::leak(format!("fleet-{size}").into_boxed_str());
    let scene = Scene::on(live, name).await;
    let cluster = scene.cluster(0);
    raw(cluster, size).await;
    scene.write_instance("poll: 2h");
    let first = scene.worktree.publish("empty");
    scene.start(&[]).await;
    scene.succeeded(&first).await;
    scene.gitea().create_hook(name, &scene.hook_url(), SECRET, &["push"]).await.expect("a hook");

    let bench = Bench { scene, size };
    bench.step("install", || (0..size).for_each(|app| bench.write(app, 1, 1))).await;
    bench.step("change_all", || (0..size).for_each(|app| bench.write(app, 2, 1))).await;
    // Nobody has anything to do with an image but the controllers of the cluster: a new one is a new ReplicaSet.
    bench.step("change_all_hosts", || (0..size).for_each(|app| bench.write(app, 2, 2))).await;
    bench.step("change_one", || bench.write(size / 2, 3, 2)).await;
    bench.step("nothing", || bench.scene.worktree.write("README.md", "Nothing that is rendered.")).await;
    bench.scene.running(|tutti| tutti.stop());
    whole_by_a_loop(bench.scene.cluster(0), size).await;
}

struct Bench {
    scene: Scene,
    size: usize,
}

impl Bench {
    /// With these numbers in the image and in the host.
    fn write(&self, app: usize, image: usize, host: usize) {
        let name = format!("app-{app:04}");
        let worktree = &self.scene.worktree;
        worktree.write(&format!("apps/{name}/app.yaml"), &objects_app(self.scene.name(), &name));
        let objects: Vec<String> = objects(&name, image, host).iter().map(Value::to_string).collect();
        worktree.write(&format!("apps/{name}/objects/all.yaml"), &objects.join("\n---\n"));
    }

    /// From the push of what `change` writes to the success of its commit.
    async fn step(&self, what: &str, change: impl FnOnce()) {
        change();
        let commit = self.scene.worktree.commit(what);
        let tutti = self.scene.running(|tutti| tutti.id());
        let cluster = self.scene.cluster(0);
        let server = cluster.server_id().expect("a running server");
        // What controllers still do about the step before is not of this one.
        quiet(cluster).await;
        let (before, asked) = ([Usage::of(tutti), Usage::of(server)], requests(cluster).await);
        let start = Instant::now();
        tokio::task::block_in_place(|| self.scene.worktree.push());
        loop {
            match self.scene.status(&commit, "deploy").await {
                Some((state, _)) if state == "success" => break,
                Some((state, text)) if state == "failure" => panic!("{what}: {text}"),
                found => assert!(start.elapsed() < LIMIT, "{what}: {found:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        let (after, answered) = ([Usage::of(tutti), Usage::of(server)], requests(cluster).await);
        let figure = |name: &str, value: f64, unit: &str| {
            println!("figure fleet_{}_{what}_{name} {value:.2} {unit}", self.size);
        };
        figure("s", seconds, "s");
        for (name, (before, after)) in ["tutti", "server"].iter().zip(before.iter().zip(&after)) {
            figure(&format!("{name}_cpu_s"), after.cpu - before.cpu, "s");
            figure(&format!("{name}_peak_mib"), after.peak, "MiB");
        }
        for (verb, count) in &answered {
            let count = count - asked.get(verb).copied().unwrap_or_default();
            if count > 0.0 {
                figure(&format!("requests_{verb}"), count, "requests");
            }
        }
    }
}

/// ServiceAccount, Service, Deployment without pods, Ingress.
fn objects(name: &str, image: usize, host: usize) -> [Value; 4] {
    let mut deployment = support::deployment(name, &format!("shop/{name}:{image}"), 0);
    deployment["spec"]["template"]["spec"]["serviceAccountName"] = json!(name);
    let backend = json!({"service": {"name": name, "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        support::service(name),
        deployment,
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
            "spec": {"rules": [{"host": format!("{name}-{host}.example.com"), "http": {"paths": [path]}}]},
        }),
    ]
}

// ---- the server ----

/// Requests of everybody by verb, as the server counts them: controllers that answer to what is applied are among them.
async fn requests(cluster: &Cluster) -> BTreeMap<String, f64> {
    let metrics = cluster.get("/metrics").await.expect("the server's metrics");
    let mut counts = BTreeMap::new();
    for line in metrics.as_str().unwrap_or_default().lines() {
        let Some(labels) = line.strip_prefix("apiserver_request_total{") else { continue };
        let Some((labels, count)) = labels.split_once("} ") else { continue };
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let ours = ["serviceaccounts", "services", "deployments", "ingresses"];
        if !label("resource").is_some_and(|resource| ours.contains(&resource))
            || label("subresource") != Some("")
        {
            continue;
        }
        let verb = label("verb").unwrap_or_default().to_lowercase();
        *counts.entry(verb).or_default() += count.parse::<f64>().unwrap_or_default();
    }
    counts
}

/// Waits until nobody writes any more.
async fn quiet(cluster: &Cluster) {
    let writes = |counts: BTreeMap<String, f64>| -> f64 {
        ["apply", "post", "put", "patch", "delete"].iter().filter_map(|verb| counts.get(*verb)).sum()
    };
    let mut known = writes(requests(cluster).await);
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = writes(requests(cluster).await);
        if now <= known {
            return;
        }
        known = now;
    }
}

/// What the server takes when somebody does nothing but apply the same objects.
async fn raw(cluster: &Cluster, size: usize) {
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
            println!("figure fleet_{size}_raw_{what}_per_s_{in_flight}_in_flight {rate:.0} requests/s");
        }
    }
}

/// What the server and its controllers need for the same work when a plain loop applies it: until each Deployment was observed.
async fn whole_by_a_loop(cluster: &Cluster, size: usize) {
    let client = client(cluster).await;
    let namespace = "raw-whole";
    cluster.create_namespace(namespace).await.expect("a namespace");
    for (what, number) in [("install", 1), ("change_all", 2)] {
        quiet(cluster).await;
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
        println!("figure fleet_{size}_raw_whole_{what}_s {:.2} s", start.elapsed().as_secs_f64());
    }
}

async fn client(cluster: &Cluster) -> kube::Client {
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

// ---- processes ----

struct Usage {
    /// Seconds of processor time.
    cpu: f64,
    /// Most memory that was resident at once, in MiB.
    peak: f64,
}

impl Usage {
    fn of(process: u32) -> Self {
        // Linux counts in hundredths of a second wherever it runs.
        const TICKS: f64 = 100.0;
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
        let (_, rest) = stat.rsplit_once(") ").expect("a name in parentheses");
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks =
            |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok()).expect("a number");
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of memory");
        let kib: f64 = peak.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number");
        Self { cpu: (ticks(11) + ticks(12)) / TICKS, peak: kib / 1024.0 }
    }
}
