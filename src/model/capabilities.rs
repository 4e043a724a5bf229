//! Capabilities of a cluster: its version, and the API versions that it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kube_version::NEWEST_VERSION;
use super::{Cluster, KubeVersion};

/// Facts about a kind, from its definition or from the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindInfo {
    pub namespaced: bool,
    /// Its status is a subresource: an apply of the object leaves it alone.
    pub has_status: bool,
    /// Its plural name; `None`: the usual one.
    pub plural: Option<Arc<str>>,
}

/// Kinds that Kubernetes does not have itself, by name: `example.com/v1/Menu`.
pub type KindsByName = BTreeMap<String, KindInfo>;

/// For templates: `cluster.capabilities`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    pub version: KubeVersion,
    /// `apps/v1`; after discovery also `apps/v1/Deployment`. Sorted.
    pub api_versions: Vec<String>,
    /// From discovery: the list is complete.
    #[serde(skip)]
    pub asked: bool,
    /// Those that it serves.
    #[serde(skip)]
    pub kinds: KindsByName,
}

/// Since which minor version an API version is served, and which is the first without it. Source: the
/// API's deprecation guide.
const SERVED_API_VERSIONS: [(&str, u32, u32); 36] = [
    ("admissionregistration.k8s.io/v1", 16, u32::MAX),
    ("admissionregistration.k8s.io/v1beta1", 9, 22),
    ("apiextensions.k8s.io/v1", 16, u32::MAX),
    ("apiextensions.k8s.io/v1beta1", 7, 22),
    ("apiregistration.k8s.io/v1", 10, u32::MAX),
    ("apiregistration.k8s.io/v1beta1", 7, 22),
    ("apps/v1", 9, u32::MAX),
    ("apps/v1beta1", 6, 16),
    ("apps/v1beta2", 8, 16),
    ("autoscaling/v1", 2, u32::MAX),
    ("autoscaling/v2", 23, u32::MAX),
    ("autoscaling/v2beta1", 8, 25),
    ("autoscaling/v2beta2", 12, 26),
    ("batch/v1", 2, u32::MAX),
    ("batch/v1beta1", 8, 25),
    ("certificates.k8s.io/v1", 19, u32::MAX),
    ("certificates.k8s.io/v1beta1", 4, 22),
    ("coordination.k8s.io/v1", 14, u32::MAX),
    ("discovery.k8s.io/v1", 21, u32::MAX),
    ("discovery.k8s.io/v1beta1", 17, 25),
    ("events.k8s.io/v1", 19, u32::MAX),
    ("extensions/v1beta1", 1, 22),
    ("flowcontrol.apiserver.k8s.io/v1", 29, u32::MAX),
    ("flowcontrol.apiserver.k8s.io/v1beta3", 26, 32),
    ("networking.k8s.io/v1", 7, u32::MAX),
    ("networking.k8s.io/v1beta1", 14, 22),
    ("node.k8s.io/v1", 20, u32::MAX),
    ("policy/v1", 21, u32::MAX),
    ("policy/v1beta1", 5, 25),
    ("rbac.authorization.k8s.io/v1", 8, u32::MAX),
    ("rbac.authorization.k8s.io/v1beta1", 6, 22),
    ("resource.k8s.io/v1", 34, u32::MAX),
    ("scheduling.k8s.io/v1", 14, u32::MAX),
    ("storage.k8s.io/v1", 6, u32::MAX),
    ("storage.k8s.io/v1beta1", 6, 27),
    ("v1", 0, u32::MAX),
];

impl Capabilities {
    /// Of a cluster that declares these: what its version serves, and what it has beside that.
    pub fn declared(version: Option<&KubeVersion>, more: &[String]) -> Self {
        let (major, _) = NEWEST_VERSION;
        let version = version.cloned().unwrap_or_else(KubeVersion::newest);
        // A major version above is newer than all that is known.
        let minor = if version.major > major { u32::MAX - 1 } else { version.minor };
        let served = SERVED_API_VERSIONS.iter().filter(|(_, since, gone)| (*since..*gone).contains(&minor));
        let mut api_versions: Vec<String> =
            served.map(|(name, ..)| (*name).to_owned()).chain(more.iter().cloned()).collect();
        api_versions.sort();
        api_versions.dedup();
        Self { version, api_versions, asked: false, kinds: BTreeMap::new() }
    }

    /// The discovered capabilities, if any, with those that the Cluster file declares: its version replaces the discovered one, its API
    /// versions are added.
    pub fn of(cluster: &Cluster, found: Option<&Arc<Self>>) -> Arc<Self> {
        let Some(found) = found else {
            return Arc::new(Self::declared(cluster.version.as_ref(), &cluster.capabilities));
        };
        if cluster.version.is_none() && cluster.capabilities.is_empty() {
            return Arc::clone(found);
        }
        let mut made = Self::clone(found);
        made.version = cluster.version.clone().unwrap_or(made.version);
        made.api_versions.extend(cluster.capabilities.iter().cloned());
        made.api_versions.sort();
        made.api_versions.dedup();
        Arc::new(made)
    }

    /// `apps/v1`, `apps/v1/Deployment`. Where only versions are known, they are taken to have all their kinds.
    pub fn has(&self, name: &str) -> bool {
        let known = |name: &str| self.api_versions.binary_search_by(|known| known.as_str().cmp(name)).is_ok();
        let of_kind =
            || name.rsplit_once('/').filter(|(_, last)| last.starts_with(|it: char| it.is_ascii_uppercase()));
        known(name) || (!self.asked && of_kind().is_some_and(|(version, _)| known(version)))
    }
}

