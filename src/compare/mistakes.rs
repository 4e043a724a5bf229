//! Mistakes of the head: those that the base has too told apart.

use std::collections::BTreeSet;

use crate::fleet::Fleet;
use crate::model::{Diagnostic, Scope};
use crate::render::{Renders, codes, is_awaited};

/// The mistakes of a side: of reading, of the renders that were made, and what policies say of these.
pub(super) fn of_side<'a>(
    fleet: &'a Fleet,
    renders: &'a Renders,
    of_policies: &'a [Diagnostic],
) -> Vec<&'a Diagnostic> {
    let mut found: Vec<&Diagnostic> = fleet.diagnostics.iter().chain(of_policies).collect();
    for result in renders.results() {
        match result {
            Ok(rendered) => found.extend(rendered.warnings.iter()),
            Err(mistakes) if !is_awaited(result) => found.extend(mistakes),
            Err(_) => {}
        }
    }
    found
}

/// What makes two mistakes the same, wherever in their file they stand by now.
type Key<'a> = (&'static str, &'a str, Option<&'a str>, Option<&'a str>, &'a Scope);

fn key(mistake: &Diagnostic) -> Key<'_> {
    // Where a field is set is not traced on both sides.
    let is_placed = !matches!(mistake.code, codes::DENIED | codes::WARNED);
    let file = mistake.location.as_ref().filter(|_| is_placed).map(|location| location.file.as_str());
    (mistake.code, &mistake.message, file, mistake.path.as_deref(), &mistake.scope)
}

/// Those that only the head has, and those that both have; each once. `of_changed`: of objects that the head changes, which it answers
/// for whatever the base has.
pub(super) fn parted(
    base: &[&Diagnostic],
    head: &[&Diagnostic],
    of_changed: &[Diagnostic],
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let mut known: BTreeSet<Key<'_>> = base.iter().map(|mistake| key(mistake)).collect();
    of_changed.iter().for_each(|mistake| _ = known.remove(&key(mistake)));
    let mut sorted: Vec<&Diagnostic> = head.to_vec();
    sorted.sort_by(|one, other| (&one.location, key(one)).cmp(&(&other.location, key(other))));
    sorted.dedup();
    let (old, new): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        sorted.into_iter().partition(|mistake| known.contains(&key(mistake)));
    (new.into_iter().cloned().collect(), old.into_iter().cloned().collect())
}
