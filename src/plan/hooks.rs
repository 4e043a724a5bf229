//! Which of a release comes when, and what waits for what, where a chart has hooks.
//!
//! Only what would be written is held back, so nothing that is as rendered ever waits; and what was released as rendered is
//! repaired, whatever became of the hooks since.

use super::{Action, Input, Phase, Reason};
use crate::model::{Hook, Live, ObjectId, RenderedObject, Stage, Status};

/// A place in the order of an app; what has the same place goes side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// Namespaces and definitions: hooks live in them.
    Foundation(Phase),
    /// By weight.
    Before(i64, Phase),
    Main(Phase),
    /// By weight.
    After(i64, Phase),
}

impl Turn {
    pub fn of(phase: Phase, hook: Option<Hook>) -> Self {
        match hook.filter(|hook| hook.is_apart()) {
            Some(Hook { stage: Stage::Before, weight, .. }) => Self::Before(weight, phase),
            Some(Hook { stage: Stage::After, weight, .. }) => Self::After(weight, phase),
            None if phase <= Phase::Definition => Self::Foundation(phase),
            None => Self::Main(phase),
        }
    }
}

/// What stands in the way of a release.
#[derive(Debug, Default)]
pub struct Barriers<'a> {
    /// Hooks that run and have not come to a good end.
    open: Vec<(Hook, &'a ObjectId)>,
    /// Every object but the hooks is there as rendered.
    released: bool,
    /// The first of them that is not, or is not healthy.
    unready: Option<&'a ObjectId>,
}

impl<'a> Barriers<'a> {
    pub fn of(input: &Input<'a>) -> Self {
        let objects = &input.rendered.objects;
        if !objects.iter().any(|object| object.hook.is_some_and(|hook| hook.is_apart())) {
            return Self { released: true, ..Self::default() };
        }
        let app = input.rendered.app.to_string();
        let live = |object: &RenderedObject| {
            let live: &Live = input.observation.objects.get(&object.id)?;
            is_as_rendered(object, live, &app).then_some(live)
        };
        let main = || objects.iter().filter(|object| !object.hook.is_some_and(|hook| hook.is_apart()));
        let is_well = |live: &Live| matches!(live.health.status, Status::Current | Status::Suspended);
        let mut open: Vec<_> = objects
            .iter()
            .filter_map(|object| Some((object.hook.filter(|hook| hook.runs)?, object)))
            .filter(|(_, object)| live(object).is_none_or(|live| live.health.status != Status::Current))
            .map(|(hook, object)| (hook, &object.id))
            .collect();
        open.sort_by_key(|(hook, id)| (hook.stage, hook.weight, *id));
        Self {
            open,
            released: main().all(|object| live(object).is_some()),
            unready: main().find(|object| !live(object).is_some_and(is_well)).map(|object| &object.id),
        }
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
            Obstacle::Object(object) => Reason::WaitsForRelease { object: object.clone(), would, because },
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
            Turn::Main(_) if self.released => None,
            Turn::Main(_) => open(Stage::Before, None),
            Turn::After(weight, _) => open(Stage::Before, None)
                .or_else(|| self.unready.map(Obstacle::Object))
                .or_else(|| open(Stage::After, Some(weight))),
        }
    }
}

enum Obstacle<'a> {
    Hook(&'a ObjectId),
    Object(&'a ObjectId),
}

fn is_as_rendered(object: &RenderedObject, live: &Live, app: &str) -> bool {
    let once = object.hook.is_some_and(|hook| hook.once);
    *live.app == *app && !live.deleting && (once || live.hash == Some(object.hash))
}
