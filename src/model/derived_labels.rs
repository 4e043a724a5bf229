//! The table of labels and variables that the pods of AppSets get from facts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// What a label or a variable is made of. One without a value is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DerivedFact {
    AppName,
    AppNamespace,
    ServiceName,
    PodSetName,
    Version,
    /// None for the group `default`.
    Group,
    /// Of the podSet, its cluster's entry or the app; else of the cluster.
    Meta(String),
    ClusterName,
    ClusterLabel(String),
    Vip,
    Ring,
}

const FACT_NAMES: [(&str, DerivedFact); 9] = [
    ("app.name", DerivedFact::AppName),
    ("app.namespace", DerivedFact::AppNamespace),
    ("app.serviceName", DerivedFact::ServiceName),
    ("podSet.name", DerivedFact::PodSetName),
    ("podSet.version", DerivedFact::Version),
    ("podSet.group", DerivedFact::Group),
    ("cluster.name", DerivedFact::ClusterName),
    ("cluster.vip", DerivedFact::Vip),
    ("ring", DerivedFact::Ring),
];
const META: &str = "meta.";
const CLUSTER_LABEL: &str = "cluster.labels.";

impl DerivedFact {
    pub fn parse(text: &str) -> Option<Self> {
        let key = |prefix| text.strip_prefix(prefix).filter(|key: &&str| !key.is_empty()).map(str::to_owned);
        let word = FACT_NAMES.into_iter().find(|(word, _)| *word == text).map(|(_, fact)| fact);
        word.or_else(|| key(META).map(Self::Meta)).or_else(|| key(CLUSTER_LABEL).map(Self::ClusterLabel))
    }

    /// Every word that [`DerivedFact::parse`] takes.
    pub fn names() -> Vec<&'static str> {
        FACT_NAMES.iter().map(|(word, _)| *word).chain(["meta.KEY", "cluster.labels.KEY"]).collect()
    }
}

impl fmt::Display for DerivedFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta(key) => write!(f, "{META}{key}"),
            Self::ClusterLabel(key) => write!(f, "{CLUSTER_LABEL}{key}"),
            other => {
                f.write_str(FACT_NAMES.iter().find(|(_, fact)| fact == other).map_or("", |(word, _)| *word))
            }
        }
    }
}

impl Serialize for DerivedFact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedLabels {
    /// Of workloads and pods.
    pub labels: BTreeMap<String, DerivedFact>,
    /// Of the app's container.
    pub env: BTreeMap<String, DerivedFact>,
}

impl Default for DerivedLabels {
    fn default() -> Self {
        let meta = |key: &str| DerivedFact::Meta(key.to_owned());
        let table = |rows: Vec<(&str, DerivedFact)>| {
            rows.into_iter().map(|(key, fact)| (key.to_owned(), fact)).collect()
        };
        Self {
            labels: table(vec![
                ("app", DerivedFact::AppName),
                ("version", DerivedFact::Version),
                ("sym-group", DerivedFact::Group),
                ("lightningDomain0", DerivedFact::ServiceName),
                ("sym-available-zone", meta("sym-available-zone")),
                ("sym-cluster-info", meta("sym-cluster-info")),
                ("sym-ldc", meta("sym-ldc")),
                ("sym-zone", meta("sym-zone")),
            ]),
            env: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_are_written() {
        for word in ["app.name", "podSet.group", "ring", "meta.sym-ldc", "cluster.labels.zone"] {
            assert_eq!(DerivedFact::parse(word).map(|fact| fact.to_string()).as_deref(), Some(word));
        }
        for word in ["", "meta.", "cluster", "cluster.labels."] {
            assert_eq!(DerivedFact::parse(word), None, "{word}");
        }
    }
}
