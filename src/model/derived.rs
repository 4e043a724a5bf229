//! The table of labels and variables that the pods of AppSets get from facts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// What a label or a variable is made of. One without a value is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
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

const WORDS: [(&str, Fact); 9] = [
    ("app.name", Fact::AppName),
    ("app.namespace", Fact::AppNamespace),
    ("app.serviceName", Fact::ServiceName),
    ("podSet.name", Fact::PodSetName),
    ("podSet.version", Fact::Version),
    ("podSet.group", Fact::Group),
    ("cluster.name", Fact::ClusterName),
    ("cluster.vip", Fact::Vip),
    ("ring", Fact::Ring),
];
const META: &str = "meta.";
const CLUSTER_LABEL: &str = "cluster.labels.";

impl Fact {
    pub fn parse(text: &str) -> Option<Self> {
        let key = |prefix| text.strip_prefix(prefix).filter(|key: &&str| !key.is_empty()).map(str::to_owned);
        let word = WORDS.into_iter().find(|(word, _)| *word == text).map(|(_, fact)| fact);
        word.or_else(|| key(META).map(Self::Meta)).or_else(|| key(CLUSTER_LABEL).map(Self::ClusterLabel))
    }

    /// Every word that [`Fact::parse`] takes.
    pub fn words() -> Vec<&'static str> {
        WORDS.iter().map(|(word, _)| *word).chain(["meta.KEY", "cluster.labels.KEY"]).collect()
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta(key) => write!(f, "{META}{key}"),
            Self::ClusterLabel(key) => write!(f, "{CLUSTER_LABEL}{key}"),
            other => f.write_str(WORDS.iter().find(|(_, fact)| fact == other).map_or("", |(word, _)| *word)),
        }
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Derived {
    /// Of workloads and pods.
    pub labels: BTreeMap<String, Fact>,
    /// Of the app's container.
    pub env: BTreeMap<String, Fact>,
}

impl Default for Derived {
    fn default() -> Self {
        let meta = |key: &str| Fact::Meta(key.to_owned());
        let table =
            |rows: Vec<(&str, Fact)>| rows.into_iter().map(|(key, fact)| (key.to_owned(), fact)).collect();
        Self {
            labels: table(vec![
                ("app", Fact::AppName),
                ("version", Fact::Version),
                ("sym-group", Fact::Group),
                ("lightningDomain0", Fact::ServiceName),
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
            assert_eq!(Fact::parse(word).map(|fact| fact.to_string()).as_deref(), Some(word));
        }
        for word in ["", "meta.", "cluster", "cluster.labels."] {
            assert_eq!(Fact::parse(word), None, "{word}");
        }
    }
}
