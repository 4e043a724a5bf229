//! Formats rollouts as tables and lines, for `rollout`, `approve`, `plan` and `progress`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::super::output::{self, age, table};
use super::super::width::first_names;
use crate::model::{ClusterName, Revision};
use crate::report::{Overview, RolloutReport, TargetReport, UnitReport};
use crate::rollout::{RolloutHold, UnitId, WaveReport, WaveState};

/// Waves that are listed; of more only open and failed ones are.
const MAX_LISTED_WAVES: usize = 4;
pub const MAX_NAMED_UNITS: usize = 4;

/// One line for each app.
pub fn write_table(overview: &Overview, now: Timestamp) {
    let mut lines = table(&["APP", "DIGEST", "WAVES", "SINCE", "WAITS"]);
    for rollout in &overview.rollouts {
        lines.add_row([
            rollout.app.to_string(),
            rollout.digest.short(),
            // Keeps a wave on one line.
            wave_summary(&rollout.waves)
                .replace(' ', output::NON_BREAKING_SPACE)
                .replace(&format!(",{}", output::NON_BREAKING_SPACE), ", "),
            begun_age(overview, rollout, now),
            wait_reason(rollout),
        ]);
    }
    output::write_table(&output::fit_terminal(lines));
}

/// Lines of one app: its waves, each with its unfinished units.
pub fn rollout_lines(overview: &Overview, rollout: &RolloutReport, now: Timestamp) -> Vec<String> {
    let state = match (rollout.is_open, begun_age(overview, rollout, now)) {
        (true, since) if since == "-" => "open".to_owned(),
        (true, since) => format!("open, began {since} ago"),
        (false, _) if is_done(rollout) => "done".to_owned(),
        (false, _) => ended_state(rollout),
    };
    let mut lines = vec![format!("{} {}: {state}", rollout.app, rollout.digest.short())];
    let longest = rollout.waves.iter().map(|wave| wave.name.chars().count()).max().unwrap_or_default();
    for wave in &rollout.waves {
        let WaveReport { name, done, units, .. } = wave;
        let mark = wave_mark(wave.state);
        lines.push(
            format!("{mark} {name:<longest$}  {done}/{units}  {}", wave_word(wave.state))
                .trim_end()
                .to_owned(),
        );
        lines.extend(unfinished_lines(rollout, wave));
    }
    lines
}

/// Every unit has the version and is healthy.
pub fn is_done(rollout: &RolloutReport) -> bool {
    rollout.waves.iter().all(|wave| wave.state == WaveState::Done)
}

/// Clusters without the version that nothing is written to.
pub fn left_out_clusters(rollout: &RolloutReport) -> BTreeSet<&ClusterName> {
    let undone = |id: &&UnitId| rollout.units.iter().any(|unit| unit.unit == **id && !unit.is_done);
    let left_out = rollout.waves.iter().flat_map(|wave| &wave.left_out);
    left_out.filter(undone).map(|unit| &unit.cluster).collect()
}

/// What a rollout waits for, or why it ended unfinished; else empty.
pub fn wait_reason(rollout: &RolloutReport) -> String {
    let undone = || rollout.units.iter().find(|unit| !unit.is_done);
    match rollout.is_open {
        true => with_latest_note(rollout.pending_summary(), rollout.holds()),
        false => undone().map_or_else(String::new, |unit| format!("{}: {}", unit.unit, unit.status_text())),
    }
}

/// State of a rollout that ended unfinished.
fn ended_state(rollout: &RolloutReport) -> String {
    let clusters: Vec<String> = left_out_clusters(rollout).into_iter().map(ToString::to_string).collect();
    match clusters.is_empty() {
        true => "ended, some units are not done".to_owned(),
        false => format!("not done, left out: {}", first_names(&clusters, MAX_NAMED_UNITS)),
    }
}

/// Unfinished units of open waves, and why.
pub fn open_unit_lines(rollout: &RolloutReport) -> Vec<String> {
    let open = rollout.waves.iter().filter(|wave| wave.state != WaveState::Shut);
    open.flat_map(|wave| unfinished_lines(rollout, wave)).collect()
}

