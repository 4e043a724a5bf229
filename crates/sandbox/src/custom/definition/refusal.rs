//! Refuses features of definitions that the sandbox does not simulate.

use serde_json::Value;

use crate::api_error::ApiError;
use crate::custom::schema::{any, list, text};
use crate::decoding::MAX_DEPTH;

/// Formats that would have to be computed.
const UNCHECKED: &[&str] = &["isbn", "isbn10", "isbn13", "creditcard"];

pub(crate) fn refuse(definition: &Value) -> Result<(), ApiError> {
    let spec = &definition["spec"];
    if text(&spec["conversion"], "strategy") == "Webhook" {
        return Err(ApiError::not_simulated("conversion webhooks of CustomResourceDefinitions"));
    }
    for version in list(spec, "versions") {
        // a write of replicas makes the maps on the way to them
        if text(&version["subresources"]["scale"], "specReplicasPath").split('.').count() > MAX_DEPTH {
            return Err(ApiError::not_simulated(format!("scale paths of more than {MAX_DEPTH} steps")));
        }
        let shape = &version["schema"]["openAPIV3Schema"];
        if any(shape, &|one| UNCHECKED.contains(&text(one, "format"))) {
            return Err(ApiError::not_simulated("the formats isbn and creditcard"));
        }
    }
    Ok(())
}
