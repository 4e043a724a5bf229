//! How a pod fares, told by its image or by annotations of the pod template.
//!
//! `sim.tutti.dev/fail: image-pull | crash-loop | readiness | oom | unschedulable | init | evict`;
//! any other word shows as `CreateContainerConfigError`. A tag that starts with `broken` is an image
//! that cannot be pulled. `sim.tutti.dev/start: slow` (3 s) or `7s` and `sim.tutti.dev/ready-after:
//! 500ms` say how long the pod takes to start, `sim.tutti.dev/exit-code` how a crash ends,
//! `sim.tutti.dev/slow-terminate: "true"` that it uses its whole grace period.

use std::time::Duration;

use serde_json::Value;

use crate::object;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    ImagePull,
    CrashLoop,
    Readiness,
    OutOfMemory,
    Unschedulable,
    Init,
    Evict,
    /// A word that nobody knows must not look like a healthy pod.
    Unknown,
}

pub(super) const FAIL: &str = "sim.tutti.dev/fail";
const START: &str = "sim.tutti.dev/start";
const READY_AFTER: &str = "sim.tutti.dev/ready-after";
const EXIT_CODE: &str = "sim.tutti.dev/exit-code";
const SLOW_END: &str = "sim.tutti.dev/slow-terminate";
const SLOW_START: Duration = Duration::from_secs(3);

impl Failure {
    pub(super) fn of(pod: &Value) -> Option<Self> {
        match object::annotation(pod, FAIL) {
            Some("image-pull") => Some(Self::ImagePull),
            Some("crash-loop") => Some(Self::CrashLoop),
            Some("readiness") => Some(Self::Readiness),
            Some("oom") => Some(Self::OutOfMemory),
            Some("unschedulable") => Some(Self::Unschedulable),
            Some("init") => Some(Self::Init),
            Some("evict") => Some(Self::Evict),
            Some("none" | "") => None,
            Some(_) => Some(Self::Unknown),
            None => has_broken_image(pod).then_some(Self::ImagePull),
        }
    }

    /// Does this container fail? With a broken image only those that have one; else all.
    pub(super) fn strikes(self, pod: &Value, container: &Value) -> bool {
        self != Self::ImagePull || object::annotation(pod, FAIL).is_some() || is_broken(container)
    }

    /// Exit code and reason of a container that this ends.
    pub(super) fn end_of(self, pod: &Value) -> (i64, &'static str) {
        if self == Self::OutOfMemory {
            return (137, "OOMKilled");
        }
        let code = object::annotation(pod, EXIT_CODE).and_then(|text| text.parse().ok());
        (code.unwrap_or(1), "Error")
    }
}

fn has_broken_image(pod: &Value) -> bool {
    ["initContainers", "containers"].iter().flat_map(|list| object::list(pod, &["spec", list])).any(is_broken)
}

fn is_broken(container: &Value) -> bool {
    let image = object::text(container, &["image"]).unwrap_or("");
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_some_and(|(_, tag)| tag.starts_with("broken"))
}

/// How long the pod takes from scheduled to ready, when it says so.
pub(super) fn start_takes(pod: &Value) -> Option<Duration> {
    if let Some(text) = object::annotation(pod, READY_AFTER) {
        return duration(text);
    }
    match object::annotation(pod, START)? {
        "slow" => Some(SLOW_START),
        text => duration(text),
    }
}

/// Does the pod use its whole grace period to end?
pub(super) fn ends_slowly(pod: &Value) -> bool {
    object::annotation(pod, SLOW_END) == Some("true")
}

/// `500ms`, `2s`, `1m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_broken_tag_cannot_be_pulled() {
        let pod = |image: &str| json!({"spec": {"containers": [{"name": "c", "image": image}]}});
        assert_eq!(Failure::of(&pod("registry:5000/app:broken-1")), Some(Failure::ImagePull));
        assert_eq!(Failure::of(&pod("registry:5000/app:1")), None);
        assert_eq!(Failure::of(&pod("broken/app")), None);
    }

    #[test]
    fn durations() {
        let pod = |name: &str, text: &str| json!({"metadata": {"annotations": {name: text}}});
        assert_eq!(start_takes(&pod(READY_AFTER, "500ms")), Some(Duration::from_millis(500)));
        assert_eq!(start_takes(&pod(START, "slow")), Some(Duration::from_secs(3)));
        assert_eq!(start_takes(&pod(START, "2s")), Some(Duration::from_secs(2)));
        assert_eq!(start_takes(&pod(START, "soon")), None);
    }
}
