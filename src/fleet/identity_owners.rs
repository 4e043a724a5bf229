//! Which file owns the identity of each app and cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{App, DiagnosticScope, Location};

/// The file of each app and cluster, also of those with mistakes.
pub type IdentityOwners = BTreeMap<DiagnosticScope, String>;

/// Every app; of two with one claim, the holder comes first.
pub fn by_seniority<'a>(apps: &'a [Arc<App>], before: &IdentityOwners) -> Vec<&'a App> {
    let mut apps: Vec<&App> = apps.iter().map(|app| &**app).collect();
    if !before.is_empty() {
        apps.sort_by_cached_key(|app| is_new(&DiagnosticScope::App(app.id.clone()), &app.location, before));
    }
    apps
}

/// The location did not hold that identity at the previous revision.
pub fn is_new(scope: &DiagnosticScope, place: &Location, before: &IdentityOwners) -> bool {
    before.get(scope) != Some(&place.file)
}
