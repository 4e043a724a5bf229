//! A repository with a mistake of every class: each is reported once, at its place, and nothing else is reported.
//!
//! The line of a mistake has the comment `# mistake: E1201`, which fixes places and codes. Messages are in
//! `tests/fixtures/mistakes.expected.txt`; `UPDATE_GOLDEN=1` writes that file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::program;

/// (file, line, code)
type MistakePosition = (String, u64, String);

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// All files of a folder, by relative path.
fn folder_files(root: &Path) -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("inside").display().to_string();
                found.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    found
}

/// Mistakes according to the comments.
fn marked_mistakes(repository: &str) -> Vec<MistakePosition> {
    let mut found = Vec::new();
    for (file, text) in folder_files(&fixtures().join(repository)) {
        for (line, text) in (1_u64..).zip(text.lines()) {
            let Some((_, mark)) = text.split_once("# mistake: ") else { continue };
            let codes = mark.split([',', ' ']).filter(|word| word.starts_with('E'));
            found.extend(codes.map(|code| (file.clone(), line, code.to_owned())));
        }
    }
    found.sort();
    found
}

/// Mistakes according to `tutti lint`.
fn lint_mistakes(repository: &str) -> Vec<MistakePosition> {
    let (output, errors, code) = program::run(&fixtures(), &["lint", repository, "-o", "json"]);
    assert_eq!((errors.as_str(), code), ("", 2));
    let mistakes: Vec<Value> = serde_json::from_str(&output).expect("JSON");
    let place = |mistake: &Value| {
        let (location, start) = (&mistake["location"], &mistake["location"]["start"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        assert!(start["column"].as_u64().is_some_and(|column| column > 0), "{mistake}");
        (text(&location["file"]), start["line"].as_u64().unwrap_or(0), text(&mistake["code"]))
    };
    let mut found: Vec<MistakePosition> = mistakes.iter().map(place).collect();
    found.sort();
    found
}

#[track_caller]
fn check_mistakes(repository: &str, classes: usize) {
    let (seeded, told) = (marked_mistakes(repository), lint_mistakes(repository));
    let lines = |of: &[MistakePosition], other: &[MistakePosition]| -> Vec<String> {
        of.iter().filter(|it| !other.contains(it)).map(|it| format!("{}:{} {}", it.0, it.1, it.2)).collect()
    };
    assert_eq!(
        (lines(&seeded, &told), lines(&told, &seeded)),
        (Vec::new(), Vec::new()),
        "not told, not seeded"
    );
    assert_eq!(seeded, told, "one is told twice");
    let distinct: BTreeSet<&str> = seeded.iter().map(|(.., code)| code.as_str()).collect();
    assert!(distinct.len() >= classes, "{} classes: {distinct:?}", distinct.len());
}

#[test]
fn each_mistake_is_reported_once_with_position() {
    check_mistakes("mistakes", 60);
    check_mistakes("mistakes-instance", 3);
}

#[test]
fn mistake_messages_match_the_expected_file() {
    for repository in ["mistakes", "mistakes-instance"] {
        let (output, errors, code) = program::run(&fixtures(), &["lint", repository]);
        assert_eq!((output.as_str(), code), ("", 2));
        let path = fixtures().join(format!("{repository}.expected.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &errors).expect("write");
        }
        assert_eq!(errors, fs::read_to_string(&path).unwrap_or_default());
    }
}

/// Mistakes of other apps do not affect it.
#[test]
fn valid_apps_are_rendered() {
    let (output, _, _) =
        program::run(&fixtures(), &["render", "shop/checkout", "--repo", "mistakes", "-o", "json"]);
    let objects: Vec<Value> = serde_json::from_str(&output).expect("JSON");
    let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, ["Service", "Deployment", "Service", "Deployment"]);
}
