//! Pages of `docs/reference` match the sources, and the list of pages is complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Paths below a folder, relative to the root.
fn folder_paths(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder");
    let mut found = Vec::new();
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => found.extend(folder_paths(&path)),
            false => found.push(PathBuf::from(path)),
        }
    }
    found
}

fn page_text(path: &Path) -> String {
    fs::read_to_string(root().join(path)).expect("a text")
}

/// The KEY of `const NAME: &str = "KEY";`, if it is a name with a domain.
fn constant_key(line: &str) -> Option<&str> {
    let (before, value) = line.split_once(": &str = \"")?;
    let key = value.split('"').next()?;
    before.contains("const ").then_some(key).filter(|key| is_key(key))
}

fn is_key(text: &str) -> bool {
    let of = |part: &str, more: &str| {
        !part.is_empty() && part.chars().all(|it| it.is_ascii_alphabetic() || more.contains(it))
    };
    text.split_once('/').is_some_and(|(domain, name)| {
        domain.trim_start_matches('.').contains('.') && of(domain, "0123456789.-") && of(name, "-")
    })
}

/// Keys in the first table cells.
fn documented_keys(page: &str) -> BTreeSet<&str> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.filter(|cell| is_key(cell)).collect()
}

#[test]
fn annotations_md_lists_every_key() {
    let constants = |folder: &str| -> BTreeSet<String> {
        let sources =
            folder_paths(folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
        sources
            .flat_map(|path| {
                page_text(&path).lines().filter_map(constant_key).map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    };
    let mut used = constants("src");
    used.extend(constants("crates/sandbox/src").into_iter().filter(|key| key.starts_with("sim.tutti.dev/")));
    for path in folder_paths("policies") {
        let text = page_text(&path);
        let words = text.split([' ', '{', '}', '"', ',', '\n']).map(|word| word.trim_end_matches(':'));
        let keys = words.filter(|word| word.starts_with("policies.tutti.dev/"));
        used.extend(keys.map(str::to_owned));
    }
    let page = page_text(Path::new("docs/reference/annotations.md"));
    assert_eq!(documented_keys(&page), used.iter().map(String::as_str).collect());
}

#[test]
fn every_page_is_listed() {
    let list = page_text(Path::new("docs/README.md"));
    let pages = folder_paths("docs").into_iter().map(|path| path.display().to_string());
    let missing: Vec<String> = pages
        .filter(|page| page.ends_with(".md") && page != "docs/README.md")
        .filter(|page| !list.contains(&format!("]({})", &page["docs/".len()..])))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
    assert!(list.lines().count() <= 40);
}

#[test]
fn key_of_a_constant_is_read() {
    assert_eq!(constant_key("pub const APP: &str = \"tutti.dev/app\";"), Some("tutti.dev/app"));
    for other in [
        "const A: &str = \"tutti.dev/v1alpha1\";",
        "const A: &str = \"application/json\";",
        "const A: &str = \".gitea/CODEOWNERS\";",
        "let a: &str = \"a.b/c\";",
    ] {
        assert_eq!(constant_key(other), None, "{other}");
    }
    let page = "| key |\n|---|\n| `a.b/c` | x |\n| `a` | `d.e/f` |\n";
    assert_eq!(documented_keys(page), BTreeSet::from(["a.b/c"]));
}
