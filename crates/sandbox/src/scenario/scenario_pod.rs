//! A pod, for the rules of a scenario.

use serde_json::Value;

/// The pod that the patterns of a rule match against.
#[derive(Debug)]
pub(crate) struct ScenarioPod<'s> {
    pub(crate) cluster: &'s str,
    pub(crate) pod: &'s Value,
    /// Kind and name of the pod and of those that control it.
    pub(crate) owner_chain: Vec<(String, String)>,
}
