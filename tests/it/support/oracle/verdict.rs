//! Goes through the recorded history and returns its violations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tutti::model::{Digest, ObjectId};

use super::commit::{AppAtCommit, OracleCommit};
use super::history::{
    AppliedContent, ControllerWrite, ExpectedWaves, OracleEvent, OracleUnit, REPORT_DELAY, RolloutHistory,
    UnitContent,
};
use super::live_state::{LiveObjectState, LiveState};

/// The violations among the writes of one app.
pub fn find_violations(story: &RolloutHistory, waves: &ExpectedWaves) -> Vec<String> {
    let mut judge = StoryCheck {
        story,
        waves,
        commits: Vec::new(),
        units: BTreeMap::new(),
        previous_commits: BTreeSet::new(),
        violations: Vec::new(),
    };
    for (number, (at, event)) in story.events.iter().enumerate() {
        match event {
            OracleEvent::Commit(commit) => judge.commits.push((*at, Arc::clone(commit))),
            OracleEvent::Write(write) => judge.check_write(number, *at, write),
            OracleEvent::Rebuilt(cluster) => judge.units.retain(|unit, _| unit.cluster != *cluster),
            OracleEvent::Down(_) | OracleEvent::Up(_) | OracleEvent::Disturbed => {}
        }
    }
    judge.violations
}

/// Units that differ from the last commit or are not healthy.
pub fn units_behind(story: &RolloutHistory, waves: &ExpectedWaves, now: &LiveState) -> Vec<String> {
    let mut commits = story.events.iter().rev().filter_map(|(_, event)| match event {
        OracleEvent::Commit(commit) => Some(commit),
        _ => None,
    });
    let app = commits.next().and_then(|head| head.apps.get(&waves.app));
    let units = app.into_iter().flat_map(|app| &app.units);
    let behind = units.filter(|(unit, content)| !is_done(now, &unit.cluster, content));
    behind.map(|(unit, _)| format!("{unit} of {} is not as the head says, or not well", waves.app)).collect()
}

struct StoryCheck<'a> {
    story: &'a RolloutHistory,
    waves: &'a ExpectedWaves,
    commits: Vec<(Duration, Arc<OracleCommit>)>,
    units: BTreeMap<OracleUnit, UnitRun>,
    /// The commits that units ran before, by their annotations.
    previous_commits: BTreeSet<String>,
    violations: Vec<String>,
}

/// The state of a unit, derived from its writes.
#[derive(Clone, Debug, Default)]
struct UnitRun {
    content: UnitContent,
    /// Content that the unit completed before. If unknown, one of several candidates.
    previous: Vec<UnitContent>,
    /// Whether it certainly completed one of these.
    has_previous: bool,
    /// The content before, completed or not.
    last_content: UnitContent,
    /// When it began with its content.
    started_at: Duration,
    /// When a part of its content was last restored.
    repaired_at: Duration,
}

/// A write, checked against one head.
struct WriteCase<'a> {
    judge: &'a StoryCheck<'a>,
    head: &'a OracleCommit,
    app: &'a AppAtCommit,
    write: &'a ControllerWrite,
    at: Duration,
    known_offline: BTreeSet<&'a str>,
    /// Clusters that do not answer now, known or not.
    unreachable: BTreeSet<&'a str>,
    /// A disturbance happened a moment ago and may be unknown.
    is_disturbed: bool,
}

/// The effect of a permitted write on its unit.
enum PermittedWrite {
    NoChange,
    StartsUnit(OracleUnit, UnitContent),
}

