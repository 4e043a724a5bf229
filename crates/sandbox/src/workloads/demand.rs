//! What pods ask for: requests of resources, and the class that follows from them.

use serde_json::Value;

use crate::object;

/// A quantity in thousandths, rounded up; `None` when it is none.
pub(crate) fn thousandths(quantity: &Value) -> Option<i128> {
    let text = match quantity {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let end =
        text.find(|letter: char| !(letter.is_ascii_digit() || "+-.".contains(letter))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, divisor): (i128, i128) = match suffix {
        "" => (1000, 1),
        "m" => (1, 1),
        "u" => (1, 1000),
        "n" => (1, 1_000_000),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut value = whole.parse::<i128>().ok()?.checked_mul(factor)?;
    if !fraction.is_empty() {
        let places = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        value += (fraction.parse::<i128>().ok()?.checked_mul(factor)? + places - 1) / places;
    }
    Some((value + divisor - 1) / divisor)
}

/// What all containers of a pod ask for of one resource, by `requests` or `limits`.
pub(crate) fn of_pod(pod: &Value, list: &str, resource: &str) -> Option<i128> {
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
        check("soon", None);
    }
}
