//! Known differences between the sandbox and a real server.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use super::Check;

/// One line of an observation that differs in the sandbox, with the reason.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDifference {
    /// The name of the check.
    pub check: String,
    /// The line of the real server; empty if it has none.
    #[serde(default)]
    pub real: String,
    /// The line of the sandbox; empty if it has none.
    #[serde(default)]
    pub sandbox: String,
    pub reason: String,
    /// The Kubernetes versions with this difference.
    pub versions: String,
}

pub fn read_entries() -> Vec<KnownDifference> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contract/ledger.yaml");
    let text = fs::read_to_string(&path).unwrap();
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Removes the known differences of a check from `(real, sandbox)` pairs of lines; the remaining pairs are unknown.
///
/// An entry that matches nothing is a failure too: the sandbox has improved.
pub fn unknown_differences(check: &str, mut pairs: Vec<(String, String)>) -> Vec<String> {
    let mut left = Vec::new();
    for entry in read_entries().into_iter().filter(|entry| entry.check == check) {
        let same = |pair: &(String, String)| pair.0 == entry.real && pair.1 == entry.sandbox;
        match pairs.iter().position(same) {
            Some(place) => drop(pairs.remove(place)),
            None => left.push(format!("the ledger names a difference that is none: {entry:?}")),
        }
    }
    left.extend(pairs.into_iter().map(|(real, sandbox)| format!("real:    {real}\nsandbox: {sandbox}")));
    left
}

pub fn check_entries(checks: &[Check]) {
    for entry in read_entries() {
        assert!(checks.iter().any(|check| check.name == entry.check), "no such check: {entry:?}");
        assert!(entry.real != entry.sandbox, "no difference: {entry:?}");
        assert!(!entry.reason.trim().is_empty() && !entry.versions.is_empty(), "no reason: {entry:?}");
    }
}