impl StoryCheck<'_> {
    fn check_write(&mut self, number: usize, at: Duration, write: &ControllerWrite) {
        let mine = |seen: &LiveObjectState| seen.app == self.waves.app;
        let before = write.objects_before.get(&(write.cluster.clone(), write.object.clone()));
        match &write.applied {
            Some(applied) if applied.app == self.waves.app && applied.content.is_some() => {
                self.check_apply(number, at, write, applied);
            }
            None if before.is_some_and(mine) => self.check_delete(number, at, write),
            _ => {}
        }
    }

    fn write_case<'c>(
        &'c self,
        number: usize,
        head: &'c OracleCommit,
        app: &'c AppAtCommit,
        write: &'c ControllerWrite,
        down: BTreeSet<&'c str>,
    ) -> WriteCase<'c> {
        let (at, _) = self.story.events[number];
        let [_, unreachable, _] = self.story.offline_clusters(number);
        WriteCase {
            judge: self,
            head,
            app,
            write,
            at,
            known_offline: down,
            unreachable,
            is_disturbed: self.story.is_disturbed(number),
        }
    }

    fn add_violation(&mut self, at: Duration, write: &ControllerWrite, why: &str) {
        let ControllerWrite { cluster, object, .. } = write;
        self.violations.push(format!("{:.3} s: {object} on {cluster}: {why}", at.as_secs_f64()));
    }

    /// The commits that a write may belong to: the head, and those that were it a moment ago.
    fn possible_heads(&self, at: Duration) -> Vec<Arc<OracleCommit>> {
        let mut heads = Vec::new();
        let mut until = Duration::MAX;
        for (since, commit) in self.commits.iter().rev() {
            if until.saturating_add(self.story.grace) >= at {
                heads.push(Arc::clone(commit));
            }
            until = *since;
        }
        heads
    }

    fn check_apply(
        &mut self,
        number: usize,
        at: Duration,
        write: &ControllerWrite,
        applied: &AppliedContent,
    ) {
        let previous = applied.previous.split_whitespace().next();
        self.previous_commits.extend(previous.map(str::to_owned));
        if let Some(why) = self.overlapping_write(number, write, applied) {
            self.add_violation(at, write, &why);
        }
        let (heads, mut verdicts) = (self.possible_heads(at), Vec::new());
        'heads: for head in &heads {
            let Some(app) = head.apps.get(&self.waves.app) else { continue };
            // A cluster that returned a moment ago may still count as offline.
            for down in self.story.offline_clusters(number) {
                verdicts.push(self.write_case(number, head, app, write, down).check_apply(applied));
                if matches!(verdicts.last(), Some(Ok(_))) {
                    break 'heads;
                }
            }
        }
        match verdicts.pop() {
            Some(Ok(PermittedWrite::NoChange)) => self.record_repair(at, write),
            Some(Ok(PermittedWrite::StartsUnit(unit, content))) => {
                let [.., away] = self.story.offline_clusters(number);
                let is_unseen = self.story.is_disturbed(number) || away.contains(&*unit.cluster);
                self.record_unit_start(at, write, &unit, content, is_unseen);
            }
            Some(Err(last)) => {
                let why = match verdicts.into_iter().next() {
                    Some(Err(first)) => first,
                    _ => last,
                };
                self.add_violation(at, write, &why);
            }
            None => self.add_violation(at, write, "no commit has this app"),
        }
    }

    /// `may_be_unknown`: its health is unknown, as its cluster returned or something happened a moment ago.
    fn record_unit_start(
        &mut self,
        at: Duration,
        write: &ControllerWrite,
        unit: &OracleUnit,
        content: UnitContent,
        is_unseen: bool,
    ) {
        let run = self.units.entry(unit.clone()).or_default();
        let is_done = is_done(&write.objects_before, &unit.cluster, &run.content);
        if !run.content.is_empty() && (is_done || is_unseen) {
            if !is_unseen {
                run.previous.clear();
            }
            run.previous.push(run.content.clone());
            run.has_previous |= is_done && !is_unseen;
        }
        run.last_content = std::mem::replace(&mut run.content, content);
        run.started_at = at;
    }

    fn record_repair(&mut self, at: Duration, write: &ControllerWrite) {
        if let Some(run) = self.unit_of(write).and_then(|unit| self.units.get_mut(&unit)) {
            run.repaired_at = at;
        }
    }

    /// Two tasks of one target write at once.
    fn overlapping_write(
        &self,
        number: usize,
        write: &ControllerWrite,
        applied: &AppliedContent,
    ) -> Option<String> {
        for (earlier, (_, event)) in self.story.events[..number].iter().enumerate().rev().take(64) {
            let OracleEvent::Write(other) = event else { continue };
            let is_open = other.answered_at_event.is_some_and(|until| until > number) && earlier < number;
            if !is_open || other.cluster != write.cluster {
                continue;
            }
            if other.object == write.object {
                return Some("an earlier write of it is under way".to_owned());
            }
            let Some(before) = &other.applied else { continue };
            let is_of_unit = before.app == applied.app
                && self.unit_of(write).is_some()
                && self.unit_of(write) == self.unit_of(other);
            if is_of_unit && before.revision != applied.revision {
                return Some(format!("{} is written from another commit at the same time", other.object));
            }
        }
        None
    }

    fn unit_of(&self, write: &ControllerWrite) -> Option<OracleUnit> {
        let (_, head) = self.commits.last()?;
        unit_of(head.apps.get(&self.waves.app)?, &write.cluster, &write.object).cloned()
    }

    fn check_delete(&mut self, number: usize, at: Duration, write: &ControllerWrite) {
        let mut why = None;
        for head in self.possible_heads(at) {
            let Some(app) = head.apps.get(&self.waves.app) else { return };
            for down in self.story.offline_clusters(number) {
                match self.write_case(number, &head, app, write, down).check_delete() {
                    Ok(()) => return,
                    Err(words) => why = why.or(Some(words)),
                }
            }
        }
        if let Some(why) = why {
            self.add_violation(at, write, &why);
        }
    }
}

