//! Migrates the text of a file to another version for `tutti migrate`. Only differing parts of the text change.

use super::{Hub, version_of};
use crate::manifest::kinds::{self, DocumentIdentity, ManifestKind};
use crate::manifest::read::ReadContext;
use crate::manifest::yaml::{self, YamlDocument, YamlNode, YamlNodeKind};
use crate::manifest::{OWN_VERSION, codes};
use crate::model::{Diagnostic, DiagnosticScope, Location, TextPosition};

/// The migration of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMigration {
    pub text: String,
    /// In the order of the file; empty when nothing changes.
    pub documents: Vec<MigratedDocument>,
}

/// One document that changes its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedDocument {
    pub kind: ManifestKind,
    pub name: String,
    pub from: String,
    pub to: String,
}

/// A byte range of a text and its replacement.
struct TextEdit {
    from: usize,
    to: usize,
    text: String,
}

/// Migrates the documents of a file to a version; without one, each to the newest version of its kind. Documents of kinds without that
/// version stay as they are. Any mistake leaves the whole file unchanged.
pub fn migrate(
    hub: &Hub,
    file: &str,
    text: &str,
    version: Option<&str>,
) -> Result<TextMigration, Vec<Diagnostic>> {
    let (documents, mistakes) = yaml::parse(file, text);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut reading = ReadContext::new(file, DiagnosticScope::File(file.to_owned()));
    let mut edits = Vec::new();
    let mut wanted = Vec::new();
    let mut migrated = Vec::new();
    for YamlDocument { root, .. } in documents {
        let mut other = root.clone();
        if let Some(done) = convert(hub, version, &mut other, &mut reading) {
            differences(text, &root, &other, file, &mut edits)?;
            migrated.push(done);
        }
        wanted.push(other);
    }
    if !reading.mistakes.is_empty() {
        return Err(reading.mistakes);
    }
    // An anchor's text stands once, and every alias of it brings the same edit.
    edits.sort_by_key(|edit| edit.from);
    edits.dedup_by(|one, other| one.from == other.from && one.text == other.text);
    let text = apply(text, &edits);
    // Parse again, so that an edit with a side effect (an anchor that is used elsewhere) is refused.
    let (found, mistakes) = yaml::parse(file, &text);
    let same = found.len() == wanted.len()
        && found.iter().zip(&wanted).all(|(found, wanted)| found.root.to_json() == wanted.to_json());
    if same && mistakes.is_empty() {
        return Ok(TextMigration { text, documents: migrated });
    }
    Err(vec![manual_edit_error(file, Location::new(file, 1, 1))])
}

/// `None` when the document stays as it is.
fn convert(
    hub: &Hub,
    version: Option<&str>,
    root: &mut YamlNode,
    reading: &mut ReadContext<'_>,
) -> Option<MigratedDocument> {
    // Foreign documents are not checked here.
    let mut unheard = ReadContext::new(reading.file, reading.scope.clone());
    let Some(DocumentIdentity::Native(kind)) = kinds::identify(root, hub, &mut unheard) else { return None };
    let from = version_of(root)?.to_owned();
    let to = version.unwrap_or(OWN_VERSION);
    let has = to == OWN_VERSION || hub.versions(kind).contains(&to);
    if from == to || !has {
        return None;
    }
    let name = root.find(&["metadata", "name"]).and_then(YamlNode::as_str).unwrap_or("?").to_owned();
    hub.to_hub(kind, root, reading);
    if to != OWN_VERSION {
        hub.to_version(kind, to, root, reading);
    }
    Some(MigratedDocument { kind, name, from, to: to.to_owned() })
}

/// Two trees of one shape: the edits that make the first one's text the second.
fn differences(
    text: &str,
    old: &YamlNode,
    new: &YamlNode,
    file: &str,
    edits: &mut Vec<TextEdit>,
) -> Result<(), Vec<Diagnostic>> {
    match (&old.kind, &new.kind) {
        (YamlNodeKind::Map(old), YamlNodeKind::Map(new)) => {
            for (old, new) in old.iter().zip(new) {
                replace(text, (old.start, old.end), (&old.key, &new.key), file, edits)?;
                differences(text, &old.value, &new.value, file, edits)?;
            }
            Ok(())
        }
        (YamlNodeKind::Seq(old), YamlNodeKind::Seq(new)) => {
            old.iter().zip(new).try_for_each(|(old, new)| differences(text, old, new, file, edits))
        }
        (YamlNodeKind::String(was), YamlNodeKind::String(is)) => {
            replace(text, (old.start, old.end), (was, is), file, edits)
        }
        _ => Ok(()),
    }
}

fn replace(
    text: &str,
    (start, end): (TextPosition, TextPosition),
    (old, new): (&str, &str),
    file: &str,
    edits: &mut Vec<TextEdit>,
) -> Result<(), Vec<Diagnostic>> {
    if old == new {
        return Ok(());
    }
    let span = yaml::edit::span(text, start, end);
    let written = span.clone().and_then(|span| text.get(span));
    match span.zip(written.and_then(|written| yaml::edit::requote(written, old, new))) {
        Some((span, text)) => {
            edits.push(TextEdit { from: span.start, to: span.end, text });
            Ok(())
        }
        None => Err(vec![manual_edit_error(file, Location { file: file.to_owned(), start, end: Some(end) })]),
    }
}

fn apply(text: &str, edits: &[TextEdit]) -> String {
    let mut made = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        made.push_str(text.get(at..edit.from).unwrap_or_default());
        made.push_str(&edit.text);
        at = edit.to;
    }
    made.push_str(text.get(at..).unwrap_or_default());
    made
}

fn manual_edit_error(file: &str, location: Location) -> Diagnostic {
    let message = "this cannot be migrated in place: it is not written plainly, or an alias shares it";
    Diagnostic::error(codes::NOT_IN_VERSION, message, DiagnosticScope::File(file.to_owned()))
        .at(location)
        .help("write the value out, without anchor, tag and line breaks, and migrate again")
}
