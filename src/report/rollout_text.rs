//! Texts of commit statuses for apps in waves: the wave, the number of done units, and what they wait for.
//!
//! A text contains no durations or times, so it changes only with its meaning.

use std::fmt::Write as _;

use super::{RolloutReport, TargetReport, UnitReport};
use crate::forge::LONGEST_DESCRIPTION;
use crate::model::short_line;
use crate::rollout::{Confirmation, RolloutHold, WaveReport, WaveState};

/// Of the reason of an inconclusive measurement.
const MAX_REASON_CHARS: usize = 40;

/// What a target waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetWaitCause {
    /// Its own rollout: another unit, or a person.
    Rollout,
    /// Its cluster, the time, or another app.
    Own,
}

impl RolloutReport {
    /// What a target waits for that is neither done nor failing. `None`: its own text is better.
    pub(super) fn waiting_text(&self, target: &TargetReport) -> Option<String> {
        let (unit, wave) = self.unit_and_wave(target)?;
        match self.wait_cause(target) {
            None => Some(format!(
                "{}, {} {}: {}",
                wave_progress(wave),
                target.cluster,
                self.app,
                target.cause_text()
            )),
            Some(TargetWaitCause::Own) => Some(self.unit_text(unit, &target.detail)),
            Some(TargetWaitCause::Rollout) => Some(match &self.confirmation {
                Some(asked) => self.confirmation_text(asked),
                None => self.slowest_text().unwrap_or_else(|| self.unit_text(unit, &target.detail)),
            }),
        }
    }

    /// The wave of a failing target and the commands against the failure: `, wave test 0/1 done`. The fullest text first; the
    /// first that fits is used.
    pub(super) fn failure_texts(&self, target: &TargetReport) -> Option<Vec<String>> {
        let (unit, wave) = self.unit_and_wave(target)?;
        match &unit.hold {
            Some(hold) if hold.is_failure() => {
                let commands = self.commands();
                let first = format!(": {}", commands.first()?);
                Some(vec![format!(": {}", commands.join(", or ")), first])
            }
            _ => Some(vec![format!(", {}", wave_progress(wave))]),
        }
    }

    /// The unit that explains a target, and its wave. `None` if no rollout is open.
    fn unit_and_wave(&self, target: &TargetReport) -> Option<(&UnitReport, &WaveReport)> {
        let undone = || self.units_on(&target.cluster).filter(|unit| !unit.is_done);
        let hold = self.hold_of(target);
        let unit = undone().find(|unit| unit.hold.as_ref() == hold);
        let unit = unit.or_else(|| undone().next()).filter(|_| self.is_open)?;
        Some((unit, self.waves.iter().find(|wave| wave.name == unit.wave)?))
    }

    /// `None`: the target is changing.
    fn wait_cause(&self, target: &TargetReport) -> Option<TargetWaitCause> {
        let hold = self.hold_of(target)?;
        Some(match hold.gate() {
            RolloutHold::Wave { .. }
            | RolloutHold::Stopped { .. }
            | RolloutHold::Concurrency { .. }
            | RolloutHold::Confirmation { .. }
            | RolloutHold::Analysis { .. }
            | RolloutHold::Status { .. }
            | RolloutHold::Approval { .. }
            | RolloutHold::Pin { .. } => TargetWaitCause::Rollout,
            _ => TargetWaitCause::Own,
        })
    }

    /// The confirmation of a person. Parts that do not fit are left out.
    fn confirmation_text(&self, asked: &Confirmation) -> String {
        let command = self.commands().join(", or ");
        let mut text = match self.skipped_ring(&asked.through) {
            Some((ring, version)) => {
                format!("ring {ring} has not finished {version}: promote it there, or {command}")
            }
            None => match (
                self.required_approvals(&asked.through).first(),
                self.inconclusive_text(&asked.through, &command),
            ) {
                (Some(asks), _) => format!("{asks}: {command}"),
                (None, Some(left)) => left,
                (None, None) => format!("wave {} waits for confirmation: {command}", asked.through),
            },
        };
        let passed = self.units.iter().filter(|unit| unit.wave == asked.after && unit.is_at_head);
        let since = passed.filter_map(|unit| unit.since).max();
        let since = since
            .map(|since| format!(", wave {} has it since {}", asked.after, since.strftime("%F %H:%M UTC")));
        let unused = self.approvals_unused.first();
        let unused = unused.map(|unused| format!(", approval {} is for another version", unused.name));
        let done = Some(format!(", {}/{} done", self.done_count(), self.units.len()));
        for more in [done, unused, since].into_iter().flatten() {
            if text.chars().count() + more.chars().count() <= LONGEST_DESCRIPTION {
                text += &more;
            }
        }
        text
    }

