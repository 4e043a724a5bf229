//! Requests to a worker and its answers, as frames.

use std::io;

use serde::{Deserialize, Serialize};

use crate::child::{Frame, frames};
use crate::model::{Digest, KeptText, TemplateRequest, WorkerTask};

/// The JSON of a request. The sent texts and the body follow.
#[derive(Debug, Deserialize, Serialize)]
pub struct Request {
    pub task: WorkerTask,
    pub kept: Vec<Kept>,
    /// Whether templates report their lines.
    pub lines: bool,
}

/// A text of the request; `size` is set when it is sent along.
#[derive(Debug, Deserialize, Serialize)]
pub struct Kept {
    pub digest: String,
    pub size: Option<usize>,
}

/// The JSON of an answer. The text follows.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    /// A text is missing: the worker caches a limited number.
    pub unknown: bool,
}

/// Encodes a request with the texts that the worker lacks.
pub fn request(
    request: &TemplateRequest<'_>,
    has: impl Fn(&Digest) -> bool,
    lines: bool,
) -> io::Result<Vec<u8>> {
    let sent = |text: &KeptText| !has(&text.digest);
    let kept = request
        .kept
        .iter()
        .map(|text| Kept { digest: text.digest.to_string(), size: sent(text).then_some(text.text.len()) });
    let head = Request { task: request.task, kept: kept.collect(), lines };
    let texts = request.kept.iter().filter(|text| sent(text)).map(|text| text.text.as_bytes());
    frames::whole(&head, texts.chain([request.body.as_bytes()]))
}

/// `None`: the worker needs more texts.
pub fn read_answer(frame: &Frame) -> io::Result<Option<Vec<u8>>> {
    let Answer { unknown } = serde_json::from_slice(frame.head())?;
    Ok((!unknown).then(|| frame.texts().to_vec()))
}
