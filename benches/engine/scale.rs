//! A large fleet on embedded clusters that this process serves over TLS, and the program beside it: its memory is its own.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use sandbox::{PodMode, Sandbox, SandboxListener, SandboxOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::goals::{at_most, figure};
use crate::manifests::{app, app_path, four_objects_each, objects_path};
use crate::percentile;
use crate::support::manifests::{INSTANCE, cluster};
use crate::support::repository::{FileTextChange, TestRepository};

/// On each cluster.
const APPS: usize = 250;
const CLUSTERS: usize = 100;
/// The differences between fleets give the marginal cost of an object, an app on a cluster and a cluster.
const FEW_CLUSTERS: usize = 10;
const MORE: usize = 4;
const EDITS: usize = 200;
const RAW: usize = 4000;
const IN_FLIGHT: usize = 16;

pub fn scale() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let few = BenchFleet::new(FEW_CLUSTERS, APPS, 1).await;
        few.raw().await;
        few.install();
        few.cold_start();
        few.drift().await;
        let of_few = few.usually_at_rest().await;
        drop(few);
        // As many objects more: in the same apps, and in apps of their own.
        let more = (FEW_CLUSTERS * APPS * (MORE - 1)) as f64;
        let dense = BenchFleet::new(FEW_CLUSTERS, APPS, MORE).await;
        dense.install();
        let of_four = (dense.usually_at_rest().await - of_few) / more;
        at_most("bytes_per_object", of_four * 1024.0 / 4.0, "B", 1024.0);
        drop(dense);
        let wide = BenchFleet::new(FEW_CLUSTERS, APPS * MORE, 1).await;
        wide.install();
        let of_app = (wide.usually_at_rest().await - of_few) / more;
        figure("kib_per_app_on_a_cluster", of_app - of_four, "KiB");
        drop(wide);
        let many = BenchFleet::new(CLUSTERS, APPS, 1).await;
        let installed = many.install();
        let objects = (CLUSTERS * APPS * 4) as f64;
        figure("apply_per_second", objects / installed.seconds, "objects/s");
        let of_many = many.cold_start();
        at_most("cold_start_100k_s", of_many.seconds, "s", 30.0);
        at_most("cold_start_100k_peak_mib", of_many.peak / 1024.0, "MiB", 256.0);
        let at_rest = many.at_rest().await;
        at_most("memory_100k_mib", at_rest / 1024.0, "MiB", 256.0);
        let more = (CLUSTERS - FEW_CLUSTERS) as f64;
        figure("kib_per_cluster_with_1000_objects", (at_rest - of_few) / more, "KiB");
    });
}

struct BenchFleet {
    folder: TempDir,
    repository: TestRepository,
    clusters: Vec<Sandbox>,
    _listeners: Vec<SandboxListener>,
}

/// The cost of a run of the program; memory in KiB.
struct RunCost {
    seconds: f64,
    peak: f64,
}

