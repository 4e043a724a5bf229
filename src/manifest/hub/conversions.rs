//! Reads the conversions: shipped ones first, then those of the repository.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::rules::{Conversion, ConversionAction};
use crate::manifest::kinds::conversion;
use crate::manifest::read::ReadContext;
use crate::manifest::{codes, yaml};
use crate::model::{Diagnostic, DiagnosticScope, Location, Snapshot};

/// Shipped conversions, by name.
const SHIPPED: &[(&str, &str)] = &[
    ("luoji-slb", include_str!("shipped/luoji-slb.yaml")),
    ("luoji-component", include_str!("shipped/luoji-component.yaml")),
    ("symphony", include_str!("shipped/symphony.yaml")),
];

type ConversionsByName = BTreeMap<String, Vec<Conversion>>;

/// Parsed once, because every snapshot needs them.
static SHIPPED_CONVERSIONS: LazyLock<(ConversionsByName, Vec<Diagnostic>)> = LazyLock::new(|| {
    let (mut named, mut mistakes) = (ConversionsByName::new(), Vec::new());
    for (name, text) in SHIPPED {
        let file = format!("(shipped) conversion/{name}.yaml");
        read_file(&file, name, text, &mut named, &mut mistakes);
    }
    (named, mistakes)
});

/// The conversions, the first of them that cannot be read, and the mistakes.
pub fn read(snapshot: &Snapshot) -> (Vec<Conversion>, Option<Location>, Vec<Diagnostic>) {
    let mut broken = None;
    let (mut named, mut mistakes) = SHIPPED_CONVERSIONS.clone();
    for (name, files) in newest_revisions(snapshot, &mut mistakes) {
        named.remove(&name);
        for file in files {
            let before = mistakes.len();
            match snapshot.text(file) {
                Some(text) => read_file(file, &name, text, &mut named, &mut mistakes),
                None => mistakes.push(unreadable(file)),
            }
            if mistakes.len() > before && broken.is_none() {
                broken = Some(Location::new(file, 1, 1));
            }
        }
    }
    let conversions: Vec<Conversion> = named.into_values().flatten().collect();
    let twice = conflicting_rules(&conversions);
    if let Some(first) = twice.first() {
        broken = broken.or_else(|| first.location.clone());
    }
    mistakes.extend(twice);
    (conversions, broken, mistakes)
}

/// The files of the highest revision of each conversion of a repository, by name.
fn newest_revisions<'s>(
    snapshot: &'s Snapshot,
    mistakes: &mut Vec<Diagnostic>,
) -> BTreeMap<String, Vec<&'s str>> {
    let mut found: BTreeMap<String, (u64, Vec<&str>)> = BTreeMap::new();
    for path in snapshot.files.keys().filter(|path| path.starts_with(conversion::FOLDER)) {
        if !path.ends_with(".yaml") && !path.ends_with(".yml") {
            continue;
        }
        let parts: Vec<&str> = path.split('/').collect();
        let place = match parts.as_slice() {
            [_, _, name, revision, _] => revision
                .strip_prefix('v')
                .unwrap_or(revision)
                .parse::<u64>()
                .ok()
                .map(|revision| (*name, revision)),
            _ => None,
        };
        let Some((name, revision)) = place else {
            let mistake = Diagnostic::error(
                codes::BAD_CONVERSION,
                "no conversion can have this path",
                DiagnosticScope::File(path.clone()),
            );
            let help = format!(
                "{}<name>/<revision>/<any>.yaml, where a revision is 1, 2, … or v1, v2, …",
                conversion::FOLDER
            );
            mistakes.push(mistake.at(Location::new(path, 1, 1)).help(help));
            continue;
        };
        let known = found.entry(name.to_owned()).or_insert((revision, Vec::new()));
        if revision > known.0 {
            *known = (revision, Vec::new());
        }
        if revision == known.0 {
            known.1.push(path);
        }
    }
    found.into_iter().map(|(name, (_, files))| (name, files)).collect()
}

fn read_file(
    file: &str,
    name: &str,
    text: &str,
    named: &mut ConversionsByName,
    mistakes: &mut Vec<Diagnostic>,
) {
    let (documents, unread) = yaml::parse(file, text);
    let mut reading = ReadContext::new(file, DiagnosticScope::File(file.to_owned()));
    reading.mistakes = unread;
    for document in documents {
        let before = reading.mistakes.len();
        let read = conversion::read(&document.root, name, &mut reading);
        if let Some(conversion) = read
            && reading.mistakes.len() == before
        {
            named.entry(name.to_owned()).or_default().push(conversion);
        }
    }
    mistakes.append(&mut reading.mistakes);
}

/// Finds two conversions with rules for the same field of one version.
fn conflicting_rules(conversions: &[Conversion]) -> Vec<Diagnostic> {
    let mut first: BTreeMap<(&str, &str, &[String], u8), &Location> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for conversion in conversions {
        for version in &conversion.versions {
            for rule in &conversion.rules {
                let about = match rule.action {
                    ConversionAction::Rename(_) => 0,
                    ConversionAction::Values(_) => 1,
                    ConversionAction::Absent => 2,
                };
                let key = (conversion.kind.name(), version.as_str(), rule.field.as_slice(), about);
                if let Some(place) = first.insert(key, &rule.location) {
                    let message = format!("two rules for one field of {version}");
                    let scope = DiagnosticScope::File(rule.location.file.clone());
                    let mistake = Diagnostic::error(codes::BAD_CONVERSION, message, scope);
                    let help = "keep one; a conversion of the name of a shipped one replaces that";
                    mistakes.push(
                        mistake.at(rule.location.clone()).related(place.clone(), "the first one").help(help),
                    );
                }
            }
        }
    }
    mistakes
}

fn unreadable(file: &str) -> Diagnostic {
    Diagnostic::error(
        codes::UNREADABLE,
        format!("the file {file} is not UTF-8"),
        DiagnosticScope::File(file.to_owned()),
    )
    .at(Location::new(file, 1, 1))
    .help("save it as UTF-8")
}
