//! The corpus of valid and deliberately invalid texts.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// The texts of a target, which the mutations split and recombine.
pub fn of(target: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders: &[&str] = match target {
        "yaml" => &["tests/fixtures", "examples/repo"],
        "hub" => {
            &["tests/fixtures/seeds", "tests/fixtures/migrate", "tests/fixtures/mistakes", "examples/repo"]
        }
        _ => &["src/render/shipped", "examples/repo/templates", "examples/repo/apps"],
    };
    let mut texts = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut texts);
    }
    if target == "yaml" {
        texts.extend(vectors(&root.join("src/manifest/yaml/documents.jsonl.gz")));
    }
    if target == "hub" {
        // Rules of conversions are manifests too.
        collect(&root.join("src/manifest/hub/shipped"), &mut texts);
    }
    assert!(texts.len() > 10, "{target} has hardly any texts");
    texts
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "j2") {
            texts.extend(fs::read_to_string(&path).ok());
        }
    }
}

/// The texts that the YAML reader is held to.
fn vectors(path: &Path) -> Vec<String> {
    let mut lines = String::new();
    let packed = fs::File::open(path).expect("the vectors");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut lines).expect("lines");
    let text = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).ok()?;
        case.as_object()?.values().find_map(|value| Some(value.as_str()?.to_owned()))
    };
    lines.lines().filter_map(text).collect()
}
