//! Tracks whether the rollout of a workload progresses with its newest spec.

use serde_json::Value;

use super::json_fields::{count, integer, text};

/// Status counts that grow during a rollout. The number of created pods is no progress: in a large rollout it is
/// reported late, and a crash would get another ten seconds from then.
const GROWING: [&str; 9] = [
    "readyReplicas",
    "availableReplicas",
    "updatedReadyReplicas",
    "updatedAvailableReplicas",
    "updatedNumberScheduled",
    "numberReady",
    "numberAvailable",
    "ready",
    "succeeded",
];

/// The progress of a rollout by its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutProgress {
    /// The object and its generation: another one restarts.
    of: (String, i64),
    /// The generation that its controller has observed. Counts of another one do not apply.
    observed: i64,
    current: ProgressCounts,
    /// The best of each count so far: a lost and regained pod is no progress, as in a crash loop.
    best: ProgressCounts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProgressCounts {
    growing: [i64; GROWING.len()],
    /// Pods of older templates.
    old: i64,
}

/// The change since the last status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressChange {
    /// Progress, or another spec.
    Forward,
    /// A change without progress.
    Changed,
    None,
}

impl RolloutProgress {
    pub fn of(workload: &Value) -> Self {
        let growing =
            GROWING.map(|name| workload.pointer("/status").map_or(0, |it| count(it, &format!("/{name}"))));
        let old = count(workload, "/status/replicas") - count(workload, "/status/updatedReplicas");
        let counts = ProgressCounts { growing, old: old.max(0) };
        let number = |pointer| integer(workload, pointer).unwrap_or_default();
        let uid = text(workload, "/metadata/uid").unwrap_or_default().to_owned();
        Self {
            of: (uid, number("/metadata/generation")),
            observed: number("/status/observedGeneration"),
            current: counts.clone(),
            best: counts,
        }
    }

    /// Continues with a newer status.
    pub fn update(&mut self, seen: Self) -> ProgressChange {
        if self.of != seen.of {
            *self = seen;
            return ProgressChange::Forward;
        }
        if self.observed != seen.observed {
            *self = seen;
            return ProgressChange::Changed;
        }
        let best = ProgressCounts {
            growing: std::array::from_fn(|n| self.best.growing[n].max(seen.current.growing[n])),
            old: self.best.old.min(seen.current.old),
        };
        let is_other = self.current != seen.current;
        self.current = seen.current;
        if self.best != best {
            self.best = best;
            return ProgressChange::Forward;
        }
        if is_other { ProgressChange::Changed } else { ProgressChange::None }
    }
}
