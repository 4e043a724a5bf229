//! The simulated behaviour of a pod, set by its image, by annotations of the pod template, or by the scenario.
//!
//! `sim.tutti.dev/fail: image-pull | crash-loop | readiness | oom | unschedulable | init | evict |
//! config-error | slow-terminate`; any other word shows as `CreateContainerConfigError`. A tag that
//! starts with `broken` is an image that cannot be pulled. `sim.tutti.dev/start: slow` (3 s) or `7s`
//! or `1s..3s` and `sim.tutti.dev/ready-after: 500ms` say how long the pod takes to start,
//! `…/fail-after` how long it is well before, `…/fail-count` how often it fails before it is well,
//! `…/fail-share: 1/3` how many of such pods fail, `…/exit-code` how a crash ends, `…/log` what is
//! written last before it, and `…/slow-terminate: "true"` that it uses its whole grace period.
//!
//! [`seen`] adds the values of the scenario and the drawn ones to the annotations once; all other functions
//! read the annotations of the pod that they get.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use super::sim_annotations::{
    EXIT_CODE, FAIL, FAIL_AFTER, FAIL_COUNT, FAIL_SHARE, IMAGE, READY_AFTER, SEEDED, SLOW_TERMINATE, START,
};
use crate::cluster::SandboxState;
use crate::object;
use crate::scenario::{DurationRange, PodShare, ScenarioGlob, ScenarioPod};
use crate::seed::Seed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodFailure {
    ImagePull,
    CrashLoop,
    Readiness,
    OutOfMemory,
    Unschedulable,
    Init,
    Evict,
    ConfigError,
    /// An unknown value must not look like a healthy pod.
    Unknown,
}

const SLOW_START: Duration = Duration::from_secs(3);

impl PodFailure {
    pub(super) fn of(pod: &Value) -> Option<Self> {
        match object::annotation(pod, FAIL) {
            Some("image-pull") => Some(Self::ImagePull),
            Some("crash-loop") => Some(Self::CrashLoop),
            Some("readiness") => Some(Self::Readiness),
            Some("oom") => Some(Self::OutOfMemory),
            Some("unschedulable") => Some(Self::Unschedulable),
            Some("init") => Some(Self::Init),
            Some("evict") => Some(Self::Evict),
            Some("config-error") => Some(Self::ConfigError),
            Some("none" | "" | "slow-terminate") => None,
            Some(_) => Some(Self::Unknown),
            None => has_broken_image(pod).then_some(Self::ImagePull),
        }
    }

    /// Does this container fail? With a broken image only those that have one; else all.
    pub(super) fn affects(self, pod: &Value, container: &Value) -> bool {
        let image = object::text(container, &["image"]).unwrap_or("");
        match object::annotation(pod, IMAGE) {
            Some(pattern) => self != Self::ImagePull || ScenarioGlob::new(pattern).matches(image),
            None => {
                self != Self::ImagePull || object::annotation(pod, FAIL).is_some() || is_broken(container)
            }
        }
    }

    /// How long the pod is well before it begins.
    pub(super) fn delay_before(pod: &Value) -> Duration {
        object::annotation(pod, FAIL_AFTER).and_then(fixed_duration).unwrap_or_default()
    }

    /// After how many times the pod is well.
    pub(super) fn max_failures(pod: &Value) -> Option<u32> {
        object::annotation(pod, FAIL_COUNT).and_then(|text| text.parse().ok())
    }

