//! What a rollout waits for, in one line, and the commands with which a person continues it. Statuses, `why` and the CLI use
//! it.

use std::collections::BTreeSet;
use std::fmt;

use super::{RolloutReport, UnitReport, UnusedRolloutApproval};
use crate::model::{AppId, ClusterName, Digest, UnmetApprovalRule};
use crate::rollout::{Confirmation, GateProgress, RolloutHold, WaveReport, WaveState};

/// What a person may do, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    pub reason: String,
    /// Alternatives, the best first.
    pub commands: Vec<String>,
}

/// A closed window, and the version that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedWindow<'r> {
    pub window: &'r str,
    pub digest: Digest,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.commands.join(", or "))
    }
}

impl RolloutReport {
    /// What comes next, in one line; empty once every unit has the version and is healthy.
    pub fn pending_summary(&self) -> String {
        if !self.is_open {
            return String::new();
        }
        // Failures (`maxFailures`) do not block what a person may confirm.
        let is_stopped = self.confirmation.is_none() || self.holds().any(is_stopped);
        let failed = self.first_failure().filter(|_| is_stopped);
        if let Some((unit, because)) = failed {
            return format!("stopped, {} failed: {because}", unit.unit);
        }
        let asked = self.holds().find(|hold| hold.waits_for_a_person());
        let open = self.waves.iter().find(|wave| wave.state == WaveState::Open);
        match (asked, open) {
            (Some(hold), _) => hold.to_string(),
            (None, Some(wave)) => self.wave_progress_text(wave),
            (None, None) => self
                .waves
                .iter()
                .find_map(|wave| wave.waits.as_ref())
                .map_or_else(|| "not known yet".to_owned(), |hold| self.hold_text(hold)),
        }
    }

    /// The commands that continue the rollout, one of which a person runs; the best first.
    pub fn commands(&self) -> Vec<String> {
        if let Some(Confirmation { through, .. }) = &self.confirmation {
            return vec![open_waves_command(&self.app, through)];
        }
        let has_failed = self.has_failed();
        // Without a commit to revert, Git and the clusters would differ forever.
        let revert = self.commit.as_ref().filter(|_| has_failed);
        let is_measured = self.holds().any(|hold| hold.standing() == Some(GateProgress::Failed));
        let retry = (self.is_reverted() || is_measured)
            .then(|| format!("tutti approve rollout {} --retry", self.app));
        let revert = revert.map(|commit| format!("git revert {}", commit.short()));
        let commands: Vec<String> = revert.into_iter().chain(retry).collect();
        match self.closed_windows().next().filter(|_| commands.is_empty()) {
            Some(shut) => vec![format!("tutti approve rollout {} --override {}", self.app, shut.window)],
            None => commands,
        }
    }

    pub fn next_step(&self) -> Option<NextStep> {
        let (app, digest) = (&self.app, self.digest.short());
        let commands = self.commands();
        let because = match &self.confirmation {
            _ if commands.is_empty() => return None,
            Some(Confirmation { through, .. }) => match self.skipped_ring(through) {
                Some((ring, version)) => format!("{app}: ring {ring} has not run {version}; to skip it"),
                None => {
                    match (self.required_approvals(through).first(), self.inconclusive_measurement(through)) {
                        (Some(asks), _) => format!("{app}: {asks}"),
                        (None, Some((name, because))) => {
                            format!("{app}: {name} is inconclusive, {because}; to open wave {through}")
                        }
                        (None, None) => format!("wave {through} of {app} waits for confirmation"),
                    }
                }
            },
            None => match (self.reverted_digest(), self.closed_windows().next()) {
                (Some(refused), _) => {
                    let refused = refused.short();
                    let first = match self.reverted_digests().collect::<BTreeSet<_>>().len() {
                        1 => String::new(),
                        count => format!(" (the first of {count})"),
                    };
                    format!("version {refused} of {app} failed and was reverted{first}; to end that, one of")
                }
                (None, Some(shut)) if !self.has_failed() => {
                    format!(
                        "window {} holds version {} of {app}; to let it pass",
                        shut.window,
                        shut.digest.short()
                    )
                }
                (None, _) => format!("version {digest} of {app} failed; fix it, or"),
            },
        };
        Some(NextStep { reason: because, commands })
    }