/// The capability queries of a render, with their results. The render stays valid while the results are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityQueries {
    pub api_versions: BTreeMap<String, bool>,
    /// Kinds by name; `None` of one that the cluster is not known to serve, and that nothing in the repository defines for it.
    pub kinds: BTreeMap<String, Option<KindInfo>>,
    pub version: Option<KubeVersion>,
    /// Set when the render may have read all capabilities.
    pub whole: Option<Arc<Capabilities>>,
}

impl CapabilityQueries {
    /// Whether the render read the version or the API versions, which are guessed before discovery.
    pub fn depend_on_version(&self) -> bool {
        !self.api_versions.is_empty() || self.version.is_some() || self.whole.is_some()
    }

    /// Whether these capabilities, with the kinds that apps define, give the same results.
    pub fn are_unchanged(&self, now: &Arc<Capabilities>, defined: &KindsByName) -> bool {
        let facts_of = |name: &String| now.kinds.get(name).or_else(|| defined.get(name));
        self.api_versions.iter().all(|(name, answer)| now.has(name) == *answer)
            && self.kinds.iter().all(|(name, facts)| facts_of(name) == facts.as_ref())
            && self.version.as_ref().is_none_or(|version| *version == now.version)
            && self.whole.as_ref().is_none_or(|all| Arc::ptr_eq(all, now) || all == now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Option<&str>, has: &[&str], has_not: &[&str]) {
        let version = version.map(|version| KubeVersion::parse(version).expect("a version"));
        let known = Capabilities::declared(version.as_ref(), &["x.io/v1".to_owned()]).api_versions;
        assert!(
            has.iter().chain(&["v1", "apps/v1", "x.io/v1"]).all(|name| known.iter().any(|it| it == name))
        );
        assert!(!has_not.iter().any(|name| known.iter().any(|it| it == name)), "{known:?}");
    }

    #[test]
    fn old_versions_serve_old_apis() {
        check(Some("1.20"), &["policy/v1beta1", "autoscaling/v2beta2"], &["policy/v1", "autoscaling/v2"]);
        check(Some("v1.24.3+k3s1"), &["policy/v1beta1", "policy/v1", "autoscaling/v2"], &["batch/v1beta2"]);
        check(None, &["policy/v1", "autoscaling/v2"], &["policy/v1beta1", "autoscaling/v2beta2"]);
    }

    #[test]
    fn queries_hold_while_results_are_equal() {
        let found = |names: &[&str]| {
            let mut api_versions: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            api_versions.sort();
            let version = KubeVersion::parse("1.30").expect("a version");
            Arc::new(Capabilities { version, api_versions, asked: true, kinds: BTreeMap::new() })
        };
        let before = found(&["apps/v1", "apps/v1/Deployment"]);
        assert!(before.has("apps/v1/Deployment") && !before.has("apps/v1/Menu"));
        assert!(Capabilities::declared(None, &[]).has("apps/v1/Menu"), "only versions are known");
        let none = KindsByName::new();
        let holds =
            |questions: &CapabilityQueries, now: &Arc<Capabilities>| questions.are_unchanged(now, &none);
        let has = BTreeMap::from([("apps/v1".to_owned(), true), ("x.io/v1".to_owned(), false)]);
        let questions = CapabilityQueries { api_versions: has, ..CapabilityQueries::default() };
        assert!(holds(&questions, &before) && holds(&questions, &found(&["apps/v1", "y.io/v1"])));
        assert!(!holds(&questions, &found(&["apps/v1", "x.io/v1"])) && !holds(&questions, &found(&[])));
        let all = CapabilityQueries { whole: Some(Arc::clone(&before)), ..CapabilityQueries::default() };
        assert!(holds(&all, &before) && !holds(&all, &found(&["apps/v1"])));
    }

    #[test]
    fn kinds_come_from_cluster_then_repository() {
        let facts = |namespaced| KindInfo { namespaced, has_status: false, plural: None };
        let kinds = |known: Option<KindInfo>| known.map(|it| ("x.io/v1/Till".to_owned(), it)).into_iter();
        let check = |live: Option<bool>, defined: Option<bool>, answer: Option<bool>| {
            let now =
                Capabilities { kinds: kinds(live.map(facts)).collect(), ..Capabilities::declared(None, &[]) };
            let asked = BTreeMap::from([("x.io/v1/Till".to_owned(), answer.map(facts))]);
            let questions = CapabilityQueries { kinds: asked, ..CapabilityQueries::default() };
            assert!(
                questions.are_unchanged(&Arc::new(now), &kinds(defined.map(facts)).collect()),
                "{live:?} {defined:?}"
            );
        };
        check(None, None, None);
        check(Some(true), None, Some(true));
        check(None, Some(true), Some(true));
        check(Some(false), Some(true), Some(false));
    }

    #[test]
    fn versions_are_read_as_servers_write_them() {
        let git = |text: &str| KubeVersion::parse(text).map(|version| version.git_version);
        assert_eq!(git("1.27").as_deref(), Some("v1.27.0"));
        assert_eq!(git("v1.27.4-eks-1").as_deref(), Some("v1.27.4-eks-1"));
        assert_eq!((git("27"), git("1.x"), git("1.2.x")), (None, None, None));
    }
}