/// Unfinished units of a wave, and why.
fn unfinished_lines(rollout: &RolloutReport, wave: &WaveReport) -> Vec<String> {
    let undone = rollout.units.iter().filter(|unit| unit.wave == wave.name && !unit.is_done);
    let line = |(reason, units): (String, Vec<String>)| {
        format!("    {}: {reason}", first_names(&units, MAX_NAMED_UNITS))
    };
    group_by_reason(undone).into_iter().map(line).collect()
}

fn group_by_reason<'r>(units: impl Iterator<Item = &'r UnitReport>) -> Vec<(String, Vec<String>)> {
    let mut grouped: Vec<(String, Vec<String>)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for unit in units {
        let reason = with_latest_note(unit.status_text(), unit.hold.iter());
        let at = *known.entry(reason.clone()).or_insert_with(|| {
            grouped.push((reason, Vec::new()));
            grouped.len() - 1
        });
        grouped[at].1.push(unit.unit.to_string());
    }
    grouped
}

/// `✓ test 1/1, … prod 0/2`.
fn wave_summary(all: &[WaveReport]) -> String {
    let one =
        |wave: &WaveReport| format!("{} {} {}/{}", wave_mark(wave.state), wave.name, wave.done, wave.units);
    if all.len() <= MAX_LISTED_WAVES {
        return all.iter().map(one).collect::<Vec<_>>().join(", ");
    }
    let is = |state: WaveState| all.iter().filter(move |wave| wave.state == state);
    let (done, shut) = (is(WaveState::Done).count(), is(WaveState::Shut).count());
    let moving = all.iter().filter(|wave| matches!(wave.state, WaveState::Open | WaveState::Failed));
    let parts = (done > 0).then(|| format!("✓ {done} waves")).into_iter();
    let parts = parts.chain(moving.take(2).map(one)).chain((shut > 0).then(|| format!("… {shut} waves")));
    parts.collect::<Vec<_>>().join(", ")
}

/// Time since the first unit took the newest commit, for clusters that are not done.
fn begun_age(overview: &Overview, rollout: &RolloutReport, now: Timestamp) -> String {
    if !rollout.is_open {
        return age(None, now);
    }
    let undone: BTreeSet<_> =
        rollout.units.iter().filter(|unit| !unit.is_done).map(|unit| &unit.unit.cluster).collect();
    let targets = overview.targets.iter().filter(|it| it.app == rollout.app && undone.contains(&it.cluster));
    let commits: BTreeSet<&Revision> = targets.map(|target| &target.revision).collect();
    // Earlier commits of a unit do not count.
    let is_of_it = |unit: &&UnitReport| {
        unit.is_at_head && unit.revision.as_ref().is_some_and(|revision| commits.contains(revision))
    };
    let first = rollout.units.iter().filter(is_of_it).filter_map(|unit| unit.since).min();
    age(first.map(|since| since.to_string()).as_deref(), now)
}

fn wave_mark(state: WaveState) -> &'static str {
    match state {
        WaveState::Done => "✓",
        WaveState::Open => "↻",
        WaveState::Failed => "✗",
        WaveState::Shut => "…",
    }
}

fn wave_word(state: WaveState) -> &'static str {
    match state {
        WaveState::Done => "done",
        WaveState::Open => "open",
        WaveState::Failed => "failed",
        WaveState::Shut => "waits",
    }
}

/// This process began to count now; the running one began earlier.
pub fn with_latest_note<'h>(told: String, mut holds: impl Iterator<Item = &'h RolloutHold>) -> String {
    let is_soak = holds.any(|hold| matches!(hold, RolloutHold::Soak { .. }) && hold.to_string() == told);
    if is_soak { format!("{told} at the latest") } else { told }
}