    /// The ring that a pin skips, and the version that did not run there.
    pub(super) fn skipped_ring(&self, opens: &str) -> Option<(&str, &str)> {
        self.holds().find_map(|hold| match hold.gate() {
            RolloutHold::Pin { ring, version, through, .. } if through == opens => {
                Some((&**ring, &**version))
            }
            _ => None,
        })
    }

    /// The wave that waits for a measurement, and the digest that an Approval would name.
    pub fn wave_awaiting_measurement(&self) -> Option<(&str, Digest)> {
        self.holds().find_map(|hold| match hold.gate() {
            RolloutHold::Analysis { through, digest, .. } | RolloutHold::Status { through, digest, .. } => {
                Some((&**through, *digest))
            }
            _ => None,
        })
    }

    /// An inconclusive measurement before a wave, and its reason.
    pub(super) fn inconclusive_measurement(&self, opens: &str) -> Option<(String, &str)> {
        self.holds().find_map(|hold| match hold.gate() {
            RolloutHold::Analysis {
                analysis,
                standing: GateProgress::Inconclusive,
                because,
                through,
                ..
            } if through == opens => Some((format!("analysis {analysis}"), &**because)),
            RolloutHold::Status {
                context, standing: GateProgress::Inconclusive, because, through, ..
            } if through == opens => Some((format!("commit status {context}"), &**because)),
            _ => None,
        })
    }

    /// The clusters of units that wait in this wave or in an earlier one.
    pub fn waiting_clusters(&self, through: &str) -> BTreeSet<ClusterName> {
        let last = self.waves.iter().position(|wave| wave.name == through).map_or(0, |last| last + 1);
        let waves: BTreeSet<&str> = self.waves.iter().take(last).map(|wave| wave.name.as_str()).collect();
        let waiting = self.units.iter().filter(|unit| !unit.is_at_head && waves.contains(unit.wave.as_str()));
        waiting.map(|unit| unit.unit.cluster.clone()).collect()
    }

    /// What approval rules require before a wave.
    pub fn required_approvals(&self, opens: &str) -> Vec<UnmetApprovalRule> {
        let of_hold = |hold: &RolloutHold| match hold.gate() {
            RolloutHold::Approval { asks, through, .. } if through == opens => asks.clone(),
            _ => Vec::new(),
        };
        let mut found: Vec<UnmetApprovalRule> = Vec::new();
        for asks in self.holds().flat_map(of_hold) {
            if !found.contains(&asks) {
                found.push(asks);
            }
        }
        found
    }

    /// Approvals of other versions, while an approval of this version is needed.
    pub fn mismatched_approvals(&self) -> Vec<String> {
        let Some(digest) = self.expected_digest() else { return Vec::new() };
        let one = |UnusedRolloutApproval { file, digest: other, .. }: &UnusedRolloutApproval| {
            format!("{file} confirms version {}, not {}: it has no effect", other.short(), digest.short())
        };
        self.approvals_unused.iter().map(one).collect()
    }

    /// The digest that an Approval must name.
    fn expected_digest(&self) -> Option<Digest> {
        let of_wave = self.confirmation.as_ref().map(|asked| asked.digest);
        of_wave.or_else(|| self.reverted_digest())
    }

    /// The version was reverted. It starts again only with an Approval of action retry.
    pub fn is_reverted(&self) -> bool {
        self.reverted_digest().is_some()
    }

    /// The digest that was reverted: of the app, or of a ring whose pin changed. Of several, the first; the next one follows
    /// once that is resolved.
    pub fn reverted_digest(&self) -> Option<Digest> {
        self.reverted_digests().next()
    }

