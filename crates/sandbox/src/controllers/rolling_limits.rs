//! The `maxSurge` and `maxUnavailable` of a rolling update.

use serde_json::Value;

use crate::object;

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
}
