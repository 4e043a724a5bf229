//! Templates that are rendered outside of this process.

use std::fmt;
use std::time::Duration;

use super::Digest;

/// A text that workers keep: each gets it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptText {
    pub digest: Digest,
    pub text: String,
}

impl KeptText {
    pub fn new(text: String) -> Self {
        Self { digest: Digest::of(text.as_bytes()), text }
    }
}

/// What is asked of a worker, in texts whose meaning it shares with who asks.
#[derive(Clone, Debug)]
pub struct TemplateRequest<'a> {
    /// The templates, and what the cluster can do.
    pub kept: [&'a KeptText; 2],
    pub body: String,
    /// How long it may take.
    pub time: Duration,
}

#[derive(Clone, Debug)]
pub struct TemplateAnswer {
    pub body: Vec<u8>,
    pub took: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderEnd {
    pub cause: RenderEndCause,
    /// Where the render was when it ended, in the words of the worker; `None` where that is not known.
    pub place: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderEndCause {
    /// It took longer.
    Time,
    /// It wanted more bytes.
    Memory(u64),
    /// It went deeper than the stack is.
    Stack,
    /// Its texts have more bytes.
    Output(usize),
    /// The worker ended otherwise, with these words.
    Crash(String),
    /// There is no worker.
    NoWorker(String),
}

/// Renders templates in processes with limits: whatever a template does, only its own render ends.
pub trait TemplateWorkers: Send + Sync + fmt::Debug {
    fn ask(&self, request: &TemplateRequest<'_>) -> Result<TemplateAnswer, RenderEnd>;
}