    /// The same for all units.
    pub fn reverted_digests(&self) -> impl Iterator<Item = Digest> {
        self.holds().filter_map(|hold| match hold.gate() {
            RolloutHold::Reverted { digest } => Some(*digest),
            _ => None,
        })
    }

    /// The windows that hold units now.
    pub fn closed_windows(&self) -> impl Iterator<Item = ClosedWindow<'_>> {
        self.holds().filter_map(|hold| match hold.gate() {
            RolloutHold::Window { window, digest, .. } => Some(ClosedWindow { window, digest: *digest }),
            _ => None,
        })
    }

    fn has_failed(&self) -> bool {
        let is_over = |hold: &RolloutHold| hold.is_failure() || is_stopped(hold);
        self.is_open && self.first_failure().is_some() || self.holds().any(is_over)
    }

    /// The first unit that fails, and its failure.
    fn first_failure(&self) -> Option<(&UnitReport, &str)> {
        self.units.iter().find_map(|unit| Some((unit, unit.failure.as_deref()?)))
    }

    /// The holds of all units.
    pub fn holds(&self) -> impl Iterator<Item = &RolloutHold> {
        self.units.iter().filter_map(|unit| unit.hold.as_ref())
    }

    /// The text of a hold, with the unit if it is left out of the rollout.
    fn hold_text(&self, hold: &RolloutHold) -> String {
        let is_left_out = matches!(hold.gate(), RolloutHold::LeftOut { .. });
        let unit = || self.units.iter().find(|unit| unit.hold.as_ref() == Some(hold));
        let unit = is_left_out.then(unit).flatten();
        unit.map_or_else(|| hold.to_string(), |unit| format!("{}: {hold}", unit.unit))
    }

    fn wave_progress_text(&self, wave: &WaveReport) -> String {
        let first = self.units.iter().find(|unit| unit.wave == wave.name && !unit.is_done);
        let first = first.map(|unit| format!(", {}: {}", unit.unit, unit.status_text()));
        format!("wave {}, {}/{} done{}", wave.name, wave.done, wave.units, first.unwrap_or_default())
    }
}

impl UnitReport {
    /// Why the unit is not done.
    pub fn status_text(&self) -> String {
        let hold = || self.hold.as_ref().map(ToString::to_string);
        let detail = || Some(self.detail.clone()).filter(|detail| !detail.is_empty());
        self.failure
            .clone()
            .or_else(hold)
            .or_else(detail)
            .unwrap_or_else(|| "still at the old version".to_owned())
    }
}

fn is_stopped(hold: &RolloutHold) -> bool {
    matches!(hold.gate(), RolloutHold::Stopped { .. })
}

