//! Pins to the apps and clusters that they are for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::PinManifest;
use crate::model::{App, AppSpec, ClusterName, Pin};

/// Gives an app the versions that its folder's pins say, cluster by cluster.
pub fn attach(app: &mut Arc<App>, pins: &[PinManifest], ring_of: &BTreeMap<ClusterName, String>) {
    if !matches!(app.spec, AppSpec::AppSet(_) | AppSpec::Component(_)) {
        return;
    }
    let mine = pins.iter().filter(|pin| pin.folder == app.folder());
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
