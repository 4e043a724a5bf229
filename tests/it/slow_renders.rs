//! A slow render delays what needs its objects, and fails nothing.

use crate::support::manifests::INSTANCE;
use crate::support::program;
use crate::support::repository::TestRepository;

const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: local}\n\
    spec: {connection: {sandbox: {}}}\n";

/// Longer than the first time slice, and, also on a busy machine, shorter than the limit of a template.
const SLOW_NAMESPACE: &str = "{% for i in range(40) %}{% set x = ('a' * 9000000) | upper %}{% endfor %}\n\
    apiVersion: v1\nkind: Namespace\nmetadata: {name: late}\n";
const SETTINGS: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: late}\ndata: {a: b}\n";

#[test]
fn namespace_of_slow_app_is_no_failure() {
    let app = |name: &str, file: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}, namespace: late}}\n\
             spec: {{files: [{file}]}}\n"
        )
    };
    let repository = TestRepository::empty();
    repository.commit(
        "Add two apps",
        &[
            ("tutti.yaml", Some(INSTANCE)),
            ("clusters/local.yaml", Some(CLUSTER)),
            ("apps/slow/app.yaml", Some(&app("slow", "namespace.yaml.j2"))),
            ("apps/slow/namespace.yaml.j2", Some(SLOW_NAMESPACE)),
            ("apps/web/app.yaml", Some(&app("web", "settings.yaml"))),
            ("apps/web/settings.yaml", Some(SETTINGS)),
        ],
    );
    let run = ["run", "--repo", ".", "--once", "--cluster", "local=sandbox", "--timeout", "120s"];
    let (output, errors, code) = program::run(repository.path(), &run);
    assert_eq!(code, 0, "{output}{errors}");
}
