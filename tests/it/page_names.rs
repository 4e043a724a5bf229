//! Files, types and modules that pages and comments name exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;

const FOLDERS: [&str; 7] = ["benches", "crates", "docs", "examples", "src", "tests", "xtask"];

/// Past names are right there.
const HISTORY: &str = "CHANGELOG.md";

struct Names {
    /// Each path, and each end of it after a slash.
    path_ends: BTreeSet<String>,
    sources: Vec<(String, String)>,
    /// Of a type, the sources that define it or have a block `impl` of it, as indexes.
    homes: BTreeMap<String, BTreeSet<usize>>,
    /// Of a module of `src` or `tests/it`, all its text.
    modules: BTreeMap<String, String>,
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "fixtures" && !name.starts_with('.') {
            collect(&path, files);
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            let place = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("below the root");
            files.push((place.to_string_lossy().into_owned(), fs::read_to_string(&path).expect("a text")));
        }
    }
}

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

impl Names {
    fn of(files: &[(String, String)]) -> Self {
        let ends = |path: &str| -> Vec<String> {
            let starts = path.match_indices('/').map(|(at, _)| path[at + 1..].to_owned());
            starts.chain([path.to_owned()]).collect()
        };
        let path_ends = files.iter().flat_map(|(path, _)| ends(path)).collect();
        let sources: Vec<(String, String)> =
            files.iter().filter(|(path, _)| path.ends_with(".rs")).cloned().collect();
        let definition = regex(r"\b(?:struct|enum|trait|type|union)\s+([A-Z]\w*)");
        let block = regex(r"\bimpl\b[^{;]*?\b([A-Z]\w*)(?:<[^{]*?>)?\s*(?:where[^{]*)?\{");
        let (mut homes, mut modules) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, String>::new());
        for (index, (path, text)) in sources.iter().enumerate() {
            for found in definition.captures_iter(text).chain(block.captures_iter(text)) {
                homes.entry(found[1].to_owned()).or_default().insert(index);
            }
            let below = path.strip_prefix("src/").or_else(|| path.strip_prefix("tests/it/"));
            if let Some(module) = below.and_then(|path| path.split('/').next()) {
                modules.entry(module.trim_end_matches(".rs").to_owned()).or_default().push_str(text);
            }
        }
        Self { path_ends, sources, homes, modules }
    }

    /// Why nothing has the name; `None` if something has it, or if it is no name of this project.
    fn objection(&self, span: &str) -> Option<&'static str> {
        if regex(r"^[\w/.-]*\w\.rs$").is_match(span) {
            return (!self.path_ends.contains(span)).then_some("no such file");
        }
        let span = span.trim_end_matches("()");
        if let Some((name, member)) = span.split_once("::")
            && name != "Self"
            && regex(r"^[A-Z]\w*$").is_match(name)
            && regex(r"^\w+$").is_match(member)
        {
            let homes = self.homes.get(name)?;
            let word = regex(&format!(r"\b{member}\b"));
            let has_member = homes.iter().any(|index| word.is_match(&self.sources[*index].1));
            return (!has_member).then_some("no such member");
        }
        let (module, rest) = span.split_once("::")?;
        let name = rest.rsplit("::").next().filter(|name| regex(r"^\w+$").is_match(name))?;
        let text = self.modules.get(module)?;
        let kinds = "fn|struct|enum|trait|mod|const|static|type";
        let item = regex(&format!(r"\b(?:{kinds})\s+{name}\b|\b{name}\s*[,{{(;}}]"));
        (!item.is_match(text)).then_some("no such item")
    }

    /// The type of a page must exist: a page names none of another library with a member.
    fn is_unknown_type(&self, span: &str) -> bool {
        let name = span.split("::").next().unwrap_or_default();
        span.contains("::") && regex(r"^[A-Z]\w*$").is_match(name) && !self.homes.contains_key(name)
    }
}

/// Texts in backticks outside of fenced blocks, with their lines.
fn spans<'t>(path: &str, text: &'t str) -> Vec<(usize, &'t str)> {
    let is_page = path.ends_with(".md");
    let (mut is_code, mut found) = (false, Vec::new());
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        is_code ^= is_page && trimmed.starts_with("```");
        if is_code || !is_page && !trimmed.starts_with("//") {
            continue;
        }
        found.extend(line.split('`').skip(1).step_by(2).map(|span| (index + 1, span)));
    }
    found
}

#[test]
fn names_in_pages_and_comments_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files);
    }
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SHORTCOMINGS.md"] {
        files.push((name.to_owned(), fs::read_to_string(root.join(name)).expect("a page")));
    }
    let names = Names::of(&files);
    let mut wrong = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path != HISTORY) {
        for (line, span) in spans(path, text) {
            let is_unknown = path.ends_with(".md") && names.is_unknown_type(span);
            if let Some(why) = names.objection(span).or(is_unknown.then_some("no such type")) {
                wrong.push(format!("{path}:{line}: `{span}`: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "names that nothing has:\n{}", wrong.join("\n"));
}
