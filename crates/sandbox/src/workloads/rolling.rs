//! The arithmetic of a rollout: how far each ReplicaSet may grow or shrink now.

use serde_json::Value;

use super::deployment_status::ReplicaSets;
use crate::object;
use crate::store::Object;

/// How many replicas a rollout may be over and under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) surge: i64,
    pub(super) unavailable: i64,
}

impl Limits {
    pub(super) fn of(deployment: &Value) -> Self {
        let desired = object::integer(deployment, &["spec", "replicas"]);
        if is_recreate(deployment) {
            return Self { surge: 0, unavailable: 0 };
        }
        let rolling = object::at(deployment, &["spec", "strategy", "rollingUpdate"]).unwrap_or(&Value::Null);
        let surge = resolve(&rolling["maxSurge"], desired, true);
        let mut unavailable = resolve(&rolling["maxUnavailable"], desired, false);
        // with neither a rollout could not move
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self { surge, unavailable: unavailable.min(desired) }
    }
}

/// A number, or a percentage of `total`: surge rounds up, unavailability down.
pub(super) fn resolve(value: &Value, total: i64, round_up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent: i64 = value.as_str().and_then(|text| text.trim_end_matches('%').parse().ok()).unwrap_or(0);
    let hundredths = percent * total;
    if round_up { (hundredths + 99) / 100 } else { hundredths / 100 }
}

fn is_recreate(deployment: &Value) -> bool {
    object::text(deployment, &["spec", "strategy", "type"]) == Some("Recreate")
}

fn replicas(set: &Value) -> i64 {
    object::integer(set, &["spec", "replicas"])
}

fn available(set: &Value) -> i64 {
    object::integer(set, &["status", "availableReplicas"])
}

/// The size of a ReplicaSet that is created now.
pub(super) fn first_replicas(deployment: &Value, sets: &ReplicaSets) -> i64 {
    let desired = object::integer(deployment, &["spec", "replicas"]);
    let total: i64 = sets.old.iter().map(|set| replicas(set)).sum();
    if is_recreate(deployment) {
        return if sets.old.iter().all(|set| is_idle(set)) { desired } else { 0 };
    }
    (desired + Limits::of(deployment).surge - total).clamp(0, desired)
}

fn is_idle(set: &Value) -> bool {
    replicas(set) == 0 && object::integer(set, &["status", "replicas"]) == 0
}

/// ReplicaSets to resize, each with its new size.
pub(super) fn steps(deployment: &Value, sets: &ReplicaSets) -> Vec<(Object, i64)> {
    let Some(new) = &sets.new else { return Vec::new() };
    if is_recreate(deployment) {
        return recreate(deployment, new, &sets.old);
    }
    let desired = object::integer(deployment, &["spec", "replicas"]);
    let limits = Limits::of(deployment);
    let old_total: i64 = sets.old.iter().map(|set| replicas(set)).sum();

    let grown = match replicas(new) {
        present if present >= desired => desired,
        present => {
            let room = desired + limits.surge - (old_total + present);
            (present + room.max(0)).min(desired)
        }
    };
    let mut steps = Vec::new();
    if grown != replicas(new) {
        steps.push((new.clone(), grown));
    }
    steps.extend(shrink_old(desired - limits.unavailable, new, grown, &sets.old));
    steps
}

/// Old replicas that are not available go first; available ones while enough are left.
fn shrink_old(least: i64, new: &Value, new_size: i64, old: &[Object]) -> Vec<(Object, i64)> {
    let mut sets: Vec<(&Object, i64)> = old.iter().map(|set| (set, replicas(set))).collect();
    sets.sort_by_key(|(set, _)| super::deployment::revision_of(set));
    let total: i64 = sets.iter().map(|(_, size)| size).sum::<i64>() + new_size;
    let new_unavailable = (new_size - available(new)).max(0);
    let mut spare = (total - least - new_unavailable).max(0);
    for (set, size) in &mut sets {
        let unhealthy = (*size - available(set)).max(0);
        let gone = unhealthy.min(spare);
        *size -= gone;
        spare -= gone;
    }
    let all_available: i64 =
        old.iter().map(|set| available(set).min(replicas(set))).sum::<i64>() + available(new);
    let mut spare = (all_available - least).max(0);
    for (_, size) in &mut sets {
        let gone = (*size).min(spare);
        *size -= gone;
        spare -= gone;
    }
    sets.into_iter()
        .filter(|(set, size)| replicas(set) != *size)
        .map(|(set, size)| (set.clone(), size))
        .collect()
}

fn recreate(deployment: &Value, new: &Object, old: &[Object]) -> Vec<(Object, i64)> {
    let desired = object::integer(deployment, &["spec", "replicas"]);
    let mut steps: Vec<(Object, i64)> =
        old.iter().filter(|set| replicas(set) > 0).map(|set| (set.clone(), 0)).collect();
    if old.iter().all(|set| is_idle(set)) && replicas(new) != desired {
        steps.push((new.clone(), desired));
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(replicas: i64, surge: &Value, unavailable: &Value, expected: (i64, i64)) {
        let deployment = json!({"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}});
        let limits = Limits::of(&deployment);
        assert_eq!((limits.surge, limits.unavailable), expected, "{replicas}");
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        check(4, &json!("25%"), &json!("25%"), (1, 1));
        check(3, &json!("25%"), &json!("25%"), (1, 0));
        check(10, &json!("25%"), &json!("25%"), (3, 2));
        check(1, &json!(0), &json!(0), (0, 1));
        check(2, &json!(0), &json!("25%"), (0, 1));
    }
}
