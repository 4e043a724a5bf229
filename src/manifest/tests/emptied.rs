//! Fields that have lost their value, where without the field more would be chosen.

use super::{COMPONENT, read_texts};

#[test]
fn emptied_selector_is_a_mistake() {
    let objects = |spec: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: a}}\nspec: {{files: [a.yaml], {spec}}}\n"
        )
    };
    let rings = |clusters: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {{name: rings}}\nspec: {{rings: [{{name: test, {clusters}}}]}}\n"
        )
    };
    let of_kind = |kind: &str, spec: &str| {
        format!("apiVersion: tutti.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}\n")
    };
    let component = |rest: &str| format!("{COMPONENT}  {rest}\n");
    for (text, field) in [
        (objects("placement: "), "spec.placement"),
        (objects("placement: {clusters: }"), "spec.placement.clusters"),
        (objects("placement: {clusters: {names: }}"), "spec.placement.clusters.names"),
        (objects("placement: {clusters: {matchLabels: }}"), "spec.placement.clusters.matchLabels"),
        (objects("placement: {clusters: {matchExpressions: }}"), "spec.placement.clusters.matchExpressions"),
        (objects("placement: {clusters: {ring: }}"), "spec.placement.clusters.ring"),
        (objects("ignore: [{target: , paths: [/spec]}]"), "spec.ignore[0].target"),
        (component("placement: {clusters: {names: }}"), "spec.placement.clusters.names"),
        (component("patches: [{target: {kind: }, merge: {}}]"), "spec.patches[0].target.kind"),
        (component("patches: [{target: {labels: }, merge: {}}]"), "spec.patches[0].target.labels"),
        (component("routes: [{host: a.io, clusters: }]"), "spec.routes[0].clusters"),
        (component("routes: [{host: a.io, paths: }]"), "spec.routes[0].paths"),
        (component("routes: [{host: a.io, paths: [{path: }]}]"), "spec.routes[0].paths[0].path"),
        (
            objects("placement: {clusters: {}, tolerations: [{key: , operator: Exists}]}"),
            "spec.placement.tolerations[0].key",
        ),
        (
            objects("placement: {clusters: {}, tolerations: [{key: a, effect: }]}"),
            "spec.placement.tolerations[0].effect",
        ),
        (rings("clusters: {names: }"), "spec.rings[0].clusters.names"),
        (rings("clusters: "), "spec.rings[0].clusters"),
        (of_kind("Project", "{clusters: }"), "spec.clusters"),
        (of_kind("Project", "{allow: {kinds: }}"), "spec.allow.kinds"),
        (of_kind("Project", "{allow: {clusters: {names: }}}"), "spec.allow.clusters.names"),
        (
            of_kind("Instance", "{clusterRegistry: {configMaps: {matchLabels: }}}"),
            "spec.clusterRegistry.configMaps.matchLabels",
        ),
    ] {
        let manifests = read_texts(&[("x.yaml", &text)]);
        let found: Vec<_> =
            manifests.diagnostics.iter().map(|it| (it.code, it.path.as_deref().unwrap_or("-"))).collect();
        assert_eq!(found, [("E1202", field)], "{text}");
        assert!(manifests.apps.is_empty() || text.contains("Project"), "{text}");
    }
}