impl BenchFleet {
    /// Each app has `times` four objects.
    async fn new(count: usize, apps: usize, times: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut clusters, mut listeners) = (Vec::new(), Vec::new());
        let mut files = vec![("tutti.yaml".to_owned(), INSTANCE.to_owned())];
        for number in 0..count {
            let name = format!("cluster-{number:03}");
            let options =
                SandboxOptions { pods: PodMode::Virtual, history: 200, ..SandboxOptions::instant(&name) };
            let sandbox = Sandbox::new(options);
            let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
            fs::write(folder.path().join(format!("{name}.kubeconfig")), listener.kubeconfig())
                .expect("a file");
            files.push((format!("clusters/{name}.yaml"), cluster(&name)));
            clusters.push(sandbox);
            listeners.push(listener);
        }
        for number in 0..apps {
            files.push((app_path(number), app(number)));
            files.push((objects_path(number), four_objects_each(number, times, 1)));
        }
        let repository = TestRepository::at(&folder.path().join("config"));
        let changes: Vec<FileTextChange<'_>> =
            files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        repository.commit("Begin", &changes);
        Self { folder, repository, clusters, _listeners: listeners }
    }

    /// Everything is new.
    fn install(&self) -> RunCost {
        let took = self.once("install");
        println!("install on {} clusters: {:.1} s", self.clusters.len(), took.seconds);
        took
    }

    /// Everything is there: the process has only to find out.
    fn cold_start(&self) -> RunCost {
        for sandbox in &self.clusters {
            sandbox.reset_requests();
        }
        let took = self.once("cold");
        let writes: usize =
            self.clusters.iter().map(|it| it.requests().iter().filter(|one| one.is_write()).count()).sum();
        assert_eq!(writes, 0, "a start writes nothing");
        println!(
            "cold start on {} clusters: {:.1} s, {:.0} MiB at most",
            self.clusters.len(),
            took.seconds,
            took.peak / 1024.0
        );
        took
    }

    fn command(&self, command: &[&str], state: &str) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tutti"));
        program.args(command).arg("--repo").arg(self.repository.path());
        program
            .arg("--kubeconfigs")
            .arg(self.folder.path())
            .arg("--state")
            .arg(self.folder.path().join(state));
        program.env_remove("KUBECONFIG").stdin(Stdio::null()).stdout(Stdio::null());
        program
    }

    fn once(&self, state: &str) -> RunCost {
        let start = Instant::now();
        let mut child =
            self.command(&["run", "--once", "--timeout", "900"], state).spawn().expect("the program starts");
        let mut peak = 0.0;
        let status = tokio::task::block_in_place(|| {
            loop {
                if let Some(status) = child.try_wait().expect("a child") {
                    break status;
                }
                if let Some([high, _]) = memory(child.id()) {
                    peak = high;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        assert!(status.success(), "it ended with {status}");
        RunCost { seconds: start.elapsed().as_secs_f64(), peak }
    }

    /// The program, until it is dropped.
    fn run(&self, state: &str) -> RunningProgram {
        let log = fs::File::create(self.folder.path().join(format!("{state}.log"))).expect("a log");
        let mut run =
            self.command(&["run", "--listen", "127.0.0.1:0", "--hooks-listen", "127.0.0.1:0"], state);
        RunningProgram(run.stderr(log).spawn().expect("the program starts"))
    }

    /// The middle of three starts: what the allocator keeps differs by some MiB from one to the next.
    async fn usually_at_rest(&self) -> f64 {
        let mut starts = [self.at_rest().await, self.at_rest().await, self.at_rest().await];
        starts.sort_by(f64::total_cmp);
        starts[1]
    }

    /// The resident memory, in KiB, of an idle program that has read everything.
    async fn at_rest(&self) -> f64 {
        let running = self.run("rest");
        let process = running.0.id();
        let (mut used, mut quiet) = (0.0, 0);
        // It probes its clusters: a little it always does.
        while quiet < 5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = processor_seconds(process);
            quiet = if now > 0.5 && now - used < 0.1 { quiet + 1 } else { 0 };
            used = now;
        }
        let [_, resident] = memory(process).expect("it runs");
        println!("at rest on {} clusters: {:.0} MiB", self.clusters.len(), resident / 1024.0);
        resident
    }

    /// How long a manual change stays before it is corrected.
    async fn drift(&self) {
        let _running = self.run("drift");
        let mut times = Vec::new();
        let mut apis = Vec::new();
        for sandbox in &self.clusters {
            let client = kube::Client::new(sandbox.service(), "default");
            apis.push(Api::<Deployment>::namespaced(client, "default"));
        }
        // Until it puts back what is changed it is still starting.
        edit(&apis[0], 0, 0).await;
        for number in 0..EDITS {
            times.push(edit(&apis[number % apis.len()], number % APPS, number).await);
        }
        figure("drift_p50_ms", percentile(&mut times, 0.50), "ms");
        at_most("drift_p95_ms", percentile(&mut times, 0.95), "ms", 1000.0);
    }

    /// The embedded servers' throughput with a plain loop of applies.
    async fn raw(&self) {
        let mut apis = Vec::new();
        for number in 0..self.clusters.len() {
            let path = self.folder.path().join(format!("cluster-{number:03}.kubeconfig"));
            apis.push(Api::<ConfigMap>::namespaced(client(&path).await, "default"));
        }
        let parameters = PatchParams::apply("raw").force();
        let start = Instant::now();
        let applies = futures::stream::iter(0..RAW).map(|number| {
            let (api, name) = (&apis[number % apis.len()], format!("raw-{number}"));
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
            let parameters = &parameters;
            async move { api.patch(&name, parameters, &Patch::Apply(body)).await.expect("an apply") }
        });
        applies.buffer_unordered(IN_FLIGHT).for_each(|_| async {}).await;
        figure("raw_patch_per_second", RAW as f64 / start.elapsed().as_secs_f64(), "requests/s");
    }
}

/// Sets another image, and waits until the old one is back; milliseconds.
async fn edit(api: &Api<Deployment>, app: usize, number: usize) -> f64 {
    let name = format!("app-{app:04}");
    let container = json!({"name": "app", "image": format!("edited:{number}")});
    let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    let parameters = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    api.patch(&name, &parameters, &Patch::Strategic(patch)).await.expect("an edit");
    let start = Instant::now();
    loop {
        let found = api.get(&name).await.expect("a Deployment");
        let image = found.spec.template.spec.and_then(|spec| spec.containers.first()?.image.clone());
        if image.is_some_and(|image| !image.starts_with("edited")) {
            return start.elapsed().as_secs_f64() * 1e3;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{name} is not put back");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.expect("a configuration")).expect("a client")
}

/// Killed at the end.
struct RunningProgram(Child);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn processor_seconds(process: u32) -> f64 {
    // Linux counts in hundredths of a second wherever it runs.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let (_, rest) = stat.rsplit_once(") ").expect("a name in parentheses");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |place: usize| fields[place].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / TICKS
}

/// The most that was resident and what is, in KiB; `None` when the process has just ended.
fn memory(process: u32) -> Option<[f64; 2]> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some([value("VmHWM:")?, value("VmRSS:")?])
}
