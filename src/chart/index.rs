//! Finds one version in the `index.yaml` of a chart repository, and keeps nothing else of a large index.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{KEEP_IN_REPOSITORY, MIB, shown_size};
use crate::model::{ChartFailure, ChartFailureKind};

/// Bytes that are parsed as YAML: a parser needs many times that memory.
const LARGEST_YAML: usize = 8 * MIB;
/// Versions that a message names.
const MOST_NAMED: usize = 8;

#[derive(Debug, Default)]
pub struct ChartIndexEntry {
    version: Option<String>,
    /// The first URL; others lead to the same archive.
    pub url: Option<String>,
    pub digest: Option<String>,
}

/// Matches the version with or without a leading `v`.
pub fn find_version(index: &[u8], chart: &str, version: &str) -> Result<ChartIndexEntry, ChartFailure> {
    let IndexSearch { has_chart, found, newest, .. } = search(index, chart, version)?;
    if !has_chart {
        return Err(missing(format!("the chart repository has no chart {chart}")));
    }
    found.ok_or_else(|| {
        let message = format!("the chart repository has no version {version} of {chart}");
        missing(message).help(format!("the newest there are {}", newest.join(", ")))
    })
}

fn search<'a>(index: &[u8], chart: &'a str, version: &'a str) -> Result<IndexSearch<'a>, ChartFailure> {
    let part = chart_section(index, chart);
    let text = part.as_deref().unwrap_or(index);
    let mut search = IndexSearch::new(chart, version);
    let walk = IndexVisitor { at: IndexPosition::Index, search: &mut search };
    let read = if text.trim_ascii_start().starts_with(b"{") {
        let mut reader = serde_json::Deserializer::from_slice(text);
        walk.deserialize(&mut reader).and_then(|()| reader.end()).map_err(|error| error.to_string())
    } else if text.len() > LARGEST_YAML {
        let most = shown_size(LARGEST_YAML);
        let message = format!("the index of the chart repository has more than {most} about {chart}");
        return Err(ChartFailure::new(ChartFailureKind::Limit, message).help(KEEP_IN_REPOSITORY));
    } else {
        // Invalid UTF-8 in a description is harmless.
        let text = String::from_utf8_lossy(text);
        walk.deserialize(serde_yaml::Deserializer::from_str(&text)).map_err(|error| error.to_string())
    };
    read.map_err(|error| missing(format!("the index of the chart repository cannot be read: {error}")))?;
    Ok(search)
}

struct IndexSearch<'a> {
    chart: &'a str,
    version: &'a str,
    has_chart: bool,
    found: Option<ChartIndexEntry>,
    newest: Vec<String>,
    /// The current entry.
    entry: ChartIndexEntry,
}

impl<'a> IndexSearch<'a> {
    fn new(chart: &'a str, version: &'a str) -> Self {
        Self {
            chart,
            version,
            has_chart: false,
            found: None,
            newest: Vec::new(),
            entry: ChartIndexEntry::default(),
        }
    }

    /// `None`: the entry has no version.
    fn finish_entry(&mut self) -> Option<()> {
        let entry = std::mem::take(&mut self.entry);
        let version = entry.version.as_deref()?;
        if self.newest.len() < MOST_NAMED {
            self.newest.push(version.to_owned());
        }
        let bare = |version: &'_ str| version.trim_start_matches('v').to_owned();
        if self.found.is_none() && bare(version) == bare(self.version) {
            self.found = Some(entry);
        }
        Some(())
    }
}

#[derive(Clone, Copy)]
enum IndexPosition {
    Index,
    Charts,
    Versions,
    Entry,
    Urls,
}

/// Visits the versions of one chart and skips everything else.
struct IndexVisitor<'a, 'b> {
    at: IndexPosition,
    search: &'a mut IndexSearch<'b>,
}

impl<'b> IndexVisitor<'_, 'b> {
    fn at_position(&mut self, at: IndexPosition) -> IndexVisitor<'_, 'b> {
        IndexVisitor { at, search: self.search }
    }
}

