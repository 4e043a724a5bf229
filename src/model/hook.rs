//! Hooks of a chart: objects that are applied before or after its other objects; and the annotation that marks the first release.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::foreign_annotation::{HELM_HOOK, HELM_HOOK_DELETE, HELM_HOOK_WEIGHT};
use super::{ChartHook, Digest};

/// The hook settings of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectHook {
    pub stage: HookStage,
    /// Within its stage: the lower one first.
    pub weight: i64,
    pub occasion: HookReleases,
    /// It is a Job or a Pod, and others wait for its end.
    pub runs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HookStage {
    /// Before the objects that are no hooks.
    Before,
    /// When they are healthy.
    After,
}

/// The releases that apply a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HookReleases {
    /// The first on a cluster alone: once it is there it stays as it is.
    Install,
    /// Those after the first.
    Upgrade,
    Each,
}

impl ObjectHook {
    /// Whether it needs a separate step. A hook that runs nothing may come with the others instead of after them.
    pub fn is_separate(&self) -> bool {
        self.runs || self.stage == HookStage::Before
    }

    pub fn is_install_only(&self) -> bool {
        self.occasion == HookReleases::Install
    }
}

/// Helm's hook events, and whether tutti supports them.
const HELM_HOOK_EVENTS: [(&str, bool); 9] = [
    ("pre-install", true),
    ("post-install", true),
    ("pre-upgrade", true),
    ("post-upgrade", true),
    ("pre-delete", false),
    ("post-delete", false),
    ("pre-rollback", false),
    ("post-rollback", false),
    ("test", false),
];

impl ChartHook {
    /// Reads the annotations of an object as Helm does. With an unknown event Helm applies nothing, so such a hook has no events.
    pub fn of(object: &Value) -> Option<Self> {
        let annotations = object.get("metadata")?.get("annotations")?;
        let text = |key: &str| annotations.get(key).and_then(Value::as_str);
        let words =
            |text: &str| -> Vec<String> { text.split(',').map(|word| word.trim().to_lowercase()).collect() };
        let mut events = words(text(HELM_HOOK)?);
        // As Helm 2 called it.
        events
            .iter_mut()
            .filter(|event| *event == "test-success")
            .for_each(|event| *event = "test".to_owned());
        if events.iter().any(|event| HELM_HOOK_EVENTS.iter().all(|(name, _)| name != event)) {
            events.clear();
        }
        let weight = text(HELM_HOOK_WEIGHT).and_then(|weight| weight.parse().ok());
        let delete_policies = text(HELM_HOOK_DELETE).map(words).unwrap_or_default();
        Some(Self { events, weight: weight.unwrap_or_default(), delete_policies })
    }

    /// The supported events. A hook without any is left out, as by `helm template --no-hooks`.
    pub fn supported_events(&self) -> impl Iterator<Item = &str> {
        let here = |event: &&str| HELM_HOOK_EVENTS.contains(&(*event, true));
        self.events.iter().map(String::as_str).filter(here)
    }
}

/// The annotation on the objects of a first release. It survives a restart in the middle of the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallAnnotation {
    /// Digits of the digest of all that the release is.
    release: String,
    pub is_of_hook: bool,
    /// It has come to its end.
    pub is_completed: bool,
}

impl InstallAnnotation {
    const HOOK_SUFFIX: &str = "-hook";
    const COMPLETED_SUFFIX: &str = "-over";

    pub fn new(release: &Digest, is_of_hook: bool) -> Self {
        Self { release: release.short(), is_of_hook, is_completed: false }
    }

    #[must_use]
    pub fn with_completed(self, is_over: bool) -> Self {
        Self { is_completed: is_over, ..self }
    }

    /// What an annotation says.
    pub fn parse(text: &str) -> Self {
        let (of_hook, over) =
            (text.strip_suffix(Self::HOOK_SUFFIX), text.strip_suffix(Self::COMPLETED_SUFFIX));
        let release = of_hook.or(over).unwrap_or(text).to_owned();
        Self { release, is_of_hook: of_hook.is_some(), is_completed: over.is_some() }
    }

    pub fn is_of_release(&self, release: &Digest) -> bool {
        self.release == release.short()
    }
}

impl fmt::Display for InstallAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match (self.is_of_hook, self.is_completed) {
            (true, _) => Self::HOOK_SUFFIX,
            (false, true) => Self::COMPLETED_SUFFIX,
            (false, false) => "",
        };
        write!(f, "{}{suffix}", self.release)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_read_as_helm_reads_them() {
        let check = |annotations: Value, events: Option<&[&str]>, here: usize| {
            let hook = ChartHook::of(&json!({"metadata": {"annotations": annotations}}));
            let found = hook.as_ref().map(|hook| hook.events.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), events, "{annotations}");
            assert_eq!(hook.map_or(0, |hook| hook.supported_events().count()), here, "{annotations}");
        };
        check(json!({}), None, 0);
        check(json!({HELM_HOOK: "pre-install, Post-Upgrade"}), Some(&["pre-install", "post-upgrade"]), 2);
        check(json!({HELM_HOOK: "test-success"}), Some(&["test"]), 0);
        check(json!({HELM_HOOK: "post-install,test"}), Some(&["post-install", "test"]), 1);
        check(json!({HELM_HOOK: "pre-delete,post-rollback"}), Some(&["pre-delete", "post-rollback"]), 0);
        check(json!({HELM_HOOK: "crd-install"}), Some(&[]), 0);
        check(json!({HELM_HOOK: "post-install,test-failure"}), Some(&[]), 0);
        check(json!({HELM_HOOK: ""}), Some(&[]), 0);
    }

    #[test]
    fn weight_is_a_whole_number_or_nothing() {
        let check = |weight: Value, expected: i64| {
            let annotations = json!({HELM_HOOK: "pre-install", HELM_HOOK_WEIGHT: weight});
            let hook = ChartHook::of(&json!({"metadata": {"annotations": annotations}}));
            assert_eq!(hook.map(|hook| hook.weight), Some(expected), "{annotations}");
        };
        check(json!("-5"), -5);
        check(json!("+5"), 5);
        check(json!(" 5"), 0);
        check(json!("1.5"), 0);
    }
}
