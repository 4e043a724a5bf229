//! The policies that tutti ships, as files of a repository.

use std::fs;
use std::path::Path;

use tutti::fleet::{Fleet, assemble};
use tutti::manifest;
use tutti::model::Snapshot;
use tutti::policy::example_outcomes;

fn shipped_policy_fleet() -> Fleet {
    let mut snapshot = Snapshot::of_texts([]);
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("policies")).expect("the folder") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        snapshot.put(&format!("policies/{name}"), &fs::read_to_string(&path).expect("a text"));
    }
    assemble(manifest::read(&snapshot), &snapshot)
}

#[test]
fn shipped_policies_match_their_examples() {
    let fleet = shipped_policy_fleet();
    let errors: Vec<_> = fleet.diagnostics.iter().filter(|it| it.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(fleet.policies.all().count(), 10);
    for policy in fleet.policies.all() {
        assert_eq!(policy.location.file, format!("policies/{}.yaml", policy.name));
        assert!(policy.description.is_some(), "{}", policy.name);
        let outcomes = example_outcomes(policy);
        for outcome in &outcomes {
            let (name, verdicts) = (&outcome.example.name, &outcome.verdicts);
            assert!(outcome.is_expected(), "{}: {name}: {verdicts:?}", policy.name);
            // An expression that fails denies too, and proves nothing.
            let failed = verdicts.iter().find(|it| it.message.contains("cannot be evaluated"));
            assert_eq!(failed, None, "{}: {name}", policy.name);
        }
        for is_allowed in [true, false] {
            let of_kind = |it: &&tutti::policy::ExampleOutcome<'_>| {
                it.example.is_allowed == is_allowed && it.is_evaluated
            };
            let shown = outcomes.iter().filter(of_kind).count();
            // A rule for deletes is not evaluated for creates: only its example of an allowed delete counts.
            assert!(shown > 0, "{} has no example that is allowed: {is_allowed}", policy.name);
        }
    }
}
