//! Scenarios: a file of rules that controls how simulated pods behave, so that manifests need no annotations.
//!
//! The first rule whose patterns match a pod applies. Its keys are those of the annotations `sim.tutti.dev/…`; an
//! annotation on the pod overrides the rule. Random values (a time in a range, a share of the pods) are drawn from
//! the cluster's seed and the pod's uid, so they do not depend on the order of events. A file with an unknown key or
//! value is refused.

mod error;
mod glob;
mod rule;
mod rule_values;
mod scenario_pod;

use serde::Deserialize;

pub use error::ScenarioError;
pub(crate) use glob::ScenarioGlob;
use rule::ScenarioRule;
pub(crate) use rule_values::{DurationRange, PodShare};
pub(crate) use scenario_pod::ScenarioPod;

/// Rules in their order.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(default)]
    rules: Vec<ScenarioRule>,
}

impl Scenario {
    /// Reads a scenario file (YAML).
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let scenario: Self = serde_yaml::from_str(text).map_err(|error| ScenarioError::of_yaml(&error))?;
        for (number, rule) in scenario.rules.iter().enumerate() {
            rule.check().map_err(|cause| ScenarioError::of_rule(text, number, cause))?;
        }
        Ok(scenario)
    }

    /// Are there no rules? Then only annotations control the pods.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The annotations that the first fitting rule gives the pod.
    pub(crate) fn annotations_for(&self, subject: &ScenarioPod<'_>) -> Vec<(&'static str, String)> {
        let rule = self.rules.iter().find(|rule| rule.matches(subject));
        rule.map(ScenarioRule::annotations).unwrap_or_default()
    }
}
