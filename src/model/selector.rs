//! Which clusters: by name, label or ring.

use std::collections::BTreeMap;

use serde::Serialize;

use super::glob::{self, SeparatorMatching};
use super::outside_path;

/// What a selector looks at.
#[derive(Clone, Copy, Debug)]
pub struct ClusterFacts<'a> {
    pub name: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    pub ring: Option<&'a str>,
}

/// All that is given must hold; the empty selector is every cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Names or shell patterns (`gz*`); one must fit. `None`: not asked.
    pub names: Option<Vec<String>>,
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<LabelRequirement>,
    pub ring: Option<String>,
}

/// Which objects, by their labels, as Kubernetes has it; the empty one is every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<LabelRequirement>,
}

impl LabelSelector {
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether it may match where there may be more labels than these.
    pub fn may_match(&self, known: &BTreeMap<String, String>) -> bool {
        let fits = |(key, value): (&String, &String)| known.get(key).is_none_or(|it| it == value);
        let mut open = self.match_expressions.iter().filter(|it| known.contains_key(&it.key));
        self.match_labels.iter().all(fits) && open.all(|requirement| requirement.matches(known))
    }
}

/// One line of `matchExpressions`, as Kubernetes has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelRequirement {
    pub key: String,
    pub operator: LabelOperator,
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LabelOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl ClusterSelector {
    pub fn matches(&self, cluster: ClusterFacts<'_>) -> bool {
        self.names
            .as_ref()
            .is_none_or(|names| names.iter().any(|pattern| name_matches(pattern, cluster.name)))
            && self.match_labels.iter().all(|(key, value)| cluster.labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(cluster.labels))
            && self.ring.as_deref().is_none_or(|ring| cluster.ring == Some(ring))
    }
}

impl LabelRequirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            LabelOperator::In => value.is_some_and(|value| self.values.contains(value)),
            // As in Kubernetes: a cluster without the label is not in the list.
            LabelOperator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// Patterns are checked when the manifest is read; one that is not a pattern fits nothing but itself.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    // Most names are no patterns, most patterns are `gz*`, and to compile one takes far longer than to compare.
    let plain = outside_path::literal_prefix(pattern);
    let is_pattern = || plain.len() < pattern.len() && name.starts_with(plain);
    let fits = || glob::compile(pattern, SeparatorMatching::Matched).is_ok_and(|glob| glob.is_match(name));
    pattern == name || is_pattern() && (&pattern[plain.len()..] == "*" || fits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn check(selector: ClusterSelector, expected: bool) {
        let labels = BTreeMap::from([("zone".to_owned(), "gz".to_owned())]);
        let facts = ClusterFacts { name: "gz1", labels: &labels, ring: Some("prod") };
        assert_eq!(selector.matches(facts), expected, "{selector:?}");
    }

    fn expression(key: &str, operator: LabelOperator, values: &[&str]) -> ClusterSelector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        ClusterSelector {
            match_expressions: vec![LabelRequirement { key: key.to_owned(), operator, values }],
            ..ClusterSelector::default()
        }
    }

    #[test]
    fn names_fit_patterns() {
        for (pattern, expected) in [
            ("gz1", true),
            ("gz", false),
            ("gz*", true),
            ("gz1*", true),
            ("*", true),
            ("bj*", false),
            ("g*1", true),
            ("g*2", false),
            ("*z1", true),
            ("gz?", true),
            ("gz1?", false),
            ("gz[0-9]", true),
            ("{bj,gz}*", true),
            ("gz**", true),
            ("gz[", false),
        ] {
            assert_eq!(name_matches(pattern, "gz1"), expected, "{pattern}");
        }
    }

    #[test]
    fn everything_given_must_hold() {
        check(ClusterSelector::default(), true);
        check(
            ClusterSelector { names: Some(vec!["bj*".into(), "gz*".into()]), ..ClusterSelector::default() },
            true,
        );
        check(ClusterSelector { names: Some(vec![]), ..ClusterSelector::default() }, false);
        check(
            ClusterSelector {
                names: Some(vec!["gz1".into()]),
                ring: Some("test".into()),
                ..ClusterSelector::default()
            },
            false,
        );
        check(ClusterSelector { ring: Some("prod".into()), ..ClusterSelector::default() }, true);
        check(expression("zone", LabelOperator::In, &["bj", "gz"]), true);
        check(expression("zone", LabelOperator::NotIn, &["gz"]), false);
        check(expression("gpu", LabelOperator::NotIn, &["yes"]), true);
        check(expression("gpu", LabelOperator::Exists, &[]), false);
        check(expression("gpu", LabelOperator::DoesNotExist, &[]), true);
    }
}
