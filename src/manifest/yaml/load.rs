//! Builds node trees from parser events.

use std::collections::HashMap;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};

use super::syntax::{self, position};
use super::{YamlDocument, YamlEntry, YamlNode, YamlNodeKind, kubectl_syntax, scalar};
use crate::manifest::codes;
use crate::model::{
    Diagnostic, DiagnosticScope, Location, MOST_MISTAKES, TextPosition, catch_panic, further_mistakes,
};

/// Maps and lists within each other.
pub const DEPTH_LIMIT: usize = 64;
/// Nodes of one file; every alias counts as a copy of its anchor.
pub const NODE_LIMIT: usize = 200_000;

const CORE: &str = "tag:yaml.org,2002:";
/// The tag of a text in base64, as it is written.
const BINARY: &str = "!!binary";

struct YamlAnchor {
    node: YamlNode,
    nodes: usize,
    /// Maps and lists within each other.
    depth: usize,
}

/// The keys of one map, each with its index in the entries.
type KeyIndex = HashMap<String, usize>;

type YamlLoadResult<T> = Result<T, Box<Diagnostic>>;

pub struct YamlLoader<'a> {
    parser: Parser<&'a [u8]>,
    file: &'a str,
    text: &'a str,
    /// Of the file, that `text` starts at; from 0.
    line: u32,
    /// Where the last event ended.
    last_end: TextPosition,
    anchors: HashMap<String, YamlAnchor>,
    /// Dropped mistakes of the document.
    dropped_count: usize,
    /// Nodes that anchors hold.
    anchored_nodes: usize,
    /// Of the whole file so far.
    pub nodes: usize,
    /// So many nodes are read at most.
    pub node_limit: usize,
    /// Whether [`kubectl_syntax::without_colons`] made the text.
    pub lacks_colons: bool,
    /// The file has a Secret, so messages quote only keys.
    pub has_secret: bool,
    /// Of the document that is being read.
    pub mistakes: Vec<Diagnostic>,
}

impl<'a> YamlLoader<'a> {
    pub fn new(file: &'a str, text: &'a str, line: u32, nodes: usize) -> Self {
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(text.as_bytes());
        let reached = TextPosition { line: line + 1, column: 1 };
        Self {
            parser,
            file,
            text,
            line,
            last_end: reached,
            anchors: HashMap::new(),
            dropped_count: 0,
            anchored_nodes: 0,
            nodes,
            node_limit: NODE_LIMIT,
            lacks_colons: false,
            has_secret: false,
            mistakes: Vec::new(),
        }
    }

    /// Reads documents until the end, or until a mistake that the parser cannot go on after.
    pub fn load_stream(&mut self, documents: &mut Vec<YamlDocument>) -> YamlLoadResult<()> {
        loop {
            let event = self.next_event()?;
            match event.data {
                EventData::StreamEnd => return Ok(()),
                EventData::DocumentStart { implicit, .. } => {
                    self.anchors.clear();
                    self.dropped_count = 0;
                    let first = self.next_event()?;
                    if !implicit {
                        self.check_marker_line(event.end_mark, &first);
                    }
                    let root = self.node(first, 0)?;
                    let mistakes = std::mem::take(&mut self.mistakes);
                    if !root.is_null() || !mistakes.is_empty() {
                        documents.push(YamlDocument { root, mistakes });
                    }
                }
                _ => {}
            }
        }
    }

    fn next_event(&mut self) -> YamlLoadResult<Event> {
        // The parser panics on some invalid texts, which must not end the process.
        let Some(parsed) = catch_panic(|| self.parser.parse()) else {
            let message = "invalid YAML: the parser cannot go on after this".to_owned();
            let mistake = self.mistake(codes::SYNTAX, message, self.last_end, self.last_end);
            return Err(Box::new(
                mistake.help("check the next word: a tag (`!…`) needs a blank and a value after it"),
            ));
        };
        let event =
            parsed.map_err(|error| Box::new(syntax::diagnostic(&error, self.file, self.text, self.line)))?;
        self.last_end = self.last_end.max(position(event.end_mark, self.line));
        Ok(event)
    }

    /// YAML lets a document begin on the line of its `---`; kubectl refuses it.
    fn check_marker_line(&mut self, marker: Mark, first: &Event) {
        let (start, end) = (position(first.start_mark, self.line), position(first.end_mark, self.line));
        if first.start_mark.line == marker.line && start != end {
            let message = "the document begins on the line of its `---`".to_owned();
            let mistake = self.mistake(codes::SYNTAX, message, start, end);
            self.record_mistake(mistake.help("put it on the next line: kubectl refuses this"));
        }
    }

