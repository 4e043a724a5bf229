//! A promotion that a person requests: one pin, whatever the state of the ring before.

use super::next::{pin_of, rings_of, running_version};
use super::{PinChange, PromotionInput, ProposedChange, group_of};
use crate::manifest::read::is_label_value;
use crate::model::{App, AppId, AppSpec};

/// Why the promotion is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// Never possible, whatever runs.
    #[error("{0}")]
    Impossible(String),
    /// The ring before is not done with a version.
    #[error("{0}")]
    NotDone(String),
}

/// The requested version as a change of one pin.
pub fn requested_promotion(
    input: &PromotionInput<'_>,
    app: &AppId,
    before: Option<&str>,
    ring: &str,
    version: Option<&str>,
) -> Result<ProposedChange, RequestRefusal> {
    let impossible = |why: String| Err(RequestRefusal::Impossible(why));
    let Some(app) = input.fleet.apps.get(app) else { return impossible(format!("no app {app}")) };
    let shares = |other: &App| other.id != app.id && other.folder() == app.folder();
    match &app.spec {
        AppSpec::Component(_) | AppSpec::AppSet(_) if !app.is_chart() => {}
        _ => return impossible(format!("{} has no version that a pin could set", app.title())),
    }
    if let Some(other) = input.fleet.apps.values().find(|other| shares(other)) {
        return impossible(format!(
            "{} and {} share a folder: give each its own",
            app.title(),
            other.title()
        ));
    }
    let rings = rings_of(input, app);
    let names = || rings.iter().map(|ring| ring.name.as_str()).collect::<Vec<_>>().join(", ");
    let position = |name: &str| rings.iter().position(|ring| ring.name == name);
    let Some(to) = position(ring) else {
        return impossible(format!("{} does not run in ring {ring}; its rings: {}", app.id, names()));
    };
    let from = match before.map(|before| (before, position(before))) {
        Some((before, None)) => {
            return impossible(format!("{} does not run in ring {before}; its rings: {}", app.id, names()));
        }
        Some((_, from)) => from,
        None => to.checked_sub(1),
    };
    let to_version = match (version, from) {
        (Some(version), _) => version.to_owned(),
        (None, None) => {
            return impossible(format!(
                "{ring} is the first ring of {}: give --version, or --from RING",
                app.id
            ));
        }
        (None, Some(from)) if from == to => return impossible(format!("--from and --to are both {ring}")),
        (None, Some(from)) => running_version(input, app, &rings[from].name).map_err(|why| {
            let help = format!("--version sets one anyway, and it waits in {ring} for a person");
            RequestRefusal::NotDone(format!("{}: {why}; {help}", app.id))
        })?,
    };
    if !is_label_value(&to_version) || to_version.is_empty() {
        return impossible(format!(
            "{to_version:?} cannot be a version: letters, digits, `-`, `_`, `.`, at most 63"
        ));
    }
    let pin = pin_of(input, app, ring);
    let file = pin.map_or_else(|| format!("{}pins/{ring}.yaml", app.folder()), |(_, file)| file.to_owned());
    let from_version = pin.map(|(version, _)| version.to_owned());
    let change = PinChange { app: app.id.clone(), file, from: from_version, to: to_version };
    Ok(ProposedChange::Promote {
        group: group_of(app),
        ring: ring.to_owned(),
        before: from.map_or(String::new(), |from| rings[from].name.clone()),
        pins: vec![change],
        is_requested: true,
    })
}
