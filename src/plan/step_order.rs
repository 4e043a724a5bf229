//! The order of a release with chart hooks or sync waves.

use super::ApplyPhase;
use crate::model::{HookStage, ObjectHook, ObjectId, SyncWave};

/// A position in the order of an app. Steps of equal positions run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepOrder {
    /// Namespaces and definitions: hooks need them.
    Foundation(ApplyPhase),
    /// By weight.
    PreHook(i64, ApplyPhase),
    Main(SyncWave, ApplyPhase),
    /// By weight.
    PostHook(i64, ApplyPhase),
}

impl StepOrder {
    pub fn of(phase: ApplyPhase, hook: Option<ObjectHook>, wave: SyncWave) -> Self {
        match hook.filter(|hook| hook.is_separate()) {
            Some(ObjectHook { stage: HookStage::Before, weight, .. }) => Self::PreHook(weight, phase),
            Some(ObjectHook { stage: HookStage::After, weight, .. }) => Self::PostHook(weight, phase),
            None if phase <= ApplyPhase::Definition => Self::Foundation(phase),
            None => Self::Main(wave, phase),
        }
    }

    /// The order by kind alone, without hook and sync wave.
    pub fn without_hooks_and_waves(self) -> Self {
        match self {
            Self::Foundation(phase)
            | Self::PreHook(_, phase)
            | Self::Main(_, phase)
            | Self::PostHook(_, phase) => Self::of(phase, None, SyncWave::default()),
        }
    }

    /// Deletes run in reverse order of the applies. Hook runs are ordered by phase.
    pub fn of_delete(object: &ObjectId, wave: SyncWave) -> Self {
        Self::of(ApplyPhase::of(object), None, wave)
    }
}
