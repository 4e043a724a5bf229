//! A large fleet in waves: a commit that changes every app on every cluster, ring after ring, under a paused clock.

use std::time::Instant;

use tutti::report::Overview;

use crate::goals::{at_most, figure};
use crate::support::fleet::TestFleet;
use crate::support::manifests::{config_map, objects_app};

const RINGS: usize = 20;

/// `TUTTI_BENCH_FLEET=200x20` takes 200 clusters and 20 apps.
fn size() -> (usize, usize) {
    let given = std::env::var("TUTTI_BENCH_FLEET").ok();
    let parts = given.as_deref().and_then(|text| text.split_once('x'));
    let parsed = parts.and_then(|(clusters, apps)| Some((clusters.parse().ok()?, apps.parse().ok()?)));
    parsed.unwrap_or((1000, 100))
}

fn content(app: usize, number: usize) -> String {
    config_map("default", &format!("app-{app:03}"), &number.to_string())
}

pub fn waves() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let (clusters, apps) = size();
        let names: Vec<String> = (0..clusters).map(|it| format!("r{:02}-{it:04}", it % RINGS)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rings: String = (0..RINGS)
            .map(|ring| format!("    - {{name: r{ring:02}, clusters: {{names: ['r{ring:02}-*']}}}}\n"))
            .collect();
        let rings = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {{name: rings}}\nspec:\n  rings:\n{rings}"
        );
        let path = |app: usize| format!("apps/app-{app:03}/objects/all.yaml");
        let mut files: Vec<(String, String)> = vec![("rings.yaml".to_owned(), rings)];
        for app in 0..apps {
            files.push((
                format!("apps/app-{app:03}/app.yaml"),
                objects_app("default", &format!("app-{app:03}")),
            ));
            files.push((path(app), content(app, 1)));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let fleet = TestFleet::new(&names, &files);
        let begun = Instant::now();
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        figure("waves_install_s", begun.elapsed().as_secs_f64(), "s");

        fleet.clear_requests();
        let changed: Vec<(String, String)> = (0..apps).map(|app| (path(app), content(app, 2))).collect();
        let changes: Vec<_> =
            changed.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        let begun = Instant::now();
        let revision = fleet.push(&running, "Change all", &changes).await;
        let is_over = |now: &Overview| {
            now.revision.as_ref() == Some(&revision)
                && now.is_rendered
                && !now.rollouts.is_empty()
                && now.rollouts.iter().all(|rollout| !rollout.is_open)
        };
        running.until("every rollout is over", is_over).await;
        let seconds = begun.elapsed().as_secs_f64();
        let changes = clusters * apps;
        figure("waves_rollout_s", seconds, "s");
        figure("waves_units_per_s", changes as f64 / seconds, "units/s");
        println!("{apps} apps on {clusters} clusters in {RINGS} rings: {:?}", fleet.request_counts());
        at_most("waves_requests_per_change", fleet.requests().len() as f64 / changes as f64, "requests", 1.0);
    });
}
