//! Rules for the source tree that the compiler does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of the longest file.
const MAX_LINES: usize = 700;
/// At least 90 of 100 files are not longer.
const USUAL_MAX_LINES: usize = 400;
/// May only decrease, down to 150.
const MAX_MEDIAN_LINES: usize = 150;

/// Folders with hand-written text. In `tests` only Rust files: data may contain anything.
const FOLDERS: [&str; 11] = [
    "benches", "charts", "crates", "deploy", "docs", "examples", "policies", "src", "tests", "tools", "xtask",
];

const REQUIRED_DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SHORTCOMINGS.md", "LICENSE"];

pub struct SourceFile {
    /// Relative to the checkout's root, with `/`.
    pub path: String,
    pub text: String,
}

impl SourceFile {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.split('\n').enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All hand-written text files of [`FOLDERS`] and of the root.
pub fn files() -> Vec<SourceFile> {
    let mut paths: Vec<PathBuf> = folder_entries(root()).into_iter().filter(|path| path.is_file()).collect();
    let mut folders: Vec<PathBuf> =
        FOLDERS.iter().map(|folder| root().join(folder)).filter(|p| p.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for path in folder_entries(&folder) {
            if !path.is_dir() {
                paths.push(path);
            } else if path.file_name() != Some(OsStr::new("target")) {
                folders.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let relative = path.strip_prefix(root()).expect("a path inside the checkout");
        let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        let relative = parts.join("/");
        let extension = path.extension()?.to_str()?;
        let by_hand = matches!(extension, "rs" | "toml" | "md" | "yaml" | "yml" | "j2" | "go" | "sh");
        (by_hand && (extension == "rs" || !relative.starts_with("tests/")))
            .then(|| SourceFile { path: relative, text: fs::read_to_string(&path).expect("a readable file") })
    };
    paths.into_iter().filter_map(read).collect()
}

fn folder_entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).expect("a readable folder");
    read.map(|entry| entry.expect("a readable entry").path()).collect()
}

#[track_caller]
fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn files_are_short() {
    let mut sizes: Vec<(usize, String)> = files()
        .into_iter()
        .filter(SourceFile::is_rust)
        .map(|file| (file.text.lines().count(), file.path))
        .collect();
    sizes.sort();
    assert_none("too long", &size_violations(&sizes));
}

/// `sizes` is sorted.
fn size_violations(sizes: &[(usize, String)]) -> Vec<String> {
    let mut objections: Vec<String> = sizes
        .iter()
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{path} has {lines} lines, {MAX_LINES} is the most"))
        .collect();
    let long: Vec<&(usize, String)> = sizes.iter().filter(|(lines, _)| *lines > USUAL_MAX_LINES).collect();
    if long.len() * 10 > sizes.len() {
        objections.push(format!("more than a tenth of the files has over {USUAL_MAX_LINES} lines: {long:?}"));
    }
    if let Some((median, path)) = sizes.get(sizes.len() / 2)
        && *median > MAX_MEDIAN_LINES
    {
        objections.push(format!("the median is {median} lines ({path}), {MAX_MEDIAN_LINES} is the most"));
    }
    objections
}

#[test]
fn oversized_files_are_found() {
    let sizes = |lines: &[usize]| -> Vec<(usize, String)> {
        lines.iter().map(|lines| (*lines, format!("{lines}.rs"))).collect()
    };
    assert!(size_violations(&sizes(&[1; 20])).is_empty());
    assert_eq!(size_violations(&sizes(&[151; 20])), ["the median is 151 lines (151.rs), 150 is the most"]);
    let one_long: Vec<usize> = [vec![1; 20], vec![701]].concat();
    assert_eq!(size_violations(&sizes(&one_long)), ["701.rs has 701 lines, 700 is the most"]);
    let tenth_long: Vec<usize> = [vec![1; 20], vec![401; 3]].concat();
    assert_eq!(size_violations(&sizes(&tenth_long)).len(), 1);
}

#[test]
fn lines_have_no_trailing_whitespace() {
    let mut found = Vec::new();
    for file in files() {
        for (line, text) in file.lines() {
            if text.ends_with([' ', '\t', '\r']) {
                found.push(format!("{}:{line}", file.path));
            }
        }
        if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
            found.push(format!("{}: one line break at the end", file.path));
        }
    }
    assert_none("white space at the end", &found);
}

#[test]
fn no_leftover_macros_or_markers() {
    // Split, or this file would match.
    let banned = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    assert_none("left over", &banned_words(SourceFile::is_rust, &banned));
}

#[test]
fn no_machine_specific_paths() {
    let banned =
        [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
    assert_none("a path that exists on one machine only", &banned_words(|_| true, &banned));
}

fn banned_words(wanted: impl Fn(&SourceFile) -> bool, banned: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| wanted(file)) {
        for (line, text) in file.lines() {
            if let Some(word) = banned.iter().find(|word| text.contains(**word)) {
                found.push(format!("{}:{line}: {word}", file.path));
            }
        }
    }
    found
}

