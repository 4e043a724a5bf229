//! What is said to a worker, and what it answers; in frames.

use std::io;

use serde::{Deserialize, Serialize};

use crate::child::{Frame, frames};
use crate::model::{Digest, KeptText, TemplateRequest, WorkerTask};

/// Before the texts that are sent, and the body.
#[derive(Debug, Deserialize, Serialize)]
pub struct Request {
    pub task: WorkerTask,
    pub kept: Vec<Kept>,
    /// Lines are reported.
    pub lines: bool,
}

/// A text that the worker has; with its size when it is sent.
#[derive(Debug, Deserialize, Serialize)]
pub struct Kept {
    pub digest: String,
    pub size: Option<usize>,
}

/// Before the text of the answer.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    /// It does not have a text that it was to have: it keeps only so many.
    pub unknown: bool,
}

/// A request with the texts that the worker does not have.
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

/// The text of an answer; `None` where the worker needs more texts.
pub fn read_answer(frame: &Frame) -> io::Result<Option<Vec<u8>>> {
    let Answer { unknown } = serde_json::from_slice(frame.head())?;
    Ok((!unknown).then(|| frame.texts().to_vec()))
}
