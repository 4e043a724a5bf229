//! What is done outside of this process, because what others wrote decides what it takes: templates are rendered there, and
//! the values of charts are checked against schemas.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum WorkerTask {
    /// Its texts are the templates, and what the cluster can do.
    RenderTemplates,
    /// Values of a chart against its schemas; without such texts.
    CheckValues,
}

/// What is asked of a worker, in texts whose meaning it shares with who asks.
#[derive(Clone, Debug)]
pub struct TemplateRequest<'a> {
    pub task: WorkerTask,
    pub kept: &'a [&'a KeptText],
    pub body: String,
    /// How long it may take at all.
    pub time: Duration,
}

/// How long somebody waits for a render before others have their turn: it is tried again later, with more time.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    pub time: Duration,
    /// False when nobody waits any more.
    pub goes_on: &'a (dyn Fn() -> bool + Sync),
}

impl Wait<'_> {
    /// As long as the render may take at all.
    pub const TO_THE_END: Self = Self { time: Duration::MAX, goes_on: &|| true };
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("time", &self.time).finish_non_exhaustive()
    }
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
    /// Nobody waited longer: it is to be tried again.
    NotYet,
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

/// What to look at when no worker starts.
pub const NO_WORKER_HELP: &str =
    "tutti starts itself as `tutti template-worker`: its file must be there and executable";

/// Renders templates, and checks values, in processes with limits: whatever a template or a schema does, only its own render ends.
pub trait TemplateWorkers: Send + Sync + fmt::Debug {
    fn ask(&self, request: &TemplateRequest<'_>, wait: Wait<'_>) -> Result<TemplateAnswer, RenderEnd>;
}
