//! The limits of one chart render, and the failure of a render that takes too long.

use std::time::Duration;

use crate::model::{ChartFailure, ChartFailureKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartRenderLimits {
    pub deadline: Duration,
    /// Bytes of one child.
    pub memory: u64,
    /// Bytes of one answer.
    pub answer: usize,
    /// Bytes of the values of one request.
    pub values: usize,
    /// Parallel renders.
    pub children: usize,
}

impl Default for ChartRenderLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            memory: 1024 * 1024 * 1024,
            answer: 64 * 1024 * 1024,
            values: 4 * 1024 * 1024,
            children: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

pub fn timeout_failure(deadline: Duration) -> ChartFailure {
    let seconds = deadline.as_secs_f64();
    ChartFailure::new(ChartFailureKind::Limit, format!("the chart takes longer than {seconds} s"))
        .help("look for a loop over too many items, or for a loop within a loop")
}
