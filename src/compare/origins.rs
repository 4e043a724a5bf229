//! Traces fields to the changed lines that set them.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::{AppChange, FieldGroup, PlacementTransition};
use crate::fleet::Target;
use crate::model::{ObjectId, Snapshot};
use crate::render::FleetRenderer;
use crate::render::trace::explain::locate_changed_values;

/// Targets that are traced at most, because each needs more renders.
const MOST_TARGETS: usize = 12;

/// Traces the first of the clusters with equal changes.
pub(super) fn trace_fields(
    apps: &mut [AppChange],
    head: &FleetRenderer<'_>,
    base: &Snapshot,
    goes_on: &dyn Fn() -> bool,
) {
    let mut targets: BTreeMap<Target, BTreeSet<(ObjectId, String)>> = BTreeMap::new();
    for app in apps.iter().take(MOST_TARGETS) {
        for object in &app.objects {
            for group in &object.fields {
                let Some(target) = target_of(app, group) else { continue };
                let fields = group.fields.iter().map(|field| (object.object.clone(), field.place.clone()));
                targets.entry(target).or_default().extend(fields);
            }
        }
    }
    let mut found = BTreeMap::new();
    for (target, fields) in targets.into_iter().take(MOST_TARGETS).take_while(|_| goes_on()) {
        let places = locate_changed_values(head, &target, base, &fields);
        found.insert(target, places);
    }
    for app in apps {
        let id = app.app.clone();
        for object in &mut app.objects {
            for group in &mut object.fields {
                let Some(cluster) = group.clusters.first().cloned() else { continue };
                let Some(places) = found.get(&Target { app: id.clone(), cluster }) else { continue };
                for field in &mut group.fields {
                    let place = places.get(&(object.object.clone(), field.place.clone()));
                    field.set_by = place.map(|place| format!("{}:{}", place.file, place.line));
                }
            }
        }
        set_scale_reasons(app);
    }
}

/// Sets the traced line as the reason of a replica change.
fn set_scale_reasons(app: &mut AppChange) {
    let groups: Vec<&FieldGroup> = app.objects.iter().flat_map(|object| &object.fields).collect();
    for change in app.placement.iter_mut().filter(|change| change.kind == PlacementTransition::Stays) {
        let here = groups.iter().filter(|group| group.clusters.contains(&change.cluster));
        let mut replicas = here.flat_map(|group| &group.fields).filter(|field| field.path == "spec.replicas");
        if let Some(place) = replicas.find_map(|field| field.set_by.clone()) {
            change.why = place;
        }
    }
}

fn target_of(app: &AppChange, group: &FieldGroup) -> Option<Target> {
    Some(Target { app: app.app.clone(), cluster: group.clusters.first()?.clone() })
}
