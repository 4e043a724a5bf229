//! Which of a release comes when, and what waits for what, where a chart has hooks or objects have sync waves.
//!
//! Only what would be written is held back, so nothing that is as rendered ever waits; and what was released as rendered is
//! repaired, whatever became of the hooks since.

use super::compute::Unit;
use super::occasion::{self, ReleasePhase};
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

    /// Without what its app says.
    pub fn by_phase(self) -> Self {
        match self {
            Self::Foundation(phase)
            | Self::Before(_, phase)
            | Self::Main(_, phase)
            | Self::After(_, phase) => Self::of(phase, None, SyncWave::default()),
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
    /// Of those that are not, or are not healthy, one of the lowest wave.
    unready: Option<(SyncWave, &'a ObjectId)>,
    /// Of all objects but the hooks.
    first_wave: SyncWave,
    /// What an earlier wave runs may still be about to define the kinds of a later one.
    kinds_may_come: bool,
    /// Where hooks tell the first release from later ones: which one this is.
    release_phase: Option<ReleasePhase>,
}

impl<'a> Barriers<'a> {
    /// Of one unit: another unit holds nothing of it back.
    pub fn of(input: &Input<'a>, unit: &Unit<'a>, release_phase: Option<ReleasePhase>) -> Self {
        let objects = &unit.objects;
        let is_hook = |object: &RenderedObject| object.hook.is_some_and(|hook| hook.is_apart());
        let first_wave = objects.iter().filter(|object| !is_hook(object)).map(|object| object.wave).min();
        let first_wave = first_wave.unwrap_or_default();
        if objects.iter().all(|object| !is_hook(object) && object.wave == first_wave) {
            return Self { released: true, first_wave, release_phase, ..Self::default() };
        }
        let app = input.rendered.app.to_string();
        let live = |object: &RenderedObject| {
            let live: &Live = input.observation.objects.get(&object.id)?;
            is_as_rendered(object, live, &app).then_some(live)
        };
        let main = || objects.iter().copied().filter(|object| !is_hook(object));
        let mut open: Vec<_> = objects
            .iter()
            .filter_map(|object| Some((object.hook.filter(|hook| hook.runs)?, *object)))
            .filter(|(_, object)| live(object).is_none_or(|live| live.health.status != Status::Current))
            .filter(|(hook, object)| {
                occasion::why_not_due(*hook, release_phase).is_none()
                    || input.observation.objects.contains_key(&object.id)
            })
            .map(|(hook, object)| (hook, &object.id))
            .collect();
        open.sort_by_key(|(hook, id)| (hook.stage, hook.weight, *id));
        let unready = main().filter(|object| !live(object).is_some_and(|live| is_well(&object.id, live)));
        Self {
            open,
            released: main().all(|object| live(object).is_some()),
            unready: unready.map(|object| (object.wave, &object.id)).min(),
            first_wave,
            kinds_may_come: input.kinds_may_come,
            release_phase,
        }
    }

    /// Why a hook that is not there does not come with this release.
    pub fn why_not_due(&self, object: &RenderedObject) -> Option<Reason> {
        occasion::why_not_due(object.hook?, self.release_phase)
    }

    /// All hooks came to a good end, and all else is there as rendered and healthy.
    pub fn are_past(&self) -> bool {
        self.open.is_empty() && self.unready.is_none()
    }

    /// What is decided of an object, or that it waits. `was_released`: as it is rendered, it was applied before it lost its marks.
    pub fn hold_back(
        &self,
        turn: Turn,
        was_released: bool,
        (action, reason): (Action, Reason),
    ) -> (Action, Reason) {
        let is_of_later_wave = matches!(turn, Turn::Main(wave, _) if wave > self.first_wave);
        let (action, reason) = match reason {
            Reason::NotServed { kind, served } if is_of_later_wave && served.is_empty() => {
                match self.before(turn) {
                    None if self.kinds_may_come => return (Action::Wait, Reason::KindPending { kind }),
                    None => return (action, Reason::NotServed { kind, served }),
                    Some(_) => (Action::Create, Reason::KindPending { kind }),
                }
            }
            reason => (action, reason),
        };
        // A repair brings back what was released already.
        let is_repair = match reason {
            Reason::Drifted { .. } => true,
            // Without our label no inventory would show it while it waits.
            Reason::LabelsMissing | Reason::HashMissing => was_released,
            _ => false,
        };
        if !action.is_write() || is_repair {
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
                    let (first, object) = self.unready?;
                    (first < wave).then_some(Obstacle::Wave(first, object))
                })
            }
            Turn::After(weight, _) => open(Stage::Before, None)
                .or_else(|| self.unready.map(|(_, object)| Obstacle::Release(object)))
                .or_else(|| open(Stage::After, Some(weight))),
        }
    }
}

enum Obstacle<'a> {
    Hook(&'a ObjectId),
    Release(&'a ObjectId),
    Wave(SyncWave, &'a ObjectId),
}

/// What comes after it may come.
fn is_well(id: &ObjectId, live: &Live) -> bool {
    match (&*id.group, &*id.kind) {
        // Its class may wait for the first pod, which may come after it.
        ("", "PersistentVolumeClaim") => live.health.status != Status::Failed,
        // One that is suspended, by a queue or by its author, has not done its work.
        ("batch", "Job") | ("apps.kruise.io", "BroadcastJob") | ("", "Pod") => {
            live.health.status == Status::Current
        }
        _ => live.can_take_over(),
    }
}

fn is_as_rendered(object: &RenderedObject, live: &Live, app: &str) -> bool {
    let once = object.hook.is_some_and(|hook| hook.is_once());
    *live.app == *app && !live.deleting && (once || live.hash == Some(object.hash))
}
