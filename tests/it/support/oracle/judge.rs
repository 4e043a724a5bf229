//! Goes through the recorded history and returns its violations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tutti::model::{Digest, ObjectId};

use super::commit::{AppAt, Commit};
use super::story::{Applied, Content, Event, MOMENT, Story, Unit, Waves, Write};
use super::world::{Seen, World};

/// The violations among the writes of one app.
pub fn judge(story: &Story, waves: &Waves) -> Vec<String> {
    let mut judge = Judge {
        story,
        waves,
        commits: Vec::new(),
        units: BTreeMap::new(),
        previous: BTreeSet::new(),
        found: Vec::new(),
    };
    for (number, (at, event)) in story.events.iter().enumerate() {
        match event {
            Event::Commit(commit) => judge.commits.push((*at, Arc::clone(commit))),
            Event::Write(write) => judge.write(number, *at, write),
            Event::Rebuilt(cluster) => judge.units.retain(|unit, _| unit.cluster != *cluster),
            Event::Down(_) | Event::Up(_) | Event::Disturbed => {}
        }
    }
    judge.found
}

/// Units that differ from the last commit or are not healthy.
pub fn behind(story: &Story, waves: &Waves, now: &World) -> Vec<String> {
    let mut commits = story.events.iter().rev().filter_map(|(_, event)| match event {
        Event::Commit(commit) => Some(commit),
        _ => None,
    });
    let app = commits.next().and_then(|head| head.apps.get(&waves.app));
    let units = app.into_iter().flat_map(|app| &app.units);
    let behind = units.filter(|(unit, content)| !is_done(now, &unit.cluster, content));
    behind.map(|(unit, _)| format!("{unit} of {} is not as the head says, or not well", waves.app)).collect()
}

struct Judge<'a> {
    story: &'a Story,
    waves: &'a Waves,
    commits: Vec<(Duration, Arc<Commit>)>,
    units: BTreeMap<Unit, Run>,
    /// The commits that units ran before, by their annotations.
    previous: BTreeSet<String>,
    found: Vec<String>,
}

/// The state of a unit, derived from its writes.
#[derive(Clone, Debug, Default)]
struct Run {
    content: Content,
    /// Content that the unit completed before. If unknown, one of several candidates.
    previous: Vec<Content>,
    /// Whether it certainly completed one of these.
    has_previous: bool,
    /// The content before, completed or not.
    before: Content,
    /// When it began with its content.
    written: Duration,
    /// When a part of its content was last restored.
    repaired: Duration,
}

/// A write, checked against one head.
struct Case<'a> {
    judge: &'a Judge<'a>,
    head: &'a Commit,
    app: &'a AppAt,
    write: &'a Write,
    at: Duration,
    down: BTreeSet<&'a str>,
    /// Clusters that do not answer now, known or not.
    unreachable: BTreeSet<&'a str>,
    /// A disturbance happened a moment ago and may be unknown.
    is_disturbed: bool,
}

/// The effect of a permitted write on its unit.
enum Permitted {
    Nothing,
    Begins(Unit, Content),
}

