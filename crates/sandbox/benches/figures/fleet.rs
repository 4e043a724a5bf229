//! The memory of 1,000 clusters with 100 apps each.

use std::time::{Duration, Instant};

use sandbox::{PodMode, Sandbox, SandboxOptions};

use crate::client::apply_app;
use crate::{figure, memory_mib, thread_seconds, waited_seconds};

const APPS: usize = 100;
/// So many clusters instead of 1,000, for a quick look; the figure then has another name.
const FEWER: &str = "SANDBOX_BENCH_CLUSTERS";

pub fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(fill());
}

/// Until the controllers have nothing left to do: this thread is hardly on a processor, and does not
/// wait for one. The kernel counts a busy thread's time a few milliseconds late, so looking more often
/// would see none.
async fn rest() {
    loop {
        let (before, waited) = (thread_seconds(), waited_seconds());
        tokio::time::sleep(Duration::from_millis(50)).await;
        if thread_seconds() - before < 0.005 && waited_seconds() - waited < 0.02 {
            return;
        }
    }
}

async fn fill() {
    let start = Instant::now();
    let before = memory_mib("VmRSS:");
    let count = std::env::var(FEWER).ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let name = |what: &str| format!("clusters_{count}x{APPS}_{what}");
    let mut clusters = Vec::new();
    for number in 0..count {
        let instant = SandboxOptions::instant(format!("c{number}"));
        let options = SandboxOptions { seed: number, pods: PodMode::Virtual, ..instant };
        let cluster = Sandbox::new(options);
        let service = cluster.service();
        for app in 0..APPS {
            apply_app(&service, &format!("app-{app}"), "app:1").await;
        }
        rest().await;
        clusters.push(cluster);
    }
    // longer than controllers hold what they may need again soon
    tokio::time::sleep(Duration::from_secs(5)).await;
    rest().await;
    figure(&name("rss_mib"), memory_mib("VmRSS:"), "MiB");
    figure(&name("peak_mib"), memory_mib("VmHWM:"), "MiB");
    figure(&name("fill_seconds"), start.elapsed().as_secs_f64(), "s");
    let objects = count as f64 * APPS as f64 * 3.0;
    figure(&name("processor_seconds"), thread_seconds(), "s");
    let used = memory_mib("VmRSS:") - before;
    figure("bytes_per_applied_object", used * 1024.0 * 1024.0 / objects, "bytes");
    drop(clusters);
}
