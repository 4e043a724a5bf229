//! Finds the objects that a file, or a line of it, affects.

use std::collections::BTreeSet;

use super::input_files::InputFile;
use super::leaves::Leaf;
use super::trace_recorder::TracedObject;
use super::trace_session::TraceSession;
use crate::fleet::Target;
use crate::model::{Location, ObjectId};
use crate::render::FleetRenderer;
use crate::render::layer_source::SHIPPED;

/// A file, as `tutti render --explain` names it, and perhaps a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedLine {
    pub file: String,
    pub line: Option<u32>,
}

impl TouchedLine {
    fn covers(&self, location: &Location) -> bool {
        let plain = |path: &'_ str| path.strip_prefix(SHIPPED).map(str::to_owned);
        let same = location.file == self.file || plain(&location.file).as_deref() == Some(&self.file);
        let last = location.end.map_or(location.start.line, |end| end.line);
        same && self.line.is_none_or(|line| (location.start.line..=last).contains(&line))
    }
}

/// `None`: the target does not render.
pub fn touched_objects(
    renderer: &FleetRenderer<'_>,
    target: &Target,
    touch: &TouchedLine,
) -> Option<BTreeSet<ObjectId>> {
    let stage = TraceSession::new(renderer, target)?;
    let made = stage.render_marked()?;
    let written = |made: &&TracedObject| made.fields.values().any(|place| touch.covers(place));
    let mut found: BTreeSet<ObjectId> =
        made.iter().filter(written).map(|made| made.object.id.clone()).collect();
    for input in &stage.inputs {
        let leaves: Vec<&Leaf> = input.leaves.iter().filter(|leaf| touch.covers(&leaf.location)).collect();
        collect_changed(&stage, &made, input, &leaves, &mut found);
    }
    Some(found)
}

/// Alters all leaves at once, and halves the set while the render fails.
fn collect_changed(
    stage: &TraceSession<'_>,
    before: &[TracedObject],
    input: &InputFile,
    leaves: &[&Leaf],
    found: &mut BTreeSet<ObjectId>,
) {
    let after = match leaves {
        [] => return,
        [leaf] => stage.with_altered_leaf(input, leaf).map(|(_, made)| made),
        leaves => stage.with_altered_leaves(input, leaves),
    };
    if let Some(after) = after {
        let other = |made: &&TracedObject| {
            let now = after.iter().find(|now| now.key == made.key);
            now.is_none_or(|now| now.object.body != made.object.body)
        };
        found.extend(before.iter().filter(other).map(|made| made.object.id.clone()));
        return;
    }
    if leaves.len() > 1 {
        let (one, other) = leaves.split_at(leaves.len() / 2);
        collect_changed(stage, before, input, one, found);
        collect_changed(stage, before, input, other, found);
    }
}
