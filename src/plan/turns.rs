//! The order of a release with chart hooks or sync waves, and what each step waits for.
//!
//! Only writes wait, so an object that is as rendered never does. A released object is repaired at once, even if its
//! hooks fail later.

use super::compute::Unit;
use super::occasion::{self, ReleasePhase};
use super::{Action, Input, Phase, Reason};
use crate::model::{Hook, Live, ObjectId, RenderedObject, Stage, Status, SyncWave};

/// A position in the order of an app. Steps of equal positions run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// Namespaces and definitions: hooks need them.
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

    /// The order by kind alone, without hook and sync wave.
    pub fn by_phase(self) -> Self {
        match self {
            Self::Foundation(phase)
            | Self::Before(_, phase)
            | Self::Main(_, phase)
            | Self::After(_, phase) => Self::of(phase, None, SyncWave::default()),
        }
    }

    /// Deletes run in reverse order of the applies. Hook runs are ordered by phase.
    pub fn of_delete(object: &ObjectId, wave: SyncWave) -> Self {
        Self::of(Phase::of(object), None, wave)
    }
}

/// What delays the writes of a release.
#[derive(Debug, Default)]
pub struct Barriers<'a> {
    /// Hooks that have not succeeded.
    open: Vec<(Hook, &'a ObjectId)>,
    /// Every object but the hooks is as rendered.
    released: bool,
    /// An object of the lowest wave that is not as rendered or unhealthy.
    unready: Option<(SyncWave, &'a ObjectId)>,
    /// Without the hooks.
    first_wave: SyncWave,
    /// An earlier wave may still define the kinds of a later one.
    kinds_may_come: bool,
    /// Only if hooks depend on it.
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

    pub fn why_not_due(&self, object: &RenderedObject) -> Option<Reason> {
        occasion::why_not_due(object.hook?, self.release_phase)
    }

    /// All hooks succeeded, and every other object is as rendered and healthy.
    pub fn are_past(&self) -> bool {
        self.open.is_empty() && self.unready.is_none()
    }

    /// Delays the decided write if a barrier is open. `was_released`: this content was applied before the object lost
    /// its marks.
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
        // A repair restores content that was released before.
        let is_repair = match reason {
            Reason::Drifted { .. } => true,
            // A delayed object without our label would be missing in every inventory.
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

/// Whether later steps may run.
fn is_well(id: &ObjectId, live: &Live) -> bool {
    match (&*id.group, &*id.kind) {
        // Its class may wait for the first pod, which comes later.
        ("", "PersistentVolumeClaim") => live.health.status != Status::Failed,
        // A suspended one has not done its work.
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
