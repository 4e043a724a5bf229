//! Parses all documents of a text, and continues after a syntax error.

use std::borrow::Cow;

use super::load::{NODE_LIMIT, YamlLoader};
use super::{YamlStream, kubectl_syntax, syntax};
use crate::manifest::codes;
use crate::model::{Diagnostic, DiagnosticScope, Location, UNREADABLE_HELP, secret_text, size_problem};

/// Bytes of one file.
pub const FILE_LIMIT: usize = 1024 * 1024;

/// The limits of one text.
#[derive(Clone, Copy, Debug)]
pub struct YamlLimits {
    pub bytes: usize,
    pub nodes: usize,
}

impl YamlLimits {
    /// Of manifests and values.
    pub const MANIFESTS: Self = Self { bytes: FILE_LIMIT, nodes: NODE_LIMIT };
    /// Of what an app applies. A million nodes take 200 MiB while they are read.
    pub const OBJECTS: Self = Self { bytes: 16 * FILE_LIMIT, nodes: 5 * NODE_LIMIT };
}
/// Unreadable documents before the parser stops, because every restart costs the length of the rest.
const MOST_UNREADABLE_DOCUMENTS: usize = 50;

pub fn read(file: &str, text: &str, limits: YamlLimits) -> YamlStream {
    let mut stream = YamlStream::default();
    if text.len() > limits.bytes {
        let message = format!("the file {}", size_problem(text.len(), limits.bytes));
        stream.mistakes.push(
            Diagnostic::error(codes::UNREADABLE, message, DiagnosticScope::File(file.to_owned()))
                .at(Location::new(file, 1, 1))
                .help(UNREADABLE_HELP),
        );
        return stream;
    }
    // Of the whole text: what is read may be a part of it.
    let has_secret = secret_text::has_secret(text);
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(mistake) = syntax::inner_mark(file, rest) {
        stream.mistakes.push(mistake);
        return stream;
    }
    if let Some(values) = kubectl_syntax::json_values(rest) {
        let mut nodes = 0;
        for value in values {
            let mut loader = YamlLoader::new(file, &value.text, value.line, nodes);
            loader.node_limit = limits.nodes;
            loader.has_secret = has_secret;
            let stopped = loader.load_stream(&mut stream.documents).err();
            nodes = loader.nodes;
            stream.mistakes.append(&mut loader.mistakes);
            if let Some(mistake) = stopped {
                stream.mistakes.push(*mistake);
                return stream;
            }
        }
        return stream;
    }
    // kubectl gives the last line an end, too: a block text at the end of the file ends with one.
    let ended = if rest.ends_with('\n') { Cow::Borrowed(rest) } else { Cow::Owned(format!("{rest}\n")) };
    let replaced = kubectl_syntax::without_colons(&ended);
    rest = replaced.as_deref().unwrap_or(&ended);
    let mut line = 0;
    let mut nodes = 0;
    loop {
        let mut loader = YamlLoader::new(file, rest, line, nodes);
        loader.lacks_colons = replaced.is_some();
        loader.node_limit = limits.nodes;
        loader.has_secret = has_secret;
        let stopped = loader.load_stream(&mut stream.documents).err();
        nodes = loader.nodes;
        stream.mistakes.append(&mut loader.mistakes);
        let Some(mistake) = stopped else { return stream };
        let stopped_at = mistake.location.as_ref().map_or(u32::MAX, |location| location.start.line);
        let full = mistake.code == codes::LIMIT && nodes > limits.nodes;
        // A restart at a `---` on the line of the error finds the same error again.
        if stream.mistakes.last() != Some(&*mistake) {
            stream.mistakes.push(*mistake);
        }
        if stream.mistakes.len() >= MOST_UNREADABLE_DOCUMENTS {
            let message =
                format!("after {MOST_UNREADABLE_DOCUMENTS} errors the rest of the file was not read");
            let place = Location::new(file, stopped_at, 1);
            stream.mistakes.push(
                Diagnostic::error(codes::SYNTAX, message, DiagnosticScope::File(file.to_owned()))
                    .at(place)
                    .help("fix the errors that are shown, then read the file again"),
            );
            return stream;
        }
        // One syntax error hides one document: the next may be read all the same.
        match next_document(rest, line, stopped_at).filter(|_| !full) {
            Some((skipped, at)) => {
                rest = &rest[skipped..];
                line = at;
            }
            None => return stream,
        }
    }
}

/// The first line from `stopped_at` (from 1) on that starts with `---`, but not the first of the text: its
/// byte offset, and its line from 0.
fn next_document(text: &str, first_line: u32, stopped_at: u32) -> Option<(usize, u32)> {
    let mut offset = 0;
    for (line, source) in (first_line..).zip(text.split_inclusive('\n')) {
        let marker = source
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r', '\n']));
        if marker && offset > 0 && line + 1 >= stopped_at {
            return Some((offset, line));
        }
        offset += source.len();
    }
    None
}
