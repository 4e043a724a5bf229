//! Finds the objects that a file, or a line of it, affects.

use std::collections::BTreeSet;

use super::Made;
use super::files::Input;
use super::leaves::Leaf;
use super::runs::Stage;
use crate::fleet::Target;
use crate::model::{Location, ObjectId};
use crate::render::Renderer;
use crate::render::layers::SHIPPED;

/// A file, as `tutti render --explain` names it, and perhaps a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    pub file: String,
    pub line: Option<u32>,
}

impl Touch {
    fn holds(&self, location: &Location) -> bool {
        let plain = |path: &'_ str| path.strip_prefix(SHIPPED).map(str::to_owned);
        let same = location.file == self.file || plain(&location.file).as_deref() == Some(&self.file);
        let last = location.end.map_or(location.start.line, |end| end.line);
        same && self.line.is_none_or(|line| (location.start.line..=last).contains(&line))
    }
}

/// `None`: the target does not render.
pub fn touched(renderer: &Renderer<'_>, target: &Target, touch: &Touch) -> Option<BTreeSet<ObjectId>> {
    let stage = Stage::new(renderer.job(target)?)?;
    let made = stage.marked()?;
    let written = |made: &&Made| made.fields.values().any(|place| touch.holds(place));
    let mut found: BTreeSet<ObjectId> =
        made.iter().filter(written).map(|made| made.object.id.clone()).collect();
    for input in &stage.inputs {
        let leaves: Vec<&Leaf> = input.leaves.iter().filter(|leaf| touch.holds(&leaf.location)).collect();
        changed(&stage, &made, input, &leaves, &mut found);
    }
    Some(found)
}

/// Alters all leaves at once, and halves the set while the render fails.
fn changed(
    stage: &Stage<'_>,
    before: &[Made],
    input: &Input,
    leaves: &[&Leaf],
    found: &mut BTreeSet<ObjectId>,
) {
    let after = match leaves {
        [] => return,
        [leaf] => stage.with(input, leaf).map(|(_, made)| made),
        leaves => stage.with_all(input, leaves),
    };
    if let Some(after) = after {
        let other = |made: &&Made| {
            let now = after.iter().find(|now| now.key == made.key);
            now.is_none_or(|now| now.object.body != made.object.body)
        };
        found.extend(before.iter().filter(other).map(|made| made.object.id.clone()));
        return;
    }
    if leaves.len() > 1 {
        let (one, other) = leaves.split_at(leaves.len() / 2);
        changed(stage, before, input, one, found);
        changed(stage, before, input, other, found);
    }
}