    fn node(&mut self, event: Event, depth: usize) -> YamlLoadResult<YamlNode> {
        let Event { data, start_mark, end_mark, .. } = event;
        let (start, end) = (position(start_mark, self.line), position(end_mark, self.line));
        let before = self.nodes;
        self.count(1, start, end)?;
        self.check_depth(depth, start, end)?;
        let (anchor, node) = match data {
            EventData::Alias { anchor } => return self.alias(&anchor, depth, start, end),
            EventData::Scalar { anchor, tag, value, plain_implicit, style, .. } => {
                let plain = plain_implicit && style == ScalarStyle::Plain;
                let value = if self.lacks_colons { kubectl_syntax::with_colons(value) } else { value };
                (anchor, YamlNode { kind: self.scalar(value, tag.as_deref(), plain, start, end), start, end })
            }
            EventData::SequenceStart { anchor, tag, .. } => {
                self.collection_tag(tag.as_deref(), "seq", start, end);
                let (items, end) = self.sequence(end, depth)?;
                (anchor, YamlNode { kind: YamlNodeKind::Seq(items), start, end })
            }
            EventData::MappingStart { anchor, tag, .. } => {
                self.collection_tag(tag.as_deref(), "map", start, end);
                let (entries, end) = self.mapping(end, depth)?;
                (anchor, YamlNode { kind: YamlNodeKind::Map(entries), start, end })
            }
            // The parser gives a node wherever one is due.
            _ => (None, YamlNode { kind: YamlNodeKind::Null, start, end }),
        };
        if let Some(anchor) = anchor {
            let nodes = self.nodes - before;
            // Each keeps a copy, and they may stand within each other.
            self.anchored_nodes += nodes;
            if self.anchored_nodes > self.node_limit {
                let message = format!("the anchors of one file name more than {} values", self.node_limit);
                return Err(Box::new(self.mistake(codes::LIMIT, message, start, end).help("split the file")));
            }
            let depth = depth_of(&node);
            self.anchors.insert(anchor, YamlAnchor { node: node.clone(), nodes, depth });
        }
        Ok(node)
    }

    fn sequence(
        &mut self,
        mut end: TextPosition,
        depth: usize,
    ) -> YamlLoadResult<(Vec<YamlNode>, TextPosition)> {
        let mut items = Vec::new();
        loop {
            let event = self.next_event()?;
            if event.data == EventData::SequenceEnd {
                return Ok((items, self.collection_end(end, event.start_mark, event.end_mark)));
            }
            let item = self.node(event, depth + 1)?;
            end = end.max(item.end);
            items.push(item);
        }
    }

    fn mapping(
        &mut self,
        mut end: TextPosition,
        depth: usize,
    ) -> YamlLoadResult<(Vec<YamlEntry>, TextPosition)> {
        let mut entries: Vec<YamlEntry> = Vec::new();
        let mut index = KeyIndex::new();
        let mut merges = Vec::new();
        loop {
            let event = self.next_event()?;
            if event.data == EventData::MappingEnd {
                end = self.collection_end(end, event.start_mark, event.end_mark);
                self.merge(&mut entries, index, merges);
                return Ok((entries, end));
            }
            let is_merge = is_merge(&event.data);
            let key = self.node(event, depth + 1)?;
            let event = self.next_event()?;
            let value = self.node(event, depth + 1)?;
            end = end.max(key.end).max(value.end);
            if is_merge {
                merges.push((entries.len(), value));
                continue;
            }
            let (start, key_end) = (key.start, key.end);
            let Some(key) = self.key(key) else { continue };
            if let Some(first) = index.get(&key) {
                let first = entries[*first].location(self.file);
                let mistake = self
                    .mistake(codes::DUPLICATE_KEY, format!("the key `{key}` is given twice"), start, key_end)
                    .related(first, "here first")
                    .help("keep one of them");
                self.record_mistake(mistake);
                continue;
            }
            index.insert(key.clone(), entries.len());
            entries.push(YamlEntry { key, start, end: key_end, value });
        }
    }

