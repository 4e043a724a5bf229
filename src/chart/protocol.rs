//! What is said to `helm-render` and what it answers: JSON behind its length in four bytes, most significant first.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Chart, ChartCapabilities, ChartRequest};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    chart: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<File>>,
    folder: bool,
    values: &'a [Map<String, Value>],
    release: Release<'a>,
    capabilities: &'a ChartCapabilities,
    deadline_milliseconds: u64,
}

#[derive(Debug, Serialize)]
struct File {
    name: String,
    data: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Release<'a> {
    name: &'a str,
    namespace: &'a str,
    revision: u32,
    is_upgrade: bool,
}

/// As it comes; every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    pub error: Option<Failure>,
    pub unknown_chart: bool,
    pub name: String,
    pub objects: Vec<Object>,
    pub notes: String,
    pub schemas: Vec<Schema>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// `request`, `load`, `values`, `render` or `output`.
    pub step: String,
    /// Empty, or beginning with the name of the chart.
    pub file: String,
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object {
    pub file: String,
    pub object: Value,
    pub definition: bool,
    pub hook: Option<Hook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    pub events: Vec<String>,
    pub weight: i64,
    pub delete_policies: Vec<String>,
}

/// A schema with the values that it is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Schema {
    pub chart: String,
    pub schema: String,
    pub values: Value,
}

/// The bytes of a request, with its length before them.
pub fn frame(request: &ChartRequest, with_files: bool, deadline: Duration) -> io::Result<Vec<u8>> {
    let file = |(name, content): &(String, Arc<[u8]>)| File {
        name: name.clone(),
        data: BASE64_STANDARD.encode(content),
    };
    let said = Request {
        chart: name_of(&request.chart),
        files: with_files.then(|| request.chart.files.iter().map(file).collect()),
        folder: request.chart.folder,
        values: &request.values,
        release: Release {
            name: &request.release,
            namespace: &request.namespace,
            revision: 1,
            is_upgrade: false,
        },
        capabilities: &request.capabilities,
        deadline_milliseconds: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
    };
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, &said)?;
    let length = u32::try_from(bytes.len() - 4).map_err(|_| io::Error::other("the request is too long"))?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Reads one answer of at most `limit` bytes.
pub fn read(from: &mut impl Read, limit: usize) -> io::Result<Answer> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("an answer of {length} bytes")));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// What a child knows a chart by.
pub fn name_of(chart: &Chart) -> String {
    format!("{}{}", chart.digest, if chart.folder { "/" } else { "" })
}
