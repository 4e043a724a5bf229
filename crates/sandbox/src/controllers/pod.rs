//! Pods: the scheduler gives them a node, its kubelet runs them.

use std::time::Duration;

use serde_json::Value;

use super::controller_context::ControllerContext;
use super::{kubelet, pod_failure, pods, scheduler};
use crate::object;
use crate::store::{NamespacedName, StoreKey};
use crate::verbs::RequestDeleteOptions;

/// How long pods wait for their node to appear.
const NODE_COMES_BACK: Duration = Duration::from_secs(40);

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &Value) {
    let pod = &*pod_failure::with_scenario(context.state, pod);
    if let Some(node) = object::text(pod, &["spec", "nodeName"])
        && context.state.store.stored_object("nodes", &NamespacedName::new("", node)).is_none()
    {
        return delete_from_lost_node(context, key, pod);
    }
    if object::is_deleting(pod) {
        return kubelet::terminate_pod(context, key, pod);
    }
    if pods::is_finished(pod) {
        return;
    }
    if object::text(pod, &["spec", "nodeName"]).is_some() {
        return kubelet::run(context, key, pod);
    }
    // the kubelet is called when the binding is seen
    scheduler::schedule_pod(context, key, pod);
}

/// Nothing runs on a node that is not there; after a while its pods are deleted.
fn delete_from_lost_node(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &Value) {
    let since = *context.memory.last_progress.entry(object::uid(pod).to_owned()).or_insert(context.now);
    if context.now < since + NODE_COMES_BACK {
        return context.requeue_at(key, since + NODE_COMES_BACK);
    }
    context.delete(key, &RequestDeleteOptions { grace_seconds: Some(0), ..RequestDeleteOptions::default() });
}
