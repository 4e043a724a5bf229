use std::collections::BTreeSet;

use super::CONTEXTS;

#[test]
fn statuses_md_lists_every_context() {
    let page = include_str!("../../../docs/reference/statuses.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `tutti/")?.split('`').next());
    // Those of a commit, by `report::statuses`.
    let expected = CONTEXTS.into_iter().chain(["deploy", "deploy/<ring>"]);
    assert_eq!(rows.collect::<BTreeSet<_>>(), expected.collect());
}
