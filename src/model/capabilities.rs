//! What a cluster can do: its version, and the API versions that it serves.

use serde::Serialize;

/// `1.27`, `v1.27.4+k3s1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeVersion {
    pub major: u32,
    pub minor: u32,
    pub git_version: String,
}

impl KubeVersion {
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        let mut parts = plain.splitn(3, '.');
        let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let patch = parts.next();
        if patch.is_some_and(|patch| !patch.starts_with(|letter: char| letter.is_ascii_digit())) {
            return None;
        }
        let git_version = if patch.is_some() { format!("v{plain}") } else { format!("v{plain}.0") };
        Some(Self { major, minor, git_version })
    }
}

/// For templates: `cluster.capabilities`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    pub version: KubeVersion,
    /// `apps/v1`, sorted.
    pub api_versions: Vec<String>,
}

/// The version that a cluster has when nothing says otherwise.
const NEWEST: (u32, u32) = (1, 36);

/// Since which minor version an API version is served, and which is the first without it. Source: the
/// API's deprecation guide.
const SERVED: [(&str, u32, u32); 36] = [
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
        let (major, minor) = NEWEST;
        let newest = || KubeVersion { major, minor, git_version: format!("v{major}.{minor}.0") };
        let version = version.cloned().unwrap_or_else(newest);
        // A major version above is newer than all that is known.
        let minor = if version.major > major { u32::MAX - 1 } else { version.minor };
        let served = SERVED.iter().filter(|(_, since, gone)| (*since..*gone).contains(&minor));
        let mut api_versions: Vec<String> =
            served.map(|(name, ..)| (*name).to_owned()).chain(more.iter().cloned()).collect();
        api_versions.sort();
        api_versions.dedup();
        Self { version, api_versions }
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
    fn versions_are_read_as_servers_write_them() {
        let git = |text: &str| KubeVersion::parse(text).map(|version| version.git_version);
        assert_eq!(git("1.27").as_deref(), Some("v1.27.0"));
        assert_eq!(git("v1.27.4-eks-1").as_deref(), Some("v1.27.4-eks-1"));
        assert_eq!((git("27"), git("1.x"), git("1.2.x")), (None, None, None));
    }
}
