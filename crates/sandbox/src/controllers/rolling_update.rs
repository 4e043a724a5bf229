//! The arithmetic of a rolling update: the next size of each ReplicaSet.

use serde_json::Value;

use crate::object;
use crate::store::ParsedObject;

/// How many replicas a rollout may be over and under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RollingLimits {
    pub(super) surge: i64,
    pub(super) unavailable: i64,
}

impl RollingLimits {
    pub(super) fn of(deployment: &Value) -> Self {
        let desired = object::integer(deployment, &["spec", "replicas"]);
        if is_recreate(deployment) {
            return Self { surge: 0, unavailable: 0 };
        }
        let rolling =
            object::value_at(deployment, &["spec", "strategy", "rollingUpdate"]).unwrap_or(&Value::Null);
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
    let hundredths = i128::from(percent) * i128::from(total);
    let share = if round_up { (hundredths + 99) / 100 } else { hundredths / 100 };
    // numbers of pods have 32 bits
    share.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i64
}

pub(super) fn is_recreate(deployment: &Value) -> bool {
    object::text(deployment, &["spec", "strategy", "type"]) == Some("Recreate")
}

pub(super) fn replicas(set: &Value) -> i64 {
    object::integer(set, &["spec", "replicas"])
}

pub(super) fn available(set: &Value) -> i64 {
    object::integer(set, &["status", "availableReplicas"])
}

fn desired(deployment: &Value) -> i64 {
    object::integer(deployment, &["spec", "replicas"])
}

/// The size of the newest set, which has `present` of all sets' `total` replicas now.
pub(super) fn new_size(deployment: &Value, present: i64, total: i64) -> i64 {
    let desired = desired(deployment);
    if is_recreate(deployment) || present >= desired {
        return desired;
    }
    let room = desired + RollingLimits::of(deployment).surge - total;
    (present + room.max(0)).min(desired)
}

/// Old replicas that are not available go first; available ones while enough are left. Each set
/// that shrinks, with its new size.
pub(super) fn shrink_old(deployment: &Value, new: &Value, old: &[ParsedObject]) -> Vec<(ParsedObject, i64)> {
    let mut sets: Vec<(&ParsedObject, i64)> =
        old.iter().map(|set| (set, replicas(set))).filter(|(_, size)| *size > 0).collect();
    let least = desired(deployment) - RollingLimits::of(deployment).unavailable;
    let total: i64 = old.iter().map(|set| replicas(set)).sum::<i64>() + replicas(new);
    let mut spare = total - least - (replicas(new) - available(new));
    if spare <= 0 {
        return Vec::new();
    }
    for (set, size) in &mut sets {
        let gone = (*size - available(set)).clamp(0, spare);
        *size -= gone;
        spare -= gone;
    }
    let all_available: i64 = sets.iter().map(|(set, _)| available(set)).sum::<i64>() + available(new);
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

/// Several active sets share a change of replicas by their sizes; what does not divide goes to the largest.
pub(super) fn proportional_sizes(
    deployment: &Value,
    mut active: Vec<ParsedObject>,
) -> Vec<(ParsedObject, i64)> {
    let desired = desired(deployment);
    let most = if desired > 0 { desired + RollingLimits::of(deployment).surge } else { 0 };
    let total: i64 = active.iter().map(|set| replicas(set)).sum();
    let to_add = most - total;
    // of equal sizes the younger grows first, and the older shrinks first; going back to an old
    // template makes an old set the new one
    active.sort_by_cached_key(|set| super::deployment_replica_sets::creation_order(set));
    if to_add > 0 {
        active.reverse();
    }
    active.sort_by_key(|set| std::cmp::Reverse(replicas(set)));
    let mut added = 0;
    let mut sizes: Vec<(ParsedObject, i64)> = Vec::with_capacity(active.len());
    for set in active {
        let share =
            if to_add == added { 0 } else { proportional_share(deployment, &set, desired, to_add - added) };
        added += share;
        let size = replicas(&set) + share;
        sizes.push((set, size));
    }
    if let Some((_, size)) = sizes.first_mut() {
        *size = (*size + to_add - added).max(0);
    }
    sizes
}

fn proportional_share(deployment: &Value, set: &Value, desired: i64, allowed: i64) -> i64 {
    let size = replicas(set);
    if desired == 0 {
        return (-size).max(allowed);
    }
    let before = super::deployment_replica_sets::annotated_max(set)
        .filter(|most| *most > 0)
        .unwrap_or_else(|| object::integer(deployment, &["status", "replicas"]));
    if before == 0 {
        return 0;
    }
    let most = desired + RollingLimits::of(deployment).surge;
    // rounded half away from zero
    let share = (2 * size * most + before) / (2 * before) - size;
    if allowed > 0 { share.min(allowed) } else { share.max(allowed) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(replicas: i64, surge: &Value, unavailable: &Value, expected: (i64, i64)) {
        let deployment = json!({"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}});
        let limits = RollingLimits::of(&deployment);
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

    fn set(name: &str, size: i64, available: i64, most: i64) -> ParsedObject {
        json!({"metadata": {"name": name, "annotations": {"deployment.kubernetes.io/max-replicas": most.to_string()}},
            "spec": {"replicas": size}, "status": {"availableReplicas": available}})
        .into()
    }

    fn deployment(replicas: i64) -> Value {
        json!({"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}})
    }

    fn sizes(found: &[(ParsedObject, i64)]) -> Vec<(&str, i64)> {
        found.iter().map(|(set, size)| (object::name(set), *size)).collect()
    }

    #[test]
    fn old_sets_shrink_while_enough_are_available() {
        let old = [set("broken", 2, 0, 5), set("good", 3, 3, 5)];
        let found = shrink_old(&deployment(4), &set("new", 1, 0, 5), &old);
        assert_eq!(sizes(&found), [("broken", 0)]);
        let found = shrink_old(&deployment(4), &set("new", 2, 2, 5), &[set("good", 3, 3, 5)]);
        assert_eq!(sizes(&found), [("good", 1)]);
    }

    #[test]
    fn a_change_of_replicas_is_shared() {
        let active = vec![set("old", 8, 8, 13), set("new", 5, 1, 13)];
        assert_eq!(sizes(&proportional_sizes(&deployment(20), active)), [("old", 15), ("new", 10)]);
    }
}
