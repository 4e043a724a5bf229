//! Logs rules that cannot be evaluated, once for each definition and rule.

use std::collections::HashSet;
use std::sync::LazyLock;

use parking_lot::Mutex;

/// The number of remembered rules; after that they are logged again.
const REMEMBERED: usize = 10_000;

static SAID: LazyLock<Mutex<HashSet<(String, String)>>> = LazyLock::new(Mutex::default);

pub(super) fn accepted(definition: &str, rule: &str, why: &str) {
    if is_new(definition, rule) {
        let what = "an embedded cluster cannot evaluate a validation rule and accepts the object without checking this rule";
        tracing::warn!(definition, rule, why, "{what}");
    }
}

/// The rule itself is checked.
pub(super) fn without_message(definition: &str, message_expression: &str, why: &str) {
    if is_new(definition, message_expression) {
        let what = "an embedded cluster cannot evaluate the messageExpression of a validation rule and uses the default message";
        tracing::warn!(definition, message_expression, why, "{what}");
    }
}

fn is_new(definition: &str, rule: &str) -> bool {
    let mut said = SAID.lock();
    if said.len() >= REMEMBERED {
        said.clear();
    }
    said.insert((definition.to_owned(), rule.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_logged_once() {
        assert!(is_new("a.test.dev", "self.x()"));
        assert!(!is_new("a.test.dev", "self.x()"));
        assert!(is_new("a.test.dev", "self.y()"));
        assert!(is_new("b.test.dev", "self.x()"));
    }
}