/// The command that opens the waves of an app up to one wave.
pub fn open_waves_command(app: &AppId, through: &str) -> String {
    format!("tutti approve rollout {app} --through {through}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Revision;
    use crate::rollout::UnitId;

    fn rollout(hold: RolloutHold, failure: Option<&str>) -> RolloutReport {
        let unit = |cluster: &str, hold: Option<RolloutHold>, failure: Option<&str>| UnitReport {
            is_at_head: hold.is_none(),
            detail: "0/1 replicas updated".to_owned(),
            hold,
            failure: failure.map(ToOwned::to_owned),
            ..UnitReport::of_test(UnitId::new(cluster, ""), "test")
        };
        let wave = WaveReport { begun: 1, ..WaveReport::of_test("test", WaveState::Open, 0, 2) };
        RolloutReport {
            commit: Some(Revision::from("0123456789")),
            confirmation: hold.confirmation(),
            ..RolloutReport::of_test(
                AppId::new("shop", "pay"),
                vec![wave],
                vec![unit("c1", None, failure), unit("c2", Some(hold), None)],
            )
        }
    }

    #[test]
    fn rollout_names_what_it_waits_for() {
        let check = |rollout: &RolloutReport, awaited: &str, next: Option<&str>| {
            let step = rollout.next_step().map(|step| step.to_string());
            assert_eq!((rollout.pending_summary().as_str(), step.as_deref()), (awaited, next));
        };
        let digest = Digest::of(b"v2");
        let version = format!("version {} of shop/pay", digest.short());
        let confirmation =
            || RolloutHold::Confirmation { after: "test".to_owned(), through: "prod".to_owned(), digest };
        let words = confirmation().to_string();
        let step =
            "wave prod of shop/pay waits for confirmation: tutti approve rollout shop/pay --through prod";
        check(&rollout(confirmation(), None), &words, Some(step));
        // `maxFailures` allows the failures, so the confirmation comes first.
        check(&rollout(confirmation(), Some("no image")), &words, Some(step));
        let pin = RolloutHold::Pin {
            ring: "test".to_owned(),
            version: "1.5.0".to_owned(),
            through: "prod".to_owned(),
            digest,
        };
        let words = pin.to_string();
        let step = "shop/pay: ring test has not run 1.5.0; to skip it: tutti approve rollout shop/pay --through prod";
        check(&rollout(pin, None), &words, Some(step));
        let refused = || RolloutHold::Reverted { digest };
        let words = refused().to_string();
        let because = format!("{version} failed and was reverted; to end that, one of");
        let retry = "tutti approve rollout shop/pay --retry";
        let step = format!("{because}: git revert 0123456, or {retry}");
        check(&rollout(refused(), None), &words, Some(&step));
        let unknown = RolloutReport { commit: None, ..rollout(refused(), None) };
        check(&unknown, &words, Some(&format!("{because}: {retry}")));
        // The same if the commit that a unit runs is unknown.
        let frozen =
            RolloutHold::Frozen { because: "its commit is gone".into(), waits: Some(Box::new(refused())) };
        let of_frozen = "frozen, ".to_owned() + &words + "; its commit is gone";
        check(&rollout(frozen, None), &of_frozen, Some(&step));
        let mut two = rollout(refused(), None);
        two.units[0].hold = Some(RolloutHold::Reverted { digest: Digest::of(b"v3") });
        let first = step.replace(&digest.short(), &Digest::of(b"v3").short());
        let first = first.replace("reverted;", "reverted (the first of 2);");
        check(&two, &two.units[0].status_text(), Some(&first));
        let limit = || RolloutHold::Concurrency { wave: "test".to_owned(), limit: 1 };
        check(&rollout(limit(), None), "wave test, 0/2 done, c1: 0/1 replicas updated", None);
        let step = format!("{version} failed; fix it, or: git revert 0123456");
        check(&rollout(limit(), Some("no image")), "stopped, c1 failed: no image", Some(&step));
        check(&RolloutReport { is_open: false, ..rollout(limit(), None) }, "", None);
        let mut away =
            rollout(RolloutHold::LeftOut { cluster: "c2".into(), because: "no route".into() }, None);
        away.waves[0] =
            WaveReport { state: WaveState::Shut, waits: away.units[1].hold.clone(), ..away.waves[0].clone() };
        check(&away, "c2: cluster c2 is left out: no route", None);
    }

    #[test]
    fn approval_of_another_version_is_named_while_waiting() {
        let (digest, other) = (Digest::of(b"v2"), Digest::of(b"v1"));
        let of = |hold: RolloutHold| {
            let approval = UnusedRolloutApproval {
                name: "pay".to_owned(),
                file: "approvals/pay.yaml".to_owned(),
                digest: other,
            };
            RolloutReport { approvals_unused: vec![approval], ..rollout(hold, None) }
        };
        let told = format!(
            "approvals/pay.yaml confirms version {}, not {}: it has no effect",
            other.short(),
            digest.short()
        );
        assert_eq!(of(RolloutHold::Reverted { digest }).mismatched_approvals(), [told]);
        let nobody = RolloutHold::Concurrency { wave: "test".to_owned(), limit: 1 };
        assert!(of(nobody).mismatched_approvals().is_empty());
    }
}
