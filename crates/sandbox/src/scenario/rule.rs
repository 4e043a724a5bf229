//! One rule: which pods, and how they fare.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use super::{DurationRange, PodShare, ScenarioGlob, ScenarioPod};
use crate::controllers::sim_annotations;
use crate::object;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScenarioRule {
    cluster: Option<ScenarioGlob>,
    namespace: Option<ScenarioGlob>,
    image: Option<ScenarioGlob>,
    kind: Option<ScenarioGlob>,
    name: Option<ScenarioGlob>,
    #[serde(default, deserialize_with = "span")]
    start: Option<String>,
    #[serde(default, deserialize_with = "span")]
    ready_after: Option<String>,
    #[serde(default, deserialize_with = "failure")]
    fail: Option<String>,
    #[serde(default, deserialize_with = "span")]
    fail_after: Option<String>,
    fail_count: Option<u32>,
    #[serde(default, deserialize_with = "share")]
    fail_share: Option<String>,
    exit_code: Option<i32>,
    log: Option<String>,
}

/// Failures that begin before the pod runs, or end it: they have no later beginning.
const IMMEDIATE_FAILURES: &[&str] =
    &["unschedulable", "config-error", "slow-terminate", "image-pull", "init"];
/// Failures that do not repeat within one pod.
const UNREPEATED_FAILURES: &[&str] = &["unschedulable", "config-error", "slow-terminate", "evict"];

impl ScenarioRule {
    /// Checks that involve several keys.
    pub(super) fn check(&self) -> Result<(), String> {
        let lonely = self.fail_after.is_some() || self.fail_count.is_some() || self.fail_share.is_some();
        match self.fail.as_deref() {
            None if lonely => {
                Err("fail-after, fail-count and fail-share have no effect without fail".to_owned())
            }
            Some(fail) if self.fail_after.is_some() && IMMEDIATE_FAILURES.contains(&fail) => {
                Err(format!("fail-after has no effect with {fail}"))
            }
            Some(fail) if self.fail_count.is_some() && UNREPEATED_FAILURES.contains(&fail) => {
                Err(format!("fail-count has no effect with {fail}"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn matches(&self, subject: &ScenarioPod<'_>) -> bool {
        let fits =
            |glob: &Option<ScenarioGlob>, text: &str| glob.as_ref().is_none_or(|glob| glob.matches(text));
        fits(&self.cluster, subject.cluster)
            && fits(&self.namespace, object::namespace(subject.pod))
            && (self.image.is_none() || images(subject.pod).any(|image| fits(&self.image, image)))
            && subject.owner_chain.iter().any(|(kind, name)| fits(&self.kind, kind) && fits(&self.name, name))
    }

    pub(super) fn annotations(&self) -> Vec<(&'static str, String)> {
        let said = [
            (sim_annotations::IMAGE, self.image.as_ref().map(|glob| glob.text().to_owned())),
            (sim_annotations::START, self.start.clone()),
            (sim_annotations::READY_AFTER, self.ready_after.clone()),
            (sim_annotations::FAIL, self.fail.clone()),
            (sim_annotations::FAIL_AFTER, self.fail_after.clone()),
            (sim_annotations::FAIL_COUNT, self.fail_count.map(|count| count.to_string())),
            (sim_annotations::FAIL_SHARE, self.fail_share.clone()),
            (sim_annotations::EXIT_CODE, self.exit_code.map(|code| code.to_string())),
            (sim_annotations::LOG, self.log.clone()),
        ];
        said.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

fn images(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = ["initContainers", "containers"].into_iter();
    containers
        .flat_map(|list| object::list(pod, &["spec", list]))
        .filter_map(|one| object::text(one, &["image"]))
}

fn checked<'de, D: Deserializer<'de>>(
    from: D,
    known: impl Fn(&str) -> bool,
    what: impl Fn(&str) -> String,
) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    if known(&text) { Ok(Some(text)) } else { Err(D::Error::custom(what(&text))) }
}

fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let known = |text: &str| text == "slow" || DurationRange::parse(text).is_some();
    checked(from, known, |text| format!("{text:?} is not a time"))
}

fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |text| PodShare::parse(text).is_some(), |text| format!("{text:?} is not a share"))
}

fn failure<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let known = |text: &str| sim_annotations::FAILURES.contains(&text);
    checked(from, known, |text| {
        format!("unknown failure {text:?}, known are {}", sim_annotations::FAILURES.join(", "))
    })
}
