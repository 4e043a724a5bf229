//! Requests to worker processes: rendering of templates, and checks of chart values against schemas. They run in other processes,
//! because foreign templates and schemas decide how much time and memory they take.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Digest;

/// A text that workers cache: each worker receives it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedText {
    pub digest: Digest,
    pub text: String,
}

impl CachedText {
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

/// A request to a worker. Worker and caller define the format of the texts.
#[derive(Clone, Debug)]
pub struct TemplateRequest<'a> {
    pub task: WorkerTask,
    pub cached: &'a [&'a CachedText],
    pub body: String,
    /// How much processor time it may take.
    pub time: Duration,
}

/// The time that a render may take now. When it ends, other renders run first, and this one is retried with more time.
#[derive(Clone, Copy)]
pub struct RenderWait<'a> {
    pub time: Duration,
    /// False when the result is no longer needed.
    pub is_wanted: &'a (dyn Fn() -> bool + Sync),
}

impl RenderWait<'_> {
    /// Without another limit than that of the request.
    pub const UNLIMITED: Self = Self { time: Duration::MAX, is_wanted: &|| true };
}

impl fmt::Debug for RenderWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderWait").field("time", &self.time).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct TemplateResponse {
    pub body: Vec<u8>,
    /// Processor time.
    pub took: Duration,
}

/// The reason why a render ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderFailure {
    pub cause: RenderFailureCause,
    /// Where the render was when it ended, in the words of the worker; `None` where that is not known.
    pub place: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderFailureCause {
    /// The wait ended; the render must be retried.
    Postponed,
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

/// Renders templates and checks values in processes with limits, so that a hostile template ends only its own render.
pub trait TemplateWorkers: Send + Sync + fmt::Debug {
    fn run_task(
        &self,
        request: &TemplateRequest<'_>,
        wait: RenderWait<'_>,
    ) -> Result<TemplateResponse, RenderFailure>;
}
