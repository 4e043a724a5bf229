//! Reads the alert rules and the dashboard of `deploy/`, for tests with promtool and a real Prometheus.

use std::fs;
use std::path::Path;

use serde_json::Value;

fn yaml(root: &Path, path: &str) -> Value {
    let text = fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The groups of the PrometheusRule, the only source of the rules.
pub fn groups(root: &Path) -> Value {
    yaml(root, "deploy/monitoring/prometheusrule.yaml")["spec"].clone()
}

pub fn dashboard(root: &Path) -> Value {
    let map = yaml(root, "deploy/monitoring/dashboard.yaml");
    serde_json::from_str(map["data"]["tutti.json"].as_str().expect("a text")).expect("JSON")
}

/// The queries of the panels, as Grafana sends them.
pub fn queries(root: &Path) -> Vec<String> {
    let dashboard = dashboard(root);
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let sent = |query: &str| query.replace("$__rate_interval", "5m").replace("$namespace", "tutti-system");
    let queries: Vec<String> =
        targets.map(|target| sent(target["expr"].as_str().expect("a query"))).collect();
    assert!(queries.len() >= 15, "{queries:?}");
    assert!(queries.iter().all(|query| !query.contains('$')), "an unknown variable: {queries:?}");
    queries
}
