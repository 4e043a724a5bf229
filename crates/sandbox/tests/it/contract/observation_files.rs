//! Files of observations: the responses of a real server.

use std::fs;
use std::path::PathBuf;

use super::Check;

/// The first line of each file.
const HEADER: &str = "# Observed on kube-apiserver ";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contract/observed")
}

fn observation_path(name: &str) -> PathBuf {
    folder().join(format!("{name}.txt"))
}

/// The observed lines without the header; `None` without a file.
pub fn read_observation(name: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(observation_path(name)).ok()?;
    Some(text.lines().skip(1).map(str::to_owned).collect())
}

pub fn write_observation(name: &str, version: &str, lines: &[String]) {
    fs::create_dir_all(folder()).unwrap();
    fs::write(observation_path(name), format!("{HEADER}{version}.\n{}\n", lines.join("\n"))).unwrap();
}

/// Every check has a file with a header, and every file has a check.
pub fn check_files(checks: &[Check]) {
    for check in checks {
        let text = fs::read_to_string(observation_path(check.name)).unwrap_or_default();
        assert!(text.starts_with(HEADER), "{} was never observed on a real server", check.name);
    }
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let known = checks.iter().any(|check| format!("{}.txt", check.name) == name);
        assert!(known, "{name} is the observation of no check");
    }
}
