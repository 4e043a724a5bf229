//! The `sim.tutti.dev/…` annotations that control simulated pods.

pub(crate) const FAIL: &str = "sim.tutti.dev/fail";
pub(crate) const FAIL_AFTER: &str = "sim.tutti.dev/fail-after";
pub(crate) const FAIL_COUNT: &str = "sim.tutti.dev/fail-count";
pub(crate) const FAIL_SHARE: &str = "sim.tutti.dev/fail-share";
pub(crate) const START: &str = "sim.tutti.dev/start";
pub(crate) const READY_AFTER: &str = "sim.tutti.dev/ready-after";
pub(crate) const EXIT_CODE: &str = "sim.tutti.dev/exit-code";
/// The last log line before a container fails.
pub(crate) const LOG: &str = "sim.tutti.dev/log";
pub(crate) const SLOW_TERMINATE: &str = "sim.tutti.dev/slow-terminate";
/// The images whose pull fails; only scenarios set it.
pub(crate) const IMAGE: &str = "sim.tutti.dev/image";

/// Annotations with values that the seed may draw.
pub(super) const SEEDED: &[&str] = &[START, READY_AFTER, FAIL_AFTER, FAIL_SHARE];

/// The allowed values of `fail` in scenarios.
pub(crate) const FAILURES: &[&str] = &[
    "none",
    "image-pull",
    "crash-loop",
    "unschedulable",
    "readiness",
    "init",
    "oom",
    "config-error",
    "slow-terminate",
    "evict",
];