impl Judge<'_> {
    fn write(&mut self, number: usize, at: Duration, write: &Write) {
        let mine = |seen: &Seen| seen.app == self.waves.app;
        let before = write.world.get(&(write.cluster.clone(), write.object.clone()));
        match &write.applied {
            Some(applied) if applied.app == self.waves.app && applied.content.is_some() => {
                self.applied(number, at, write, applied);
            }
            None if before.is_some_and(mine) => self.deleted(number, at, write),
            _ => {}
        }
    }

    fn case<'c>(
        &'c self,
        number: usize,
        head: &'c Commit,
        app: &'c AppAt,
        write: &'c Write,
        down: BTreeSet<&'c str>,
    ) -> Case<'c> {
        let (at, _) = self.story.events[number];
        let [_, unreachable, _] = self.story.down(number);
        Case {
            judge: self,
            head,
            app,
            write,
            at,
            down,
            unreachable,
            is_disturbed: self.story.is_disturbed(number),
        }
    }

    fn say(&mut self, at: Duration, write: &Write, why: &str) {
        let Write { cluster, object, .. } = write;
        self.found.push(format!("{:.3} s: {object} on {cluster}: {why}", at.as_secs_f64()));
    }

    /// The commits that a write may belong to: the head, and those that were it a moment ago.
    fn heads(&self, at: Duration) -> Vec<Arc<Commit>> {
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

    fn applied(&mut self, number: usize, at: Duration, write: &Write, applied: &Applied) {
        let previous = applied.previous.split_whitespace().next();
        self.previous.extend(previous.map(str::to_owned));
        if let Some(why) = self.overlaps(number, write, applied) {
            self.say(at, write, &why);
        }
        let (heads, mut verdicts) = (self.heads(at), Vec::new());
        'heads: for head in &heads {
            let Some(app) = head.apps.get(&self.waves.app) else { continue };
            // A cluster that returned a moment ago may still count as offline.
            for down in self.story.down(number) {
                verdicts.push(self.case(number, head, app, write, down).applied(applied));
                if matches!(verdicts.last(), Some(Ok(_))) {
                    break 'heads;
                }
            }
        }
        match verdicts.pop() {
            Some(Ok(Permitted::Nothing)) => self.repair(at, write),
            Some(Ok(Permitted::Begins(unit, content))) => {
                let [.., away] = self.story.down(number);
                let is_unseen = self.story.is_disturbed(number) || away.contains(&*unit.cluster);
                self.begin(at, write, &unit, content, is_unseen);
            }
            Some(Err(last)) => {
                let why = match verdicts.into_iter().next() {
                    Some(Err(first)) => first,
                    _ => last,
                };
                self.say(at, write, &why);
            }
            None => self.say(at, write, "no commit has this app"),
        }
    }

    /// `is_unseen`: its health is unknown, as its cluster returned or something happened a moment ago.
    fn begin(&mut self, at: Duration, write: &Write, unit: &Unit, content: Content, is_unseen: bool) {
        let run = self.units.entry(unit.clone()).or_default();
        let is_done = is_done(&write.world, &unit.cluster, &run.content);
        if !run.content.is_empty() && (is_done || is_unseen) {
            if !is_unseen {
                run.previous.clear();
            }
            run.previous.push(run.content.clone());
            run.has_previous |= is_done && !is_unseen;
        }
        run.before = std::mem::replace(&mut run.content, content);
        run.written = at;
    }

    fn repair(&mut self, at: Duration, write: &Write) {
        if let Some(run) = self.unit_of(write).and_then(|unit| self.units.get_mut(&unit)) {
            run.repaired = at;
        }
    }

    /// Two tasks of one target write at once.
    fn overlaps(&self, number: usize, write: &Write, applied: &Applied) -> Option<String> {
        for (earlier, (_, event)) in self.story.events[..number].iter().enumerate().rev().take(64) {
            let Event::Write(other) = event else { continue };
            let is_open = other.until.is_some_and(|until| until > number) && earlier < number;
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

    fn unit_of(&self, write: &Write) -> Option<Unit> {
        let (_, head) = self.commits.last()?;
        unit_of(head.apps.get(&self.waves.app)?, &write.cluster, &write.object).cloned()
    }

    fn deleted(&mut self, number: usize, at: Duration, write: &Write) {
        let mut why = None;
        for head in self.heads(at) {
            let Some(app) = head.apps.get(&self.waves.app) else { return };
            for down in self.story.down(number) {
                match self.case(number, &head, app, write, down).deleted() {
                    Ok(()) => return,
                    Err(words) => why = why.or(Some(words)),
                }
            }
        }
        if let Some(why) = why {
            self.say(at, write, &why);
        }
    }
}

/// The unit that owns an object at a commit.
fn unit_of<'a>(app: &'a AppAt, cluster: &str, object: &ObjectId) -> Option<&'a Unit> {
    let mut units = app.units.iter().filter(|(unit, _)| unit.cluster == cluster);
    units.find(|(_, content)| content.contains_key(object)).map(|(unit, _)| unit)
}

fn at<'a>(world: &'a World, cluster: &str, object: &ObjectId) -> Option<&'a Seen> {
    world.get(&(cluster.to_owned(), object.clone()))
}

