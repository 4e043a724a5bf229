//! The `status.used` of ResourceQuotas.

use serde_json::Value;

use super::controller_context::ControllerContext;
use crate::store::StoreKey;
use crate::verbs::{self, WriteCaller};

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, quota: &Value) {
    let used = verbs::quota_usage(context.state, quota);
    let hard = quota["spec"]["hard"].clone();
    context.change_status(key, &WriteCaller::controller(), |status| {
        status["hard"] = hard;
        status["used"] = used;
    });
}
