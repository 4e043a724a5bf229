//! Whether a release is the first of its app on a cluster, for hooks that are of the first alone or of all but the first.
//!
//! What is applied of a first release carries its mark. So it is known for the first one as long as nothing of it changes, whatever
//! of it came already, and whoever goes on with it.

use std::sync::Arc;

use super::{Input, Reason};
use crate::model::{Digest, Hook, InstallMark, Live, ObjectId, Occasion, labels};

/// Which of the two it is; `None` where no hook asks.
pub fn of(input: &Input<'_>, release: &Digest) -> Option<Occasion> {
    let objects = &input.rendered.objects;
    let asks = |hook: &Hook| hook.occasion != Occasion::Each;
    if !objects.iter().any(|object| object.hook.as_ref().is_some_and(asks)) {
        return None;
    }
    let app = input.rendered.app.to_string();
    let mut main = main_marks(input, &app).peekable();
    if main.peek().is_none() {
        return Some(Occasion::Install);
    }
    if main.any(|mark| mark.is_none()) {
        // It was there before, or is in the release of an upgrade already.
        return Some(Occasion::Upgrade);
    }
    let ours = |id: &ObjectId| input.observation.objects.get(id).filter(|live| *live.app == *app);
    let is_of_this = |live: &Live| live.install.as_ref().is_some_and(|mark| mark.is_of(release));
    let is_this = objects.iter().any(|object| ours(&object.id).is_some_and(|live| is_of_this(live)));
    // A change that comes before the first release has come to its end goes on with it.
    let is_unfinished = || {
        let mut runs = objects.iter().filter(|it| it.hook.is_some_and(|hook| hook.is_once() && hook.runs));
        runs.any(|object| ours(&object.id).is_none())
    };
    Some(if is_this || is_unfinished() { Occasion::Install } else { Occasion::Upgrade })
}

/// The marks of all that is there of the app, but its hooks.
fn main_marks<'i>(input: &'i Input<'_>, app: &'i str) -> impl Iterator<Item = Option<&'i InstallMark>> {
    let observation = input.observation;
    let manager = labels::field_manager(input.instance);
    let rendered = input.rendered.objects.iter().filter(|object| object.hook.is_none());
    let rendered = rendered.filter_map(move |object| match observation.objects.get(&object.id) {
        Some(live) if live.deleting => None,
        Some(live) => Some(live.install.as_deref().filter(|_| *live.app == *app)),
        // A release of somebody else, to be taken over. One that lost our label tells nothing.
        None => {
            let stranger = observation.strangers.get(&object.id)?;
            (!stranger.managers.contains(&manager)).then_some(None)
        }
    });
    let is_left = move |(id, live): &(&ObjectId, &Arc<Live>)| {
        let is_of_hook = live.is_ended_run || live.install.as_ref().is_some_and(|mark| mark.is_of_hook);
        *live.app == *app && !live.deleting && !is_of_hook && input.rendered.object(id).is_none()
    };
    rendered.chain(observation.objects.iter().filter(is_left).map(|(_, live)| live.install.as_deref()))
}

/// Why a hook that is not there does not come now. What runs nothing, as a Secret with a password, is kept there like anything else.
pub fn out_of_season(hook: Hook, occasion: Option<Occasion>) -> Option<Reason> {
    match (hook.occasion, occasion?) {
        (Occasion::Install, Occasion::Upgrade) if hook.runs => Some(Reason::OnlyOnce),
        (Occasion::Upgrade, Occasion::Install) => Some(Reason::OnlyLater),
        _ => None,
    }
}
