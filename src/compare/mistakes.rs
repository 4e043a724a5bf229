//! Separates the new mistakes of the head from those that the base has too.

use std::collections::BTreeSet;

use crate::fleet::Fleet;
use crate::model::{Diagnostic, DiagnosticScope};
use crate::render::{Renders, codes, is_awaited};

/// The mistakes of a side: of reading, of its renders, and of the policies.
pub(super) fn diagnostics_of_side<'a>(
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

/// The identity of a mistake, without its position in the file.
type DiagnosticKey<'a> = (&'static str, &'a str, Option<&'a str>, Option<&'a str>, &'a DiagnosticScope);

fn key(mistake: &Diagnostic) -> DiagnosticKey<'_> {
    // The origin of a field is not traced on both sides.
    let is_placed = !matches!(mistake.code, codes::DENIED | codes::WARNED);
    let file = mistake.location.as_ref().filter(|_| is_placed).map(|location| location.file.as_str());
    (mistake.code, &mistake.message, file, mistake.path.as_deref(), &mistake.scope)
}

/// The mistakes of the head alone, and those of both sides; each once. `of_changed`: mistakes of objects that the head changes, which
/// always count as new.
pub(super) fn split_new_and_known(
    base: &[&Diagnostic],
    head: &[&Diagnostic],
    of_changed: &[Diagnostic],
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let mut known: BTreeSet<DiagnosticKey<'_>> = base.iter().map(|mistake| key(mistake)).collect();
    of_changed.iter().for_each(|mistake| _ = known.remove(&key(mistake)));
    let mut sorted: Vec<&Diagnostic> = head.to_vec();
    sorted.sort_by(|one, other| (&one.location, key(one)).cmp(&(&other.location, key(other))));
    sorted.dedup();
    let (old, new): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        sorted.into_iter().partition(|mistake| known.contains(&key(mistake)));
    (new.into_iter().cloned().collect(), old.into_iter().cloned().collect())
}
