//! The `status.used` of ResourceQuotas.

use serde_json::Value;

use super::context::Context;
use crate::store::Key;
use crate::verbs::{self, Caller};

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, quota: &Value) {
    let used = verbs::quota_usage(context.state, quota);
    let hard = quota["spec"]["hard"].clone();
    context.change_status(key, &Caller::controller(), |status| {
        status["hard"] = hard;
        status["used"] = used;
    });
}
