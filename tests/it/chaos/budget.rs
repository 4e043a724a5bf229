//! Limits how often one object may be written in a run.

use super::run::Run;
use super::witness::State;

pub fn check(run: &Run) {
    let state = run.witness.state.lock();
    let mut found = too_often(&state);
    found.extend(state.pace.check(&state.traces.edits).1);
    drop(state);
    found.iter().for_each(|words| run.witness.violation(words));
}

/// An object may be written once for each change, each edit and each lost answer, and once for each start of a process, which
/// may not know its state. Retries of failed writes are limited by [`super::pace`].
pub fn too_often(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    for (place, writes) in &state.writes {
        let changes = state.changes.get(place).copied().unwrap_or_default();
        let edits = state.traces.edits.get(place).map_or(0, Vec::len);
        let causes = changes + edits + writes.lost + state.processes;
        // A stale list may show an object before its repair, so it is repaired once more.
        let most = if state.misled.contains(&place.0) { 3 + 2 * causes } else { causes };
        if writes.done > most {
            found.push(format!(
                "{} {} was written {} times, {most} is the most",
                place.0, place.1, writes.done
            ));
        }
    }
    found
}
