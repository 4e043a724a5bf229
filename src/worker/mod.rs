//! Templates of a repository are rendered, and values of charts checked against their schemas, in processes of their own: whatever
//! one does, only its own render ends.
//!
//! A worker is this same program (`tutti template-worker`, [`serve()`]), without environment or files, with limits of memory, stack
//! and time. [`Workers`] starts as many as there are cores when there is something to render, and keeps them. One that ends, or
//! is late, is replaced; what it was at is rendered once more with templates that report their lines, so that
//! the mistake names one.
//!
//! Templates that the program ships are rendered where they are needed.

mod client;
mod serve;
mod wire;

use std::time::Duration;

pub use client::Workers;
pub use serve::serve;

/// What a worker is started as.
pub const COMMAND: &str = "template-worker";
/// What a render has that is made once more, to find the line at which it ended. On a machine that was busy it may come to its
/// end now.
pub const SECOND: Duration = Duration::from_secs(2);
/// A worker that was at one request for so long ends by itself: nobody waits for it any more.
pub const LONGEST: Duration = Duration::from_secs(120);
/// Bytes of memory of one worker. It needs about 20 MiB for itself.
pub const MEMORY: u64 = 256 * 1024 * 1024;
/// Bytes of the stack that templates are rendered on.
pub const STACK: usize = 4 * 1024 * 1024;
/// Bytes of one answer: the texts of one render, with what is escaped in them. They are read as YAML in the main process, where
/// nothing ends that.
pub const ANSWER: usize = 8 * 1024 * 1024;
/// How long the same render is not tried again after it ended a worker.
pub const REST: Duration = Duration::from_secs(600);
/// Renders that rest; beyond that, all are forgotten.
const MOST_AT_REST: usize = 10_000;
