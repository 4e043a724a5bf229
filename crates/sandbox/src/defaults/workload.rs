//! Deployments, ReplicaSets, StatefulSets, DaemonSets, autoscalers.

use serde_json::{Value, json};

use super::{default_rules, pod};
use crate::object::{self, set_default};

pub(super) fn deployment(new: &mut Value) {
    default_rules::apply_rules(default_rules::DEPLOYMENT, new);
    if object::text(new, &["spec", "strategy", "type"]) == Some("RollingUpdate") {
        default_rules::apply_rules(default_rules::DEPLOYMENT_ROLLING, new);
    }
    pod::fill_template(new, "spec.template");
}

pub(super) fn replica_set(new: &mut Value) {
    default_rules::apply_rules(default_rules::REPLICA_SET, new);
    pod::fill_template(new, "spec.template");
}

pub(super) fn stateful_set(new: &mut Value) {
    default_rules::apply_rules(default_rules::STATEFUL_SET, new);
    let strategy = object::value_mut(new, &["spec", "updateStrategy"]);
    // an explicit strategy gets no default parameters
    if object::value_at(strategy, &["type"]).is_none() {
        object::set(strategy, &["type"], "RollingUpdate");
        set_default(strategy, &["rollingUpdate"], json!({}));
    }
    if strategy["type"] == "RollingUpdate" && strategy.get("rollingUpdate").is_some() {
        set_default(strategy, &["rollingUpdate", "partition"], 0);
    }
    pod::fill_template(new, "spec.template");
}

/// Without metrics an autoscaler uses CPU; a partial behaviour is completed.
pub(super) fn autoscaler(new: &mut Value) {
    default_rules::apply_rules(default_rules::AUTOSCALER, new);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    set_default(
        new,
        &["spec", "metrics"],
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
    );
    if let Some(behavior) = new["spec"].get_mut("behavior").filter(|behavior| behavior.is_object()) {
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        set_default(behavior, &["scaleUp", "stabilizationWindowSeconds"], 0);
        for (rules, policies) in [("scaleUp", json!([pods, percent])), ("scaleDown", json!([percent]))] {
            set_default(behavior, &[rules, "selectPolicy"], "Max");
            set_default(behavior, &[rules, "policies"], policies);
        }
    }
}

/// Counts the templates of a daemon set, in an annotation that the server writes itself.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn daemon_set(new: &mut Value) {
    set_default(new, &["metadata", "annotations", TEMPLATE_GENERATION], "1");
    default_rules::apply_rules(default_rules::DAEMON_SET, new);
    if object::text(new, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        default_rules::apply_rules(default_rules::DAEMON_SET_ROLLING, new);
    }
    pod::fill_template(new, "spec.template");
}
