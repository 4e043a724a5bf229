//! Changes one scalar of a YAML file; every other byte stays.

use crate::manifest::yaml::{self, YamlDocument, YamlNode, YamlNodeKind};
use crate::model::TextPosition;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {message}; {help}", at.line, at.column)]
pub struct Error {
    pub message: String,
    pub help: String,
    pub at: TextPosition,
}

impl Error {
    fn new(at: TextPosition, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), at }
    }

    /// `FILE:LINE:COLUMN: what; help`.
    pub fn in_file(&self, file: &str) -> String {
        format!("{file}:{self}")
    }
}

/// Sets the text of one scalar. A path is `spec.containers[name=app].image`: keys, and list items by a scalar in them. A key with
/// a dot is written `["example.com/version"]`. `[metadata.name=pay]` at the beginning selects a document.
///
/// Comments, order, quotes and line ends stay. A value that cannot be edited in one place alone is refused.
pub fn set_scalar(text: &str, path: &str, value: &str) -> Result<String, Error> {
    let steps = steps(path)?;
    let mut documents = parsed(text)?;
    let (document, route) = find_node(&documents, &steps, path)?;
    let Some(node) = node_at(&mut documents[document].root, &route) else {
        return Err(Error::new(START, format!("`{path}` is not there"), "give the path of a scalar"));
    };
    if node.as_str() == Some(value) {
        return Ok(text.to_owned());
    }
    let edited = replace_scalar(text, node, path, value)?;
    node.kind = YamlNodeKind::String(value.to_owned());
    // The result is parsed: an edit with another effect is refused, for example when an alias repeats the value.
    let is_same = parsed(&edited).is_ok_and(|found| {
        let json =
            |documents: &[YamlDocument]| documents.iter().map(|it| it.root.to_json()).collect::<Vec<_>>();
        json(&found) == json(&documents)
    });
    let at = node_at(&mut documents[document].root, &route).map_or(START, |node| node.start);
    is_same.then_some(edited).ok_or_else(|| {
        let message = format!("`{path}` cannot be edited in one place: an anchor and its aliases share it");
        Error::new(at, message, "write the value out where it is used")
    })
}

/// The text of one scalar at a path, as in [`set_scalar`].
pub fn scalar(text: &str, path: &str) -> Result<String, Error> {
    let mut documents = parsed(text)?;
    let (document, route) = find_node(&documents, &steps(path)?, path)?;
    let missing = || Error::new(START, format!("`{path}` is not there"), "give the path of a scalar");
    let node = node_at(&mut documents[document].root, &route).ok_or_else(missing)?;
    match node.scalar_text() {
        Some(text) => Ok(text.to_owned()),
        None if node.is_null() => Ok(String::new()),
        None => {
            let message = format!("`{path}` is {}, not a scalar", node_kind(node));
            Err(Error::new(node.start, message, "give the path of a scalar"))
        }
    }
}

const START: TextPosition = TextPosition { line: 1, column: 1 };

fn parsed(text: &str) -> Result<Vec<YamlDocument>, Error> {
    let (documents, mistakes) = yaml::parse_objects("", text);
    let Some(mistake) = mistakes.into_iter().next() else { return Ok(documents) };
    let at = mistake.location.map_or(START, |location| location.start);
    let help = mistake.help.unwrap_or_else(|| "correct the file first".to_owned());
    Err(Error::new(at, mistake.message, help))
}

fn replace_scalar(text: &str, node: &YamlNode, path: &str, value: &str) -> Result<String, Error> {
    let refused = |message: &str, help: &str| Error::new(node.start, format!("`{path}` {message}"), help);
    let span = yaml::edit::span(text, node.start, node.end);
    let written = span.clone().and_then(|span| text.get(span)).unwrap_or_default();
    let Some(old) = node.scalar_text().or(node.is_null().then_some(written)) else {
        let message = format!("is {}, not a scalar", node.description());
        return Err(refused(&message, "give the path of a scalar"));
    };
    if written.starts_with(['&', '*']) {
        let help = "write the value out, without anchor and alias";
        return Err(refused("is an anchor or an alias, which other places share", help));
    }
    if written.starts_with(['|', '>']) && written.contains('\n') {
        return Err(refused("is a block scalar", "write the value on the line of its key"));
    }
    if written.starts_with('!') {
        return Err(refused("has a tag", "remove the tag; put the value in quotes if it is a text"));
    }
    if old.contains("{{") || old.contains("{%") {
        return Err(refused("is a template expression", "edit the value that it takes"));
    }
    if written.is_empty() && node.is_null() {
        return Err(refused("has no value", "write a first value by hand"));
    }
    if written.contains(['\n', '\r']) {
        return Err(refused("is written over several lines", "write the value on one line"));
    }
    match span.zip(yaml::edit::requote(written, old, value)) {
        Some((span, new)) => Ok([&text[..span.start], &new, &text[span.end..]].concat()),
        None => Err(refused("is not written plainly", "write the value as plain text or in quotes")),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ScalarPathStep {
    Key(String),
    /// The list item that contains this scalar; for a map: the map itself, if it contains it.
    Item(Vec<String>, String),
}

fn steps(path: &str) -> Result<Vec<ScalarPathStep>, Error> {
    let wrong = || {
        let message = format!("`{path}` is not a path");
        Error::new(START, message, "write it as spec.containers[name=app].image")
    };
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (key, after) = quoted.split_once("\"]").ok_or_else(wrong)?;
            steps.push(ScalarPathStep::Key(key.to_owned()));
            rest = after;
        } else if let Some(item) = rest.strip_prefix('[') {
            let (item, after) = item.split_once(']').ok_or_else(wrong)?;
            let (key, value) = item.split_once('=').ok_or_else(wrong)?;
            let keys: Vec<String> = key.split('.').map(str::to_owned).collect();
            if keys.iter().any(String::is_empty) {
                return Err(wrong());
            }
            steps.push(ScalarPathStep::Item(keys, value.to_owned()));
            rest = after;
        } else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            if key.is_empty() {
                return Err(wrong());
            }
            steps.push(ScalarPathStep::Key(key.to_owned()));
            rest = after;
        }
        if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() {
                return Err(wrong());
            }
            rest = after;
        }
    }
    let has_key = steps.iter().any(|step| matches!(step, ScalarPathStep::Key(_)));
    has_key.then_some(steps).ok_or_else(wrong)
}

