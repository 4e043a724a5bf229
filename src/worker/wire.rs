//! Requests to a worker and its answers, as frames.

use std::io;

use serde::{Deserialize, Serialize};

use crate::child::{Frame, frames};
use crate::model::{CachedText, Digest, TemplateRequest, WorkerTask};

/// The JSON of a request. The sent texts and the body follow.
#[derive(Debug, Deserialize, Serialize)]
pub struct WorkerRequest {
    pub task: WorkerTask,
    pub kept: Vec<WorkerRequestText>,
    /// Whether templates report their lines.
    pub lines: bool,
}

/// A text of the request; `size` is set when it is sent along.
#[derive(Debug, Deserialize, Serialize)]
pub struct WorkerRequestText {
    pub digest: String,
    pub size: Option<usize>,
}

/// The JSON of an answer. The text follows.
#[derive(Debug, Deserialize, Serialize)]
pub struct WorkerAnswer {
    /// A text is missing: the worker caches a limited number.
    pub unknown: bool,
}

/// Encodes a request with the texts that the worker lacks.
pub fn encode_request(
    request: &TemplateRequest<'_>,
    has: impl Fn(&Digest) -> bool,
    lines: bool,
) -> io::Result<Vec<u8>> {
    let sent = |text: &CachedText| !has(&text.digest);
    let kept = request.cached.iter().map(|text| WorkerRequestText {
        digest: text.digest.to_string(),
        size: sent(text).then_some(text.text.len()),
    });
    let head = WorkerRequest { task: request.task, kept: kept.collect(), lines };
    let texts = request.cached.iter().filter(|text| sent(text)).map(|text| text.text.as_bytes());
    frames::encode(&head, texts.chain([request.body.as_bytes()]))
}

/// `None`: the worker needs more texts.
pub fn read_answer(frame: &Frame) -> io::Result<Option<Vec<u8>>> {
    let WorkerAnswer { unknown } = serde_json::from_slice(frame.head())?;
    Ok((!unknown).then(|| frame.texts().to_vec()))
}
