//! Encodes requests to `helm-render` and decodes its answers, in [`frames`]: JSON with text sizes, then the texts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::child::{Frame, frames};
use crate::model::{Chart, ChartCapabilities, ChartRequest};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HelmRenderRequest<'a> {
    chart: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<RequestFile<'a>>>,
    definitions_known: bool,
    folder: bool,
    values: &'a [Map<String, Value>],
    release: HelmRelease<'a>,
    capabilities: &'a ChartCapabilities,
    deadline_milliseconds: u64,
}

#[derive(Debug, Serialize)]
struct RequestFile<'a> {
    name: &'a str,
    size: usize,
}

impl<'a> RequestFile<'a> {
    fn of((name, content): &'a (String, Arc<[u8]>)) -> Self {
        Self { name, size: content.len() }
    }
}

/// A request to parse texts as Helm does.
#[derive(Debug, Serialize)]
struct ReadTextsRequest<'a> {
    texts: Vec<RequestTextHeader<'a>>,
}

#[derive(Debug, Serialize)]
struct RequestTextHeader<'a> {
    file: &'a str,
    size: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HelmRelease<'a> {
    name: &'a str,
    namespace: &'a str,
    revision: u32,
    is_upgrade: bool,
}

/// Every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmRenderAnswer {
    pub error: Option<HelmRenderFailure>,
    pub unknown_chart: bool,
    pub name: String,
    pub objects: Vec<HelmRenderObject>,
    pub notes: String,
    /// Parsed in [`super::schema`].
    pub schemas: Option<Box<RawValue>>,
    /// The definitions do not depend on values.
    pub definitions_alone: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HelmRenderFailure {
    /// `request`, `load`, `values`, `render` or `output`.
    pub step: String,
    /// Empty, or a path that begins with the chart name.
    pub file: String,
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HelmRenderObject {
    pub file: String,
    /// The size of the text; 0 if `object` is set.
    size: usize,
    pub object: Value,
    #[serde(skip)]
    pub text: String,
    pub definition: bool,
    pub hook: Option<HelmRenderHook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmRenderHook {
    pub events: Vec<String>,
    pub weight: i64,
    pub delete_policies: Vec<String>,
}

/// The bytes of a render request.
pub fn render_frame(
    request: &ChartRequest,
    with_files: bool,
    definitions_known: bool,
    deadline: Duration,
) -> io::Result<Vec<u8>> {
    let files: &[(String, Arc<[u8]>)] = if with_files { &request.chart.files } else { &[] };
    let said = HelmRenderRequest {
        chart: chart_key(&request.chart),
        files: with_files.then(|| files.iter().map(RequestFile::of).collect()),
        definitions_known,
        folder: request.chart.folder,
        values: &request.values,
        release: HelmRelease {
            name: &request.release,
            namespace: &request.namespace,
            revision: 1,
            is_upgrade: false,
        },
        capabilities: &request.capabilities,
        deadline_milliseconds: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
    };
    frames::encode(&said, files.iter().map(|(_, content)| &**content))
}

/// The bytes of a request to parse texts, each with its file.
pub fn read_texts_frame(texts: &[(&str, &str)]) -> io::Result<Vec<u8>> {
    let texts_said = texts.iter().map(|(file, text)| RequestTextHeader { file, size: text.len() });
    let said = ReadTextsRequest { texts: texts_said.collect() };
    frames::encode(&said, texts.iter().map(|(_, text)| text.as_bytes()))
}

pub fn read(frame: &Frame) -> io::Result<HelmRenderAnswer> {
    let mut texts = frame.texts();
    let mut answer: HelmRenderAnswer = serde_json::from_slice(frame.head())?;
    for object in &mut answer.objects {
        let (text, rest) = texts
            .split_at_checked(object.size)
            .ok_or_else(|| io::Error::other("an answer is shorter than its header"))?;
        object.text = String::from_utf8_lossy(text).into_owned();
        texts = rest;
    }
    Ok(answer)
}

/// The key of a chart in the child.
pub fn chart_key(chart: &Chart) -> String {
    format!("{}{}", chart.digest, if chart.folder { "/" } else { "" })
}
