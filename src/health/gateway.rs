//! Gateway API: conditions of the object, of its listeners, or of each parent of a route. Each condition has its own
//! `observedGeneration`.

use serde_json::Value;

use super::generic;
use super::read::{Condition, items, sentence, text};
use crate::model::{Health, Status};

/// Conditions that must not be False, and one that must become True.
const ACCEPTED: [&str; 2] = ["ResolvedRefs", "Accepted"];
const PROGRAMMED: &str = "Programmed";

/// The condition that the controller always writes, and without which nobody serves the object. Before that, the
/// definition writes Unknown or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Accepted,
    Programmed,
    /// The parent of the listener has one.
    None,
}

pub fn health(object: &Value, kind: &str) -> Health {
    match kind {
        "Gateway" | "ListenerSet" | "XListenerSet" => gateway(object),
        "GatewayClass" => waiting_for(object, items(object, "/status/conditions"), "class", Goal::Accepted),
        route if route.ends_with("Route") => {
            of_each(object, "/status/parents", "parentRef", "no gateway has taken the route yet")
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
    let own = waiting_for(object, items(object, "/status/conditions"), "gateway", Goal::Programmed);
    if own.status != Status::Current {
        return own;
    }
    for listener in items(object, "/status/listeners") {
        let name = text(listener, "/name").unwrap_or("?");
        let conditions = items(listener, "/conditions");
        let health = judge(object, conditions, &format!("listener {name}"), Goal::None);
        if health.status != Status::Current {
            return health;
        }
    }
    Health::current()
}

/// By the conditions of each gateway that has written some.
fn of_each(object: &Value, list: &str, reference: &str, none: &str) -> Health {
    let parents = items(object, list);
    if parents.is_empty() {
        return Health::new(Status::InProgress, none);
    }
    let mut worst = Health::current();
    for parent in parents {
        let name = text(parent, &format!("/{reference}/name")).unwrap_or("?");
        let conditions = items(parent, "/conditions");
        let health = waiting_for(object, conditions, &format!("parent {name}"), Goal::Accepted);
        match health.status {
            Status::Failed => return health,
            Status::Current => {}
            _ => worst = health,
        }
    }
    worst
}

fn waiting_for(object: &Value, conditions: &[Value], who: &str, goal: Goal) -> Health {
    // The definitions write "Pending" before a controller writes a status.
    let untouched = conditions.iter().all(|condition| {
        text(condition, "/status") == Some("Unknown") && text(condition, "/reason") == Some("Pending")
    });
    if untouched {
        return Health::new(Status::InProgress, sentence(&format!("{who}: no status yet")));
    }
    judge(object, conditions, who, goal)
}

fn judge(object: &Value, conditions: &[Value], who: &str, goal: Goal) -> Health {
    let old = |condition: Condition<'_>| condition.is_older_than(object);
    let say = |status, words: String| Health::new(status, sentence(&format!("{who}: {words}")));
    for name in ACCEPTED {
        let Some(condition) = Condition::find(conditions, name) else { continue };
        if old(condition) {
            return say(Status::InProgress, format!("{name} is of an older generation"));
        }
        if condition.is("False") {
            return say(Status::Failed, condition.words());
        }
        if !condition.is("True") {
            return say(Status::InProgress, condition.words());
        }
    }
    if let Some(programmed) = Condition::find(conditions, PROGRAMMED)
        && (old(programmed) || !programmed.is("True"))
    {
        return say(Status::InProgress, programmed.words());
    }
    let is_there = |name| Condition::find(conditions, name).is_some();
    match goal {
        Goal::Accepted if !is_there("Accepted") => say(Status::InProgress, "Accepted is not set".to_owned()),
        // Its name before v1beta1 was Ready.
        Goal::Programmed
            if !is_there(PROGRAMMED)
                && !Condition::find(conditions, "Ready").is_some_and(|ready| ready.is("True")) =>
        {
            say(Status::InProgress, "Programmed is not set".to_owned())
        }
        _ => Health::current(),
    }
}