/// Why the rollout cannot continue by itself: a failed unit or a reverted version.
pub fn failure_reason(overview: &Overview, rollout: &RolloutReport) -> Option<String> {
    let back = rollout.holds().find(|hold| hold.is_failure()).map(ToString::to_string);
    let has_failed = rollout.waves.iter().any(|wave| wave.state == WaveState::Failed);
    // The cluster reports a bad image long before the rollout's deadline.
    let is_stuck = |target: &&TargetReport| target.app == rollout.app && target.phase.is_failure();
    let stuck = || {
        overview.targets.iter().find(is_stuck).map(|it| format!("{} {}: {}", it.cluster, it.app, it.detail))
    };
    back.or_else(|| has_failed.then(|| rollout.pending_summary())).or_else(stuck)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AppId;
    use crate::report::TargetPhase;

    fn wave(name: &str, state: WaveState, done: usize, units: usize) -> WaveReport {
        WaveReport { begun: done, ..WaveReport::of_test(name, state, done, units) }
    }

    fn unit(cluster: &str, wave: &str, hold: Option<RolloutHold>) -> UnitReport {
        UnitReport {
            is_at_head: hold.is_none(),
            detail: "0/1 replicas updated".to_owned(),
            hold,
            ..UnitReport::of_test(UnitId::new(cluster, ""), wave)
        }
    }

    fn rollout(waves: Vec<WaveReport>, units: Vec<UnitReport>) -> RolloutReport {
        RolloutReport::of_test(AppId::new("shop", "pay"), waves, units)
    }

    #[test]
    fn many_idle_waves_are_counted() {
        let few = [wave("test", WaveState::Done, 1, 1), wave("prod", WaveState::Shut, 0, 2)];
        assert_eq!(wave_summary(&few), "✓ test 1/1, … prod 0/2");
        let state = |number| match number {
            ..11 => WaveState::Done,
            11 => WaveState::Open,
            _ => WaveState::Shut,
        };
        let many: Vec<WaveReport> =
            (0..20).map(|number| wave(&format!("w{number}"), state(number), 2, 5)).collect();
        assert_eq!(wave_summary(&many), "✓ 11 waves, ↻ w11 2/5, … 8 waves");
    }

    #[test]
    fn units_with_one_reason_share_a_line() {
        let soak = RolloutHold::Soak { wave: "test".to_owned(), until: Timestamp::UNIX_EPOCH };
        let names = ["c1", "c2", "c3", "c4", "c5", "c6"];
        let mut units: Vec<UnitReport> = names.map(|name| unit(name, "prod", Some(soak.clone()))).to_vec();
        units.push(unit("c7", "prod", None));
        let overview = Overview::default();
        let shown = rollout_lines(
            &overview,
            &rollout(vec![wave("prod", WaveState::Open, 0, 7)], units),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(
            shown[1..],
            [
                "↻ prod  0/7  open",
                "    c1, c2, c3, c4 and 2 more: wave test is done, the next opens at 1970-01-01 00:00:00 UTC at the latest",
                "    c7: 0/1 replicas updated",
            ]
        );
    }

    #[test]
    fn rollout_begins_with_its_own_commit() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let own = |pod_set: &str, revision: &str, since, is_done| UnitReport {
            unit: UnitId::new("c1", pod_set),
            revision: Some(Revision::from(revision)),
            since: Some(at(since)),
            is_done,
            ..unit("c1", pod_set, None)
        };
        let target = TargetReport::of_test(AppId::new("shop", "pay"), "c1", TargetPhase::Progressing);
        let target = TargetReport { revision: Revision::from("v5"), ..target };
        let overview = Overview { targets: vec![target], ..Overview::default() };
        let check = |green: UnitReport, expected: &str| {
            let units = vec![own("blue", "v4", 0, true), green];
            assert_eq!(begun_age(&overview, &rollout(Vec::new(), units), at(233)), expected);
        };
        check(own("green", "v5", 230, false), "3s");
        // The unit waits: nothing of the commit has begun.
        check(UnitReport { is_at_head: false, ..own("green", "v4", 0, false) }, "-");
    }
}
