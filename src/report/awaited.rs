//! What a rollout waits for, and which command goes on with it.

use super::{RolloutReport, UnitReport};
use crate::model::AppId;
use crate::rollout::{Confirmation, Hold, WaveReport, WaveState};

impl RolloutReport {
    /// What comes next, in one line; empty once every unit has the version and is well.
    pub fn awaited(&self) -> String {
        if !self.is_open {
            return String::new();
        }
        let mut failed = self.units.iter().filter_map(|unit| Some((unit, unit.failure.as_ref()?)));
        if let Some((unit, because)) = failed.next() {
            return format!("stopped, {} failed: {because}", unit.unit);
        }
        let asked = self.holds().find(|hold| hold.waits_for_a_person());
        let open = self.waves.iter().find(|wave| wave.state == WaveState::Open);
        match (asked, open) {
            (Some(hold), _) => hold.to_string(),
            (None, Some(wave)) => self.under_way(wave),
            (None, None) => self
                .waves
                .iter()
                .find_map(|wave| wave.waits.as_ref())
                .map_or_else(|| "not known yet".to_owned(), ToString::to_string),
        }
    }

    /// The command that a person types to go on.
    pub fn command(&self) -> Option<String> {
        match &self.confirmation {
            Some(Confirmation { through, .. }) => Some(open(&self.app, through)),
            None if self.is_refused() => Some(format!("tutti approve rollout {} --retry", self.app)),
            None => None,
        }
    }

    /// The version was taken back: it starts again only when a person says so.
    pub fn is_refused(&self) -> bool {
        self.holds().any(|hold| matches!(hold, Hold::Refused { .. }))
    }

    /// Why units do not have the version.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.units.iter().filter_map(|unit| unit.hold.as_ref())
    }

    fn under_way(&self, wave: &WaveReport) -> String {
        let first = self.units.iter().find(|unit| unit.wave == wave.name && !unit.is_done);
        let first = first.map(|unit| format!(", {}: {}", unit.unit, unit.told()));
        format!("wave {}, {}/{} done{}", wave.name, wave.done, wave.units, first.unwrap_or_default())
    }
}

impl UnitReport {
    /// Why it is not done.
    pub fn told(&self) -> String {
        let hold = || self.hold.as_ref().map(ToString::to_string);
        let detail = || Some(self.detail.clone()).filter(|detail| !detail.is_empty());
        self.failure.clone().or_else(hold).or_else(detail).unwrap_or_else(|| "on its way".to_owned())
    }
}

/// The command that opens the waves of an app up to one.
fn open(app: &AppId, through: &str) -> String {
    format!("tutti approve rollout {app} --through {through}")
}
