//! Files, types and modules that pages and comments name exist.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::source_rules::{SourceFile, files, prose_lines};

/// Past names are right there.
const HISTORY: &str = "CHANGELOG.md";

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

struct Names {
    /// Each path, and each end of it after a slash.
    path_ends: BTreeSet<String>,
    sources: Vec<SourceFile>,
    /// Of a type, the sources that define it or have a block `impl` of it, as indexes.
    homes: BTreeMap<String, BTreeSet<usize>>,
    /// Of a module of `src` or `tests/it`, or of a crate, all its text.
    modules: BTreeMap<String, String>,
    rust_path: Regex,
    type_name: Regex,
    word: Regex,
}

impl Names {
    fn of(sources: Vec<SourceFile>) -> Self {
        let ends = |path: &str| -> Vec<String> {
            let starts = path.match_indices('/').map(|(at, _)| path[at + 1..].to_owned());
            starts.chain([path.to_owned()]).collect()
        };
        let definition = regex(r"\b(?:struct|enum|trait|type|union)\s+([A-Z]\w*)");
        let block = regex(r"\bimpl\b[^{;]*?\b([A-Z]\w*)(?:<[^{]*?>)?\s*(?:where[^{]*)?\{");
        let (mut homes, mut modules) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, String>::new());
        for (index, SourceFile { path, text }) in sources.iter().enumerate() {
            for found in definition.captures_iter(text).chain(block.captures_iter(text)) {
                homes.entry(found[1].to_owned()).or_default().insert(index);
            }
            let below = ["src/", "tests/it/", "crates/"].iter().find_map(|folder| path.strip_prefix(folder));
            if let Some(module) = below.and_then(|path| path.split('/').next()) {
                modules.entry(module.trim_end_matches(".rs").to_owned()).or_default().push_str(text);
            }
        }
        Self {
            path_ends: sources.iter().flat_map(|file| ends(&file.path)).collect(),
            sources,
            homes,
            modules,
            rust_path: regex(r"^[\w/.-]*\w\.rs$"),
            type_name: regex(r"^[A-Z]\w*$"),
            word: regex(r"^\w+$"),
        }
    }

    /// Why nothing has the name; `None` if something has it, or if it is no name of this project. A page names no member of a
    /// type of another library, a comment may.
    fn objection(&self, span: &str, is_page: bool) -> Option<&'static str> {
        if self.rust_path.is_match(span) {
            return (!self.path_ends.contains(span)).then_some("no such file");
        }
        let (name, member) = span.trim_end_matches("()").split_once("::")?;
        if self.type_name.is_match(name) {
            let Some(homes) = self.homes.get(name).filter(|_| name != "Self") else {
                return is_page.then_some("no such type");
            };
            if !self.word.is_match(member) {
                return None;
            }
            let word = regex(&format!(r"\b{member}\b"));
            let has_member = homes.iter().any(|index| word.is_match(&self.sources[*index].text));
            return (!has_member).then_some("no such member");
        }
        let text = self.modules.get(name)?;
        let mut parts: Vec<&str> = member.trim_end_matches("::*").split("::").collect();
        let item = parts.pop().filter(|item| self.word.is_match(item))?;
        if !parts.iter().all(|part| self.word.is_match(part)) {
            return None;
        }
        let has = |pattern: String| regex(&pattern).is_match(text);
        if !parts.iter().all(|part| has(format!(r"\b(?:mod|struct|enum|trait)\s+{part}\b"))) {
            return Some("no such module");
        }
        let kinds = "fn|struct|enum|trait|mod|const|static|type";
        (!has(format!(r"\b(?:{kinds})\s+{item}\b|\b{item}\s*[,{{(;}}]"))).then_some("no such item")
    }
}

/// Texts in backticks outside of fenced blocks, with their lines.
fn spans(file: &SourceFile) -> Vec<(usize, &str)> {
    let lines: Vec<(usize, &str)> = match file.is_rust() {
        true => file.lines().filter(|(_, line)| line.trim_start().starts_with("//")).collect(),
        false => prose_lines(&file.text).collect(),
    };
    lines
        .into_iter()
        .flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |span| (number, span)))
        .collect()
}

#[test]
fn names_in_pages_and_comments_exist() {
    let files = files().into_iter().filter(|file| file.is_rust() || file.path.ends_with(".md"));
    let names = Names::of(files.collect());
    let mut wrong = Vec::new();
    for file in names.sources.iter().filter(|file| file.path != HISTORY) {
        for (line, span) in spans(file) {
            if let Some(why) = names.objection(span, !file.is_rust()) {
                wrong.push(format!("{}:{line}: `{span}`: {why}", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "names that nothing has:\n{}", wrong.join("\n"));
}
