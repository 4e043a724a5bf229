//! Reports of an app's waves after a decision.

use std::collections::BTreeMap;

use super::survey::{Survey, WaveUnits};
use super::{RenderChoice, UnitDecision, UnitId, WaveReport, WaveState};

/// One report per wave with units.
pub(super) fn wave_reports(
    survey: &Survey<'_>,
    verdicts: &BTreeMap<UnitId, UnitDecision>,
) -> Vec<WaveReport> {
    let waves = survey.waves.iter().filter(|wave| !wave.is_empty());
    waves.map(|wave| wave_report(wave, verdicts)).collect()
}

fn wave_report(wave: &WaveUnits<'_>, verdicts: &BTreeMap<UnitId, UnitDecision>) -> WaveReport {
    let verdict = |id: &UnitId| verdicts.get(id);
    let takes = |id: &UnitId| verdict(id).is_some_and(|verdict| verdict.choice == RenderChoice::Head);
    let left_out = wave.units.iter().filter(|unit| unit.facts.is_left_out());
    let state = if wave.done == wave.units.len() {
        WaveState::Done
    } else if !wave.failed.is_empty() {
        WaveState::Failed
    } else if wave.units.iter().any(|unit| !unit.facts.is_done() && takes(unit.id)) {
        WaveState::Open
    } else {
        WaveState::Shut
    };
    WaveReport {
        name: wave.name.to_owned(),
        state,
        units: wave.units.len(),
        done: wave.done,
        begun: wave.units.iter().filter(|unit| unit.facts.has_begun()).count(),
        failed: wave.failed.len(),
        left_out: left_out.map(|unit| unit.id.clone()).collect(),
        waits: wave.units.iter().find_map(|unit| verdict(unit.id)?.hold.clone()),
    }
}