fn is_workload(object: &ObjectId) -> bool {
    &*object.group == "apps"
}

fn is_whole(world: &World, cluster: &str, content: &Content) -> bool {
    content
        .iter()
        .all(|(object, wanted)| at(world, cluster, object).is_some_and(|seen| seen.content == Some(*wanted)))
}

fn is_well(world: &World, cluster: &str, content: &Content) -> bool {
    content.keys().all(|object| at(world, cluster, object).is_none_or(|seen| seen.is_well))
}

fn is_done(world: &World, cluster: &str, content: &Content) -> bool {
    is_whole(world, cluster, content) && is_well(world, cluster, content)
}

impl Case<'_> {
    fn wave_of(&self, unit: &Unit) -> usize {
        (self.judge.waves.wave_of)(unit)
    }

    fn is_left_out(&self, unit: &Unit) -> bool {
        self.down.contains(&*unit.cluster) || self.head.maintained.contains(&unit.cluster)
    }

    fn run(&self, unit: &Unit) -> Run {
        self.judge.units.get(unit).cloned().unwrap_or_default()
    }

    fn world(&self) -> &World {
        &self.write.world
    }

    /// Some objects that the head renders for it are missing or differ.
    fn is_behind(&self, unit: &Unit, content: &Content) -> bool {
        !is_whole(self.world(), &unit.cluster, content)
    }

    /// All existing objects of the unit have this content.
    fn has_nothing_else(&self, unit: &Unit, content: &Content) -> bool {
        content.iter().all(|(object, wanted)| {
            at(self.world(), &unit.cluster, object).is_none_or(|seen| seen.content == Some(*wanted))
        })
    }

    fn open_units(&self) -> Vec<String> {
        let open = self.app.units.iter().filter(|(unit, content)| {
            // A deleted object is restored, which opens no rollout.
            let lacks_alone = || self.run(unit).content == **content && self.has_nothing_else(unit, content);
            !self.is_left_out(unit) && self.is_behind(unit, content) && !lacks_alone()
        });
        open.map(|(unit, _)| unit.to_string()).collect()
    }

    fn deleted(&self) -> Result<(), String> {
        let Write { cluster, object, .. } = self.write;
        if unit_of(self.app, cluster, object).is_some() {
            return Err(format!("deleted, and {} has it", short(&self.head.revision)));
        }
        let open = self.open_units();
        if open.is_empty() { Ok(()) } else { Err(format!("deleted while {} are behind", open.join(", "))) }
    }

    fn applied(&self, applied: &Applied) -> Result<Permitted, String> {
        let Write { cluster, object, world, .. } = self.write;
        let content = applied.content.ok_or("it says no content")?;
        if self.app.paused {
            return Err("written while paused".to_owned());
        }
        let before = at(world, cluster, object);
        let numbers = before.and_then(|seen| seen.replicas).zip(applied.replicas);
        if let Some((had, has)) = numbers.filter(|(had, has)| has < had) {
            let open = self.open_units();
            if !open.is_empty() {
                return Err(format!("from {had} pods to {has} while {} are behind", open.join(", ")));
            }
        }
        if before.is_some_and(|seen| seen.content == Some(content) && seen.app == applied.app) {
            return Ok(Permitted::Nothing);
        }
        match unit_of(self.app, cluster, object) {
            Some(unit) => self.of_head(unit, content),
            None => self.of_no_head(content),
        }
    }

    /// The head contains this object.
    fn of_head(&self, unit: &Unit, content: Digest) -> Result<Permitted, String> {
        let object = &self.write.object;
        let (wanted, run) = (&self.app.units[unit], self.run(unit));
        if run.content.get(object) == Some(&content) {
            return Ok(Permitted::Nothing);
        }
        if wanted.get(object) != Some(&content) {
            return self.of_other(unit, content, &run);
        }
        if run.content == *wanted {
            return Ok(Permitted::Nothing);
        }
        match self.may_begin(unit, wanted, &run) {
            Ok(()) => Ok(Permitted::Begins(unit.clone(), wanted.clone())),
            // Other commits may contain the same object.
            Err(why) => self.of_other(unit, content, &run).map_err(|_| why),
        }
    }

    /// Only the commit that the unit runs contains it.
    fn of_no_head(&self, content: Digest) -> Result<Permitted, String> {
        let object = &self.write.object;
        let units = self.judge.units.iter().filter(|(unit, _)| unit.cluster == self.write.cluster);
        let mut runs = units.filter(|(_, run)| run.content.get(object) == Some(&content));
        if runs.next().is_some() {
            return Ok(Permitted::Nothing);
        }
        let mut others = self.app.units.keys().filter(|unit| unit.cluster == self.write.cluster);
        let unit = others.find(|unit| self.of_other(unit, content, &self.run(unit)).is_ok());
        match unit {
            Some(unit) => self.of_other(unit, content, &self.run(unit)),
            None => Err("no commit that runs here has it".to_owned()),
        }
    }

    /// Content of neither the head nor the unit.
    fn of_other(&self, unit: &Unit, content: Digest, run: &Run) -> Result<Permitted, String> {
        let object = &self.write.object;
        let has = |other: &Content| other.get(object) == Some(&content);
        // A write of a moment ago may be unknown.
        let is_new = self.at < run.written + MOMENT;
        let is_half = || is_new || !is_whole(self.world(), &unit.cluster, &run.content);
        if is_new && has(&run.before) {
            return Ok(Permitted::Begins(unit.clone(), run.before.clone()));
        }
        // Of several candidates the newest: older content ran before it.
        if let Some(previous) = run.previous.iter().rev().find(|previous| has(previous))
            && (self.judge.waves.reverts || is_half())
        {
            return Ok(Permitted::Begins(unit.clone(), previous.clone()));
        }
        if self.is_empty(unit) {
            let found = self.substitutes(unit).into_iter().find(has);
            return match found {
                Some(content) => Ok(Permitted::Begins(unit.clone(), content)),
                None => Err(format!("{unit} is empty, and gets content of no commit that it may have")),
            };
        }
        Err(format!("{unit} gets content that is neither the head's nor what it ran"))
    }

    /// None of its objects exists, or no workload if it has one.
    fn is_empty(&self, unit: &Unit) -> bool {
        let run = self.run(unit);
        let of_head = self.app.units.get(unit).into_iter().flat_map(Content::keys);
        let objects: Vec<&ObjectId> = of_head.chain(run.content.keys()).collect();
        let is_there = |object: &&&ObjectId| at(self.world(), &unit.cluster, object).is_some();
        let has_workloads = objects.iter().any(|object| is_workload(object));
        let mut there = objects.iter().filter(is_there);
        !there.any(|object| is_workload(object) || !has_workloads)
    }

    /// Content that an empty unit may get: that of commits which held units of its wave or a later one run, which units of the
    /// wave before have completed, or which any unit ran before.
    fn substitutes(&self, unit: &Unit) -> Vec<Content> {
        let mut commits: BTreeSet<&str> = BTreeSet::new();
        let waves = self.app.units.keys().map(|other| self.wave_of(other));
        let before = waves.filter(|wave| *wave < self.wave_of(unit)).max();
        for (other, content) in &self.app.units {
            let is_held = self.is_behind(other, content) && !self.is_empty(other);
            let run = self.run(other);
            // Restored content counts as healthy before.
            let is_repaired = self.at < run.repaired + MOMENT;
            let is_done = || {
                is_whole(self.world(), &other.cluster, &run.content)
                    && (is_repaired || is_well(self.world(), &other.cluster, &run.content))
            };
            let is_next =
                self.wave_of(other) >= self.wave_of(unit) || Some(self.wave_of(other)) == before && is_done();
            if is_held && is_next {
                commits.extend(self.revision_of(other));
            }
        }
        let all = self.judge.commits.iter().map(|(_, commit)| commit);
        let at = |commit: &Arc<Commit>| commit.apps.get(&self.judge.waves.app)?.units.get(unit).cloned();
        let of_held = all.clone().filter(|commit| commits.contains(&*commit.revision)).filter_map(at);
        let has_previous = |commit: &&Arc<Commit>| {
            if self.judge.previous.contains(&commit.revision) {
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
    fn revision_of(&self, unit: &Unit) -> Option<&str> {
        let run = self.run(unit);
        let keys = self.app.units.get(unit).into_iter().flat_map(Content::keys).chain(run.content.keys());
        let seen = keys.filter_map(|object| at(self.world(), &unit.cluster, object));
        let revisions = seen.filter(|seen| seen.app == self.judge.waves.app).map(|seen| &*seen.revision);
        revisions.max_by_key(|revision| self.number(revision))
    }

    fn commit(&self, revision: &str) -> Option<&Arc<Commit>> {
        self.judge.commits.iter().map(|(_, commit)| commit).find(|commit| commit.revision == revision)
    }

    fn number(&self, revision: &str) -> Option<usize> {
        self.commit(revision).map(|commit| commit.number)
    }

    /// A unit takes the head's content.
    fn may_begin(&self, unit: &Unit, wanted: &Content, run: &Run) -> Result<(), String> {
        let wave = self.wave_of(unit);
        let is_empty = self.is_empty(unit);
        if is_empty && self.comes_at_once(unit) {
            return Ok(());
        }
        self.is_in_turn(unit, wave)?;
        if run.previous.contains(wanted) {
            return Ok(());
        }
        let of_objects = || self.revision_of(unit).and_then(|revision| self.commit(revision));
        // The controller remembers deleted objects.
        let runs = if is_empty { self.commit_with(unit, &run.content) } else { of_objects() };
        self.is_let_through(unit, runs).or_else(|why| {
            // A write of a moment ago may be unknown.
            let is_new = self.at < run.written + MOMENT;
            let before = self.commit_with(unit, &run.before).filter(|_| is_new);
            before.ok_or(why).and_then(|before| self.is_let_through(unit, Some(before)))
        })
    }

    /// The newest commit in which a unit has this content.
    fn commit_with(&self, unit: &Unit, content: &Content) -> Option<&Arc<Commit>> {
        self.judge.commits.iter().rev().map(|(_, commit)| commit).find(|commit| {
            let app = commit.apps.get(&self.judge.waves.app);
            app.is_some_and(|app| app.units.get(unit) == Some(content))
        })
    }

    /// Checks the gates between the unit's commit and the head.
    fn is_let_through(&self, unit: &Unit, runs: Option<&Arc<Commit>>) -> Result<(), String> {
        let wave = self.wave_of(unit);
        let runs = runs.and_then(|commit| commit.apps.get(&self.judge.waves.app));
        let asked: Vec<usize> = (0..wave).filter(|wave| self.is_asked(*wave, runs)).collect();
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
    fn is_any_there(&self) -> bool {
        self.world().values().any(|seen| seen.app == self.judge.waves.app && seen.content.is_some())
    }

    /// An empty unit without an earlier version: a first installation.
    fn comes_at_once(&self, unit: &Unit) -> bool {
        let is_held = |other: &Unit, content: &Content| {
            self.wave_of(other) >= self.wave_of(unit)
                && !self.is_empty(other)
                && self.is_behind(other, content)
                && self.run(other).content != *content
        };
        let is_any_held = self.app.units.iter().any(|(other, content)| is_held(other, content));
        let is_any_out = self.app.units.keys().any(|other| self.is_left_out(other));
        let has_later = self.app.units.iter().any(|(other, content)| {
            self.wave_of(other) >= self.wave_of(unit)
                && !self.is_empty(other)
                && self.run(other).content == *content
        });
        let has_previous = self.judge.units.values().any(|run| run.has_previous) && self.is_any_there();
        !is_any_held && (has_later || !has_previous && !is_any_out && !self.judge.waves.gates_first)
    }

    /// Checks the number of units that change at the same time.
    fn is_in_turn(&self, unit: &Unit, wave: usize) -> Result<(), String> {
        let Some(most) = self.judge.waves.gates.get(wave).and_then(|gate| gate.most) else { return Ok(()) };
        let changes = |other: &&Unit| {
            let content = &self.app.units[*other];
            // An empty unit does not count: a new process does not know earlier deletes.
            *other != unit
                && self.wave_of(other) == wave
                && !self.is_empty(other)
                && !self.is_left_out(other)
                && self.run(other).content == *content
                && !is_done(self.world(), &other.cluster, content)
        };
        let changing: Vec<String> = self.app.units.keys().filter(changes).map(ToString::to_string).collect();
        if changing.len() < most {
            return Ok(());
        }
        Err(format!("{unit} changes while {} do, {most} may at once", changing.join(", ")))
    }

    /// Whether the head changes a wave against a commit.
    fn is_asked(&self, wave: usize, runs: Option<&AppAt>) -> bool {
        let contents = |app: &AppAt| -> BTreeSet<Vec<(ObjectId, Digest)>> {
            let of_wave = app.units.iter().filter(|(unit, _)| self.wave_of(unit) == wave);
            of_wave.map(|(_, content)| content.clone().into_iter().collect()).collect()
        };
        let of_head = contents(self.app);
        !of_head.is_empty() && runs.is_none_or(|runs| contents(runs) != of_head)
    }

    fn is_wave_done(&self, wave: usize) -> Result<(), String> {
        let of_wave = self.app.units.iter().filter(|(unit, _)| self.wave_of(unit) == wave);
        let taking_part: Vec<_> = of_wave.filter(|(unit, _)| !self.is_left_out(unit)).collect();
        let gate = self.judge.waves.gates.get(wave);
        let name = gate.map_or("?", |gate| &gate.name);
        if taking_part.is_empty() && !self.has_begun_after(wave) {
            return Err(format!("every cluster of wave {name} is left out"));
        }
        let undone: Vec<_> = taking_part
            .into_iter()
            .filter(|(unit, content)| !is_done(self.world(), &unit.cluster, content))
            .filter(|(unit, content)| !self.is_unseen(unit) || self.run(unit).content != **content)
            .collect();
        let may_fail = gate.map_or(0, |gate| gate.failures);
        match undone.first() {
            Some((unit, content)) if undone.len() > may_fail => {
                let what = if self.is_behind(unit, content) { "not at this version" } else { "not well" };
                Err(format!("wave {name} is not done: {unit} is {what}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the state of a unit may be unknown at this moment.
    fn is_unseen(&self, unit: &Unit) -> bool {
        // Restored content counts as healthy before: during a pause nothing is checked.
        let is_repaired = self.at < self.run(unit).repaired + MOMENT;
        self.is_disturbed || is_repaired || self.unreachable.contains(&*unit.cluster)
    }

    fn has_begun_after(&self, wave: usize) -> bool {
        let mut later = self.app.units.iter().filter(|(unit, _)| self.wave_of(unit) > wave);
        // A revert starts at once, also at the moment of this write.
        later.any(|(unit, content)| {
            let run = self.run(unit);
            run.content == *content || run.previous.contains(content)
        })
    }

    /// A person confirmed the wave in a commit that is not older than what the earlier waves run.
    fn is_confirmed(&self, wave: usize, passed: &[usize]) -> bool {
        let units = self.app.units.keys().filter(|unit| passed.contains(&self.wave_of(unit)));
        let taking_part = units.filter(|unit| !self.is_left_out(unit));
        let newest = taking_part.filter_map(|unit| self.number(self.revision_of(unit)?)).max().unwrap_or(0);
        let is_far_enough = |through: &str| {
            let position = self.judge.waves.gates.iter().position(|gate| gate.name == through);
            position.is_some_and(|position| position >= wave)
        };
        self.head.approvals.iter().any(|word| {
            let is_for_it = word.app == self.judge.waves.app && word.digest == self.app.digest;
            is_for_it && word.through.as_deref().is_some_and(is_far_enough) && {
                // The commit that added it.
                let of = self.judge.commits.iter().rev().map(|(_, commit)| commit);
                let since = of
                    .skip_while(|commit| commit.number > self.head.number)
                    .take_while(|commit| commit.approvals.contains(word))
                    .last();
                since.is_some_and(|since| since.number >= newest)
            }
        })
    }
}

fn short(revision: &str) -> &str {
    revision.get(..7).unwrap_or(revision)
}
