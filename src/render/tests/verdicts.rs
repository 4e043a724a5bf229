//! What policies may take of a whole revision.

use super::super::verdicts::verdicts_within;
use super::super::{Memory, Renderer};
use super::*;

const POLICY: &str = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: long}
spec: {validations: [{expression: 'lists.range(1000).all(x, x >= 0)'}]}
";

#[test]
fn steps_of_a_revision_are_bounded() {
    let snapshot = snapshot(&[("apps/web/app.yaml", WEB), ("policies/a.yaml", POLICY)]);
    let fleet = fleet(&snapshot);
    let mut renderer = Renderer::new(&fleet, &snapshot, &NoCharts);
    let renders = renderer.render_all(&mut Memory::default());
    let told = |most: u64| {
        let told = verdicts_within(most, &renderer, &renders, None, &|| true).all;
        told.iter().map(|it| (it.code, it.location.as_ref().map(|at| at.file.clone()))).collect::<Vec<_>>()
    };
    assert_eq!(told(1_000_000), []);
    assert_eq!(told(5000), [("E1108", Some("policies/a.yaml".into()))]);
}
