//! Checks that each pin belongs to one app and one ring, and that no other place sets the version.

use std::collections::BTreeMap;

use super::CheckInput;
use crate::fleet::codes;
use crate::fleet::pins::by_folder;
use crate::manifest::PinManifest;
use crate::manifest::read::suggest;
use crate::model::{App, AppSet, AppSpec, DeployType, Diagnostic, DiagnosticScope};

/// While a pin is wrong, the version in its ring is unknown, so the app is left as it is.
pub fn pins_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let pins = by_folder(&facts.manifests.pins);
    let mut apps: BTreeMap<&str, Vec<&App>> = pins.keys().map(|folder| (*folder, Vec::new())).collect();
    for app in &facts.manifests.apps {
        if let Some(here) = apps.get_mut(app.folder()) {
            here.push(app);
        }
    }
    for (folder, pins) in &pins {
        let here = apps.get(folder).map_or(&[][..], Vec::as_slice);
        found.extend(pins.iter().enumerate().flat_map(|(index, pin)| {
            let [app] = here else { return ambiguous_pin_errors(pin, here) };
            let earlier = pins.iter().take(index).find(|it| it.ring == pin.ring);
            pin_errors(facts, app, pin, earlier.copied())
        }));
    }
    found
}

fn pin_errors(
    facts: &CheckInput<'_>,
    app: &App,
    pin: &PinManifest,
    earlier: Option<&PinManifest>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let error = |code, message: String| {
        Diagnostic::error(code, message, DiagnosticScope::App(app.id.clone())).at(pin.location.clone())
    };
    if pin.version.is_none() {
        let message = format!("{} waits: its pin for {} has errors", app.title(), pin.ring);
        return vec![error(codes::INVALID_PIN, message).help("fix the pin; then the app continues")];
    }
    let known: Vec<&str> = facts.rings.iter().map(|ring| ring.name.as_str()).collect();
    if !known.contains(&pin.ring.as_str()) {
        let message = format!("{} is pinned for ring {}, which does not exist", app.title(), pin.ring);
        found.push(error(codes::UNKNOWN_RING, message).help(suggest(&pin.ring, &known, &known)));
    }
    if let Some(first) = earlier {
        let message = format!("a second pin of {} for ring {}", app.title(), pin.ring);
        let error = error(codes::DUPLICATE, message).help("keep one of them");
        found.push(error.related(first.location.clone(), "the first one"));
    }
    match &app.spec {
        AppSpec::AppSet(app_set) if app_set.deploy_type != DeployType::Helm => {
            found.extend(pod_set_pin_errors(facts, pin, app, app_set));
        }
        AppSpec::Component(_) => {}
        AppSpec::AppSet(_) | AppSpec::Objects(_) | AppSpec::Project(_) => {
            let message = format!("{} has no version that a pin could set", app.title());
            let help = "a pin is for the image of a Component, or of an AppSet that is not a chart";
            found.push(error(codes::INVALID_PIN, message).help(help));
        }
    }
    found
}

fn ambiguous_pin_errors(pin: &PinManifest, apps: &[&App]) -> Vec<Diagnostic> {
    let folder = &pin.folder;
    if apps.is_empty() {
        let message = format!("a pin, and no app in {folder}");
        let error =
            Diagnostic::error(codes::INVALID_PIN, message, DiagnosticScope::File(pin.location.file.clone()));
        return vec![error.at(pin.location.clone()).help("its app is in the folder above pins/")];
    }
    let help = "put each app into a folder of its own";
    let error = |app: &&App| {
        let message = format!("a pin for several apps: {} is not the only one in {folder}", app.title());
        Diagnostic::error(codes::INVALID_PIN, message, DiagnosticScope::App(app.id.clone()))
            .at(pin.location.clone())
            .help(help)
    };
    apps.iter().map(error).collect()
}

/// Two places with a version: which one counts would be a guess.
fn pod_set_pin_errors(
    facts: &CheckInput<'_>,
    pin: &PinManifest,
    app: &App,
    app_set: &AppSet,
) -> Vec<Diagnostic> {
    let here = app_set.clusters.iter().filter(|it| facts.ring_of.get(&it.name) == Some(&pin.ring));
    let own = here.flat_map(|cluster| &cluster.pod_sets).filter(|pod_set| pod_set.version.is_some());
    own.map(|pod_set| {
        let message =
            format!("podSet {} has a version of its own, and ring {} is pinned", pod_set.name, pin.ring);
        Diagnostic::error(codes::INVALID_PIN, message, DiagnosticScope::App(app.id.clone()))
            .at(pin.location.clone())
            .help("remove the version of the podSet, or the pin")
            .related(pod_set.location.clone(), "the podSet")
    })
    .collect()
}
