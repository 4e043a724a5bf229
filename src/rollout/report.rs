//! Reports of an app's waves after a decision.

use std::collections::BTreeMap;

use super::survey::{Survey, WaveUnits};
use super::{Choice, UnitId, Verdict, WaveReport, WaveState};

/// One report per wave with units.
pub(super) fn reports(survey: &Survey<'_>, verdicts: &BTreeMap<UnitId, Verdict>) -> Vec<WaveReport> {
    let waves = survey.waves.iter().filter(|wave| !wave.is_empty());
    waves.map(|wave| report(wave, verdicts)).collect()
}

fn report(wave: &WaveUnits<'_>, verdicts: &BTreeMap<UnitId, Verdict>) -> WaveReport {
    let verdict = |id: &UnitId| verdicts.get(id);
    let takes = |id: &UnitId| verdict(id).is_some_and(|verdict| verdict.choice == Choice::Head);
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
