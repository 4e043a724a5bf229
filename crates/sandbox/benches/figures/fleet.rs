//! The memory of 1,000 clusters with 100 apps each.

use sandbox::{Sandbox, SandboxOptions};
use std::time::{Duration, Instant};

use crate::client::apply_app;
use crate::{figure, memory_mib};

const CLUSTERS: u64 = 1_000;
const APPS: usize = 100;

pub fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(fill());
}

async fn fill() {
    let start = Instant::now();
    let before = memory_mib("VmRSS:");
    let mut clusters = Vec::new();
    for number in 0..CLUSTERS {
        let options = SandboxOptions { seed: number, ..SandboxOptions::instant(format!("c{number}")) };
        let cluster = Sandbox::new(options);
        let service = cluster.service();
        for app in 0..APPS {
            apply_app(&service, &format!("app-{app}"), "app:1").await;
        }
        // its controllers finish
        tokio::time::sleep(Duration::from_millis(1)).await;
        clusters.push(cluster);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    figure("clusters_1000x100_rss_mib", memory_mib("VmRSS:"), "MiB");
    figure("clusters_1000x100_peak_mib", memory_mib("VmHWM:"), "MiB");
    figure("clusters_1000x100_fill_seconds", start.elapsed().as_secs_f64(), "s");
    let objects = CLUSTERS as f64 * APPS as f64 * 3.0;
    let used = memory_mib("VmRSS:") - before;
    figure("bytes_per_applied_object", used * 1024.0 * 1024.0 / objects, "bytes");
    drop(clusters);
}
