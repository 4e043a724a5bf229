//! The log of all requests, which tests count.

use std::collections::HashMap;
use std::sync::Arc;

use crate::faults::RequestMatch;
use crate::request_record::RequestRecord;

/// Requests are kept up to this many; counting tests reset long before.
const MAX_RECORDS: usize = 100_000;

/// Records share most strings, so each string is stored once.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    strings: Vec<Arc<str>>,
    string_numbers: HashMap<Arc<str>, u32>,
    records: Vec<PackedRequest>,
}

#[derive(Debug)]
struct PackedRequest {
    /// Verb, resource, subresource, namespace, name and query.
    string_numbers: [u32; 6],
    dry_run: bool,
    metadata_only: bool,
}

impl RequestLog {
    pub(crate) fn record(&mut self, record: &RequestRecord) {
        if self.records.len() < MAX_RECORDS {
            let RequestRecord { verb, resource, subresource, namespace, name, query, .. } = record;
            let words =
                [verb, resource, subresource, namespace, name, query].map(|word| self.string_number(word));
            let RequestRecord { dry_run, metadata_only, .. } = *record;
            self.records.push(PackedRequest { string_numbers: words, dry_run, metadata_only });
        }
    }

    fn string_number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.string_numbers.get(word) {
            return *number;
        }
        let number = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
        let word: Arc<str> = word.into();
        self.strings.push(word.clone());
        self.string_numbers.insert(word, number);
        number
    }

    fn unpack(&self, packed: &PackedRequest) -> RequestRecord {
        let word = |number: &u32| self.strings.get(*number as usize).map(|word| word.to_string());
        let [verb, resource, subresource, namespace, name, query] =
            packed.string_numbers.each_ref().map(|number| word(number).unwrap_or_default());
        let PackedRequest { dry_run, metadata_only, .. } = *packed;
        RequestRecord { verb, resource, subresource, namespace, name, query, dry_run, metadata_only }
    }

    pub(crate) fn all(&self) -> Vec<RequestRecord> {
        self.records.iter().map(|packed| self.unpack(packed)).collect()
    }

    pub(crate) fn count(&self, matching: &RequestMatch) -> usize {
        self.records.iter().filter(|packed| matching.matches(&self.unpack(packed))).count()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
