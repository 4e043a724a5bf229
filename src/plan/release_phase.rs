//! Tells the first release of an app on a cluster from later ones, for hooks of installations and of upgrades.
//!
//! All objects of a first release carry a mark. The mark identifies the release until it changes, even after a
//! restart. When the release has ended, two objects record it, so it stays known after its Jobs are gone.

use std::sync::Arc;

use super::unit::PlanUnit;
use super::{PlanAction, PlanInput, PlanStep, StepReason, drift};
use crate::model::{HookReleases, InstallAnnotation, LiveObject, ObjectHook, ObjectId, Operation, labels};

/// Selects the hooks that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasePhase {
    Install,
    /// The first release has ended: hooks of neither kind run.
    Installed,
    Upgrade,
}

/// `None` if no hook depends on it.
pub fn find_release_phase(input: &PlanInput<'_>, unit: &PlanUnit<'_>) -> Option<ReleasePhase> {
    let objects = &unit.objects;
    let asks = |hook: &ObjectHook| hook.occasion != HookReleases::Each;
    if !objects.iter().any(|object| object.hook.as_ref().is_some_and(asks)) {
        return None;
    }
    let app = input.rendered.app.to_string();
    let release = &unit.release_digest();
    let marks: Vec<Option<&InstallAnnotation>> = installation_marks(input, unit, &app).collect();
    if marks.is_empty() {
        return Some(ReleasePhase::Install);
    }
    if marks.contains(&None) {
        // The object existed before, or belongs to an upgrade.
        return Some(ReleasePhase::Upgrade);
    }
    if let Some(over) = marks.iter().flatten().find(|mark| mark.is_completed) {
        return Some(if over.is_of_release(release) {
            ReleasePhase::Installed
        } else {
            ReleasePhase::Upgrade
        });
    }
    let ours = |id: &ObjectId| input.observation.objects.get(id).filter(|live| *live.app == *app);
    let is_of_this = |live: &LiveObject| live.install().is_some_and(|mark| mark.is_of_release(release));
    let is_this = objects.iter().any(|object| ours(&object.id).is_some_and(|live| is_of_this(live)));
    // A change during an unfinished first release belongs to that release.
    let is_unfinished = || {
        let mut runs =
            objects.iter().filter(|it| it.hook.is_some_and(|hook| hook.is_install_only() && hook.runs));
        runs.any(|object| ours(&object.id).is_none())
    };
    Some(if is_this || is_unfinished() { ReleasePhase::Install } else { ReleasePhase::Upgrade })
}

/// The marks of the unit's live objects, without hooks. An object that is no longer rendered has no known unit. It
/// counts only if the app has a single unit.
fn installation_marks<'i>(
    input: &'i PlanInput<'_>,
    unit: &'i PlanUnit<'_>,
    app: &'i str,
) -> impl Iterator<Item = Option<&'i InstallAnnotation>> {
    let observation = input.observation;
    let manager = labels::field_manager(input.instance);
    let rendered = unit.objects.iter().filter(|object| object.hook.is_none());
    let rendered = rendered.filter_map(move |object| match observation.objects.get(&object.id) {
        Some(live) if live.deleting => None,
        Some(live) => Some(live.install().filter(|_| *live.app == *app)),
        // A foreign release that will be taken over. An object of ours without its label shows nothing.
        None => {
            let stranger = observation.unmanaged_objects.get(&object.id)?;
            (!stranger.managers.contains(&manager)).then_some(None)
        }
    });
    let is_left = move |(id, live): &(&ObjectId, &Arc<LiveObject>)| {
        let is_of_hook = live.is_ended_run || live.install().is_some_and(|mark| mark.is_of_hook);
        unit.is_only
            && *live.app == *app
            && !live.deleting
            && !is_of_hook
            && input.rendered.object(id).is_none()
    };
    rendered.chain(observation.objects.iter().filter(is_left).map(|(_, live)| live.install()))
}

/// Why a missing hook does not run now. A hook that runs nothing (a Secret with a password) is kept like any object.
pub fn hook_skip_reason(hook: ObjectHook, release_phase: Option<ReleasePhase>) -> Option<StepReason> {
    match (hook.occasion, release_phase?) {
        (HookReleases::Install, ReleasePhase::Installed | ReleasePhase::Upgrade) if hook.runs => {
            Some(StepReason::OnlyOnce)
        }
        (HookReleases::Upgrade, ReleasePhase::Install | ReleasePhase::Installed) => {
            Some(StepReason::OnlyLater)
        }
        _ => None,
    }
}

/// How many objects record that the installation has ended. One of them may be deleted or replaced.
const COMPLETION_MARKS: usize = 2;

/// Marks the writes of a first release. When the release has nothing left to do, some unchanged objects are applied
/// once more to record its end, unless a policy denies it. An upgrade does the same before a recording object is
/// deleted.
pub fn mark_installation(
    input: &PlanInput<'_>,
    unit: &PlanUnit<'_>,
    release_phase: ReleasePhase,
    has_ended: bool,
    steps: &mut [PlanStep],
) {
    if release_phase != ReleasePhase::Upgrade {
        let release = unit.release_digest();
        for step in &mut *steps {
            let mark = InstallAnnotation::new(&release, step.hook.is_some());
            step.install_mark = Some(mark.with_completed(release_phase == ReleasePhase::Installed));
        }
    }
    let is_left = |step: &PlanStep| step.action == PlanAction::Unchanged || step.is_hook_not_due();
    let is_held = input.settings.write_hold().is_some();
    if !has_ended || is_held || !steps.iter().all(is_left) {
        return;
    }
    let app = input.rendered.app.to_string();
    let known = installation_marks(input, unit, &app).flatten().find(|mark| mark.is_completed);
    let live = |step: &PlanStep| input.observation.objects.get(&step.object).filter(|_| step.hook.is_none());
    // An object without a mark belongs to an upgrade.
    let says_so = |live: &LiveObject| live.install().is_none_or(|mark| mark.is_completed);
    let said = steps.iter().filter_map(live).filter(|live| says_so(live)).count();
    let is_denied = |step: &PlanStep| {
        let object = input.rendered.object(&step.object);
        let judged = object.and_then(|object| input.observation.verdict(object, Operation::Update));
        judged.is_some_and(|judged| judged.denial.is_some())
    };
    let is_as_applied = |step: &PlanStep, live: &LiveObject| {
        let is_same = step.reason == StepReason::Same && drift::detect_drift(live, true).is_none();
        is_same && !says_so(live) && !is_denied(step)
    };
    let others = steps.iter_mut().filter_map(|step| {
        let live = live(step).filter(|live| is_as_applied(step, live))?;
        Some((step, live.install()?))
    });
    for (step, own) in others.take(COMPLETION_MARKS.saturating_sub(said)) {
        (step.action, step.reason) = (PlanAction::Configure, StepReason::InstallationOver);
        let mark = step.install_mark.take().unwrap_or_else(|| known.unwrap_or(own).clone());
        step.install_mark = Some(mark.with_completed(true));
    }
}
