//! What an open promotion proposes, by its description: while the ring before is not done, nothing else says it.

use super::next::{pin_of, rings_of};
use super::{Block, Change, Input, PinChange, group_of};

/// `None`: it is of another kind, or of apps, rings or pins that are not there any more.
pub fn proposed(input: &Input<'_>, block: &Block) -> Option<Change> {
    if block.kind != "promotion" || block.is_withdrawn {
        return None;
    }
    let ring = block.ring.clone()?;
    let mut pins = Vec::new();
    for item in &block.items {
        let app = input.fleet.apps.get(&item.app)?;
        let file = pin_of(input, app, &ring).map(|(_, file)| file.to_owned());
        let file = file.unwrap_or_else(|| format!("{}pins/{ring}.yaml", app.folder()));
        pins.push(PinChange { app: item.app.clone(), file, from: item.from.clone(), to: item.to.clone() });
    }
    let app = input.fleet.apps.get(&block.items.first()?.app)?;
    let rings = rings_of(input, app);
    let at = rings.iter().position(|it| it.name == ring)?;
    let before = at.checked_sub(1).and_then(|at| rings.get(at)).map(|it| it.name.clone()).unwrap_or_default();
    Some(Change::Promote { group: group_of(app), ring, before, pins, is_requested: block.is_requested })
}