/// The unit that owns an object at a commit.
fn unit_of<'a>(app: &'a AppAtCommit, cluster: &str, object: &ObjectId) -> Option<&'a OracleUnit> {
    let mut units = app.units.iter().filter(|(unit, _)| unit.cluster == cluster);
    units.find(|(_, content)| content.contains_key(object)).map(|(unit, _)| unit)
}

fn object_in<'a>(world: &'a LiveState, cluster: &str, object: &ObjectId) -> Option<&'a LiveObjectState> {
    world.get(&(cluster.to_owned(), object.clone()))
}

fn is_workload(object: &ObjectId) -> bool {
    &*object.group == "apps"
}

fn is_whole(world: &LiveState, cluster: &str, content: &UnitContent) -> bool {
    content.iter().all(|(object, wanted)| {
        object_in(world, cluster, object).is_some_and(|seen| seen.content == Some(*wanted))
    })
}

fn is_healthy(world: &LiveState, cluster: &str, content: &UnitContent) -> bool {
    content.keys().all(|object| object_in(world, cluster, object).is_none_or(|seen| seen.is_healthy))
}

fn is_done(world: &LiveState, cluster: &str, content: &UnitContent) -> bool {
    is_whole(world, cluster, content) && is_healthy(world, cluster, content)
}

