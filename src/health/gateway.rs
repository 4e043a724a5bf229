//! Gateway API: conditions of the object, of its listeners, or of each parent of a route. Each condition has its own
//! `observedGeneration`.

use serde_json::Value;

use super::generic;
use super::json_fields::{StatusCondition, items, sentence, text};
use crate::model::{Health, HealthStatus};

/// Conditions that must not be False, and one that must become True.
const ACCEPTED: [&str; 2] = ["ResolvedRefs", "Accepted"];
const PROGRAMMED: &str = "Programmed";

/// The condition that the controller always writes, and without which nobody serves the object. Before that, the
/// definition writes Unknown or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredCondition {
    Accepted,
    Programmed,
    /// The parent of the listener has one.
    None,
}

pub fn health(object: &Value, kind: &str) -> Health {
    match kind {
        "Gateway" | "ListenerSet" | "XListenerSet" => gateway(object),
        "GatewayClass" => {
            waiting_for(object, items(object, "/status/conditions"), "class", RequiredCondition::Accepted)
        }
        route if route.ends_with("Route") => {
            of_each(object, "/status/parents", "parentRef", "no gateway has accepted the route yet")
        }
        // The target of a policy may come later; then the status shows it.
        policy if policy.ends_with("Policy") && !items(object, "/status/ancestors").is_empty() => {
            of_each(object, "/status/ancestors", "ancestorRef", "")
        }
        "ReferenceGrant" => Health::current(),
        _ => generic::health(object),
    }
}

fn gateway(object: &Value) -> Health {
    let own =
        waiting_for(object, items(object, "/status/conditions"), "gateway", RequiredCondition::Programmed);
    if own.status != HealthStatus::Current {
        return own;
    }
    for listener in items(object, "/status/listeners") {
        let name = text(listener, "/name").unwrap_or("?");
        let conditions = items(listener, "/conditions");
        let health = judge(object, conditions, &format!("listener {name}"), RequiredCondition::None);
        if health.status != HealthStatus::Current {
            return health;
        }
    }
    Health::current()
}

/// By the conditions of each gateway that has written some.
fn of_each(object: &Value, list: &str, reference: &str, none: &str) -> Health {
    let parents = items(object, list);
    if parents.is_empty() {
        return Health::new(HealthStatus::InProgress, none);
    }
    let mut worst = Health::current();
    for parent in parents {
        let name = text(parent, &format!("/{reference}/name")).unwrap_or("?");
        let conditions = items(parent, "/conditions");
        let health = waiting_for(object, conditions, &format!("parent {name}"), RequiredCondition::Accepted);
        match health.status {
            HealthStatus::Failed => return health,
            HealthStatus::Current => {}
            _ => worst = health,
        }
    }
    worst
}

fn waiting_for(object: &Value, conditions: &[Value], who: &str, goal: RequiredCondition) -> Health {
    // The definitions write "Pending" before a controller writes a status.
    let untouched = conditions.iter().all(|condition| {
        text(condition, "/status") == Some("Unknown") && text(condition, "/reason") == Some("Pending")
    });
    if untouched {
        return Health::new(HealthStatus::InProgress, sentence(&format!("{who}: no status yet")));
    }
    judge(object, conditions, who, goal)
}

fn judge(object: &Value, conditions: &[Value], who: &str, goal: RequiredCondition) -> Health {
    let old = |condition: StatusCondition<'_>| condition.is_older_than(object);
    let say = |status, words: String| Health::new(status, sentence(&format!("{who}: {words}")));
    for name in ACCEPTED {
        let Some(condition) = StatusCondition::find(conditions, name) else { continue };
        if old(condition) {
            return say(HealthStatus::InProgress, format!("{name} is of an older generation"));
        }
        if condition.has_status("False") {
            return say(HealthStatus::Failed, condition.summary());
        }
        if !condition.has_status("True") {
            return say(HealthStatus::InProgress, condition.summary());
        }
    }
    if let Some(programmed) = StatusCondition::find(conditions, PROGRAMMED)
        && (old(programmed) || !programmed.has_status("True"))
    {
        return say(HealthStatus::InProgress, programmed.summary());
    }
    let is_there = |name| StatusCondition::find(conditions, name).is_some();
    match goal {
        RequiredCondition::Accepted if !is_there("Accepted") => {
            say(HealthStatus::InProgress, "Accepted is not set".to_owned())
        }
        // Its name before v1beta1 was Ready.
        RequiredCondition::Programmed
            if !is_there(PROGRAMMED)
                && !StatusCondition::find(conditions, "Ready")
                    .is_some_and(|ready| ready.has_status("True")) =>
        {
            say(HealthStatus::InProgress, "Programmed is not set".to_owned())
        }
        _ => Health::current(),
    }
}
