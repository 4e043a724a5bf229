//! No storm: how often one object may be written.

use super::run::Run;

/// An object is written once for each change of it and of the one before, each edit, each fault that hid an answer and each start
/// of a process, some of them twice. Never for nothing. What fails is tried again as [`super::pace`] says.
pub fn check(run: &Run) {
    let state = run.witness.state.lock();
    let mut found = Vec::new();
    for (place, writes) in &state.writes {
        let changes = state.changes.get(place).copied().unwrap_or_default();
        let edits = state.traces.edits.get(place).map_or(0, Vec::len);
        let causes = changes + edits + writes.lost + state.processes;
        let most = 3 + 2 * causes;
        if writes.done > most {
            found.push(format!(
                "{} {} was written {} times, {most} is the most",
                place.0, place.1, writes.done
            ));
        }
    }
    found.extend(state.pace.check(&state.traces.edits).1);
    drop(state);
    found.iter().for_each(|words| run.witness.violation(words));
}
