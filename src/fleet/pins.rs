//! Attaches pins (version files of rings) to their apps. Called by `assemble`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::PinManifest;
use crate::model::{App, AppSpec, ClusterName, Pin};

/// Pins by the folder of their app.
pub type PinsByFolder<'a> = BTreeMap<&'a str, Vec<&'a PinManifest>>;

pub fn by_folder(pins: &[PinManifest]) -> PinsByFolder<'_> {
    let mut folders = PinsByFolder::new();
    for pin in pins {
        folders.entry(pin.folder.as_str()).or_default().push(pin);
    }
    folders
}

/// Sets the versions of an app from the pins of its folder, for each cluster.
pub fn attach_pins(app: &mut Arc<App>, pins: &PinsByFolder<'_>, ring_of: &BTreeMap<ClusterName, String>) {
    if !matches!(app.spec, AppSpec::AppSet(_) | AppSpec::Component(_)) {
        return;
    }
    let Some(mine) = pins.get(app.folder()) else { return };
    let mut of_clusters = BTreeMap::new();
    for pin in mine {
        let Some(version) = &pin.version else { continue };
        for (cluster, _) in ring_of.iter().filter(|(_, ring)| **ring == pin.ring) {
            let pin = Pin { version: version.clone(), location: pin.location.clone() };
            of_clusters.insert(cluster.clone(), pin);
        }
    }
    if !of_clusters.is_empty() {
        Arc::make_mut(app).pins = of_clusters;
    }
}
