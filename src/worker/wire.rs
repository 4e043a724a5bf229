//! What is said to a worker, and what it answers; in frames.

use std::io;

use serde::{Deserialize, Serialize};

use crate::child::{Frame, frames};
use crate::model::{Digest, TemplateRequest};

/// Before the texts that are sent, and the body.
#[derive(Debug, Deserialize, Serialize)]
pub struct Request {
    pub kept: [Kept; 2],
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
    let sent = request.kept.map(|text| (!has(&text.digest)).then_some(text.text.as_bytes()));
    let kept = [0, 1].map(|index| Kept {
        digest: request.kept[index].digest.to_string(),
        size: sent[index].map(<[u8]>::len),
    });
    let texts = sent.into_iter().flatten().chain([request.body.as_bytes()]);
    frames::whole(&Request { kept, lines }, texts)
}

/// The text of an answer; `None` where the worker needs more texts.
pub fn read_answer(frame: &Frame) -> io::Result<Option<Vec<u8>>> {
    let Answer { unknown } = serde_json::from_slice(frame.head())?;
    Ok((!unknown).then(|| frame.texts().to_vec()))
}
