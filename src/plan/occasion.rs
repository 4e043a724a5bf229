//! Tells the first release of an app on a cluster from later ones, for hooks of installations and of upgrades.
//!
//! All objects of a first release carry a mark. The mark identifies the release until it changes, even after a
//! restart. When the release has ended, two objects record it, so it stays known after its Jobs are gone.

use std::sync::Arc;

use super::compute::Unit;
use super::{Action, Input, Reason, Step, drift};
use crate::model::{Hook, InstallMark, Live, ObjectId, Occasion, Operation, labels};

/// Selects the hooks that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasePhase {
    Install,
    /// The first release has ended: hooks of neither kind run.
    Installed,
    Upgrade,
}

/// `None` if no hook depends on it.
pub fn of(input: &Input<'_>, unit: &Unit<'_>) -> Option<ReleasePhase> {
    let objects = &unit.objects;
    let asks = |hook: &Hook| hook.occasion != Occasion::Each;
    if !objects.iter().any(|object| object.hook.as_ref().is_some_and(asks)) {
        return None;
    }
    let app = input.rendered.app.to_string();
    let release = &unit.release();
    let marks: Vec<Option<&InstallMark>> = main_marks(input, unit, &app).collect();
    if marks.is_empty() {
        return Some(ReleasePhase::Install);
    }
    if marks.contains(&None) {
        // The object existed before, or belongs to an upgrade.
        return Some(ReleasePhase::Upgrade);
    }
    if let Some(over) = marks.iter().flatten().find(|mark| mark.is_over) {
        return Some(if over.is_of(release) { ReleasePhase::Installed } else { ReleasePhase::Upgrade });
    }
    let ours = |id: &ObjectId| input.observation.objects.get(id).filter(|live| *live.app == *app);
    let is_of_this = |live: &Live| live.install().is_some_and(|mark| mark.is_of(release));
    let is_this = objects.iter().any(|object| ours(&object.id).is_some_and(|live| is_of_this(live)));
    // A change during an unfinished first release belongs to that release.
    let is_unfinished = || {
        let mut runs = objects.iter().filter(|it| it.hook.is_some_and(|hook| hook.is_once() && hook.runs));
        runs.any(|object| ours(&object.id).is_none())
    };
    Some(if is_this || is_unfinished() { ReleasePhase::Install } else { ReleasePhase::Upgrade })
}

/// The marks of the unit's live objects, without hooks. An object that is no longer rendered has no known unit. It
/// counts only if the app has a single unit.
fn main_marks<'i>(
    input: &'i Input<'_>,
    unit: &'i Unit<'_>,
    app: &'i str,
) -> impl Iterator<Item = Option<&'i InstallMark>> {
    let observation = input.observation;
    let manager = labels::field_manager(input.instance);
    let rendered = unit.objects.iter().filter(|object| object.hook.is_none());
    let rendered = rendered.filter_map(move |object| match observation.objects.get(&object.id) {
        Some(live) if live.deleting => None,
        Some(live) => Some(live.install().filter(|_| *live.app == *app)),
        // A foreign release that will be taken over. An object of ours without its label shows nothing.
        None => {
            let stranger = observation.strangers.get(&object.id)?;
            (!stranger.managers.contains(&manager)).then_some(None)
        }
    });
    let is_left = move |(id, live): &(&ObjectId, &Arc<Live>)| {
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
pub fn why_not_due(hook: Hook, release_phase: Option<ReleasePhase>) -> Option<Reason> {
    match (hook.occasion, release_phase?) {
        (Occasion::Install, ReleasePhase::Installed | ReleasePhase::Upgrade) if hook.runs => {
            Some(Reason::OnlyOnce)
        }
        (Occasion::Upgrade, ReleasePhase::Install | ReleasePhase::Installed) => Some(Reason::OnlyLater),
        _ => None,
    }
}

/// How many objects record that the installation has ended. One of them may be deleted or replaced.
const SAYERS: usize = 2;

/// Marks the writes of a first release. When the release has nothing left to do, some unchanged objects are applied
/// once more to record its end, unless a policy denies it. An upgrade does the same before a recording object is
/// deleted.
pub fn mark(
    input: &Input<'_>,
    unit: &Unit<'_>,
    release_phase: ReleasePhase,
    has_ended: bool,
    steps: &mut [Step],
) {
    if release_phase != ReleasePhase::Upgrade {
        let release = unit.release();
        for step in &mut *steps {
            let mark = InstallMark::new(&release, step.hook.is_some());
            step.install = Some(mark.over(release_phase == ReleasePhase::Installed));
        }
    }
    let is_left = |step: &Step| step.action == Action::Unchanged || step.is_hook_not_due();
    let is_held = input.settings.hold().is_some();
    if !has_ended || is_held || !steps.iter().all(is_left) {
        return;
    }
    let app = input.rendered.app.to_string();
    let known = main_marks(input, unit, &app).flatten().find(|mark| mark.is_over);
    let live = |step: &Step| input.observation.objects.get(&step.object).filter(|_| step.hook.is_none());
    // An object without a mark belongs to an upgrade.
    let says_so = |live: &Live| live.install().is_none_or(|mark| mark.is_over);
    let said = steps.iter().filter_map(live).filter(|live| says_so(live)).count();
    let is_denied = |step: &Step| {
        let object = input.rendered.object(&step.object);
        let judged = object.and_then(|object| input.observation.verdict(object, Operation::Update));
        judged.is_some_and(|judged| judged.denial.is_some())
    };
    let is_as_applied = |step: &Step, live: &Live| {
        let is_same = step.reason == Reason::Same && drift::of(live, true).is_none();
        is_same && !says_so(live) && !is_denied(step)
    };
    let others = steps.iter_mut().filter_map(|step| {
        let live = live(step).filter(|live| is_as_applied(step, live))?;
        Some((step, live.install()?))
    });
    for (step, own) in others.take(SAYERS.saturating_sub(said)) {
        (step.action, step.reason) = (Action::Configure, Reason::InstallationOver);
        let mark = step.install.take().unwrap_or_else(|| known.unwrap_or(own).clone());
        step.install = Some(mark.over(true));
    }
}
