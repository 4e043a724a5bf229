//! Finds suspicious charts for `lint`: calls of `lookup`, and output that changes between renders.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ChartService;
use crate::model::{
    Chart, ChartFailure, ChartOutput, ChartProvider, ChartRequest, ChartSource, Digest, RenderWait,
    TemplateWorkers,
};

/// A warning with its file, relative to the repository for charts in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartLint {
    /// A template calls `lookup`, which returns nothing.
    Lookup { file: String, line: u32 },
    /// Equal requests give different objects.
    UnstableObject { file: String, object: String },
}

/// Forwards requests and records them.
#[derive(Debug)]
pub struct RequestRecorder<'a> {
    service: &'a ChartService,
    requests: Mutex<BTreeMap<Digest, ChartRequest>>,
}

impl<'a> RequestRecorder<'a> {
    pub fn new(service: &'a ChartService) -> Self {
        Self { service, requests: Mutex::default() }
    }

    /// Renders each recorded chart once more.
    pub fn lint(self) -> Vec<ChartLint> {
        let requests = self.requests.into_inner();
        let mut remarks = Vec::new();
        let mut seen: Vec<Digest> = Vec::new();
        for request in requests.values() {
            if seen.contains(&request.chart.digest) {
                continue;
            }
            seen.push(request.chart.digest);
            remarks.extend(lookups(&request.chart));
            let (first, second) = (
                self.service.render(request, RenderWait::UNLIMITED),
                self.service.renderer().render(request),
            );
            if let (Ok(first), Ok(second)) = (first, second) {
                remarks.extend(unstable_objects(&request.chart, &first, &second));
            }
        }
        remarks.sort();
        remarks.dedup();
        remarks
    }
}

impl ChartProvider for RequestRecorder<'_> {
    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        self.service.chart(source)
    }

    fn render(&self, request: &ChartRequest, wait: RenderWait<'_>) -> Result<Arc<ChartOutput>, ChartFailure> {
        self.requests.lock().entry(request.key()).or_insert_with(|| request.clone());
        self.service.render(request, wait)
    }

    fn template_workers(&self) -> Option<&dyn TemplateWorkers> {
        self.service.template_workers()
    }
}

fn lookups(chart: &Chart) -> Vec<ChartLint> {
    let templates = chart.files.iter().filter(|(name, _)| name.contains("templates/"));
    let texts = templates.filter_map(|(name, content)| Some((name, std::str::from_utf8(content).ok()?)));
    let in_text = |(name, text): (&String, &str)| {
        let line = u32::try_from(text.lines().position(calls_lookup)? + 1).ok()?;
        Some(ChartLint::Lookup { file: format!("{}{name}", chart.origin), line })
    };
    texts.filter_map(in_text).collect()
}

/// Recognizes `lookup` as a function call within a tag.
fn calls_lookup(line: &str) -> bool {
    let Some((before, _)) = line.split_once("lookup ") else { return false };
    before.contains("{{")
        && before.ends_with(|letter: char| !letter.is_alphanumeric() && !"_.\"/".contains(letter))
}

fn unstable_objects(chart: &Chart, first: &ChartOutput, second: &ChartOutput) -> Vec<ChartLint> {
    let pairs = first.objects.iter().zip(&second.objects).filter(|(one, other)| one.object != other.object);
    let remark = |(one, _): (&crate::model::ChartObject, _)| {
        let text =
            |pointer: &str| one.object.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or("?");
        let object = format!("{} {}", text("/kind"), text("/metadata/name"));
        ChartLint::UnstableObject { file: format!("{}{}", chart.origin, one.file), object }
    };
    pairs.map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_calls_are_recognized() {
        for call in [
            "{{- $x := (lookup \"v1\" \"Secret\" .Release.Namespace \"a\") }}",
            "{{ lookup \"v1\" \"Pod\" \"\" \"\" }}",
            "{{ if (lookup $a $b $c $d) }}",
        ] {
            assert!(calls_lookup(call), "{call}");
        }
        for text in [
            "# a lookup of names",
            "{{ .Values.lookup }}",
            "{{ include \"common.lookup \" . }}",
            "{{ $my_lookup }}",
        ] {
            assert!(!calls_lookup(text), "{text}");
        }
    }
}
