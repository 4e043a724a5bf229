//! PersistentVolumeClaims: bound at once, to a volume that nobody sees.

use serde_json::{Value, json};

use super::context::Context;
use crate::object;
use crate::store::Key;
use crate::verbs::Caller;

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, claim: &Value) {
    if object::text(claim, &["status", "phase"]) == Some("Bound") {
        return;
    }
    let volume = format!("pvc-{}", object::uid(claim));
    context.change(key, |claim| object::set_default(claim, &["spec", "volumeName"], volume));
    let (modes, size) =
        (claim["spec"]["accessModes"].clone(), claim["spec"]["resources"]["requests"].clone());
    context.change_status(key, &Caller::controller(), |status| {
        status["phase"] = json!("Bound");
        status["accessModes"] = modes;
        status["capacity"] = size;
    });
}