#[test]
fn modules_have_module_docs() {
    let found: Vec<String> = files()
        .into_iter()
        .filter(|file| file.is_rust() && !file.is_test() && !file.text.starts_with("//!"))
        .map(|file| file.path)
        .collect();
    assert_none("without a //! line at the top", &found);
}

#[test]
fn required_documents_exist() {
    let missing = |document: &&&str| !fs::metadata(root().join(document)).is_ok_and(|file| file.len() > 0);
    let missing: Vec<String> =
        REQUIRED_DOCUMENTS.iter().filter(missing).map(|document| (*document).to_owned()).collect();
    assert_none("missing documents", &missing);
}

#[test]
fn dependencies_have_comments() {
    let found: Vec<String> = files()
        .into_iter()
        .filter(|file| file.path.ends_with("Cargo.toml"))
        .flat_map(|file| {
            let unexplained = uncommented_dependencies(&file.text);
            unexplained.into_iter().map(move |(line, name)| format!("{}:{line}: {name}", file.path))
        })
        .collect();
    assert_none("dependencies without a comment", &found);
}

/// Dependencies of a manifest without a comment on their line or the line before.
fn uncommented_dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut before = "";
    for (index, line) in manifest.lines().enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            // The workspace table only sets versions; each crate explains its dependencies.
            inside = section.trim_end_matches(']').ends_with("dependencies")
                && section != "workspace.dependencies]";
        } else if inside
            && let Some((name, _)) = line.split_once('=')
            && !line.starts_with([' ', '#', ']', '}'])
            && !line.contains(" # ")
            && !before.starts_with('#')
        {
            found.push((index + 1, name.trim().to_owned()));
        }
        before = line;
    }
    found
}

#[test]
fn uncommented_dependencies_are_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\" # why\nb = \"1\"\n# why\nc = { version = \"1\" }\n\
                    [workspace.dependencies]\nd = \"1\"\n[target.'cfg(unix)'.dev-dependencies]\ne = \"1\"\n";
    assert_eq!(uncommented_dependencies(manifest), [(5, "b".to_owned()), (11, "e".to_owned())]);
}

#[test]
fn page_links_have_targets() {
    let pages: Vec<SourceFile> = files()
        .into_iter()
        .filter(|file| {
            file.path.ends_with(".md") && (file.path.starts_with("docs/") || !file.path.contains('/'))
        })
        .collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (&*page.path, anchors(&page.text))).collect();
    let mut found = Vec::new();
    for page in &pages {
        for (line, link) in file_links(&page.text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.path.clone() } else { resolve_link(&page.path, path) };
            let known = anchors.get(&*target);
            let is_there = known.is_some() || root().join(&target).exists();
            let has_anchor = anchor.is_empty() || known.is_none_or(|known| known.contains(anchor));
            if !(is_there && has_anchor) {
                found.push(format!("{}:{line}: {link}", page.path));
            }
        }
    }
    assert_none("links that lead nowhere", &found);
}

/// Lines outside fenced blocks, with their numbers.
pub fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// Links to files of the repository.
fn file_links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose_lines(text).flat_map(|(number, line)| {
        let ends = line.match_indices("](").filter_map(move |(at, _)| line[at + 2..].split(')').next());
        ends.filter(|link| !link.contains("://") && !link.contains(' ')).map(move |link| (number, link))
    })
}

/// Heading anchors as a forge creates them.
fn anchors(text: &str) -> BTreeSet<String> {
    let lines = prose_lines(text).map(|(_, line)| line).filter(|line| line.starts_with('#'));
    let headings = lines.map(|line| line.trim_start_matches('#'));
    let name = |heading: &str| -> String {
        let words = heading.trim().to_lowercase();
        let kept = words.chars().filter(|it| it.is_alphanumeric() || matches!(it, '-' | '_' | ' '));
        kept.map(|it| if it == ' ' { '-' } else { it }).collect()
    };
    headings.map(name).collect()
}

/// A link of a page, relative to the checkout's root.
fn resolve_link(page: &str, path: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn broken_link_is_detected() {
    let text = "# A `b` c\n[x](other.md#a-b-c)\n```\n[no](x)\n```\n[y](https://example.com) [z](#a-b-c)\n";
    assert_eq!(file_links(text).collect::<Vec<_>>(), [(2, "other.md#a-b-c"), (6, "#a-b-c")]);
    assert_eq!(anchors(text), BTreeSet::from(["a-b-c".to_owned()]));
    assert_eq!(resolve_link("docs/how-to/x.md", "../../README.md"), "README.md");
    assert_eq!(resolve_link("README.md", "docs/x.md"), "docs/x.md");
}
