//! Positions of mistakes in plain files.

use super::{run, run_here};
use crate::render::field_locator::tests::PARSES;

const APP: &str =
    "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: a}\nspec: {files: [objects/*.yaml]}\n";

fn check(objects: &str, expected: &[&str]) {
    let files = [("apps/a/app.yaml", APP), ("apps/a/objects/x.yaml", objects)];
    let mistakes = run("a", &files).expect_err("errors");
    let found: Vec<String> = mistakes
        .iter()
        .map(|it| {
            let start = it.location.as_ref().expect("a place").start;
            format!("{}:{} {} {}", start.line, start.column, it.path.as_deref().unwrap_or("-"), it.message)
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn non_string_label_has_location() {
    let menu = |labels: &str| {
        format!(
            "apiVersion: x.io/v1\nkind: Menu\nmetadata: {{name: m}}\nspec:\n  template:\n    metadata:\n      labels: {labels}\n"
        )
    };
    let path = "spec.template.metadata.labels";
    check(
        &menu("{a: x, version: 1}"),
        &[&format!("7:22 {path}.version labels of Menu m: version is 1, not a text")],
    );
    check(&menu("[a]"), &[&format!("7:7 {path} labels of Menu m is not a map")]);
    check(
        &menu("{a: {b: 'long and secret'}}"),
        &[&format!("7:16 {path}.a labels of Menu m: a is a map, not a text")],
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: [1, 2]\n";
    check(map, &["5:3 data.a data of ConfigMap m: a is a list, not a text"]);
}

#[test]
fn file_with_mistakes_is_parsed_once() {
    let parses = |count: usize| {
        let map = |number: usize| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\ndata: {{a: , b: }}\n---\n"
            )
        };
        let objects: String = (0..count).map(map).collect();
        let files = [("apps/a/app.yaml", APP), ("apps/a/objects/x.yaml", &objects)];
        let before = PARSES.get();
        assert_eq!(run_here("a", &files).expect_err("errors").len(), 2 * count);
        PARSES.get() - before
    };
    assert_eq!((parses(10), parses(20)), (1, 1));
}
