//! The `sim.tutti.dev/…` annotations that control simulated pods.

pub(crate) const FAIL: &str = "sim.tutti.dev/fail";
pub(crate) const FAIL_AFTER: &str = "sim.tutti.dev/fail-after";
pub(crate) const FAIL_COUNT: &str = "sim.tutti.dev/fail-count";
pub(crate) const FAIL_SHARE: &str = "sim.tutti.dev/fail-share";
pub(crate) const START: &str = "sim.tutti.dev/start";
pub(crate) const READY_AFTER: &str = "sim.tutti.dev/ready-after";
pub(crate) const EXIT_CODE: &str = "sim.tutti.dev/exit-code";
/// What a container writes last before it fails.
pub(crate) const LOG: &str = "sim.tutti.dev/log";
pub(crate) const SLOW_END: &str = "sim.tutti.dev/slow-terminate";
/// Which images a failed pull is about; only scenarios say so.
pub(crate) const IMAGE: &str = "sim.tutti.dev/image";

/// Those that may leave something to the seed.
pub(super) const DRAWN: &[&str] = &[START, READY_AFTER, FAIL_AFTER, FAIL_SHARE];

/// What a scenario may say after `fail`.
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
