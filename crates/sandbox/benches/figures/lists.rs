//! Reading much: a list of 10,000 objects, and one event for 1,000 watches.

use std::time::Instant;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use sandbox::{Sandbox, SandboxOptions};

use crate::client::{apply, ask, config_map, core_path, send, text};
use crate::{figure, memory_mib};

const OBJECTS: usize = 10_000;
const WATCHES: usize = 1_000;
const LIST: &str = "/api/v1/namespaces/default/configmaps";

pub fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(read());
}

async fn read() {
    let sandbox = Sandbox::new(SandboxOptions::instant("bench"));
    let service = sandbox.service();
    for number in 0..OBJECTS {
        let name = format!("c-{number}");
        apply(&service, &core_path("configmaps", &name), "", text(&config_map(&name))).await;
    }
    let start = Instant::now();
    let (_, list) = ask(&service, Method::GET, LIST, Bytes::new()).await;
    figure("list_10000_ms", start.elapsed().as_secs_f64() * 1e3, "ms");
    figure("list_10000_mib", list.len() as f64 / 1048576.0, "MiB");

    let start = Instant::now();
    ask(&service, Method::GET, &format!("{LIST}?labelSelector=app=c-77"), Bytes::new()).await;
    figure("list_10000_selected_ms", start.elapsed().as_secs_f64() * 1e3, "ms");

    let before = memory_mib("VmRSS:");
    let path = format!("{LIST}?watch=true&allowWatchBookmarks=true&resourceVersion=");
    let revision = serde_json::from_slice::<serde_json::Value>(&list).expect("a list");
    let path = format!("{path}{}", revision["metadata"]["resourceVersion"].as_str().expect("a revision"));
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        watches.push(send(&service, Method::GET, &path, Bytes::new()).await.into_body());
    }
    let start = Instant::now();
    apply(&service, &core_path("configmaps", "c-new"), "", text(&config_map("c-new"))).await;
    for watch in &mut watches {
        let frame = watch.frame().await.expect("an event").expect("no error");
        assert!(frame.data_ref().is_some_and(|data| data.len() > 100));
    }
    figure("event_to_1000_watches_ms", start.elapsed().as_secs_f64() * 1e3, "ms");
    figure("watch_kib", (memory_mib("VmRSS:") - before) * 1024.0 / WATCHES as f64, "KiB");
}
