//! Requests, counted by the embedded API server under a paused clock.

use std::time::Duration;

use crate::goals::at_most;
use crate::manifests::{app, app_path, four_objects, objects_path};
use crate::support::fleet::TestFleet;

const APPS: usize = 1000;
const CHANGED: usize = 100;

pub fn counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let files: Vec<(String, String)> = (0..APPS)
            .flat_map(|number| {
                [(app_path(number), app(number)), (objects_path(number), four_objects(number, 1))]
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let fleet = TestFleet::new(&["one"], &files);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;

        fleet.clear_requests();
        tokio::time::sleep(Duration::from_secs(600)).await;
        at_most("idle_requests", fleet.requests().len() as f64, "requests", 0.0);

        fleet.clear_requests();
        let changed: Vec<(String, String)> =
            (0..CHANGED).map(|number| (objects_path(number), four_objects(number, 2))).collect();
        let changes: Vec<_> =
            changed.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        let revision = fleet.push(&running, "Change some", &changes).await;
        running.until_converged(&revision).await;
        println!("{CHANGED} objects of {APPS} apps changed: {:?}", fleet.request_counts());
        at_most("requests_for_k_changes", fleet.requests().len() as f64, "requests", CHANGED as f64);
    });
}
