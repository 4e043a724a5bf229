//! What is the same on several clusters is shown once.

use serde::Serialize;
use serde_json::Value;
use similar::TextDiff;

use crate::model::{AppId, ClusterName, Kind, ObjectId};
use crate::plan::{Action, Difference};
use crate::report::TargetReport;

/// So many clusters are named; the others are counted.
const NAMED: usize = 4;

/// One difference, and where it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Folded {
    pub app: AppId,
    pub object: ObjectId,
    kind: Kind,
    pub action: Action,
    pub reason: String,
    pub on: Vec<ClusterName>,
    pub before: Value,
    pub after: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Folded {
    fn of(target: &TargetReport, difference: &Difference) -> Self {
        let Difference { object, kind, action, reason, before, after, refused } = difference.clone();
        let (app, on) = (target.app.clone(), vec![target.cluster.clone()]);
        Self { app, object, kind, action, reason, on, before, after, refused }
    }

    /// Cause and words may name what only one cluster knows.
    fn is_same_as(&self, other: &Self) -> bool {
        (&self.app, &self.object, &self.kind, self.action)
            == (&other.app, &other.object, &other.kind, other.action)
            && (&self.before, &self.after, &self.refused) == (&other.before, &other.after, &other.refused)
    }

    /// `bj1, bj2 and 3 more`.
    pub fn clusters(&self) -> String {
        let named: Vec<&str> = self.on.iter().take(NAMED).map(ClusterName::as_str).collect();
        match self.on.len().saturating_sub(NAMED) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }

    /// As kubectl names the files that it compares, and for which clusters.
    pub fn file(&self) -> String {
        let more = self.on.len().saturating_sub(1);
        let first = self.on.first().map_or("", ClusterName::as_str);
        let clusters = if more == 0 { first.to_owned() } else { format!("{first}+{more}") };
        let version = self.kind.api_version().replace('/', ".");
        let namespace = self.object.namespace.as_deref().unwrap_or_default();
        format!("{clusters}.{version}.{}.{namespace}.{}", self.kind.kind, self.object.name)
    }

    pub fn unified(&self, context: usize) -> String {
        let (before, after) = (text(&self.before), text(&self.after));
        let diff = TextDiff::from_lines(&before, &after);
        diff.unified_diff().context_radius(context).header("live", "applied").to_string()
    }
}

/// As YAML; nothing where there is nothing.
pub fn text(object: &Value) -> String {
    if object.is_null() { String::new() } else { serde_yaml::to_string(object).unwrap_or_default() }
}

/// By app and object.
pub fn fold(targets: &[&TargetReport]) -> Vec<Folded> {
    let mut folded: Vec<Folded> = Vec::new();
    for target in targets {
        for difference in target.differences.iter().flat_map(|all| all.iter()).filter(|one| one.is_any()) {
            let one = Folded::of(target, difference);
            match folded.iter_mut().find(|known| known.is_same_as(&one)) {
                Some(known) => known.on.extend(one.on),
                None => folded.push(one),
            }
        }
    }
    folded
}
