//! Tests of the alert rules and the dashboard, with promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use self::monitoring::{dashboard, groups, queries};
use super::chart::{read, yaml};
use super::root;

#[path = "../../../tests/it/support/monitoring.rs"]
mod monitoring;

/// The metrics of a tutti process, from the documented table that a test keeps equal to them; counters without their suffix.
fn metrics() -> BTreeSet<String> {
    let page = read("docs/reference/metrics.md");
    let names =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name));
    names.map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned()).collect()
}

/// Whether Prometheus' own tool is there; a loud line, and a failure where the tests must be whole.
fn has_promtool() -> bool {
    if Command::new("promtool").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    let why = "##### THE TESTS OF ALERT RULES DID NOT RUN: there is no promtool (Debian: apt-get install prometheus) #####";
    assert_ne!(env::var("TUTTI_LIVE").as_deref(), Ok("1"), "{why}");
    eprintln!("{why}");
    false
}

#[track_caller]
fn promtool(folder: &Path, arguments: &[&str]) {
    let output =
        Command::new("promtool").args(arguments).current_dir(folder).output().expect("promtool runs");
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}: {told}{errors}");
}

fn rules() -> Vec<Value> {
    let groups = groups(&root())["groups"].as_array().cloned().expect("groups");
    groups.iter().flat_map(|group| group["rules"].as_array().cloned().expect("rules")).collect()
}

fn tests() -> Value {
    yaml(&read("tests/fixtures/deploy/alerts.test.yaml"))
}

#[test]
fn alerts_fire_and_end() {
    if !has_promtool() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rules.yaml"), groups(&root()).to_string()).expect("a file");
    fs::write(folder.path().join("test.yaml"), tests().to_string()).expect("a file");
    promtool(folder.path(), &["check", "rules", "rules.yaml"]);
    promtool(folder.path(), &["test", "rules", "test.yaml"]);
}

#[test]
fn each_alert_is_seen_before_during_and_after() {
    // By alert: whether it is expected to be there, one look after the other.
    let mut looks = BTreeMap::<String, Vec<bool>>::new();
    for test in tests()["tests"].as_array().expect("tests") {
        let cases = test["alert_rule_test"].as_array().expect("cases");
        let fires = |case: &Value| case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
        for case in cases {
            assert_eq!(case["alertname"], test["name"]);
        }
        let name = test["name"].as_str().expect("a name").to_owned();
        looks.entry(name).or_insert_with(|| cases.iter().map(fires).collect());
    }
    let alerts: BTreeSet<String> =
        rules().iter().map(|rule| rule["alert"].as_str().expect("an alert").to_owned()).collect();
    assert_eq!(looks.keys().cloned().collect::<BTreeSet<_>>(), alerts);
    for (alert, looks) in looks {
        assert_eq!(looks, [false, true, false], "{alert}");
    }
}

#[test]
fn alerts_say_what_to_do() {
    let page = read("docs/install.md");
    for rule in rules() {
        let alert = rule["alert"].as_str().expect("an alert");
        let severity = rule["labels"]["severity"].as_str().expect("a severity");
        assert!(["critical", "warning"].contains(&severity), "{alert}");
        for words in ["summary", "description"] {
            assert!(rule["annotations"][words].as_str().is_some_and(|text| text.len() > 10), "{alert}");
        }
        let runbook = rule["annotations"]["runbook_url"].as_str().expect("a runbook");
        assert!(
            runbook.ends_with(&format!("/docs/install.md#{}", alert.to_lowercase())),
            "{alert}: {runbook}"
        );
        assert!(page.contains(&format!("\n### {alert}\n")), "docs/install.md has no runbook for {alert}");
    }
}

#[test]
fn queries_of_the_dashboard_are_read_by_prometheus() {
    let queries = queries(&root());
    if !has_promtool() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let records = queries.iter().enumerate();
    let records: Vec<Value> =
        records.map(|(at, query)| json!({"record": format!("panel:{at}"), "expr": query})).collect();
    let text = json!({"groups": [{"name": "dashboard", "rules": records}]}).to_string();
    fs::write(folder.path().join("queries.yaml"), text).expect("a file");
    promtool(folder.path(), &["check", "rules", "queries.yaml"]);
}

#[test]
fn rules_and_panels_name_metrics_that_there_are() {
    let expressions = rules().into_iter().map(|rule| rule["expr"].as_str().expect("a query").to_owned());
    let known = metrics();
    let mut seen = BTreeSet::new();
    for query in expressions.chain(queries(&root())) {
        let names = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for name in names.filter(|name| name.starts_with("tutti_") || name.starts_with("process_")) {
            let base = name.strip_suffix("_total").or(name.strip_suffix("_bucket")).unwrap_or(name);
            assert!(known.contains(base), "{name} in {query}");
            seen.insert(base.to_owned());
        }
    }
    assert!(seen.len() >= 14, "{seen:?}");
}

#[test]
fn dashboard_is_one_that_grafana_takes() {
    let dashboard = dashboard(&root());
    assert_eq!(dashboard["uid"], "tutti-fleet");
    assert!(dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 39));
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    assert!(
        variables.iter().any(|variable| variable["type"] == "datasource" && variable["name"] == "datasource")
    );
    let panels = dashboard["panels"].as_array().expect("panels");
    let numbers: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(numbers.len(), panels.len(), "each panel has a number of its own");
    let rows: Vec<&str> = panels
        .iter()
        .filter(|panel| panel["type"] == "row")
        .filter_map(|panel| panel["title"].as_str())
        .collect();
    assert_eq!(rows, ["Fleet", "Delivery", "Inputs", "Process"]);
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        assert!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{}", panel["title"]);
        let place = &panel["gridPos"];
        let right = place["x"].as_u64().zip(place["w"].as_u64()).map(|(x, width)| x + width);
        assert!(right.is_some_and(|right| right <= 24), "{}", panel["title"]);
    }
}
