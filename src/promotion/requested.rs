//! A promotion that a person asks for: one pin, whatever the ring before does.

use super::next::{pin_of, rings_of, runs};
use super::{Change, Input, PinChange, group_of};
use crate::manifest::read::is_label_value;
use crate::model::AppId;

/// The version that a person asks for, as a change of one pin. `Err`: what is in the way, for people.
pub fn requested(
    input: &Input<'_>,
    app: &AppId,
    before: Option<&str>,
    ring: &str,
    version: Option<&str>,
) -> Result<Change, String> {
    let Some(app) = input.fleet.apps.get(app) else { return Err(format!("no app {app}")) };
    let rings = rings_of(input, app);
    let names = || rings.iter().map(|ring| ring.name.as_str()).collect::<Vec<_>>().join(", ");
    let position = |name: &str| rings.iter().position(|ring| ring.name == name);
    let Some(to) = position(ring) else {
        return Err(format!("{} does not run in ring {ring}; its rings: {}", app.id, names()));
    };
    let from = match before {
        Some(before) => position(before)
            .ok_or_else(|| format!("{} does not run in ring {before}; its rings: {}", app.id, names()))
            .map(Some)?,
        None => to.checked_sub(1),
    };
    let to_version = match (version, from) {
        (Some(version), _) => version.to_owned(),
        (None, None) => {
            return Err(format!("{ring} is the first ring of {}: give --version, or --from RING", app.id));
        }
        (None, Some(from)) if from == to => return Err(format!("--from and --to are both {ring}")),
        (None, Some(from)) => runs(input, app, &rings[from].name).map_err(|why| {
            format!("{}: {why}; --version takes one all the same, which waits in {ring} for a person", app.id)
        })?,
    };
    if !is_label_value(&to_version) || to_version.is_empty() {
        return Err(format!(
            "{to_version:?} cannot be a version: letters, digits, `-`, `_`, `.`, at most 63"
        ));
    }
    let pin = pin_of(input, app, ring);
    let file = pin.map_or_else(|| format!("{}pins/{ring}.yaml", app.folder()), |(_, file)| file.to_owned());
    let from_version = pin.map(|(version, _)| version.to_owned());
    let change = PinChange { app: app.id.clone(), file, from: from_version, to: to_version };
    Ok(Change::Promote {
        group: group_of(app),
        ring: ring.to_owned(),
        before: from.map_or(String::new(), |from| rings[from].name.clone()),
        pins: vec![change],
        is_requested: true,
    })
}