    /// The inconclusive measurement, if the command fits beside it.
    fn inconclusive_text(&self, through: &str, command: &str) -> Option<String> {
        let (name, because) = self.inconclusive_measurement(through)?;
        let text = format!("{name}: {}, {command}", short_line(because, MAX_REASON_CHARS));
        (text.chars().count() <= LONGEST_DESCRIPTION).then_some(text)
    }

    /// The first unit that fails or changes, and the wave that waits for it; else the first unit that waits for something
    /// else.
    fn slowest_text(&self) -> Option<String> {
        let is = |state: WaveState| self.waves.iter().find(move |wave| wave.state == state);
        if let Some(wave) = is(WaveState::Failed).or_else(|| is(WaveState::Open)) {
            let undone = || self.units.iter().filter(|unit| unit.wave == wave.name && !unit.is_done);
            let unit = undone().find(|unit| unit.failure.is_some());
            let unit = unit.or_else(|| undone().find(|unit| unit.hold.is_none())).or_else(|| undone().next());
            let failed = if wave.state == WaveState::Failed { " has failed," } else { "" };
            let WaveReport { name, done, units, .. } = wave;
            let mut text = format!("wave {name} of {}{failed} {done}/{units} done", self.app);
            if let Some(unit) = unit {
                let _ = write!(text, ": {}: {}", unit.unit, unit.status_text());
            }
            return Some(text);
        }
        let waves = self.waves.iter().filter(|wave| wave.state == WaveState::Shut);
        let mut undone = waves
            .flat_map(|wave| self.units.iter().filter(move |unit| unit.wave == wave.name && !unit.is_done));
        let unit = undone.find(|unit| {
            !matches!(unit.hold.as_ref().map(RolloutHold::gate), Some(RolloutHold::Wave { .. }))
        })?;
        Some(self.unit_text(unit, &unit.status_text()))
    }

    fn unit_text(&self, unit: &UnitReport, words: &str) -> String {
        format!("{} {}/{} done: {}: {words}", self.app, self.done_count(), self.units.len(), unit.unit)
    }

    fn done_count(&self) -> usize {
        self.units.iter().filter(|unit| unit.is_done).count()
    }
}

