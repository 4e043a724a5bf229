//! The next version of a ring, from the ring before.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{AppRingState, PinChange, PromotionInput};
use crate::manifest::read::is_label_value;
use crate::model::{App, AppId, PromotionMode, Ring};
use crate::rollout::{GateProgress, MeasurementGate};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextVersion {
    /// It has the version of the ring before.
    Nothing {
        why: String,
    },
    /// The ring before is not done, or its soak is not over.
    Waits {
        why: String,
        until: Option<Timestamp>,
    },
    Ready {
        pins: Vec<PinChange>,
    },
}

/// Apps that are promoted together to one ring.
#[derive(Clone, Debug)]
pub(super) struct PromotionStep<'a> {
    pub group: AppId,
    pub ring: &'a Ring,
    /// The apps with a pin there, each with its ring before.
    pub apps: Vec<(&'a App, &'a Ring)>,
    /// Apps of the group with errors.
    pub broken: Vec<AppId>,
}

/// The group of an app: one of its own name if it has none.
pub fn group_of(app: &App) -> AppId {
    let name = app.promotion_group.as_deref().unwrap_or(&app.id.name);
    AppId::new(&app.id.namespace, name)
}

/// The rings that an app runs in, in order.
pub fn rings_of<'a>(input: &PromotionInput<'a>, app: &App) -> Vec<&'a Ring> {
    let clusters = input.fleet.clusters_of(app);
    let has = |ring: &&Ring| clusters.iter().any(|it| input.fleet.ring_of(it) == Some(&ring.name));
    input.fleet.rings.iter().filter(has).collect()
}

/// The version in the pin of a ring, and its file.
pub fn pin_of<'a>(input: &PromotionInput<'_>, app: &'a App, ring: &str) -> Option<(&'a str, &'a str)> {
    let mut here = app.pins.iter().filter(|(cluster, _)| input.fleet.ring_of(cluster) == Some(ring));
    here.next().map(|(_, pin)| (pin.version.as_str(), pin.location.file.as_str()))
}

/// Every (group, ring) that may get a version, by ring and then by group.
pub(super) fn promotion_steps<'a>(input: &PromotionInput<'a>) -> Vec<PromotionStep<'a>> {
    let mut steps: BTreeMap<(usize, AppId), PromotionStep<'a>> = BTreeMap::new();
    for app in input.fleet.apps.values().filter(|app| !app.pins.is_empty()) {
        for pair in rings_of(input, app).windows(2) {
            let &[before, ring] = pair else { continue };
            if pin_of(input, app, &ring.name).is_none() {
                continue;
            }
            let position = input.fleet.rings.iter().position(|it| it.name == ring.name).unwrap_or_default();
            let group = group_of(app);
            let step = steps.entry((position, group.clone())).or_insert_with(|| PromotionStep {
                group,
                ring,
                apps: Vec::new(),
                broken: Vec::new(),
            });
            step.apps.push((app, before));
        }
    }
    for (id, broken) in &input.fleet.broken_apps {
        let Some(group) = broken.app.as_ref().map(|app| group_of(app)) else { continue };
        steps.values_mut().filter(|step| step.group == group).for_each(|step| step.broken.push(id.clone()));
    }
    steps.into_values().collect()
}

impl PromotionStep<'_> {
    pub fn next_version(&self, input: &PromotionInput<'_>) -> NextVersion {
        let mut pins = Vec::new();
        let mut waits: Option<(String, Option<Timestamp>)> = None;
        for (app, before) in &self.apps {
            let Some((version, file)) = pin_of(input, app, &self.ring.name) else { continue };
            match offered_version(input, app, before) {
                Ok(to) if to == version => {}
                Ok(to) => {
                    let (from, file) = (Some(version.to_owned()), file.to_owned());
                    pins.push(PinChange { app: app.id.clone(), file, from, to });
                }
                // The ring before will have this ring's version: there is nothing to wait for.
                Err(_) if pin_of(input, app, &before.name).is_some_and(|(coming, _)| coming == version) => {}
                Err((why, until)) => {
                    let why = if self.apps.len() > 1 { format!("{}: {why}", app.id.name) } else { why };
                    // A reason without an end of its own is more important than a soak.
                    if waits.as_ref().is_none_or(|(_, known)| known.is_some() && until.is_none()) {
                        waits = Some((why, until));
                    }
                }
            }
        }
        pins.sort();
        if let Some(broken) = self.broken.first() {
            return NextVersion::Waits { why: format!("{broken} of this group has errors"), until: None };
        }
        match waits {
            Some((why, until)) => NextVersion::Waits { why, until },
            None if pins.is_empty() => {
                let before = self.apps.first().map_or("", |(_, before)| before.name.as_str());
                NextVersion::Nothing { why: format!("{} has the versions of {before}", self.ring.name) }
            }
            None => NextVersion::Ready { pins },
        }
    }

    pub fn is_manual(&self) -> bool {
        self.ring.promotion.mode == PromotionMode::Manual
    }

    /// The ring before; for a group, that of its first app.
    pub fn previous_ring(&self) -> &str {
        self.apps.first().map_or("", |(_, before)| before.name.as_str())
    }
}

