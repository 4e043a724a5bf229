//! How a pod fails, told by its image or by annotations of the pod template.
//!
//! `sim.tutti.dev/fail: image-pull | crash-loop | readiness | oom | unschedulable`; a tag that
//! starts with `broken` is an image that cannot be pulled. `sim.tutti.dev/ready-after: 500ms` says
//! how long the pod takes to start.

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
}

const FAIL: &str = "sim.tutti.dev/fail";
const READY_AFTER: &str = "sim.tutti.dev/ready-after";

impl Failure {
    pub(super) fn of(pod: &Value) -> Option<Self> {
        match object::annotation(pod, FAIL) {
            Some("image-pull") => Some(Self::ImagePull),
            Some("crash-loop") => Some(Self::CrashLoop),
            Some("readiness") => Some(Self::Readiness),
            Some("oom") => Some(Self::OutOfMemory),
            Some("unschedulable") => Some(Self::Unschedulable),
            _ => object::list(pod, &["spec", "containers"]).iter().any(is_broken).then_some(Self::ImagePull),
        }
    }

    /// Does this container fail? With a broken image only those that have one; else the first.
    pub(super) fn strikes(self, pod: &Value, container: &Value) -> bool {
        let containers = object::list(pod, &["spec", "containers"]);
        if self == Self::ImagePull && containers.iter().any(is_broken) {
            return is_broken(container);
        }
        containers.first().is_some_and(|first| first["name"] == container["name"])
    }
}

fn is_broken(container: &Value) -> bool {
    let image = object::text(container, &["image"]).unwrap_or("");
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_some_and(|(_, tag)| tag.starts_with("broken"))
}

/// `500ms`, `2s`, `1m`.
pub(super) fn ready_after(pod: &Value) -> Option<Duration> {
    let text = object::annotation(pod, READY_AFTER)?;
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(60 * number)),
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
        let pod = |text: &str| json!({"metadata": {"annotations": {READY_AFTER: text}}});
        assert_eq!(ready_after(&pod("500ms")), Some(Duration::from_millis(500)));
        assert_eq!(ready_after(&pod("2s")), Some(Duration::from_secs(2)));
        assert_eq!(ready_after(&pod("soon")), None);
    }
}
