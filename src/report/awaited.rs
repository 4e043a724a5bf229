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
        // What a person may confirm is not stopped by what has failed (`maxFailures`).
        let is_stopped = self.confirmation.is_none() || self.holds().any(is_stopped);
        let failed = self.failed().filter(|_| is_stopped);
        if let Some((unit, because)) = failed {
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

    /// The commands of which a person types one to go on, the best first.
    pub fn commands(&self) -> Vec<String> {
        if let Some(Confirmation { through, .. }) = &self.confirmation {
            return vec![open(&self.app, through)];
        }
        let is_over = |hold: &Hold| hold.is_failure() || is_stopped(hold);
        let has_failed = self.is_open && self.failed().is_some() || self.holds().any(is_over);
        // Without a reverted commit, Git and the clusters differ for ever.
        let revert = self.commit.as_ref().filter(|_| has_failed);
        let retry = self.is_refused().then(|| format!("tutti approve rollout {} --retry", self.app));
        revert.map(|commit| format!("git revert {}", commit.short())).into_iter().chain(retry).collect()
    }

    /// The version was taken back: it starts again only when a person says so.
    pub fn is_refused(&self) -> bool {
        self.holds().any(|hold| matches!(hold, Hold::Refused { .. }))
    }

    /// The first unit that fails, and why.
    fn failed(&self) -> Option<(&UnitReport, &str)> {
        self.units.iter().find_map(|unit| Some((unit, unit.failure.as_deref()?)))
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

fn is_stopped(hold: &Hold) -> bool {
    matches!(hold.gate(), Hold::Stopped { .. })
}

/// The command that opens the waves of an app up to one.
fn open(app: &AppId, through: &str) -> String {
    format!("tutti approve rollout {app} --through {through}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Revision};
    use crate::rollout::UnitId;

    fn rollout(hold: Hold, failure: Option<&str>) -> RolloutReport {
        let unit = |cluster: &str, hold: Option<Hold>, failure: Option<&str>| UnitReport {
            unit: UnitId::new(cluster, ""),
            wave: "test".to_owned(),
            is_at_head: hold.is_none(),
            is_done: false,
            revision: None,
            since: None,
            previous: None,
            detail: "0/1 replicas updated".to_owned(),
            hold,
            failure: failure.map(ToOwned::to_owned),
        };
        let wave = WaveReport {
            name: "test".to_owned(),
            state: WaveState::Open,
            units: 2,
            done: 0,
            begun: 1,
            failed: 0,
            left_out: Vec::new(),
            waits: None,
        };
        RolloutReport {
            app: AppId::new("shop", "pay"),
            digest: Digest::of(b"v2"),
            commit: Some(Revision::from("0123456789")),
            is_open: true,
            waves: vec![wave],
            confirmation: match &hold {
                Hold::Confirmation { after, through, digest } => {
                    Some(Confirmation { after: after.clone(), through: through.clone(), digest: *digest })
                }
                _ => None,
            },
            units: vec![unit("c1", None, failure), unit("c2", Some(hold), None)],
            approvals_unused: Vec::new(),
        }
    }

    #[test]
    fn rollout_says_what_it_waits_for() {
        let check = |rollout: &RolloutReport, awaited: &str, commands: &[&str]| {
            assert_eq!(
                (rollout.awaited(), rollout.commands()),
                (awaited.to_owned(), commands.iter().map(|it| (*it).to_owned()).collect())
            );
        };
        let digest = Digest::of(b"v2");
        let confirmation =
            || Hold::Confirmation { after: "test".to_owned(), through: "prod".to_owned(), digest };
        let words = confirmation().to_string();
        let approve = ["tutti approve rollout shop/pay --through prod"];
        check(&rollout(confirmation(), None), &words, &approve);
        // So many may fail: what is asked for goes before that.
        check(&rollout(confirmation(), Some("no image")), &words, &approve);
        let refused = || Hold::Refused { digest };
        let words = refused().to_string();
        let retry = "tutti approve rollout shop/pay --retry";
        check(&rollout(refused(), None), &words, &["git revert 0123456", retry]);
        let unknown = RolloutReport { commit: None, ..rollout(refused(), None) };
        check(&unknown, &words, &[retry]);
        let limit = || Hold::Concurrency { wave: "test".to_owned(), limit: 1 };
        check(&rollout(limit(), None), "wave test, 0/2 done, c1: 0/1 replicas updated", &[]);
        check(&rollout(limit(), Some("no image")), "stopped, c1 failed: no image", &["git revert 0123456"]);
        check(&RolloutReport { is_open: false, ..rollout(limit(), None) }, "", &[]);
    }
}
