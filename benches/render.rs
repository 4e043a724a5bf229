#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "render/repository.rs"]
mod repository;

use std::time::Instant;
use tutti::{fleet, manifest, model::NoCharts, render};

fn main() {
    let apps: usize = std::env::var("APPS").ok().and_then(|t| t.parse().ok()).unwrap_or(500);
    for (name, snapshot) in [
        ("plain", repository::of_components(apps, 10)),
        ("layers", repository::with_cluster_layers(repository::of_components(apps, 10))),
        ("names", repository::with_names_of_clusters(repository::of_components(apps, 10))),
    ] {
        let start = Instant::now();
        let read = manifest::read(&snapshot);
        let t_read = start.elapsed();
        let start = Instant::now();
        let fleet = fleet::assemble(read, &snapshot);
        assert!(fleet.is_valid(), "{:?}", fleet.diagnostics.first());
        let t_fleet = start.elapsed();
        let start = Instant::now();
        let renders =
            render::Renderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut render::Memory::default());
        let t_render = start.elapsed();
        let objects: usize = renders.results().map(|r| r.as_ref().expect("renders").objects.len()).sum();
        println!(
            "{name}: read {t_read:?} fleet {t_fleet:?} render {t_render:?} targets {} objects {objects}: {:.0}/s",
            renders.results().count(),
            objects as f64 / t_render.as_secs_f64()
        );
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        println!("{}", status.lines().find(|l| l.starts_with("VmRSS")).unwrap());
    }
}
