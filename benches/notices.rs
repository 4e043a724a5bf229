//! The cost of one overview for 20 notification routes: 10,000 apps on 200 clusters, all of one commit.
#![allow(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;
#[path = "shared/large_fleet.rs"]
mod large_fleet;

use std::collections::BTreeSet;

use jiff::Timestamp;
use large_fleet::{median, milliseconds, overview};
use tutti::model::{AppId, Revision};
use tutti::report::notices::{OverviewIndex, RouteFilter};

const ROUTES: usize = 20;
const LOOKS: usize = 5;

fn main() {
    let overview = overview(&Revision::from("4f9c2d1e8b7a6053c4d2e1f0a9b8c7d6e5f40312"));
    let apps: BTreeSet<&AppId> = overview.targets.iter().map(|target| &target.app).collect();
    // Each team has its own apps.
    let teams: Vec<BTreeSet<&AppId>> = (0..ROUTES)
        .map(|team| {
            apps.iter()
                .copied()
                .enumerate()
                .filter(|(at, _)| at % ROUTES == team)
                .map(|(_, app)| app)
                .collect()
        })
        .collect();
    let (open, reverted) = (BTreeSet::new(), BTreeSet::new());
    let mut sorted = milliseconds(LOOKS, || drop(OverviewIndex::of(&overview, &open).expect("it is known")));
    let moment = OverviewIndex::of(&overview, &open).expect("it is known");
    let mut seen = milliseconds(LOOKS, || {
        for team in &teams {
            let look = RouteFilter {
                wants_apps: true,
                wants_rings_or_clusters: false,
                app: &|app| team.contains(app),
                ring: &|_| true,
                cluster: &|_| true,
            };
            assert_eq!(moment.thread_states(&look, &reverted, Timestamp::UNIX_EPOCH).len(), 2);
        }
    });
    let all = RouteFilter {
        wants_apps: false,
        wants_rings_or_clusters: false,
        app: &|_| true,
        ring: &|_| true,
        cluster: &|_| true,
    };
    let mut one = milliseconds(LOOKS, || drop(moment.thread_states(&all, &reverted, Timestamp::UNIX_EPOCH)));
    goals::figure("notices_sort_ms", median(&mut sorted), "ms");
    goals::figure("notices_all_ms", median(&mut one), "ms");
    // Beside the controller; after it comes a pause of four times as long.
    goals::at_most("notices_20_teams_ms", median(&mut seen), "ms", 1000.0);
    // Teams share the fleet: together they cost what it is, and not twenty times that.
    goals::at_most("notices_20_teams_of_all", median(&mut seen) / median(&mut one), "×", 3.0);
    goals::check();
}
