//! Limits how often one object may be written in a run.

use super::run::ChaosRun;
use super::write_monitor::WriteMonitorState;

pub fn check(run: &ChaosRun) {
    let state = run.write_monitor.state.lock();
    let mut found = excess_writes(&state);
    found.extend(state.retries.check(&state.external_changes.edit_times).1);
    drop(state);
    found.iter().for_each(|words| run.write_monitor.violation(words));
}

/// An object may be written once for each change, each edit and each lost answer, and once for each start of a process, which
/// may not know its state. Retries of failed writes are limited by [`super::retries`].
pub fn excess_writes(state: &WriteMonitorState) -> Vec<String> {
    let mut found = Vec::new();
    for (place, writes) in &state.writes {
        let changes = state.content_changes.get(place).copied().unwrap_or_default();
        let edits = state.external_changes.edit_times.get(place).map_or(0, Vec::len);
        let causes = changes + edits + writes.unanswered + state.processes;
        // A stale list may show an object before its repair, so it is repaired once more.
        let most = if state.ever_stale_clusters.contains(&place.0) { 3 + 2 * causes } else { causes };
        if writes.done > most {
            found.push(format!(
                "{} {} was written {} times, {most} is the most",
                place.0, place.1, writes.done
            ));
        }
    }
    found
}