fn wave_progress(wave: &WaveReport) -> String {
    format!("wave {} {}/{} done", wave.name, wave.done, wave.units)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::forge::CommitStatusState;
    use crate::model::{AppId, Digest, Revision};
    use crate::report::{Overview, TargetPhase, statuses};
    use crate::rollout::UnitId;

    const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

    fn digest() -> Digest {
        Digest::of(b"v2")
    }

    fn target(app: &str, cluster: &str, phase: TargetPhase, detail: &str) -> TargetReport {
        TargetReport {
            revision: Revision::from(HEAD),
            detail: detail.to_owned(),
            ..TargetReport::of_test(AppId::new("default", app), cluster, phase)
        }
    }

    fn unit(cluster: &str, pod_set: &str, wave: &str) -> UnitReport {
        UnitReport {
            is_at_head: true,
            is_done: true,
            since: Some(Timestamp::UNIX_EPOCH),
            ..UnitReport::of_test(UnitId::new(cluster, pod_set), wave)
        }
    }

    fn changing(unit: UnitReport, detail: &str) -> UnitReport {
        UnitReport { is_done: false, detail: detail.to_owned(), ..unit }
    }

    fn held(unit: UnitReport, hold: &RolloutHold) -> UnitReport {
        UnitReport { is_done: false, is_at_head: false, hold: Some(hold.clone()), ..unit }
    }

    /// The waves are those of the units, in order. A wave with a changing unit is open.
    fn rollout(app: &str, units: Vec<UnitReport>) -> RolloutReport {
        let mut waves: Vec<WaveReport> = Vec::new();
        for unit in &units {
            if waves.last().is_none_or(|wave| wave.name != unit.wave) {
                let of_wave = || units.iter().filter(|it| it.wave == unit.wave);
                let (all, done) = (of_wave().count(), of_wave().filter(|it| it.is_done).count());
                let state = if done == all {
                    WaveState::Done
                } else if of_wave().any(|it| it.failure.is_some()) {
                    WaveState::Failed
                } else if of_wave().any(|it| !it.is_done && it.is_at_head) {
                    WaveState::Open
                } else {
                    WaveState::Shut
                };
                waves.push(WaveReport::of_test(&unit.wave, state, done, all));
            }
        }
        let confirmation = units.iter().find_map(|unit| unit.hold.as_ref()?.confirmation());
        let mut units = units;
        units.sort_by(|a, b| a.unit.cmp(&b.unit));
        RolloutReport {
            commit: Some(Revision::from(HEAD)),
            confirmation,
            ..RolloutReport::of_test(AppId::new("default", app), waves, units)
        }
    }

    fn confirmation() -> RolloutHold {
        RolloutHold::Confirmation { after: "test".to_owned(), through: "prod".to_owned(), digest: digest() }
    }

    fn told(targets: Vec<TargetReport>, rollouts: Vec<RolloutReport>) -> (CommitStatusState, String) {
        let head = Revision::from(HEAD);
        let overview = Overview {
            revision: Some(head.clone()),
            tracked_commits: vec![head.clone()],
            status_prefix: "tutti".to_owned(),
            targets,
            rollouts,
            ..Overview::default()
        };
        let status = &statuses::desired_statuses(&overview)[&(head, "tutti/deploy".to_owned())];
        (status.state, status.description.clone())
    }

    fn check(
        targets: Vec<TargetReport>,
        rollouts: Vec<RolloutReport>,
        state: CommitStatusState,
        expected: &str,
    ) {
        assert_eq!(told(targets, rollouts), (state, expected.to_owned()));
    }

    #[test]
    fn status_names_the_confirmation_and_its_command() {
        let hold = confirmation();
        let pay = |app: &str| {
            let units = vec![
                unit("bj4", "", "test"),
                held(unit("bj5", "", "prod"), &hold),
                held(unit("gz1", "", "prod"), &hold),
            ];
            rollout(app, units)
        };
        let waits = |app: &str, cluster: &str| target(app, cluster, TargetPhase::Waiting, &hold.to_string());
        let running = target("pay", "bj4", TargetPhase::Running, "");
        check(
            vec![running, waits("pay", "bj5"), waits("pay", "gz1")],
            vec![pay("pay")],
            CommitStatusState::Pending,
            "wave prod waits for confirmation: tutti approve rollout default/pay --through prod, 1/3 done, \
             wave test has it since 1970-01-01 00:00 UTC",
        );
        // There is no room for the time.
        let long = "a-name-of-an-app-that-is-fairly-long";
        check(
            vec![waits(long, "bj5")],
            vec![pay(long)],
            CommitStatusState::Pending,
            "wave prod waits for confirmation: tutti approve rollout default/a-name-of-an-app-that-is-fairly-long --through prod, 1/3 done",
        );
        // An app that needs a confirmation comes before one that waits for something else.
        let other = RolloutHold::Soak { wave: "test".to_owned(), until: Timestamp::UNIX_EPOCH };
        let soaks = rollout("a", vec![unit("bj4", "", "test"), held(unit("bj5", "", "prod"), &other)]);
        let (state, text) = told(
            vec![
                target("a", "bj5", TargetPhase::Waiting, &other.to_string()),
                waits("pay", "bj5"),
                waits("web", "bj5"),
            ],
            vec![soaks, pay("pay"), pay("web")],
        );
        assert_eq!(state, CommitStatusState::Pending);
        assert!(
            text.starts_with("wave prod waits for confirmation: tutti approve rollout default/pay"),
            "{text}"
        );
        assert!(text.contains(" (and 1 more app)"), "{text}");
        assert!(text.chars().count() <= LONGEST_DESCRIPTION, "{text}");
    }

    #[test]
    fn status_names_the_unit_that_blocks_others() {
        let cause = "ImagePullBackOff bbcc-gz01a-canary-0 (registry.example.com/bbcc:v4)";
        let hold = RolloutHold::Wave {
            wave: "canary".to_owned(),
            done: 0,
            of: 1,
            unit: UnitId::new("gz-prod", "bbcc-gz01a-canary"),
            because: Arc::from("Deployment default/bbcc: 0/1 replicas updated"),
        };
        let canary = || changing(unit("gz-prod", "bbcc-gz01a-canary", "canary"), cause);
        let bbcc = |canary| rollout("bbcc", vec![canary, held(unit("bj-prod", "bbcc-blue", "blue"), &hold)]);
        let waits = || target("bbcc", "bj-prod", TargetPhase::Waiting, &hold.to_string());
        check(
            vec![waits()],
            vec![bbcc(canary())],
            CommitStatusState::Pending,
            &format!("wave canary of default/bbcc 0/1 done: bbcc-gz01a-canary on gz-prod: {cause}"),
        );
        let failed = UnitReport { failure: Some("no image".to_owned()), ..canary() };
        let stopped = RolloutHold::Stopped { unit: failed.unit.clone(), because: Arc::from("no image") };
        let behind = held(unit("bj-prod", "bbcc-blue", "blue"), &stopped);
        check(
            vec![target("bbcc", "bj-prod", TargetPhase::Waiting, &stopped.to_string())],
            vec![rollout("bbcc", vec![failed, behind])],
            CommitStatusState::Pending,
            "wave canary of default/bbcc has failed, 0/1 done: bbcc-gz01a-canary on gz-prod: no image",
        );
        check(
            vec![waits(), target("bbcc", "gz-prod", TargetPhase::Degraded, cause)],
            vec![bbcc(canary())],
            CommitStatusState::Failure,
            &format!("gz-prod default/bbcc: {cause}, wave canary 0/1 done"),
        );
    }

    #[test]
    fn status_names_other_reasons_to_wait() {
        let soak = RolloutHold::Soak { wave: "test".to_owned(), until: Timestamp::UNIX_EPOCH };
        let pay = |hold: &RolloutHold| {
            rollout("pay", vec![unit("bj4", "", "test"), held(unit("bj5", "", "prod"), hold)])
        };
        let waits = |hold: &RolloutHold| target("pay", "bj5", TargetPhase::Waiting, &hold.to_string());
        check(
            vec![waits(&soak)],
            vec![pay(&soak)],
            CommitStatusState::Pending,
            "default/pay 1/2 done: bj5: wave test is done, the next opens at 1970-01-01 00:00:00 UTC",
        );
        let pin = RolloutHold::Pin {
            ring: "test".to_owned(),
            version: "v2".to_owned(),
            through: "prod".to_owned(),
            digest: digest(),
        };
        check(
            vec![waits(&pin)],
            vec![pay(&pin)],
            CommitStatusState::Pending,
            "ring test has not finished v2: promote it there, or tutti approve rollout default/pay --through prod, 1/2 done",
        );
        // A wave that waits for another waiting wave.
        let wave = RolloutHold::Wave {
            wave: "prod".to_owned(),
            done: 0,
            of: 1,
            unit: UnitId::new("bj5", ""),
            because: Arc::from("still at the old version"),
        };
        let mut units = pay(&soak).units;
        units.push(held(unit("gz1", "", "last"), &wave));
        check(
            vec![target("pay", "gz1", TargetPhase::Waiting, &wave.to_string())],
            vec![rollout("pay", units)],
            CommitStatusState::Pending,
            "default/pay 1/3 done: bj5: wave test is done, the next opens at 1970-01-01 00:00:00 UTC",
        );
        let first = changing(unit("bj4", "", "test"), "0/1 replicas updated");
        check(
            vec![target("pay", "bj4", TargetPhase::Progressing, "0/1 replicas updated")],
            vec![rollout("pay", vec![first, held(unit("bj5", "", "prod"), &wave)])],
            CommitStatusState::Pending,
            "wave test 0/1 done, bj4 default/pay: 0/1 replicas updated",
        );
        // Of several apps, the number of healthy ones.
        let waits = waits(&soak);
        check(
            vec![waits, target("web", "bj4", TargetPhase::Running, "")],
            vec![pay(&soak)],
            CommitStatusState::Pending,
            "default/pay 1/2 done: bj5: wave test is done, the next opens at 1970-01-01 00:00:00 UTC, 1/2 healthy",
        );
    }

    #[test]
    fn status_of_a_reverted_version_names_commands() {
        let hold = RolloutHold::Reverted { digest: digest() };
        let pay =
            rollout("pay", vec![held(unit("bj4", "", "test"), &hold), held(unit("bj5", "", "prod"), &hold)]);
        check(
            vec![target("pay", "bj4", TargetPhase::Degraded, &hold.to_string())],
            vec![pay],
            CommitStatusState::Failure,
            &format!(
                "bj4 default/pay: {hold}: git revert 0123456, or tutti approve rollout default/pay --retry"
            ),
        );
        // If both commands do not fit, the cause is dropped before the second.
        let long = "an-app-with-quite-a-long-name";
        check(
            vec![target(long, "bj4", TargetPhase::Degraded, &hold.to_string())],
            vec![rollout(long, vec![held(unit("bj4", "", "test"), &hold)])],
            CommitStatusState::Failure,
            &format!("bj4 default/{long}: {hold}: git revert 0123456"),
        );
    }

    #[test]
    fn status_text_is_stable() {
        let hold = confirmation();
        let later = |unit: UnitReport| UnitReport {
            since: Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(59)),
            ..unit
        };
        let pay = |first: UnitReport| rollout("pay", vec![first, held(unit("bj5", "", "prod"), &hold)]);
        let of = |first| {
            told(vec![target("pay", "bj5", TargetPhase::Waiting, &hold.to_string())], vec![pay(first)])
        };
        assert_eq!(of(unit("bj4", "", "test")), of(later(unit("bj4", "", "test"))));
        // An ended rollout gets the text without waves.
        let over = RolloutReport { is_open: false, ..rollout("pay", vec![unit("bj4", "", "test")]) };
        let drained = target("pay", "bj4", TargetPhase::Progressing, "0/1 available");
        check(
            vec![drained],
            vec![over],
            CommitStatusState::Pending,
            "0/1 healthy, bj4 default/pay: 0/1 available",
        );
    }
}
