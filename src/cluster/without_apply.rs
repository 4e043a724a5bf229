//! Kinds whose own server was found to know no server-side apply: some aggregated APIs answer it by 415.

use std::collections::BTreeSet;

use kube::discovery::ApiResource;
use parking_lot::Mutex;

/// What one connection has learnt; clones share it. It is not kept any longer: a server may be replaced by a newer one.
#[derive(Debug, Default)]
pub(super) struct WithoutApply(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// API version and plural.
    kinds: BTreeSet<(String, String)>,
    /// Of the cluster, as it was told last; `None` until then.
    version: Option<String>,
}

impl WithoutApply {
    pub fn holds(&self, api: &ApiResource) -> bool {
        let known = self.0.lock();
        !known.kinds.is_empty() && known.kinds.contains(&name_of(api))
    }

    pub fn note(&self, api: &ApiResource) {
        if self.0.lock().kinds.insert(name_of(api)) {
            tracing::info!(api = api.api_version, kind = api.kind, "its server knows no server-side apply");
        }
    }

    /// The cluster's own version: with another one, all are asked again.
    pub fn version(&self, version: &str) {
        let mut known = self.0.lock();
        let before = known.version.replace(version.to_owned());
        if before.is_some_and(|before| before != version) {
            known.kinds.clear();
        }
    }
}

fn name_of(api: &ApiResource) -> (String, String) {
    (api.api_version.clone(), api.plural.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_the_cluster_is_asked_again() {
        let api = |plural: &str| ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: "Account".to_owned(),
            plural: plural.to_owned(),
        };
        let known = WithoutApply::default();
        known.note(&api("accounts"));
        known.version("v1.30.0");
        known.version("v1.30.0");
        assert!(known.holds(&api("accounts")));
        assert!(!known.holds(&api("menus")));
        known.version("v1.31.0");
        assert!(!known.holds(&api("accounts")));
    }
}
