//! Pages of `docs/reference` match the sources, and the list of pages is complete.

use std::collections::BTreeSet;

use crate::source_rules::{SourceFile, files};

fn page<'f>(files: &'f [SourceFile], path: &str) -> &'f str {
    &files.iter().find(|file| file.path == path).expect("the page").text
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
    let files = files();
    let below = |folder: &'static str| files.iter().filter(move |file| file.path.starts_with(folder));
    let constants = |folder| {
        let sources = below(folder).filter(|file| file.is_rust());
        sources.flat_map(|file| file.text.lines().filter_map(constant_key))
    };
    let mut used: BTreeSet<&str> = constants("src/").collect();
    used.extend(constants("crates/sandbox/src/").filter(|key| key.starts_with("sim.tutti.dev/")));
    for file in below("policies/") {
        let words = file.text.split([' ', '{', '}', '"', ',', '\n']).map(|word| word.trim_end_matches(':'));
        used.extend(words.filter(|word| word.starts_with("policies.tutti.dev/")));
    }
    assert_eq!(documented_keys(page(&files, "docs/reference/annotations.md")), used);
}

#[test]
fn every_page_is_listed() {
    let files = files();
    let list = page(&files, "docs/README.md");
    let pages = files.iter().filter_map(|file| file.path.strip_prefix("docs/"));
    let missing: Vec<&str> = pages
        .filter(|page| page.ends_with(".md") && *page != "README.md" && !list.contains(&format!("]({page})")))
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