/// The document, and the route in it: the index of a map entry or of a list item.
fn find_node(
    documents: &[YamlDocument],
    steps: &[ScalarPathStep],
    path: &str,
) -> Result<(usize, Vec<usize>), Error> {
    let mut found: Option<(usize, Vec<usize>)> = None;
    let mut miss: Option<(usize, Error)> = None;
    for (index, document) in documents.iter().enumerate() {
        match find_route(&document.root, steps, path) {
            Ok(_) if found.is_some() => {
                let message = format!("`{path}` is in several documents, this is another");
                let help = "begin the path with [metadata.name=NAME]";
                return Err(Error::new(document.root.start, message, help));
            }
            Ok(route) => found = Some((index, route)),
            // A path that matches several items is wrong, whatever other documents have.
            Err((usize::MAX, error)) => return Err(error),
            Err((depth, error)) => {
                if miss.as_ref().is_none_or(|(deepest, _)| depth > *deepest) {
                    miss = Some((depth, error));
                }
            }
        }
    }
    let empty = || {
        Error::new(START, format!("`{path}` is not there: the file is empty"), "write a first value by hand")
    };
    found.ok_or_else(|| miss.map_or_else(empty, |(_, error)| error))
}

/// On a miss: the number of steps that matched.
fn find_route(root: &YamlNode, steps: &[ScalarPathStep], path: &str) -> Result<Vec<usize>, (usize, Error)> {
    let mut node = root;
    let mut route = Vec::new();
    for (depth, step) in steps.iter().enumerate() {
        let miss = |message: String, help: &str| (depth, Error::new(node.start, message, help));
        match (step, &node.kind) {
            (ScalarPathStep::Key(key), YamlNodeKind::Map(entries)) => {
                let Some(at) = entries.iter().position(|entry| entry.key == *key) else {
                    let message = format!("`{path}` is not there: no `{key}` in this map");
                    return Err(miss(message, "write the field with a first value, or correct the path"));
                };
                route.push(at);
                node = &entries[at].value;
            }
            (ScalarPathStep::Key(key), _) => {
                let message = format!("`{path}` is not there: `{key}` is looked for in {}", node_kind(node));
                return Err(miss(message, "select an item of a list by one of its fields: [name=app]"));
            }
            (ScalarPathStep::Item(keys, value), YamlNodeKind::Seq(items)) => {
                let mut fitting = (0..items.len()).filter(|at| contains_scalar(&items[*at], keys, value));
                let (first, second) = (fitting.next(), fitting.next());
                let shown = format!("[{}={value}]", keys.join("."));
                match (first, second) {
                    (Some(at), None) => {
                        route.push(at);
                        node = &items[at];
                    }
                    (_, Some(second)) => {
                        let message = format!("`{path}` is not one place: {shown} fits several items");
                        let help = "name the item by a field that only it has";
                        return Err((usize::MAX, Error::new(items[second].start, message, help)));
                    }
                    (None, None) => {
                        return Err(miss(
                            format!("`{path}` is not there: no item fits {shown}"),
                            "add the item, or correct the path",
                        ));
                    }
                }
            }
            (ScalarPathStep::Item(keys, value), _) if contains_scalar(node, keys, value) => {}
            (ScalarPathStep::Item(keys, value), _) => {
                let message = format!("`{path}` is not there: this is not [{}={value}]", keys.join("."));
                return Err(miss(message, "correct the path"));
            }
        }
    }
    Ok(route)
}

/// Without its text, which may be secret.
fn node_kind(node: &YamlNode) -> &'static str {
    match node.kind {
        YamlNodeKind::Map(_) => "a map",
        YamlNodeKind::Seq(_) => "a list",
        _ => "a scalar",
    }
}

fn contains_scalar(node: &YamlNode, keys: &[String], value: &str) -> bool {
    let found = keys.iter().try_fold(node, |node, key| node.get(key));
    found.and_then(YamlNode::scalar_text) == Some(value)
}

fn node_at<'n>(root: &'n mut YamlNode, route: &[usize]) -> Option<&'n mut YamlNode> {
    route.iter().try_fold(root, |node, at| match &mut node.kind {
        YamlNodeKind::Map(entries) => entries.get_mut(*at).map(|entry| &mut entry.value),
        YamlNodeKind::Seq(items) => items.get_mut(*at),
        _ => None,
    })
}