impl WriteCase<'_> {
    fn wave_of(&self, unit: &OracleUnit) -> usize {
        (self.judge.waves.wave_of)(unit)
    }

    fn is_skipped(&self, unit: &OracleUnit) -> bool {
        self.known_offline.contains(&*unit.cluster)
            || self.head.clusters_in_maintenance.contains(&unit.cluster)
    }

    fn unit_run(&self, unit: &OracleUnit) -> UnitRun {
        self.judge.units.get(unit).cloned().unwrap_or_default()
    }

    fn world(&self) -> &LiveState {
        &self.write.objects_before
    }

    /// Some objects that the head renders for it are missing or differ.
    fn is_behind(&self, unit: &OracleUnit, content: &UnitContent) -> bool {
        !is_whole(self.world(), &unit.cluster, content)
    }

    /// All existing objects of the unit have this content.
    fn has_only(&self, unit: &OracleUnit, content: &UnitContent) -> bool {
        content.iter().all(|(object, wanted)| {
            object_in(self.world(), &unit.cluster, object).is_none_or(|seen| seen.content == Some(*wanted))
        })
    }

    fn open_units(&self) -> Vec<String> {
        let open = self.app.units.iter().filter(|(unit, content)| {
            // A deleted object is restored, which opens no rollout.
            let lacks_alone = || self.unit_run(unit).content == **content && self.has_only(unit, content);
            !self.is_skipped(unit) && self.is_behind(unit, content) && !lacks_alone()
        });
        open.map(|(unit, _)| unit.to_string()).collect()
    }

    fn check_delete(&self) -> Result<(), String> {
        let ControllerWrite { cluster, object, .. } = self.write;
        if unit_of(self.app, cluster, object).is_some() {
            return Err(format!("deleted, and {} has it", short(&self.head.revision)));
        }
        let open = self.open_units();
        if open.is_empty() { Ok(()) } else { Err(format!("deleted while {} are behind", open.join(", "))) }
    }

    fn check_apply(&self, applied: &AppliedContent) -> Result<PermittedWrite, String> {
        let ControllerWrite { cluster, object, objects_before: world, .. } = self.write;
        let content = applied.content.ok_or("it says no content")?;
        if self.app.paused {
            return Err("written while paused".to_owned());
        }
        let before = object_in(world, cluster, object);
        let numbers = before.and_then(|seen| seen.replicas).zip(applied.replicas);
        if let Some((had, has)) = numbers.filter(|(had, has)| has < had) {
            let open = self.open_units();
            if !open.is_empty() {
                return Err(format!("from {had} pods to {has} while {} are behind", open.join(", ")));
            }
        }
        if before.is_some_and(|seen| seen.content == Some(content) && seen.app == applied.app) {
            return Ok(PermittedWrite::NoChange);
        }
        match unit_of(self.app, cluster, object) {
            Some(unit) => self.check_head_content(unit, content),
            None => self.check_repair_content(content),
        }
    }

    /// The head contains this object.
    fn check_head_content(&self, unit: &OracleUnit, content: Digest) -> Result<PermittedWrite, String> {
        let object = &self.write.object;
        let (wanted, run) = (&self.app.units[unit], self.unit_run(unit));
        if run.content.get(object) == Some(&content) {
            return Ok(PermittedWrite::NoChange);
        }
        if wanted.get(object) != Some(&content) {
            return self.check_substitute(unit, content, &run);
        }
        if run.content == *wanted {
            return Ok(PermittedWrite::NoChange);
        }
        match self.may_begin(unit, wanted, &run) {
            Ok(()) => Ok(PermittedWrite::StartsUnit(unit.clone(), wanted.clone())),
            // Other commits may contain the same object.
            Err(why) => self.check_substitute(unit, content, &run).map_err(|_| why),
        }
    }

    /// Only the commit that the unit runs contains it.
    fn check_repair_content(&self, content: Digest) -> Result<PermittedWrite, String> {
        let object = &self.write.object;
        let units = self.judge.units.iter().filter(|(unit, _)| unit.cluster == self.write.cluster);
        let mut runs = units.filter(|(_, run)| run.content.get(object) == Some(&content));
        if runs.next().is_some() {
            return Ok(PermittedWrite::NoChange);
        }
        let mut others = self.app.units.keys().filter(|unit| unit.cluster == self.write.cluster);
        let unit = others.find(|unit| self.check_substitute(unit, content, &self.unit_run(unit)).is_ok());
        match unit {
            Some(unit) => self.check_substitute(unit, content, &self.unit_run(unit)),
            None => Err("no commit that runs here has it".to_owned()),
        }
    }

    /// Content of neither the head nor the unit.
    fn check_substitute(
        &self,
        unit: &OracleUnit,
        content: Digest,
        run: &UnitRun,
    ) -> Result<PermittedWrite, String> {
        let object = &self.write.object;
        let has = |other: &UnitContent| other.get(object) == Some(&content);
        // A write of a moment ago may be unknown.
        let is_new = self.at < run.started_at + REPORT_DELAY;
        let is_half = || is_new || !is_whole(self.world(), &unit.cluster, &run.content);
        if is_new && has(&run.last_content) {
            return Ok(PermittedWrite::StartsUnit(unit.clone(), run.last_content.clone()));
        }
        // Of several candidates the newest: older content ran before it.
        if let Some(previous) = run.previous.iter().rev().find(|previous| has(previous))
            && (self.judge.waves.reverts || is_half())
        {
            return Ok(PermittedWrite::StartsUnit(unit.clone(), previous.clone()));
        }
        if self.is_empty(unit) {
            let found = self.substitutes(unit).into_iter().find(has);
            return match found {
                Some(content) => Ok(PermittedWrite::StartsUnit(unit.clone(), content)),
                None => Err(format!("{unit} is empty, and gets content of no commit that it may have")),
            };
        }
        Err(format!("{unit} gets content that is neither the head's nor what it ran"))
    }

    /// None of its objects exists, or no workload if it has one.
    fn is_empty(&self, unit: &OracleUnit) -> bool {
        let run = self.unit_run(unit);
        let of_head = self.app.units.get(unit).into_iter().flat_map(UnitContent::keys);
        let objects: Vec<&ObjectId> = of_head.chain(run.content.keys()).collect();
        let is_there = |object: &&&ObjectId| object_in(self.world(), &unit.cluster, object).is_some();
        let has_workloads = objects.iter().any(|object| is_workload(object));
        let mut there = objects.iter().filter(is_there);
        !there.any(|object| is_workload(object) || !has_workloads)
    }

    /// Content that an empty unit may get: that of commits which held units of its wave or a later one run, which units of the
    /// wave before have completed, or which any unit ran before.
    fn substitutes(&self, unit: &OracleUnit) -> Vec<UnitContent> {
        let mut commits: BTreeSet<&str> = BTreeSet::new();
        let waves = self.app.units.keys().map(|other| self.wave_of(other));
        let before = waves.filter(|wave| *wave < self.wave_of(unit)).max();
        for (other, content) in &self.app.units {
            let is_held = self.is_behind(other, content) && !self.is_empty(other);
            let run = self.unit_run(other);
            // Restored content counts as healthy before.
            let is_repaired = self.at < run.repaired_at + REPORT_DELAY;
            let is_done = || {
                is_whole(self.world(), &other.cluster, &run.content)
                    && (is_repaired || is_healthy(self.world(), &other.cluster, &run.content))
            };
            let is_next =
                self.wave_of(other) >= self.wave_of(unit) || Some(self.wave_of(other)) == before && is_done();
            if is_held && is_next {
                commits.extend(self.revision_of(other));
            }
        }
        let all = self.judge.commits.iter().map(|(_, commit)| commit);
        let at =
            |commit: &Arc<OracleCommit>| commit.apps.get(&self.judge.waves.app)?.units.get(unit).cloned();
        let of_held = all.clone().filter(|commit| commits.contains(&*commit.revision)).filter_map(at);
        let has_previous = |commit: &&Arc<OracleCommit>| {
            if self.judge.previous_commits.contains(&commit.revision) {
                return true;
            }
            let app = commit.apps.get(&self.judge.waves.app);
            let runs = self.judge.units.iter();
            let mut runs =
                runs.flat_map(|(unit, run)| run.previous.iter().map(move |previous| (unit, previous)));
            runs.any(|(unit, previous)| app.and_then(|app| app.units.get(unit)) == Some(previous))
        };
        of_held.chain(all.filter(has_previous).filter_map(at)).collect()
    }

    /// The newest commit that the unit's objects name.
    fn revision_of(&self, unit: &OracleUnit) -> Option<&str> {
        let run = self.unit_run(unit);
        let keys = self.app.units.get(unit).into_iter().flat_map(UnitContent::keys).chain(run.content.keys());
        let seen = keys.filter_map(|object| object_in(self.world(), &unit.cluster, object));
        let revisions = seen.filter(|seen| seen.app == self.judge.waves.app).map(|seen| &*seen.revision);
        revisions.max_by_key(|revision| self.commit_position(revision))
    }

    fn commit(&self, revision: &str) -> Option<&Arc<OracleCommit>> {
        self.judge.commits.iter().map(|(_, commit)| commit).find(|commit| commit.revision == revision)
    }

    fn commit_position(&self, revision: &str) -> Option<usize> {
        self.commit(revision).map(|commit| commit.position)
    }

    /// A unit takes the head's content.
    fn may_begin(&self, unit: &OracleUnit, wanted: &UnitContent, run: &UnitRun) -> Result<(), String> {
        let wave = self.wave_of(unit);
        let is_empty = self.is_empty(unit);
        if is_empty && self.is_first_installation(unit) {
            return Ok(());
        }
        self.check_turn(unit, wave)?;
        if run.previous.contains(wanted) {
            return Ok(());
        }
        let of_objects = || self.revision_of(unit).and_then(|revision| self.commit(revision));
        // The controller remembers deleted objects.
        let runs = if is_empty { self.commit_with(unit, &run.content) } else { of_objects() };
        self.check_gates(unit, runs).or_else(|why| {
            // A write of a moment ago may be unknown.
            let is_new = self.at < run.started_at + REPORT_DELAY;
            let before = self.commit_with(unit, &run.last_content).filter(|_| is_new);
            before.ok_or(why).and_then(|before| self.check_gates(unit, Some(before)))
        })
    }

    /// The newest commit in which a unit has this content.
    fn commit_with(&self, unit: &OracleUnit, content: &UnitContent) -> Option<&Arc<OracleCommit>> {
        self.judge.commits.iter().rev().map(|(_, commit)| commit).find(|commit| {
            let app = commit.apps.get(&self.judge.waves.app);
            app.is_some_and(|app| app.units.get(unit) == Some(content))
        })
    }

    /// Checks the gates between the unit's commit and the head.
    fn check_gates(&self, unit: &OracleUnit, runs: Option<&Arc<OracleCommit>>) -> Result<(), String> {
        let wave = self.wave_of(unit);
        let runs = runs.and_then(|commit| commit.apps.get(&self.judge.waves.app));
        let asked: Vec<usize> = (0..wave).filter(|wave| self.changes_wave(*wave, runs)).collect();
        for wave in &asked {
            self.is_wave_done(*wave)?;
        }
        let confirms = |wave: &&usize| self.judge.waves.gates.get(**wave).is_some_and(|gate| gate.confirm);
        match asked.iter().rev().find(confirms) {
            Some(_) if !self.is_confirmed(wave, &asked) => {
                Err(format!("{unit} takes {} before anybody confirmed it", short(&self.head.revision)))
            }
            _ => Ok(()),
        }
    }

    /// Whether any object of the app exists.
    fn is_app_present(&self) -> bool {
        self.world().values().any(|seen| seen.app == self.judge.waves.app && seen.content.is_some())
    }

    /// An empty unit without an earlier version: a first installation.
    fn is_first_installation(&self, unit: &OracleUnit) -> bool {
        let is_held = |other: &OracleUnit, content: &UnitContent| {
            self.wave_of(other) >= self.wave_of(unit)
                && !self.is_empty(other)
                && self.is_behind(other, content)
                && self.unit_run(other).content != *content
        };
        let is_any_held = self.app.units.iter().any(|(other, content)| is_held(other, content));
        let is_any_out = self.app.units.keys().any(|other| self.is_skipped(other));
        let has_later = self.app.units.iter().any(|(other, content)| {
            self.wave_of(other) >= self.wave_of(unit)
                && !self.is_empty(other)
                && self.unit_run(other).content == *content
        });
        let has_previous = self.judge.units.values().any(|run| run.has_previous) && self.is_app_present();
        !is_any_held && (has_later || !has_previous && !is_any_out && !self.judge.waves.gates_first)
    }

    /// Checks the number of units that change at the same time.
    fn check_turn(&self, unit: &OracleUnit, wave: usize) -> Result<(), String> {
        let Some(most) = self.judge.waves.gates.get(wave).and_then(|gate| gate.max_concurrent) else {
            return Ok(());
        };
        let changes = |other: &&OracleUnit| {
            let content = &self.app.units[*other];
            // An empty unit does not count: a new process does not know earlier deletes.
            *other != unit
                && self.wave_of(other) == wave
                && !self.is_empty(other)
                && !self.is_skipped(other)
                && self.unit_run(other).content == *content
                && !is_done(self.world(), &other.cluster, content)
        };
        let changing: Vec<String> = self.app.units.keys().filter(changes).map(ToString::to_string).collect();
        if changing.len() < most {
            return Ok(());
        }
        Err(format!("{unit} changes while {} do, {most} may at once", changing.join(", ")))
    }

    /// Whether the head changes a wave against a commit.
    fn changes_wave(&self, wave: usize, runs: Option<&AppAtCommit>) -> bool {
        let contents = |app: &AppAtCommit| -> BTreeSet<Vec<(ObjectId, Digest)>> {
            let of_wave = app.units.iter().filter(|(unit, _)| self.wave_of(unit) == wave);
            of_wave.map(|(_, content)| content.clone().into_iter().collect()).collect()
        };
        let of_head = contents(self.app);
        !of_head.is_empty() && runs.is_none_or(|runs| contents(runs) != of_head)
    }

    fn is_wave_done(&self, wave: usize) -> Result<(), String> {
        let of_wave = self.app.units.iter().filter(|(unit, _)| self.wave_of(unit) == wave);
        let taking_part: Vec<_> = of_wave.filter(|(unit, _)| !self.is_skipped(unit)).collect();
        let gate = self.judge.waves.gates.get(wave);
        let name = gate.map_or("?", |gate| &gate.name);
        if taking_part.is_empty() && !self.has_begun_after(wave) {
            return Err(format!("every cluster of wave {name} is left out"));
        }
        let undone: Vec<_> = taking_part
            .into_iter()
            .filter(|(unit, content)| !is_done(self.world(), &unit.cluster, content))
            .filter(|(unit, content)| !self.may_be_unknown(unit) || self.unit_run(unit).content != **content)
            .collect();
        let may_fail = gate.map_or(0, |gate| gate.max_failures);
        match undone.first() {
            Some((unit, content)) if undone.len() > may_fail => {
                let what = if self.is_behind(unit, content) { "not at this version" } else { "not well" };
                Err(format!("wave {name} is not done: {unit} is {what}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the state of a unit may be unknown at this moment.
    fn may_be_unknown(&self, unit: &OracleUnit) -> bool {
        // Restored content counts as healthy before: during a pause nothing is checked.
        let is_repaired = self.at < self.unit_run(unit).repaired_at + REPORT_DELAY;
        self.is_disturbed || is_repaired || self.unreachable.contains(&*unit.cluster)
    }

    fn has_begun_after(&self, wave: usize) -> bool {
        let mut later = self.app.units.iter().filter(|(unit, _)| self.wave_of(unit) > wave);
        // A revert starts at once, also at the moment of this write.
        later.any(|(unit, content)| {
            let run = self.unit_run(unit);
            run.content == *content || run.previous.contains(content)
        })
    }

    /// A person confirmed the wave in a commit that is not older than what the earlier waves run.
    fn is_confirmed(&self, wave: usize, passed: &[usize]) -> bool {
        let units = self.app.units.keys().filter(|unit| passed.contains(&self.wave_of(unit)));
        let taking_part = units.filter(|unit| !self.is_skipped(unit));
        let newest =
            taking_part.filter_map(|unit| self.commit_position(self.revision_of(unit)?)).max().unwrap_or(0);
        let is_far_enough = |through: &str| {
            let position = self.judge.waves.gates.iter().position(|gate| gate.name == through);
            position.is_some_and(|position| position >= wave)
        };
        self.head.approvals.iter().any(|word| {
            let is_for_it = word.app == self.judge.waves.app && word.digest == self.app.digest;
            is_for_it && word.last_wave.as_deref().is_some_and(is_far_enough) && {
                // The commit that added it.
                let of = self.judge.commits.iter().rev().map(|(_, commit)| commit);
                let since = of
                    .skip_while(|commit| commit.position > self.head.position)
                    .take_while(|commit| commit.approvals.contains(word))
                    .last();
                since.is_some_and(|since| since.position >= newest)
            }
        })
    }
}

fn short(revision: &str) -> &str {
    revision.get(..7).unwrap_or(revision)
}