impl<'de> DeserializeSeed<'de> for IndexVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IndexVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.at {
            IndexPosition::Index => "an index of charts",
            IndexPosition::Charts => "charts by their names",
            IndexPosition::Versions => "the versions of a chart",
            IndexPosition::Entry => "a version of a chart",
            IndexPosition::Urls => "addresses of an archive",
        })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut is_index = false;
        while let Some(key) = map.next_key::<String>()? {
            match (self.at, key.as_str()) {
                (IndexPosition::Index, "entries") => {
                    is_index = true;
                    map.next_value_seed(self.at_position(IndexPosition::Charts))?;
                }
                (IndexPosition::Charts, name) if name == self.search.chart => {
                    self.search.has_chart = true;
                    map.next_value_seed(self.at_position(IndexPosition::Versions))?;
                }
                (IndexPosition::Entry, "urls") => {
                    map.next_value_seed(self.at_position(IndexPosition::Urls))?
                }
                (IndexPosition::Entry, "version") => self.search.entry.version = map.next_value()?,
                (IndexPosition::Entry, "digest") => self.search.entry.digest = map.next_value()?,
                (IndexPosition::Versions | IndexPosition::Urls, _) => {
                    return Err(A::Error::custom("a map in place of a list"));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match self.at {
            IndexPosition::Index if !is_index => Err(A::Error::missing_field("entries")),
            IndexPosition::Entry => {
                self.search.finish_entry().ok_or_else(|| A::Error::missing_field("version"))
            }
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        match self.at {
            IndexPosition::Versions => {
                while list.next_element_seed(self.at_position(IndexPosition::Entry))?.is_some() {}
            }
            IndexPosition::Urls => {
                self.search.entry.url = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
            }
            _ => return Err(A::Error::custom("a list in place of a map")),
        }
        Ok(())
    }

    /// The default error of serde repeats the whole text.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::custom("a text in place of a map or list"))
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Cuts the section of one chart out of an index in Helm's format, one key a line, so that a large index is not parsed whole.
fn chart_section(index: &[u8], chart: &str) -> Option<Vec<u8>> {
    let heading = |key: &str| ["{}:", "\"{}\":", "'{}':"].map(|form| form.replace("{}", key).into_bytes());
    let (first, names) = (heading("entries"), heading(chart));
    let mut lines = index
        .split_inclusive(|byte| *byte == b'\n')
        .skip_while(|line| !first.iter().any(|it| line.trim_ascii_end() == it));
    lines.next()?;
    let mut indent = None;
    let mut found = Vec::new();
    for line in lines {
        let words = line.trim_ascii();
        if words.is_empty() || words.starts_with(b"#") {
            continue;
        }
        let at = line.iter().take_while(|byte| **byte == b' ').count();
        let of_keys = *indent.get_or_insert(at);
        if found.is_empty() {
            if at == 0 && of_keys != 0 {
                return None;
            }
            if at == of_keys && names.iter().any(|it| words == it) {
                found.extend_from_slice(b"entries:\n");
                found.extend_from_slice(line);
            }
        } else if at < of_keys || at == of_keys && !words.starts_with(b"-") || found.len() > LARGEST_YAML {
            break;
        } else {
            found.extend_from_slice(line);
        }
    }
    (!found.is_empty()).then_some(found)
}

fn missing(message: String) -> ChartFailure {
    ChartFailure::new(ChartFailureKind::Missing, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(index: &str, version: &str) -> Result<String, String> {
        let entry = find_version(index.as_bytes(), "web", version).map_err(|failure| failure.message)?;
        Ok(entry.url.unwrap_or_default())
    }

    #[test]
    fn entry_is_found_in_every_index_format() {
        let helm = "apiVersion: v1\nentries:\n  api:\n  - version: 1.0.0\n    urls: [other]\n  web:\n  - description: |\n      entries:\n        web:\n    \
                    version: 1.1.0\n    urls:\n    - newer.tgz\n  - version: v1.0.0\n    urls:\n    - web.tgz\n  zoo:\n  - version: 1.0.0\ngenerated: now\n";
        let flat = "entries:\n  web:\n    - {version: 1.0.0, urls: [web.tgz]}\n";
        let quoted = "\"entries\":\n    \"web\":\n    - {version: 1.0.0, urls: [web.tgz]}\n";
        let flow = "entries: {web: [{version: 1.0.0, urls: [web.tgz]}]}\n";
        let json = "{\"entries\": {\"web\": [{\"version\": \"1.0.0\", \"urls\": [\"web.tgz\"]}]}}";
        for index in [helm, flat, quoted, flow, json] {
            assert_eq!(find(index, "1.0.0"), Ok("web.tgz".to_owned()), "{index}");
            assert!(find(index, "3.0.0").unwrap_err().contains("no version 3.0.0"), "{index}");
        }
        assert!(find("entries:\n  api: []\n", "1.0.0").unwrap_err().contains("no chart web"));
        assert!(find("nonsense", "1.0.0").unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn large_index_is_read_for_one_chart() {
        let mut index = "entries:\n  api:\n".to_owned();
        while index.len() < 2 * LARGEST_YAML {
            index.push_str("  - version: 1.0.0\n");
        }
        let web = format!("{index}  web:\n  - {{version: 1.0.0, urls: [web.tgz]}}\n");
        assert_eq!(find(&web, "1.0.0"), Ok("web.tgz".to_owned()));
        assert!(
            find(&index.replace("  api:", "  web:"), "2.0.0")
                .unwrap_err()
                .contains("more than 8 MiB about web")
        );
        assert!(find(&index, "1.0.0").unwrap_err().contains("more than 8 MiB about web"));
    }

    #[test]
    fn other_versions_are_not_kept() {
        let urls = "\"\",".repeat(1000);
        let mut index = "{\"entries\": {\"web\": [".to_owned();
        while index.len() < 20 * MIB {
            index.push_str(&format!("{{\"version\": \"\", \"urls\": [{urls}\"\"]}},"));
        }
        index.push_str("{\"version\": \"1.0.0\", \"urls\": [\"web.tgz\", \"other.tgz\"]}]}}");
        let found = search(index.as_bytes(), "web", "1.0.0").unwrap();
        assert_eq!(found.newest, vec![String::new(); MOST_NAMED]);
        assert_eq!(found.found.and_then(|entry| entry.url).as_deref(), Some("web.tgz"));
        assert!(found.entry.version.is_none() && found.entry.url.is_none());
    }

    #[test]
    fn index_error_does_not_repeat_index() {
        for index in ["{\"entries\": \"{}\"}", "{\"entries\": {\"web\": [\"{}\"]}}"] {
            let message = find(&index.replace("{}", &"a".repeat(MIB)), "1.0.0").unwrap_err();
            assert!(
                message.contains("cannot be read: a text in place of a map or list"),
                "{}",
                message.len()
            );
        }
    }
}
