//! The labels and annotations that tutti writes on objects, and how their values are made.

use super::{AppId, Digest};

/// Of all of them.
pub const PREFIX: &str = "tutti.dev/";
/// Label: the instance that manages the object.
pub const MANAGED_BY: &str = "tutti.dev/managed-by";
/// Label (shortened to fit) and annotation (exact `namespace/name`): the app.
pub const APP: &str = "tutti.dev/app";
/// Annotation: group/kind/namespace/name of the object that carries it. A controller that copies
/// labels and annotations to its children copies this too, and then it does not fit the child.
pub const ORIGIN: &str = "tutti.dev/origin";
/// Annotation: digest of the object as rendered, without this and the revision.
pub const HASH: &str = "tutti.dev/hash";
/// Annotation: the commit whose change was applied last.
pub const REVISION: &str = "tutti.dev/revision";
/// Annotation of an app in waves: what the object is, without its scale.
pub const CONTENT: &str = "tutti.dev/content";
/// Annotation of an app in waves: when the unit of the object took its content.
pub const SINCE: &str = "tutti.dev/since";
/// Annotation of an app in waves: the commit that the unit ran before, and what it was then.
pub const PREVIOUS: &str = "tutti.dev/previous";
/// Annotation of an app in waves: the version that the unit was taken back from, and the head at which it failed.
pub const REFUSED: &str = "tutti.dev/refused";
/// Annotation of a chart with install or upgrade hooks: the first release on the cluster.
pub const INSTALL: &str = "tutti.dev/install";
/// Annotation on an object: `keep` leaves it alone when it is no longer rendered.
pub const PRUNE: &str = "tutti.dev/prune";
/// Annotation on an object: `true` forces the ownership of fields, `false` does not; it overrides the app's setting.
pub const FORCE: &str = "tutti.dev/force";
/// Annotation on an object: `true` deletes and creates it again when an immutable field changes, `false` does not; it overrides the
/// app's setting.
pub const REPLACE: &str = "tutti.dev/replace";
/// Annotation on an object: a number. It comes when all of its app with lower ones are there and healthy, and goes before them.
pub const SYNC_WAVE: &str = "tutti.dev/sync-wave";
/// Argo CD's annotation of the same meaning.
pub const ARGO_SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Annotation on an app: it is left untouched.
pub const UNMANAGED: &str = "tutti.dev/unmanaged";
pub const COMPONENT_UNMANAGED: &str = "component.luojilab.com/unmanaged";
/// Annotation on an AppSet of a chart: `apply` applies hooks that run something as ordinary objects, `skip` leaves them out.
pub const CHART_HOOKS: &str = "tutti.dev/chart-hooks";
/// On an app: `apply` adds the derived labels to the workloads and pods of its charts.
pub const CHART_LABELS: &str = "tutti.dev/chart-labels";
/// Annotation on a Job or Pod that runs once for a release of a chart: what the chart calls it. The next release has
/// another.
pub const HOOK_RUN: &str = "tutti.dev/run";
/// Labels on an AppSet that choose its language and run type layers.
pub const LANGUAGE: &str = "tutti.dev/language";
pub const RUN_TYPE: &str = "tutti.dev/runType";

/// Annotations that are written together with a change and are excluded from the object's hash.
pub const UNHASHED_ANNOTATIONS: [&str; 6] = [REVISION, INSTALL, CONTENT, SINCE, PREVIOUS, REFUSED];

/// The longest value of a label.
const LABEL_LIMIT: usize = 63;

/// The field manager of an instance.
pub fn field_manager(instance: &str) -> String {
    format!("tutti-{instance}")
}

/// The value of the label [`APP`]: `namespace.name`; over 63 characters the first 46, `-`, and 16
/// digits of its sha256.
pub fn app_label(app: &AppId) -> String {
    let full = format!("{}.{}", app.namespace, app.name);
    if full.len() <= LABEL_LIMIT {
        return full;
    }
    let digest = Digest::of(full.as_bytes()).to_string();
    // Names are ASCII (checked when manifests are read); `chars` keeps this right all the same.
    format!("{}-{}", full.chars().take(46).collect::<String>(), &digest[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_app_names_get_distinct_labels() {
        assert_eq!(app_label(&AppId::new("shop", "pay")), "shop.pay");
        let one = app_label(&AppId::new("shop", &"a".repeat(70)));
        let other = app_label(&AppId::new("shop", &"a".repeat(71)));
        assert_eq!(one.len(), 63);
        assert_ne!(one, other);
    }
}