    /// Exit code and reason of a container that this ends.
    pub(super) fn exit_of(self, pod: &Value) -> (i64, &'static str) {
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

/// The annotated time from scheduled to ready.
pub(super) fn start_duration(pod: &Value) -> Option<Duration> {
    if let Some(text) = object::annotation(pod, READY_AFTER) {
        return fixed_duration(text);
    }
    match object::annotation(pod, START)? {
        "slow" => Some(SLOW_START),
        text => fixed_duration(text),
    }
}

/// Does the pod use its whole grace period to end?
pub(super) fn uses_full_grace_period(pod: &Value) -> bool {
    object::annotation(pod, SLOW_TERMINATE) == Some("true")
        || object::annotation(pod, FAIL) == Some("slow-terminate")
}

/// Why a container cannot be made, in the words of a kubelet.
pub(super) fn config_error(pod: &Value) -> String {
    match object::annotation(pod, FAIL).unwrap_or("") {
        "config-error" => format!("secret \"{}\" not found", object::name(pod)),
        said => format!("unknown value \"{said}\" of annotation {FAIL}"),
    }
}

/// The pod with the scenario's and the drawn values as annotations.
pub(super) fn with_scenario<'p>(state: &SandboxState, pod: &'p Value) -> Cow<'p, Value> {
    let said = |name: &str| object::annotation(pod, name).is_some();
    if state.scenario.is_empty() && !SEEDED.iter().any(|name| said(name)) {
        return Cow::Borrowed(pod);
    }
    let mut seen = pod.clone();
    let mut words = match state.scenario.is_empty() {
        true => Vec::new(),
        false => {
            let (cluster, line) = (state.options.name.as_str(), owner_chain(state, pod));
            state.scenario.annotations_for(&ScenarioPod { cluster, pod, owner_chain: line })
        }
    };
    // annotations of the pod override the scenario, separately for start and failure
    let starts = said(START) || said(READY_AFTER);
    words.retain(|(name, _)| !(said(name) || starts && [START, READY_AFTER].contains(name)));
    if said(FAIL) {
        words.retain(|(name, _)| [START, READY_AFTER].contains(name));
    }
    for (name, text) in words {
        object::set(&mut seen, &["metadata", "annotations", name], text);
    }
    draw_open_values(&mut seen, state.options.seed);
    Cow::Owned(seen)
}

/// Draws the open values. They depend on the uid only, so repeated calls agree.
fn draw_open_values(pod: &mut Value, seed: u64) {
    let uid = object::uid(pod).bytes().fold(seed, |sum, byte| sum.rotate_left(7) ^ u64::from(byte));
    let mut seed = Seed::new(uid);
    for name in [START, READY_AFTER, FAIL_AFTER] {
        let drawn =
            object::annotation(pod, name).and_then(DurationRange::parse).map(|span| span.draw(&mut seed));
        if let Some(drawn) = drawn {
            object::set(pod, &["metadata", "annotations", name], format!("{}ms", drawn.as_millis()));
        }
    }
    let share = object::annotation(pod, FAIL_SHARE).and_then(PodShare::parse);
    if share.is_some_and(|share| !share.draw(&mut seed)) {
        object::set(pod, &["metadata", "annotations", FAIL], "none");
    }
}

/// The pod, its controller, and the controller of that.
fn owner_chain(state: &SandboxState, pod: &Value) -> Vec<(String, String)> {
    let mut line = vec![("Pod".to_owned(), object::name(pod).to_owned())];
    let mut controller = object::controller(pod).cloned();
    while let Some(one) = controller.take().filter(|_| line.len() < 4) {
        let text = |field: &str| one[field].as_str().unwrap_or("").to_owned();
        line.push((text("kind"), text("name")));
        let key = state.store.by_uid(&text("uid"));
        controller = key
            .and_then(|key| state.store.object_at(&key))
            .and_then(|found| object::controller(found))
            .cloned();
    }
    line
}

/// A time that leaves nothing to draw, or the shortest.
fn fixed_duration(text: &str) -> Option<Duration> {
    DurationRange::parse(text).map(DurationRange::shortest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_broken_tag_cannot_be_pulled() {
        let pod = |image: &str| json!({"spec": {"containers": [{"name": "c", "image": image}]}});
        assert_eq!(PodFailure::of(&pod("registry:5000/app:broken-1")), Some(PodFailure::ImagePull));
        assert_eq!(PodFailure::of(&pod("registry:5000/app:1")), None);
        assert_eq!(PodFailure::of(&pod("broken/app")), None);
    }

    #[test]
    fn durations() {
        let pod = |name: &str, text: &str| json!({"metadata": {"annotations": {name: text}}});
        assert_eq!(start_duration(&pod(READY_AFTER, "500ms")), Some(Duration::from_millis(500)));
        assert_eq!(start_duration(&pod(START, "slow")), Some(Duration::from_secs(3)));
        assert_eq!(start_duration(&pod(START, "2s")), Some(Duration::from_secs(2)));
        assert_eq!(start_duration(&pod(START, "soon")), None);
    }
}