/// The version that a ring runs and is done with after its soak; else the reason, and the time when that ends without help.
fn offered_version(
    input: &PromotionInput<'_>,
    app: &App,
    ring: &Ring,
) -> Result<String, (String, Option<Timestamp>)> {
    let version = running_version(input, app, &ring.name).map_err(|why| (why, None))?;
    match soaks_until(input, app, ring) {
        Some(until) if until > input.now => {
            let shown = until.strftime("%F %H:%M:%S UTC");
            Err((format!("soak of {} ends at {shown}", ring.name), Some(until)))
        }
        // An inconclusive result is shown as a gate, and a person decides.
        _ => match ring_measurement(input, app, ring) {
            Some((Some(GateProgress::Pending | GateProgress::Failed), words)) => {
                Err((format!("{} is done, {words}", ring.name), None))
            }
            _ => Ok(version),
        },
    }
}

/// The measurements after a ring, the worst first: the state of the one that has not passed, and a text. `None`: nothing is
/// measured.
pub(super) fn ring_measurement(
    input: &PromotionInput<'_>,
    app: &App,
    ring: &Ring,
) -> Option<(Option<GateProgress>, String)> {
    let state = input.rings.get(&(app.id.clone(), ring.name.clone()));
    let known = state?.measures.as_ref()?;
    let analyses = ring.limits.analysis.iter().cloned().map(MeasurementGate::Analysis);
    let gates = analyses.chain(ring.limits.statuses.iter().cloned().map(MeasurementGate::Status));
    let of_gate = |gate: MeasurementGate| {
        let name = match &gate {
            MeasurementGate::Analysis(name) => format!("analysis {name}"),
            MeasurementGate::Status(context) => format!("commit status {context}"),
        };
        match known.iter().find(|it| it.measure.gate == gate) {
            Some(it) => (it.outcome.gate_progress(), format!("{name}: {}", it.outcome.reason())),
            None => (Some(GateProgress::Pending), format!("{name}: not measured yet")),
        }
    };
    gates.map(of_gate).reduce(|worst, other| if other.0 > worst.0 { other } else { worst })
}

/// The version that every unit of a ring runs and is healthy with; else the reason why there is none.
pub fn running_version(input: &PromotionInput<'_>, app: &App, ring: &str) -> Result<String, String> {
    let state = input.rings.get(&(app.id.clone(), ring.to_owned()));
    let Some(state) = state else { return Err(format!("the state of ring {ring} is not known")) };
    let AppRingState { units, done, wait_reason: waits, version, .. } = state;
    if *units == 0 {
        return Err(format!("every cluster of ring {ring} is left out"));
    }
    if done < units {
        let because = if waits.is_empty() { String::new() } else { format!(": {waits}") };
        return Err(format!("{done}/{units} done on {ring}{because}"));
    }
    let version = pin_of(input, app, ring).map_or(version.as_str(), |(version, _)| version);
    match version {
        "" => Err(format!("no version is known on {ring}")),
        version if version.contains('/') => Err(format!("{ring} runs several versions: {version}")),
        version if !is_label_value(version) => Err(format!("{version:?} on {ring} cannot be a pin")),
        version => Ok(version.to_owned()),
    }
}

/// The end of the soak of a ring that is done. If the time since when it is done is unknown, the soak has just begun.
pub(super) fn soaks_until(input: &PromotionInput<'_>, app: &App, ring: &Ring) -> Option<Timestamp> {
    let soak = jiff::SignedDuration::try_from(ring.limits.soak?).ok()?;
    let state = input.rings.get(&(app.id.clone(), ring.name.clone()));
    let since = state.and_then(|state| state.done_since).unwrap_or(input.now);
    since.checked_add(soak).ok()
}
