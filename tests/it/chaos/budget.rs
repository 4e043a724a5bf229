//! No storm: how often one object may be written.

use super::run::Run;
use super::witness::State;

pub fn check(run: &Run) {
    let state = run.witness.state.lock();
    let mut found = too_often(&state);
    found.extend(state.pace.check(&state.traces.edits).1);
    drop(state);
    found.iter().for_each(|words| run.witness.violation(words));
}

/// An object is written once for each change of it, for each edit, and for each answer that was lost; and once for each start of a
/// process, which may be in doubt about it. Never for nothing. What fails is tried again as [`super::pace`] says.
pub fn too_often(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    for (place, writes) in &state.writes {
        let changes = state.changes.get(place).copied().unwrap_or_default();
        let edits = state.traces.edits.get(place).map_or(0, Vec::len);
        let causes = changes + edits + writes.lost + state.processes;
        // A list that is behind shows what was put right long ago as it was, which is put right once more.
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
