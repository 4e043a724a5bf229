//! Groups equal differences on several clusters.

use std::collections::BTreeMap;

use serde_json::Value;
use similar::TextDiff;

use crate::model::{AppId, ClusterName, Kind, ObjectId};
use crate::plan::{Action, Difference};
use crate::report::TargetReport;

/// Clusters that are named; others are counted.
const NAMED: usize = 4;

/// One difference and its clusters. If the objects differ elsewhere, the first one is shown.
#[derive(Debug)]
pub struct Folded<'o> {
    pub app: &'o AppId,
    pub difference: &'o Difference,
    pub on: Vec<&'o ClusterName>,
    /// The changed lines with context.
    pub text: String,
}

/// Everything that must be equal for one group.
type Key<'o> = (&'o AppId, &'o ObjectId, &'o Kind, Action, Option<&'o str>, String);

impl Folded<'_> {
    /// `~ shop/pay  Deployment shop/pay  on bj1, bj2 and 3 more: why`.
    pub fn title(&self) -> String {
        let sign = match self.difference.action {
            Action::Create => "+",
            Action::Delete => "-/+",
            _ => "~",
        };
        let Difference { object, reason, .. } = self.difference;
        format!("{sign} {}  {object}  on {}: {reason}", self.app, self.clusters())
    }

    fn clusters(&self) -> String {
        let named: Vec<&str> = self.on.iter().take(NAMED).map(|name| name.as_str()).collect();
        match self.on.len().saturating_sub(NAMED) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }

    /// The file name, as in `kubectl diff`, with the clusters.
    pub fn file(&self) -> String {
        let more = self.on.len().saturating_sub(1);
        let first = self.on.first().map_or("", |name| name.as_str());
        let clusters = if more == 0 { first.to_owned() } else { format!("{first}+{more}") };
        let Difference { kind, object, .. } = self.difference;
        let version = kind.api_version().replace('/', ".");
        let namespace = object.namespace.as_deref().unwrap_or_default();
        format!("{clusters}.{version}.{}.{namespace}.{}", kind.kind, object.name)
    }
}

/// YAML; empty for null.
pub fn yaml(object: &Value) -> String {
    if object.is_null() { String::new() } else { serde_yaml::to_string(object).unwrap_or_default() }
}

fn unified(difference: &Difference, context: usize) -> String {
    let (before, after) = (yaml(&difference.before), yaml(&difference.after));
    let diff = TextDiff::from_lines(&before, &after);
    diff.unified_diff().context_radius(context).header("live", "applied").to_string()
}

/// Groups by app and object. Context lines count too.
pub fn fold<'o>(targets: &[&'o TargetReport], context: usize) -> Vec<Folded<'o>> {
    let mut folded: BTreeMap<Key<'o>, Folded<'o>> = BTreeMap::new();
    for target in targets {
        for difference in target.differences.iter().flat_map(|all| all.iter()).filter(|one| one.is_any()) {
            let text = unified(difference, context);
            let Difference { object, kind, action, refused, .. } = difference;
            let key = (&target.app, object, kind, *action, refused.as_deref(), text.clone());
            let one = || Folded { app: &target.app, difference, on: Vec::new(), text };
            folded.entry(key).or_insert_with(one).on.push(&target.cluster);
        }
    }
    folded.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::report::Phase;

    fn target(cluster: &str, before: Value, after: Value) -> TargetReport {
        let difference = Difference {
            object: ObjectId::new("", "ConfigMap", Some("shop"), "pay"),
            kind: Kind::new("", "v1", "ConfigMap"),
            action: Action::Configure,
            reason: "why".to_owned(),
            before,
            after,
            refused: None,
        };
        TargetReport {
            differences: Some(Arc::new(vec![difference])),
            ..TargetReport::of_test(AppId::new("shop", "pay"), cluster, Phase::OutOfSync)
        }
    }

    #[test]
    fn equal_changes_on_clusters_are_grouped() {
        let map = |own: &str, value: &str| json!({"a-cluster": own, "b": 1, "c": 1, "d": 1, "e": 1, "level": value});
        let same = |cluster: &str| target(cluster, map(cluster, "info"), map(cluster, "debug"));
        let other = target("gz1", map("gz1", "warn"), map("gz1", "debug"));
        let nothing = target("gz2", map("gz2", "debug"), map("gz2", "debug"));
        let clusters = ["bj1", "bj2", "bj3", "bj4", "bj5", "bj6"].map(same);
        let targets: Vec<&TargetReport> = clusters.iter().chain([&other, &nothing]).collect();
        let titles: Vec<String> = fold(&targets, 3).iter().map(Folded::title).collect();
        assert_eq!(
            titles,
            [
                "~ shop/pay  ConfigMap shop/pay  on bj1, bj2, bj3, bj4 and 2 more: why",
                "~ shop/pay  ConfigMap shop/pay  on gz1: why",
            ]
        );
        let folded = fold(&targets, 3);
        assert_eq!(folded[0].file(), "bj1+5.v1.ConfigMap.shop.pay");
        assert!(folded[0].text.ends_with("-level: info\n+level: debug\n"), "{}", folded[0].text);
        assert_eq!(fold(&targets, 9).len(), 7, "what is shown is what is compared");
    }
}
