use serde_json::{Value, json};

use super::super::HealthRules;
use super::super::health_rules::fits;
use super::{expressions, rules, script, shown, source};
use crate::model::GroupVersionKind;

fn failed(message: &str) -> super::RuleBody {
    script(&format!("return {{status = 'Degraded', message = '{message}'}}"))
}

fn of(rules: &HealthRules, api_version: &str, kind: &str) -> String {
    shown(&rules.health_of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})))
}

#[test]
fn the_nearest_rule_judges() {
    let rules = rules(vec![
        source("_.example.com", "_", failed("pattern")),
        source("db.example.com", "Database", failed("exact")),
        source("", "ConfigMap", failed("map")),
        source("apps", "Deployment", expressions("", "", "true")),
    ]);
    assert_eq!(of(&rules, "db.example.com/v1", "Database"), "Failed: exact");
    assert_eq!(of(&rules, "db.example.com/v2", "Database"), "Failed: exact", "of all versions");
    assert_eq!(of(&rules, "db.example.com/v1", "Table"), "Failed: pattern");
    assert_eq!(of(&rules, "other.com/v1", "Table"), "Current");
    assert_eq!(of(&rules, "v1", "ConfigMap"), "Failed: map");
    assert_eq!(of(&rules, "v1", "Secret"), "Current");
    assert_eq!(of(&rules, "apps/v1", "Deployment"), "Current", "over the shipped rule");
    let mut leaving = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
    assert_eq!(shown(&rules.health_of(&leaving)), "Terminating: being deleted");
}

#[test]
fn patterns() {
    for (pattern, text, expected) in [
        ("_.example.com", "db.example.com", true),
        ("_.example.com", "example.com", false),
        ("_", "", true),
        ("a_c", "abbc", true),
        ("a_c", "ac", true),
        ("a_c", "abcd", false),
        ("_a_", "banana", true),
        ("_x_", "banana", false),
        ("Database", "Databases", false),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} on {text}");
    }
}

#[test]
fn rule_needs_whole_objects_and_has_a_digest() {
    let map = GroupVersionKind::new("", "v1", "ConfigMap");
    let with = |message: &str| rules(vec![source("", "ConfigMap", failed(message))]);
    assert!(HealthRules::default().is_metadata_only(&map));
    assert!(!with("a").is_metadata_only(&map));
    assert_eq!(with("a").rule_digest(&map), with("a").rule_digest(&map));
    assert_ne!(with("a").rule_digest(&map), with("b").rule_digest(&map));
    assert_eq!(HealthRules::default().rule_digest(&map), None);
    assert_eq!(with("a"), with("a"));
    assert_ne!(with("a"), HealthRules::default());
}

/// A pattern is for custom kinds: it does not match the core group, which has Secrets.
#[test]
fn patterns_do_not_reach_the_core_group() {
    let rules = rules(vec![source("_", "_", failed("all"))]);
    assert_eq!(of(&rules, "v1", "Secret"), "Current");
    assert_eq!(of(&rules, "example.com/v1", "Secret"), "Failed: all");
    assert_eq!(rules.health_of(&Value::Null).status, crate::model::HealthStatus::Unknown);
}
