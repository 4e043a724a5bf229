//! Server-side apply through the whole service, on two threads with a cluster each: a cluster is one
//! critical section, so two threads on one cluster would take turns. Request bodies are prepared, so
//! that making them does not count; answers are read to their end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sandbox::{Sandbox, SandboxOptions, SandboxService};

use crate::client::{REVISION, apply, apply_app, deployment, deployment_path};
use crate::{figure, thread_seconds};

const THREADS: usize = 2;
const APPS: usize = 100;
const LASTS: Duration = Duration::from_secs(3);

/// Applies a second on all threads together, and the processor time of one.
struct ApplyRate {
    per_second: f64,
    microseconds: f64,
}

/// Applies by turns what `body` says for this round.
fn rate(query: &'static str, body: fn(&str, usize) -> Bytes) -> ApplyRate {
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(applies(thread as u64, query, body))
            })
        })
        .collect();
    let rates: Vec<ApplyRate> = threads.into_iter().map(|thread| thread.join().expect("a thread")).collect();
    ApplyRate {
        per_second: rates.iter().map(|rate| rate.per_second).sum(),
        microseconds: rates.iter().map(|rate| rate.microseconds).sum::<f64>() / THREADS as f64,
    }
}

async fn applies(seed: u64, query: &str, body: fn(&str, usize) -> Bytes) -> ApplyRate {
    let sandbox = Sandbox::new(SandboxOptions { seed, ..SandboxOptions::instant("bench") });
    let service: SandboxService = sandbox.service();
    let paths: Vec<String> = (0..APPS).map(|app| deployment_path(&format!("app-{app}"))).collect();
    for app in 0..APPS {
        apply_app(&service, &format!("app-{app}"), "app:0").await;
    }
    let bodies: Vec<String> =
        (0..APPS).map(|app| deployment(&format!("app-{app}"), "app:0").to_string()).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    sandbox.reset_requests();
    let (start, on_processor) = (Instant::now(), thread_seconds());
    let (mut count, mut round) = (0_u32, 1);
    while start.elapsed() < LASTS {
        for (path, text) in paths.iter().zip(&bodies) {
            apply(&service, path, query, body(text, round)).await;
            count += 1;
        }
        sandbox.reset_requests();
        // its controllers look at what was written, as they do beside any client
        tokio::task::yield_now().await;
        round += 1;
    }
    ApplyRate {
        per_second: f64::from(count) / start.elapsed().as_secs_f64(),
        microseconds: 1e6 * (thread_seconds() - on_processor) / f64::from(count),
    }
}

/// The same objects again.
fn unchanged(text: &str, _: usize) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Another annotation each time: a write that rolls nothing out.
fn relabelled(text: &str, round: usize) -> Bytes {
    text.replace(REVISION, &format!("{round:040}")).into()
}

pub fn measure() {
    let rates = [
        ("ssa", rate("", relabelled)),
        ("ssa_unchanged", rate("", unchanged)),
        ("ssa_dry_run", rate("&dryRun=All", relabelled)),
    ];
    for (name, rate) in &rates {
        figure(&format!("{name}_per_second"), rate.per_second, "per_second");
        figure(&format!("{name}_processor_us"), rate.microseconds, "us");
    }
}
