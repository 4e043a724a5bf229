//! The resources that pods request.

use serde_json::Value;

use crate::object;
use crate::quantity::Quantity;

/// A quantity in thousandths, rounded up; `None` when it is none.
pub(crate) fn thousandths(quantity: &Value) -> Option<i128> {
    let text = match quantity {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Quantity::parse(&text).ok().map(|quantity| quantity.thousandths())
}

/// The sum of one resource over all containers of a pod, by `requests` or `limits`.
pub(crate) fn requested_by_pod(pod: &Value, list: &str, resource: &str) -> Option<i128> {
    let asked = |container: &Value| thousandths(container["resources"][list].get(resource)?);
    let together: Vec<i128> = object::list(pod, &["spec", "containers"]).iter().filter_map(asked).collect();
    let before = object::list(pod, &["spec", "initContainers"]).iter().filter_map(asked).max();
    if together.is_empty() && before.is_none() {
        return None;
    }
    Some(together.iter().sum::<i128>().max(before.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_compare_in_thousandths() {
        let check = |text: &str, expected| assert_eq!(thousandths(&json!(text)), expected, "{text}");
        check("100m", Some(100));
        check("1.5", Some(1500));
        check("2", Some(2000));
        check("1Gi", Some(1_073_741_824_000));
        check("2e3", Some(2_000_000));
        check("1Ei", Some(1_152_921_504_606_846_976_000));
        check("1e300", Some(i128::from(i64::MAX) * 1000));
        check(&format!("0.{}m", "17".repeat(19)), Some(1));
        check("soon", None);
    }
}
