//! What each step of a release with chart hooks or sync waves waits for.
//!
//! Only writes wait, so an object that is as rendered never does. A released object is repaired at once, even if its
//! hooks fail later.

use super::release_phase::{self, ReleasePhase};
use super::unit::PlanUnit;
use super::{PlanAction, PlanInput, StepOrder, StepReason};
use crate::model::{HealthStatus, HookStage, LiveObject, ObjectHook, ObjectId, RenderedObject, SyncWave};

/// What delays the writes of a release.
#[derive(Debug, Default)]
pub struct ReleaseBarriers<'a> {
    /// Hooks that have not succeeded.
    unfinished_hooks: Vec<(ObjectHook, &'a ObjectId)>,
    /// Every object but the hooks is as rendered.
    is_released: bool,
    /// An object of the lowest wave that is not as rendered or unhealthy.
    first_unready: Option<(SyncWave, &'a ObjectId)>,
    /// Without the hooks.
    first_wave: SyncWave,
    /// An earlier wave may still define the kinds of a later one.
    expects_new_kinds: bool,
    /// Only if hooks depend on it.
    release_phase: Option<ReleasePhase>,
}

impl<'a> ReleaseBarriers<'a> {
    /// Of one unit: another unit holds nothing of it back.
    pub fn of(input: &PlanInput<'a>, unit: &PlanUnit<'a>, release_phase: Option<ReleasePhase>) -> Self {
        let objects = &unit.objects;
        let is_hook = |object: &RenderedObject| object.hook.is_some_and(|hook| hook.is_separate());
        let first_wave = objects.iter().filter(|object| !is_hook(object)).map(|object| object.wave).min();
        let first_wave = first_wave.unwrap_or_default();
        if objects.iter().all(|object| !is_hook(object) && object.wave == first_wave) {
            return Self { is_released: true, first_wave, release_phase, ..Self::default() };
        }
        let app = input.rendered.app.to_string();
        let live = |object: &RenderedObject| {
            let live: &LiveObject = input.observation.objects.get(&object.id)?;
            is_as_rendered(object, live, &app).then_some(live)
        };
        let main = || objects.iter().copied().filter(|object| !is_hook(object));
        let mut open: Vec<_> = objects
            .iter()
            .filter_map(|object| Some((object.hook.filter(|hook| hook.runs)?, *object)))
            .filter(|(_, object)| live(object).is_none_or(|live| live.health.status != HealthStatus::Current))
            .filter(|(hook, object)| {
                release_phase::hook_skip_reason(*hook, release_phase).is_none()
                    || input.observation.objects.contains_key(&object.id)
            })
            .map(|(hook, object)| (hook, &object.id))
            .collect();
        open.sort_by_key(|(hook, id)| (hook.stage, hook.weight, *id));
        let unready = main().filter(|object| !live(object).is_some_and(|live| is_well(&object.id, live)));
        Self {
            unfinished_hooks: open,
            is_released: main().all(|object| live(object).is_some()),
            first_unready: unready.map(|object| (object.wave, &object.id)).min(),
            first_wave,
            expects_new_kinds: input.expects_new_kinds,
            release_phase,
        }
    }

    pub fn hook_skip_reason(&self, object: &RenderedObject) -> Option<StepReason> {
        release_phase::hook_skip_reason(object.hook?, self.release_phase)
    }

    /// All hooks succeeded, and every other object is as rendered and healthy.
    pub fn are_cleared(&self) -> bool {
        self.unfinished_hooks.is_empty() && self.first_unready.is_none()
    }

    /// Delays the decided write if a barrier is open. `was_released`: this content was applied before the object lost
    /// its marks.
    pub fn delay_step(
        &self,
        turn: StepOrder,
        was_released: bool,
        (action, reason): (PlanAction, StepReason),
    ) -> (PlanAction, StepReason) {
        let is_of_later_wave = matches!(turn, StepOrder::Main(wave, _) if wave > self.first_wave);
        let (action, reason) = match reason {
            StepReason::NotServed { kind, served } if is_of_later_wave && served.is_empty() => {
                match self.find_barrier(turn) {
                    None if self.expects_new_kinds => {
                        return (PlanAction::Wait, StepReason::KindPending { kind });
                    }
                    None => return (action, StepReason::NotServed { kind, served }),
                    Some(_) => (PlanAction::Create, StepReason::KindPending { kind }),
                }
            }
            reason => (action, reason),
        };
        // A repair restores content that was released before.
        let is_repair = match reason {
            StepReason::Drifted { .. } => true,
            // A delayed object without our label would be missing in every inventory.
            StepReason::LabelsMissing | StepReason::HashMissing => was_released,
            _ => false,
        };
        if !action.is_write() || is_repair {
            return (action, reason);
        }
        let Some(obstacle) = self.find_barrier(turn) else { return (action, reason) };
        let (would, because) = (action, Box::new(reason));
        let reason = match obstacle {
            ReleaseBarrier::Hook(hook) => StepReason::WaitsForHook { hook: hook.clone(), would, because },
            ReleaseBarrier::Release(object) => {
                StepReason::WaitsForRelease { object: object.clone(), would, because }
            }
            ReleaseBarrier::Wave(wave, object) => {
                StepReason::WaitsForSyncWave { wave, object: object.clone(), would, because }
            }
        };
        (PlanAction::Wait, reason)
    }

    fn find_barrier(&self, turn: StepOrder) -> Option<ReleaseBarrier<'a>> {
        let open = |stage: HookStage, below: Option<i64>| {
            let mut open = self.unfinished_hooks.iter().filter(move |(hook, _)| hook.stage == stage);
            open.find(|(hook, _)| below.is_none_or(|weight| hook.weight < weight))
                .map(|(_, id)| ReleaseBarrier::Hook(id))
        };
        match turn {
            StepOrder::Foundation(_) => None,
            StepOrder::PreHook(weight, _) => open(HookStage::Before, Some(weight)),
            StepOrder::Main(wave, _) => {
                let hook = if self.is_released { None } else { open(HookStage::Before, None) };
                hook.or_else(|| {
                    let (first, object) = self.first_unready?;
                    (first < wave).then_some(ReleaseBarrier::Wave(first, object))
                })
            }
            StepOrder::PostHook(weight, _) => open(HookStage::Before, None)
                .or_else(|| self.first_unready.map(|(_, object)| ReleaseBarrier::Release(object)))
                .or_else(|| open(HookStage::After, Some(weight))),
        }
    }
}

enum ReleaseBarrier<'a> {
    Hook(&'a ObjectId),
    Release(&'a ObjectId),
    Wave(SyncWave, &'a ObjectId),
}

/// Whether later steps may run.
fn is_well(id: &ObjectId, live: &LiveObject) -> bool {
    match (&*id.group, &*id.kind) {
        // Its class may wait for the first pod, which comes later.
        ("", "PersistentVolumeClaim") => live.health.status != HealthStatus::Failed,
        // A suspended one has not done its work.
        ("batch", "Job") | ("apps.kruise.io", "BroadcastJob") | ("", "Pod") => {
            live.health.status == HealthStatus::Current
        }
        _ => live.can_replace(),
    }
}

fn is_as_rendered(object: &RenderedObject, live: &LiveObject, app: &str) -> bool {
    let once = object.hook.is_some_and(|hook| hook.is_install_only());
    *live.app == *app && !live.deleting && (once || live.hash == Some(object.hash))
}
