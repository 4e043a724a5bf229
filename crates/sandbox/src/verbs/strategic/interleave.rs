//! Merges two lists and keeps the order of both.

use serde_json::Value;

use super::StrategicError;
use super::directives::PATCH;
use super::json_fields::fields_of;

/// One list of two: the named items in their order, the rest in its own; where the known order does not decide, named
/// items come first.
pub(super) fn interleave(
    named: Vec<Value>,
    rest: Vec<Value>,
    order: &[Value],
    known: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let mut named = sorted(named, order, key)?.into_iter().peekable();
    let mut rest = sorted(rest, known, key)?.into_iter().peekable();
    let mut all = Vec::new();
    loop {
        let rest_first = match (rest.peek(), named.peek()) {
            (None, None) => return Ok(all),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => {
                matches!((order_index(known, left, key), order_index(known, right, key)), (Some(left), Some(right)) if left < right)
            }
        };
        all.extend(if rest_first { rest.next() } else { named.next() });
    }
}

/// Sorts by `order`; items to delete come last. Items that are not in `order` move to the front, as on the server.
fn sorted(items: Vec<Value>, order: &[Value], key: Option<&str>) -> Result<Vec<Value>, StrategicError> {
    let (items, deleted): (Vec<Value>, Vec<Value>) = match key {
        None => (items, Vec::new()),
        Some(key) => {
            for item in items.iter().chain(order) {
                if !fields_of(item)?.contains_key(key) {
                    return Err(StrategicError::no_merge_key(item, key));
                }
            }
            items.into_iter().partition(|item| item.get(PATCH).is_none_or(|directive| directive != "delete"))
        }
    };
    let mut placed: Vec<(Option<usize>, Value)> = Vec::with_capacity(items.len());
    for item in items {
        let own = order_index(order, &item, key);
        let passes = |(other, _): &&(Option<usize>, Value)| match (own, *other) {
            (Some(own), Some(other)) => own < other,
            _ => true,
        };
        let passed = placed.iter().rev().take_while(passes).count();
        placed.insert(placed.len() - passed, (own, item));
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

fn order_index(order: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    order.iter().position(|one| match key {
        Some(key) => one.get(key).is_some() && one.get(key) == item.get(key),
        None => one == item,
    })
}