    fn key(&mut self, node: YamlNode) -> Option<String> {
        let YamlNode { kind, start, end } = node;
        let message = match kind {
            YamlNodeKind::Null if self.mistakes.last().is_some_and(|last| starts_at(last, start)) => {
                return None;
            }
            YamlNodeKind::Null if start == end => "a key is missing before `:`",
            YamlNodeKind::Null => "null cannot be a key",
            YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => "a list or a map cannot be a key",
            YamlNodeKind::Int(number, _) if !number.is_i64() => "a number above 2^63 cannot be a key",
            kind => return scalar::key_text(kind),
        };
        let mut mistake = self.mistake(codes::NOT_JSON, message.to_owned(), start, end);
        if message.starts_with("a list") {
            mistake = mistake.help("a text that starts with `{` or `[` needs quotes");
        }
        self.record_mistake(mistake);
        None
    }

    /// Adds what merge keys bring; `merges` says how many keys stood before each.
    fn merge(&mut self, entries: &mut Vec<YamlEntry>, mut index: KeyIndex, merges: Vec<(usize, YamlNode)>) {
        for (before, value) in merges {
            let Some(maps) = maps_to_merge(&value) else {
                let message = "`<<` merges a map or a list of maps".to_owned();
                let mistake = self.mistake(codes::MERGE, message, value.start, value.end);
                self.record_mistake(mistake);
                continue;
            };
            for merged in maps.into_iter().flatten() {
                match index.get(&merged.key) {
                    None => {
                        index.insert(merged.key.clone(), entries.len());
                        entries.push(merged.clone());
                    }
                    // kubectl lets the merged value win here, everybody else the written one.
                    Some(written) if *written < before => {
                        let YamlEntry { key, start, end, .. } = &entries[*written];
                        let message = format!("`{key}` is before a `<<` that sets it too");
                        let mistake = self
                            .mistake(codes::MERGE, message, *start, *end)
                            .help("readers of YAML disagree which one holds: write `<<` first in the map");
                        self.record_mistake(mistake);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn alias(
        &mut self,
        name: &str,
        depth: usize,
        start: TextPosition,
        end: TextPosition,
    ) -> YamlLoadResult<YamlNode> {
        if let Some(YamlAnchor { nodes, depth: below, .. }) = self.anchors.get(name) {
            let nodes = *nodes;
            self.check_depth(depth + below, start, end)?;
            // Before the copy is made.
            self.count(nodes, start, end)?;
        }
        if let Some(anchor) = self.anchors.get(name) {
            return Ok(anchor.node.clone());
        }
        if self.has_secret {
            let message = "no anchor of this name before this alias".to_owned();
            let mistake = self.mistake(codes::ALIAS, message, start, end);
            self.record_mistake(mistake.help("put the value in quotes if it starts with `*`"));
            return Ok(YamlNode { kind: YamlNodeKind::Null, start, end });
        }
        // The mistake is dropped then, and a search through all anchors is slow.
        let is_full = self.mistakes.len() >= MOST_MISTAKES;
        let anchors = (!is_full).then(|| self.anchors.keys().map(String::as_str));
        let known: Vec<&str> = anchors.into_iter().flatten().collect();
        let help = match super::super::read::nearest(name, &known) {
            Some(nearest) => format!("did you mean `*{nearest}`?"),
            None => "an anchor `&name` must be before its aliases, in the same document, and not around them"
                .to_owned(),
        };
        let mistake = self
            .mistake(codes::ALIAS, format!("no anchor `&{name}` before this alias"), start, end)
            .help(help);
        self.record_mistake(mistake);
        Ok(YamlNode { kind: YamlNodeKind::Null, start, end })
    }

    fn scalar(
        &mut self,
        value: String,
        tag: Option<&str>,
        plain: bool,
        start: TextPosition,
        end: TextPosition,
    ) -> YamlNodeKind {
        let Some(tag) = tag else {
            return if plain { self.resolve(&value, start, end) } else { YamlNodeKind::String(value) };
        };
        let short = tag.strip_prefix(CORE).unwrap_or("");
        let resolved = match short {
            _ if tag == "!" => return YamlNodeKind::String(value),
            "str" => return YamlNodeKind::String(value),
            // Dates stay text all the way to the API server.
            "timestamp" => return YamlNodeKind::String(value),
            "null" | "bool" | "int" | "float" => self.resolve(&value, start, end),
            _ => {
                self.unknown_tag(tag, start, end);
                return YamlNodeKind::Null;
            }
        };
        match (short, resolved) {
            ("null", YamlNodeKind::Null) => YamlNodeKind::Null,
            ("bool", kind @ YamlNodeKind::Bool(..))
            | ("int", kind @ YamlNodeKind::Int(..))
            | ("float", kind @ (YamlNodeKind::Int(..) | YamlNodeKind::Float(..))) => kind,
            _ => {
                let message = format!("{} does not fit its tag !!{short}", self.quoted(&value));
                let mistake = self.mistake(codes::TAG, message, start, end);
                self.record_mistake(mistake);
                YamlNodeKind::Null
            }
        }
    }

    fn resolve(&mut self, value: &str, start: TextPosition, end: TextPosition) -> YamlNodeKind {
        scalar::resolve(value).unwrap_or_else(|scalar::NotFinite| {
            let message = format!("{} is a number that Kubernetes cannot take", self.quoted(value));
            let mistake = self.mistake(codes::NOT_JSON, message, start, end);
            self.record_mistake(mistake.help("put it in quotes if it is a text"));
            YamlNodeKind::Null
        })
    }

    fn collection_tag(&mut self, tag: Option<&str>, expected: &str, start: TextPosition, end: TextPosition) {
        if let Some(tag) = tag.filter(|tag| tag.strip_prefix(CORE) != Some(expected)) {
            self.unknown_tag(tag, start, end);
        }
    }

    fn unknown_tag(&mut self, tag: &str, start: TextPosition, end: TextPosition) {
        let shown = tag.strip_prefix(CORE).map_or_else(|| tag.to_owned(), |short| format!("!!{short}"));
        let message = match &*shown {
            // A value that starts with `!` is read as a tag.
            tag if self.has_secret && tag != BINARY => "this tag has no meaning in Kubernetes".to_owned(),
            tag => format!("the tag {tag} has no meaning in Kubernetes"),
        };
        let mistake = self.mistake(codes::TAG, message, start, end).help(if shown == BINARY {
            "write the base64 text without the tag"
        } else {
            "remove it; put the value in quotes if it starts with `!`"
        });
        self.record_mistake(mistake);
    }

    /// A value in a message.
    fn quoted(&self, value: &str) -> String {
        if self.has_secret { "this value".to_owned() } else { format!("`{value}`") }
    }

    /// A flow collection ends at its bracket; a block one with its last child (its end event stands at
    /// the next token, past blank lines and comments).
    fn collection_end(&self, end: TextPosition, from: Mark, to: Mark) -> TextPosition {
        if from == to { end } else { position(to, self.line) }
    }

    fn check_depth(&self, depth: usize, start: TextPosition, end: TextPosition) -> YamlLoadResult<()> {
        if depth <= DEPTH_LIMIT {
            return Ok(());
        }
        let message = format!("more than {DEPTH_LIMIT} maps and lists within each other");
        Err(Box::new(self.mistake(codes::LIMIT, message, start, end)))
    }

    fn count(&mut self, nodes: usize, start: TextPosition, end: TextPosition) -> YamlLoadResult<()> {
        self.nodes += nodes;
        if self.nodes <= self.node_limit {
            return Ok(());
        }
        let message = format!("more than {} values in one file, aliases expanded", self.node_limit);
        Err(Box::new(self.mistake(codes::LIMIT, message, start, end).help("split the file")))
    }

    fn record_mistake(&mut self, mistake: Diagnostic) {
        if self.mistakes.len() < MOST_MISTAKES {
            self.mistakes.push(mistake);
            return;
        }
        self.dropped_count += 1;
        self.mistakes.truncate(MOST_MISTAKES);
        self.mistakes.push(further_mistakes(codes::MORE_MISTAKES, self.dropped_count, &mistake));
    }

    fn mistake(
        &self,
        code: &'static str,
        message: String,
        start: TextPosition,
        end: TextPosition,
    ) -> Diagnostic {
        let location = Location { file: self.file.to_owned(), start, end: Some(end) };
        Diagnostic::error(code, message, DiagnosticScope::File(self.file.to_owned())).at(location)
    }
}

fn starts_at(mistake: &Diagnostic, start: TextPosition) -> bool {
    mistake.location.as_ref().is_some_and(|location| location.start == start)
}

fn is_merge(data: &EventData) -> bool {
    matches!(data, EventData::Scalar { tag: None, value, style: ScalarStyle::Plain, .. } if value == "<<")
}

fn maps_to_merge(value: &YamlNode) -> Option<Vec<&[YamlEntry]>> {
    match &value.kind {
        YamlNodeKind::Map(map) => Some(vec![map]),
        YamlNodeKind::Seq(items) => items.iter().map(YamlNode::as_map).collect(),
        _ => None,
    }
}

fn depth_of(node: &YamlNode) -> usize {
    match &node.kind {
        YamlNodeKind::Seq(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        YamlNodeKind::Map(entries) => {
            1 + entries.iter().map(|entry| depth_of(&entry.value)).max().unwrap_or(0)
        }
        _ => 0,
    }
}
