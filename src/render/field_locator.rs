//! Finds the positions of object fields in plain files, for mistakes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::object_lists;
use crate::manifest::yaml::{self, YamlNode};
use crate::model::{Location, Snapshot, TextPosition};

/// The objects of a file by start position.
type ParsedObjects = BTreeMap<TextPosition, YamlNode>;

/// The parsed files of one render: each is parsed once.
#[derive(Clone, Debug, Default)]
pub struct FieldLocator(RefCell<BTreeMap<String, ParsedObjects>>);

impl FieldLocator {
    /// The position of a field of the object at `source`, else of the object.
    pub fn locate(&self, snapshot: &Snapshot, source: &Location, path: &[String]) -> Location {
        let mut files = self.0.borrow_mut();
        if !files.contains_key(&source.file) {
            files.insert(source.file.clone(), objects_of(snapshot, &source.file));
        }
        let objects = files.get(&source.file);
        let object = objects.and_then(|objects| objects.get(&source.start));
        object.and_then(|object| find(object, path, &source.file)).unwrap_or_else(|| source.clone())
    }
}

fn objects_of(snapshot: &Snapshot, file: &str) -> ParsedObjects {
    let Some(text) = snapshot.text(file).filter(|_| !file.ends_with(".j2")) else {
        return ParsedObjects::new();
    };
    #[cfg(test)]
    tests::PARSES.set(tests::PARSES.get() + 1);
    let (documents, _) = yaml::parse_objects(file, text);
    let objects = documents.into_iter().flat_map(|document| object_lists::item_nodes(document.root));
    objects.map(|object| (object.start, object)).collect()
}

fn find(object: &YamlNode, path: &[String], file: &str) -> Option<Location> {
    let (last, before) = path.split_last()?;
    let parent = before.iter().try_fold(object, |node, part| match node.as_seq() {
        Some(items) => items.get(part.parse::<usize>().ok()?),
        None => node.get(part),
    })?;
    match parent.as_seq() {
        Some(items) => Some(items.get(last.parse::<usize>().ok()?)?.location(file)),
        None => Some(parent.entry(last)?.location(file)),
    }
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How many files were parsed.
        pub static PARSES: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn file_is_parsed_once_for_all_mistakes() {
        let object = "kind: ConfigMap\ndata: {a: }\n---\n";
        let list = "kind: List\nitems:\n- kind: ConfigMap\n  data:\n    b:\n";
        let snapshot = Snapshot::of_texts([("a.yaml", format!("{}{list}", object.repeat(50)).as_str())]);
        let (places, before) = (FieldLocator::default(), PARSES.get());
        let place = |line: u32, column: u32, path: [&str; 2]| {
            let found =
                places.locate(&snapshot, &Location::new("a.yaml", line, column), &path.map(str::to_owned));
            (found.start.line, found.start.column)
        };
        for number in 0..50 {
            assert_eq!(place(3 * number + 1, 1, ["data", "a"]), (3 * number + 2, 8));
        }
        assert_eq!(place(153, 3, ["data", "b"]), (155, 5));
        assert_eq!(place(153, 3, ["data", "no"]), (153, 3));
        assert_eq!(PARSES.get() - before, 1);
    }
}
