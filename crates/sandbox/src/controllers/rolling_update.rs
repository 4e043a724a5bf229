//! The arithmetic of a rolling update: the next size of each ReplicaSet.

use serde_json::Value;

use super::deployment_replica_sets;
use super::rolling_limits::{RollingLimits, is_recreate};
use crate::object;
use crate::store::ParsedObject;

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
    active.sort_by_cached_key(|set| deployment_replica_sets::creation_order(set));
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
    let before = deployment_replica_sets::annotated_max(set)
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
