//! The objects of an app, and the measured cost of one step.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use live::{AuditedRequest, LiveCluster};
use serde_json::{Value, json};

use crate::{goals, support};

/// How long a step may take.
pub const LIMIT: Duration = Duration::from_secs(900);

/// Whoever still has something to ask after a step has asked by then.
const LATE: Duration = Duration::from_secs(5);

/// The measured process.
pub struct MeasuredProcess {
    pub name: &'static str,
    pub process: u32,
    /// Its account on the cluster.
    pub user: String,
}

/// The cost of a step.
pub struct StepCost {
    pub seconds: f64,
    /// Processor time of the measured process.
    pub cpu: f64,
    /// The most memory that it ever had, in MiB.
    pub peak: f64,
    /// All that its account asked of the server, whatever it is about.
    pub requests: usize,
    /// Those among them that write with PATCH.
    pub patches: usize,
}

/// One step, as figures that begin with `prefix`.
pub async fn measure_step(
    cluster: &LiveCluster,
    who: &MeasuredProcess,
    prefix: &str,
    step: impl AsyncFnOnce(),
) -> StepCost {
    let server = cluster.server_id().expect("a running server");
    // What controllers still do about the step before is not of this one.
    wait_until_quiet(cluster).await;
    let ours = own_requests(cluster, &who.user).len();
    let (before, asked) =
        ([ProcessUsage::of(who.process), ProcessUsage::of(server)], requests(cluster).await);
    let start = Instant::now();
    step().await;
    let seconds = start.elapsed().as_secs_f64();
    let (after, answered) =
        ([ProcessUsage::of(who.process), ProcessUsage::of(server)], requests(cluster).await);
    let figure = |name: &str, value: f64, unit: &str| goals::figure(&format!("{prefix}_{name}"), value, unit);
    figure("s", seconds, "s");
    for (name, (before, after)) in [who.name, "server"].iter().zip(before.iter().zip(&after)) {
        figure(&format!("{name}_cpu_s"), after.cpu - before.cpu, "s");
        figure(&format!("{name}_peak_mib"), after.peak, "MiB");
    }
    for (verb, count) in &answered {
        let count = count - asked.get(verb).copied().unwrap_or_default();
        if count > 0.0 {
            figure(&format!("requests_{verb}"), count, "requests");
        }
    }
    tokio::time::sleep(LATE).await;
    let own = own_requests(cluster, &who.user).split_off(ours);
    figure(&format!("{}_requests", who.name), own.len() as f64, "requests");
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    own.iter().for_each(|it| *kinds.entry(format!("{} {}", it.verb, it.resource)).or_default() += 1);
    println!("{prefix}: {kinds:?}");
    let patches = own.iter().filter(|it| it.verb == "patch").count();
    StepCost { seconds, cpu: after[0].cpu - before[0].cpu, peak: after[0].peak, requests: own.len(), patches }
}

/// What an account asked, but for what goes on at rest: probes, and watches. The log has those when they are over, so what began
/// anew in a step cannot be told from what had run for long.
fn own_requests(cluster: &LiveCluster, user: &str) -> Vec<AuditedRequest> {
    let mut asked = cluster.requests_of(user).expect("an audit log");
    asked.retain(|it| it.verb != "watch" && it.resource != "/version");
    asked
}

/// ServiceAccount, Service, Deployment without pods, Ingress.
pub fn objects(name: &str, image: usize, host: usize) -> [Value; 4] {
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

/// Requests of everybody by verb, as the server counts them: controllers that answer to what is applied are among them.
async fn requests(cluster: &LiveCluster) -> BTreeMap<String, f64> {
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

/// Waits until writes stop.
pub async fn wait_until_quiet(cluster: &LiveCluster) {
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

struct ProcessUsage {
    /// Seconds of processor time.
    cpu: f64,
    /// Most memory that was resident at once, in MiB.
    peak: f64,
}

impl ProcessUsage {
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
