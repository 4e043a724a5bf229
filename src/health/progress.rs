//! Whether a workload gets on: how far it has come with its newest spec.

use serde_json::Value;

use super::read::{count, integer, text};

/// Counts of a status that grow while a rollout gets on. That pods were made is none of them: in a large rollout it is told late, and
/// what crashes would have another ten seconds from then.
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

/// What a status tells of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which spec of which object: another one begins anew.
    of: (String, i64),
    /// The spec that its controller has seen: what it counted of another one says nothing of this one.
    observed: i64,
    now: Counts,
    /// The best of each since then: what is lost and comes back is no progress, as when a container crashes again and again.
    best: Counts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Counts {
    growing: [i64; GROWING.len()],
    /// Pods of older templates.
    old: i64,
}

/// What a status is beside an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// It got on, or has another spec.
    Forward,
    /// The status changed without progress.
    Changed,
    None,
}

impl Progress {
    pub fn of(workload: &Value) -> Self {
        let growing =
            GROWING.map(|name| workload.pointer("/status").map_or(0, |it| count(it, &format!("/{name}"))));
        let old = count(workload, "/status/replicas") - count(workload, "/status/updatedReplicas");
        let counts = Counts { growing, old: old.max(0) };
        let number = |pointer| integer(workload, pointer).unwrap_or_default();
        let uid = text(workload, "/metadata/uid").unwrap_or_default().to_owned();
        Self {
            of: (uid, number("/metadata/generation")),
            observed: number("/status/observedGeneration"),
            now: counts.clone(),
            best: counts,
        }
    }

    /// Goes on with what the status is now.
    pub fn see(&mut self, seen: Self) -> Movement {
        if self.of != seen.of {
            *self = seen;
            return Movement::Forward;
        }
        if self.observed != seen.observed {
            *self = seen;
            return Movement::Changed;
        }
        let best = Counts {
            growing: std::array::from_fn(|n| self.best.growing[n].max(seen.now.growing[n])),
            old: self.best.old.min(seen.now.old),
        };
        let is_other = self.now != seen.now;
        self.now = seen.now;
        if self.best != best {
            self.best = best;
            return Movement::Forward;
        }
        if is_other { Movement::Changed } else { Movement::None }
    }
}
