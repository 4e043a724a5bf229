//! Shipped policies, for `tutti new policy`.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::builder::PossibleValuesParser;

use crate::cli::exit::Exit;
use crate::cli::output::say;
use crate::cli::repository;
use crate::model::Snapshot;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../policies/", $name, ".yaml")))),*]
    };
}

/// Sorted by name.
pub const SHIPPED: [(&str, &str); 10] = shipped![
    "allowed-registries",
    "baseline-pod-security",
    "disruption-budget",
    "no-delete-of-data",
    "no-latest-tag",
    "no-node-port",
    "probes",
    "requests-and-limits",
    "run-as-non-root",
    "two-replicas",
];

pub fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SHIPPED.map(|(name, _)| name))
}

fn path(name: &str) -> String {
    format!("policies/{name}.yaml")
}

pub fn file(name: &str) -> anyhow::Result<BTreeMap<String, String>> {
    match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        Some((_, text)) => Ok(BTreeMap::from([(path(name), (*text).to_owned())])),
        None => bail!("there is no policy {name}: `tutti new policy` lists them"),
    }
}

/// Lists them with their descriptions.
pub fn list() -> Exit {
    let files = SHIPPED.map(|(name, text)| (path(name), text));
    let fleet =
        repository::fleet(&Snapshot::of_texts(files.iter().map(|(path, text)| (path.as_str(), *text))));
    let width = SHIPPED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for policy in fleet.policies.all() {
        let description = policy.description.as_deref().map(str::trim).unwrap_or_default();
        say!("{:width$}  {}", policy.name, description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Exit::Ok
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_policy_of_the_folder_is_shipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        let entries = fs::read_dir(folder).expect("the folder");
        let mut files: Vec<String> =
            entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        assert_eq!(files, SHIPPED.map(|(name, _)| format!("{name}.yaml")));
    }
}
