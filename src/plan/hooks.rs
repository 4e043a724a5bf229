//! Which of a release comes when, and what waits for what, where a chart has hooks or objects have sync waves.
//!
//! Only what would be written is held back, so nothing that is as rendered ever waits; and what was released as rendered is
//! repaired, whatever became of the hooks since.

use super::{Action, Input, Phase, Reason};
use crate::model::{Hook, Live, ObjectId, RenderedObject, Stage, Status, SyncWave};

/// A place in the order of an app; what has the same place goes side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// Namespaces and definitions: hooks live in them.
    Foundation(Phase),
    /// By weight.
    Before(i64, Phase),
    Main(SyncWave, Phase),
    /// By weight.
    After(i64, Phase),
}

impl Turn {
    pub fn of(phase: Phase, hook: Option<Hook>, wave: SyncWave) -> Self {
        match hook.filter(|hook| hook.is_apart()) {
            Some(Hook { stage: Stage::Before, weight, .. }) => Self::Before(weight, phase),
            Some(Hook { stage: Stage::After, weight, .. }) => Self::After(weight, phase),
            None if phase <= Phase::Definition => Self::Foundation(phase),
            None => Self::Main(wave, phase),
        }
    }

    /// What is deleted goes in the reverse of the order in which it came. Runs of hooks go with their phase.
    pub fn of_delete(object: &ObjectId, wave: SyncWave) -> Self {
        Self::of(Phase::of(object), None, wave)
    }
}

/// What stands in the way of a release.
#[derive(Debug, Default)]
pub struct Barriers<'a> {
    /// Hooks that run and have not come to a good end.
    open: Vec<(Hook, &'a ObjectId)>,
    /// Every object but the hooks is there as rendered.
    released: bool,
    /// Those that are not, or are not healthy, by wave.
    unready: Vec<(SyncWave, &'a ObjectId)>,
}

impl<'a> Barriers<'a> {
    pub fn of(input: &Input<'a>) -> Self {
        let objects = &input.rendered.objects;
        let is_hook = |object: &RenderedObject| object.hook.is_some_and(|hook| hook.is_apart());
        let is_ordinary = |object: &RenderedObject| !is_hook(object) && object.wave == objects[0].wave;
        if objects.iter().all(is_ordinary) {
            return Self { released: true, ..Self::default() };
        }
        let app = input.rendered.app.to_string();
        let live = |object: &RenderedObject| {
            let live: &Live = input.observation.objects.get(&object.id)?;
            is_as_rendered(object, live, &app).then_some(live)
        };
        let main = || objects.iter().filter(|object| !is_hook(object));
        let is_well = |live: &Live| matches!(live.health.status, Status::Current | Status::Suspended);
        let mut open: Vec<_> = objects
            .iter()
            .filter_map(|object| Some((object.hook.filter(|hook| hook.runs)?, object)))
            .filter(|(_, object)| live(object).is_none_or(|live| live.health.status != Status::Current))
            .map(|(hook, object)| (hook, &object.id))
            .collect();
        open.sort_by_key(|(hook, id)| (hook.stage, hook.weight, *id));
        let unready = main().filter(|object| !live(object).is_some_and(is_well));
        let mut unready: Vec<_> = unready.map(|object| (object.wave, &object.id)).collect();
        unready.sort();
        Self { open, released: main().all(|object| live(object).is_some()), unready }
    }

    /// What is decided of an object, or that it waits.
    pub fn hold_back(&self, turn: Turn, (action, reason): (Action, Reason)) -> (Action, Reason) {
        // A repair brings back what was released already.
        if !action.is_write() || matches!(reason, Reason::Drifted { .. }) {
            return (action, reason);
        }
        let Some(obstacle) = self.before(turn) else { return (action, reason) };
        let (would, because) = (action, Box::new(reason));
        let reason = match obstacle {
            Obstacle::Hook(hook) => Reason::WaitsForHook { hook: hook.clone(), would, because },
            Obstacle::Release(object) => Reason::WaitsForRelease { object: object.clone(), would, because },
            Obstacle::Wave(wave, object) => {
                Reason::WaitsForSyncWave { wave, object: object.clone(), would, because }
            }
        };
        (Action::Wait, reason)
    }

    fn before(&self, turn: Turn) -> Option<Obstacle<'a>> {
        let open = |stage: Stage, below: Option<i64>| {
            let mut open = self.open.iter().filter(move |(hook, _)| hook.stage == stage);
            open.find(|(hook, _)| below.is_none_or(|weight| hook.weight < weight))
                .map(|(_, id)| Obstacle::Hook(id))
        };
        match turn {
            Turn::Foundation(_) => None,
            Turn::Before(weight, _) => open(Stage::Before, Some(weight)),
            Turn::Main(wave, _) => {
                let hook = if self.released { None } else { open(Stage::Before, None) };
                hook.or_else(|| {
                    let (first, object) = *self.unready.first()?;
                    (first < wave).then_some(Obstacle::Wave(first, object))
                })
            }
            Turn::After(weight, _) => open(Stage::Before, None)
                .or_else(|| self.unready.first().map(|(_, object)| Obstacle::Release(object)))
                .or_else(|| open(Stage::After, Some(weight))),
        }
    }
}

enum Obstacle<'a> {
    Hook(&'a ObjectId),
    Release(&'a ObjectId),
    Wave(SyncWave, &'a ObjectId),
}

fn is_as_rendered(object: &RenderedObject, live: &Live, app: &str) -> bool {
    let once = object.hook.is_some_and(|hook| hook.once);
    *live.app == *app && !live.deleting && (once || live.hash == Some(object.hash))
}
