//! One set of clusters and one Gitea for all tests of the binary. The fourth cluster runs the oldest Kubernetes.

use std::collections::BTreeSet;
use std::env;
use std::io::Write as _;
use std::time::{Duration, Instant};

use live::{LiveCluster, LiveEnvironment, LiveSetup, Tier};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The time limit of a condition. Generous: two cores run four clusters, and a controller
/// returns from an outage by its own back-off.
const CONDITION_TIMEOUT: Duration = Duration::from_secs(120);

/// Pauses between two probes grow, so that tests which wait do not load the servers that others use.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A failed start is stored too, so that it happens once.
static TIER: OnceCell<Result<Option<LiveEnvironment>, String>> = OnceCell::const_new();

/// Locked for writing while API servers of the last two clusters are stopped.
static LAST_CLUSTERS_LOCK: RwLock<()> = RwLock::const_new(());

/// Guarantees that the last two clusters are up, or that no other test needs them.
pub struct ClusterReservation {
    _shared: Option<RwLockReadGuard<'static, ()>>,
    _alone: Option<RwLockWriteGuard<'static, ()>>,
}

impl ClusterReservation {
    pub async fn shared() -> Self {
        Self { _shared: Some(LAST_CLUSTERS_LOCK.read().await), _alone: None }
    }

    pub async fn exclusive() -> Self {
        Self { _shared: None, _alone: Some(LAST_CLUSTERS_LOCK.write().await) }
    }
}

/// `None` after a printed message if it is not available; a failed start fails the test.
pub async fn tier() -> Option<&'static LiveEnvironment> {
    let started = TIER.get_or_init(async || start().await.map_err(|error| error.to_string())).await;
    started.as_ref().unwrap_or_else(|error| panic!("{error}")).as_ref()
}

async fn start() -> Result<Option<LiveEnvironment>, live::Error> {
    let programs = match tokio::task::spawn_blocking(Tier::from_env).await.expect("no panic")? {
        Tier::Ready(programs) => programs,
        Tier::Absent(line) => {
            print_uncaptured(&line);
            return Ok(None);
        }
    };
    let begin = Instant::now();
    let tier = LiveEnvironment::start(&programs, &LiveSetup::new(4).with_old(1)).await?;
    let versions: BTreeSet<&str> = tier.clusters().iter().map(LiveCluster::version).collect();
    let is_mandatory = env::var("TUTTI_LIVE").is_ok_and(|value| value == "1");
    assert!(!is_mandatory || versions.len() == 2, "two versions of Kubernetes are to run, not {versions:?}");
    print_uncaptured(&format!(
        "live tests: {}, ready in {:.1} s",
        tier.versions(),
        begin.elapsed().as_secs_f64()
    ));
    Ok(Some(tier))
}

/// Bypasses the capture of the test runner, so that the log of a passing run names the versions.
pub fn print_uncaptured(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("a standard error");
}

/// Repeats `probe` until it succeeds. On a timeout: its last answer, and `logs`.
pub async fn eventually<Answer>(
    what: &str,
    logs: impl Fn() -> String,
    probe: impl AsyncFn() -> Result<Answer, String>,
) -> Answer {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match probe().await {
            Ok(answer) => return answer,
            Err(last) if begin.elapsed() > CONDITION_TIMEOUT => {
                panic!("not within {CONDITION_TIMEOUT:?}: {what}\n{last}\n{}", logs())
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = LONGEST_PAUSE.min(pause * 3 / 2);
    }
}
