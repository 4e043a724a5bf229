//! The cause of a workload that has no pods.

use serde_json::Value;

use crate::cluster::Client;
use crate::health::{Cause, lacks_pods, refused_pods};

/// What its controller says of why it makes none; asked for only where it should have made them. `has_pods`: as a list shows.
pub async fn cause(client: &Client, workload: &Value, has_pods: bool) -> Option<Cause> {
    if !lacks_pods(workload, has_pods) {
        return None;
    }
    let said = |field: &str| workload.get("metadata")?.get(field)?.as_str();
    match client.events_about(said("namespace")?, said("uid")?).await {
        Ok(events) => refused_pods(workload, &events),
        Err(error) => {
            tracing::debug!(%error, "the events could not be listed");
            None
        }
    }
}
