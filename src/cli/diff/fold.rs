//! Groups equal differences on several clusters.

use std::collections::BTreeMap;

use serde_json::Value;
use similar::TextDiff;

use crate::model::{AppId, ClusterName, GroupVersionKind, ObjectId};
use crate::plan::{ObjectDiff, PlanAction};
use crate::report::TargetReport;

/// Clusters that are named; others are counted.
const MAX_NAMED_CLUSTERS: usize = 4;

/// One difference and its clusters. If the objects differ elsewhere, the first one is shown.
#[derive(Debug)]
pub struct FoldedDifference<'o> {
    pub app: &'o AppId,
    pub difference: &'o ObjectDiff,
    pub on_clusters: Vec<&'o ClusterName>,
    /// The changed lines with context.
    pub text: String,
}

/// Everything that must be equal for one group.
type FoldKey<'o> = (&'o AppId, &'o ObjectId, &'o GroupVersionKind, PlanAction, Option<&'o str>, String);

impl FoldedDifference<'_> {
    /// `~ shop/pay  Deployment shop/pay  on bj1, bj2 and 3 more: why`.
    pub fn title(&self) -> String {
        let sign = match self.difference.action {
            PlanAction::Create => "+",
            PlanAction::Delete => "-/+",
            _ => "~",
        };
        let ObjectDiff { object, reason, .. } = self.difference;
        format!("{sign} {}  {object}  on {}: {reason}", self.app, self.clusters())
    }

    fn clusters(&self) -> String {
        let named: Vec<&str> =
            self.on_clusters.iter().take(MAX_NAMED_CLUSTERS).map(|name| name.as_str()).collect();
        match self.on_clusters.len().saturating_sub(MAX_NAMED_CLUSTERS) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }

    /// The file name, as in `kubectl diff`, with the clusters.
    pub fn file_name(&self) -> String {
        let more = self.on_clusters.len().saturating_sub(1);
        let first = self.on_clusters.first().map_or("", |name| name.as_str());
        let clusters = if more == 0 { first.to_owned() } else { format!("{first}+{more}") };
        let ObjectDiff { kind, object, .. } = self.difference;
        let version = kind.api_version().replace('/', ".");
        let namespace = object.namespace.as_deref().unwrap_or_default();
        format!("{clusters}.{version}.{}.{namespace}.{}", kind.kind, object.name)
    }
}

/// YAML; empty for null.
pub fn yaml(object: &Value) -> String {
    if object.is_null() { String::new() } else { serde_yaml::to_string(object).unwrap_or_default() }
}

fn unified_diff(difference: &ObjectDiff, context: usize) -> String {
    let (before, after) = (yaml(&difference.before), yaml(&difference.after));
    let diff = TextDiff::from_lines(&before, &after);
    diff.unified_diff().context_radius(context).header("live", "applied").to_string()
}

/// Groups by app and object. Context lines count too.
pub fn fold<'o>(targets: &[&'o TargetReport], context: usize) -> Vec<FoldedDifference<'o>> {
    let mut folded: BTreeMap<FoldKey<'o>, FoldedDifference<'o>> = BTreeMap::new();
    for target in targets {
        for difference in target.differences.iter().flat_map(|all| all.iter()).filter(|one| one.has_changes())
        {
            let text = unified_diff(difference, context);
            let ObjectDiff { object, kind, action, refused, .. } = difference;
            let key = (&target.app, object, kind, *action, refused.as_deref(), text.clone());
            let one = || FoldedDifference { app: &target.app, difference, on_clusters: Vec::new(), text };
            folded.entry(key).or_insert_with(one).on_clusters.push(&target.cluster);
        }
    }
    folded.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::report::TargetPhase;

    fn target(cluster: &str, before: Value, after: Value) -> TargetReport {
        let difference = ObjectDiff {
            object: ObjectId::new("", "ConfigMap", Some("shop"), "pay"),
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            action: PlanAction::Configure,
            reason: "why".to_owned(),
            before,
            after,
            refused: None,
        };
        TargetReport {
            differences: Some(Arc::new(vec![difference])),
            ..TargetReport::of_test(AppId::new("shop", "pay"), cluster, TargetPhase::OutOfSync)
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
        let titles: Vec<String> = fold(&targets, 3).iter().map(FoldedDifference::title).collect();
        assert_eq!(
            titles,
            [
                "~ shop/pay  ConfigMap shop/pay  on bj1, bj2, bj3, bj4 and 2 more: why",
                "~ shop/pay  ConfigMap shop/pay  on gz1: why",
            ]
        );
        let folded = fold(&targets, 3);
        assert_eq!(folded[0].file_name(), "bj1+5.v1.ConfigMap.shop.pay");
        assert!(folded[0].text.ends_with("-level: info\n+level: debug\n"), "{}", folded[0].text);
        assert_eq!(fold(&targets, 9).len(), 7, "what is shown is what is compared");
    }
}
