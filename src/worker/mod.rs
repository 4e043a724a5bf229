//! Renders templates of the repository, and checks chart values against schemas, in worker processes: a failure ends only its own
//! render.
//!
//! A worker is this program (`tutti template-worker`, [`serve()`]) without environment or files, with limits of memory, stack and
//! time. [`WorkerPool`] starts at most one per core, on demand, and keeps them. A worker that ends or is late is replaced. Its
//! render is repeated with templates that report their lines, so that the mistake names one.
//!
//! Shipped templates are rendered in the main process.

mod client;
mod serve;
mod wire;

use std::time::Duration;

pub use client::WorkerPool;
pub use serve::serve;

/// The hidden subcommand of a worker.
pub const COMMAND: &str = "template-worker";
/// Processor time of the repeated render that finds the line.
pub const RETRY_TIMEOUT: Duration = Duration::from_secs(2);
/// A worker exits by itself after so long on one request: the main process is gone. Longer than a stretched limit.
pub const MAX_REQUEST_TIME: Duration = Duration::from_secs(120);
/// Memory of one worker, in bytes. It needs about 20 MiB for itself.
pub const MEMORY_LIMIT: u64 = 256 * 1024 * 1024;
/// Stack for rendering, in bytes.
pub const STACK_SIZE: usize = 4 * 1024 * 1024;
/// Largest answer, in bytes: the escaped texts of one render. The main process parses them as YAML without a time limit.
pub const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// How long a render that ended a worker is not tried again.
pub const FAILED_RENDER_COOLDOWN: Duration = Duration::from_secs(600);
/// Remembered failed renders; beyond that all are dropped.
const MAX_FAILED_RENDERS: usize = 10_000;
