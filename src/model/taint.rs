//! Taints of clusters and tolerations of apps, with the meaning that Kubernetes gives them for nodes and pods.
//!
//! `NoExecute` decides placement, from Git alone. `NoSchedule` depends on the cluster: a target is rendered, and its plan skips everything
//! while no object of the app is there.

use std::fmt;

use serde::Serialize;

/// What a taint does to apps that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum TaintEffect {
    /// What is there stays; nothing new comes.
    NoSchedule,
    /// Nothing stays.
    NoExecute,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    /// May be empty.
    pub value: String,
    pub effect: TaintEffect,
}

/// `dedicated=gpu:NoSchedule`, as kubectl writes it.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{:?}", self.effect)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// `None`: every taint.
    pub key: Option<String>,
    /// `None`: whatever its value is.
    pub value: Option<String>,
    /// `None`: both.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
            && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_toleration_fields_match_anything() {
        let taint =
            Taint { key: "dedicated".to_owned(), value: "gpu".to_owned(), effect: TaintEffect::NoSchedule };
        assert_eq!(taint.to_string(), "dedicated=gpu:NoSchedule");
        assert_eq!(Taint { value: String::new(), ..taint.clone() }.to_string(), "dedicated:NoSchedule");
        let check = |key: Option<&str>, value: Option<&str>, effect: Option<TaintEffect>, expected: bool| {
            let (key, value) = (key.map(ToOwned::to_owned), value.map(ToOwned::to_owned));
            let toleration = Toleration { key, value, effect };
            assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
        };
        check(None, None, None, true);
        check(Some("dedicated"), None, None, true);
        check(Some("dedicated"), Some("gpu"), Some(TaintEffect::NoSchedule), true);
        check(Some("dedicated"), Some(""), None, false);
        check(Some("dedicated"), Some("cpu"), None, false);
        check(Some("other"), None, None, false);
        check(Some("dedicated"), None, Some(TaintEffect::NoExecute), false);
    }
}
