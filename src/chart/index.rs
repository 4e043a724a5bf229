//! The list of a chart repository, `index.yaml`: one entry of it.

use serde::Deserialize;

use crate::model::{ChartFailure, ChartFault};

/// Of what is read as YAML: a reader keeps it whole, at many times its size. In bytes.
const LARGEST_YAML: usize = 8 * 1024 * 1024;
/// Versions that a message names.
const NAMED: usize = 8;

#[derive(Deserialize)]
struct Index {
    entries: std::collections::BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
pub struct Entry {
    version: String,
    #[serde(default)]
    pub urls: Vec<String>,
    pub digest: Option<String>,
}

/// The entry of a version, with or without a `v` before it.
pub fn look_up(index: &[u8], chart: &str, version: &str) -> Result<Entry, ChartFailure> {
    // Not UTF-8 in a description is nobody's harm.
    let text = String::from_utf8_lossy(index);
    let part = section(&text, chart);
    let text = part.as_deref().unwrap_or(&text);
    let unreadable =
        |error: String| missing(format!("the index of the chart repository is not one: {error}"));
    let mut index: Index = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?
    } else if text.len() > LARGEST_YAML {
        let message =
            format!("the index of the chart repository says more than {LARGEST_YAML} bytes of {chart}");
        return Err(ChartFailure::new(ChartFault::Limit, message));
    } else {
        serde_yaml::from_str(text).map_err(|error| unreadable(error.to_string()))?
    };
    let Some(entries) = index.entries.remove(chart) else {
        return Err(missing(format!("the chart repository has no chart {chart}")));
    };
    let bare = |version: &str| version.trim_start_matches('v').to_owned();
    let known: Vec<String> = entries.iter().take(NAMED).map(|entry| entry.version.clone()).collect();
    entries.into_iter().find(|entry| bare(&entry.version) == bare(version)).ok_or_else(|| {
        let message = format!("the chart repository has no version {version} of {chart}");
        missing(message).help(format!("the newest there are {}", known.join(", ")))
    })
}

/// An index of this chart alone, where the file is written as Helm writes it: one key a line. A large index is
/// not read whole for one chart.
fn section(text: &str, chart: &str) -> Option<String> {
    let heading = |key: &str| ["{}:", "\"{}\":", "'{}':"].map(|form| form.replace("{}", key));
    let (first, names) = (heading("entries"), heading(chart));
    let mut lines =
        text.split_inclusive('\n').skip_while(|line| !first.iter().any(|it| line.trim_end() == it));
    lines.next()?;
    let indent_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut indent = None;
    let mut found = String::new();
    for line in lines {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        let at = indent_of(line);
        let of_keys = *indent.get_or_insert(at);
        if found.is_empty() {
            if at == 0 && of_keys != 0 {
                return None;
            }
            if at == of_keys && names.iter().any(|it| words == it) {
                found.push_str("entries:\n");
                found.push_str(line);
            }
        } else if at < of_keys || at == of_keys && !words.starts_with('-') {
            break;
        } else {
            found.push_str(line);
        }
    }
    (!found.is_empty()).then_some(found)
}

fn missing(message: String) -> ChartFailure {
    ChartFailure::new(ChartFault::Missing, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(index: &str, version: &str) -> Result<String, String> {
        let entry = look_up(index.as_bytes(), "web", version).map_err(|failure| failure.message)?;
        Ok(entry.urls.join(" "))
    }

    #[test]
    fn entry_is_found_however_the_index_is_written() {
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
        assert!(find("nonsense", "1.0.0").unwrap_err().contains("is not one"));
    }

    #[test]
    fn large_index_is_read_for_one_chart_alone() {
        let mut index = "entries:\n  api:\n".to_owned();
        while index.len() < 2 * LARGEST_YAML {
            index.push_str("  - version: 1.0.0\n");
        }
        let web = format!("{index}  web:\n  - {{version: 1.0.0, urls: [web.tgz]}}\n");
        assert_eq!(find(&web, "1.0.0"), Ok("web.tgz".to_owned()));
        assert!(
            find(&index.replace("  api:", "  web:"), "2.0.0")
                .unwrap_err()
                .contains("more than 8388608 bytes")
        );
        assert!(find(&index, "1.0.0").unwrap_err().contains("more than 8388608 bytes"));
    }
}
