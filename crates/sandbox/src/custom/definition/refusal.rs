//! Refuses features of definitions that the sandbox does not simulate.

use serde_json::Value;

use crate::custom::schema::{any, list, text};
use crate::decoding::DEEPEST;
use crate::status::ApiError;

/// Formats that would have to be computed.
const UNCHECKED: &[&str] = &["isbn", "isbn10", "isbn13", "creditcard"];

pub(crate) fn refuse(definition: &Value) -> Result<(), ApiError> {
    let spec = &definition["spec"];
    if text(&spec["conversion"], "strategy") == "Webhook" {
        return Err(ApiError::not_simulated("conversion webhooks of CustomResourceDefinitions"));
    }
    for version in list(spec, "versions") {
        // a write of replicas makes the maps on the way to them
        if text(&version["subresources"]["scale"], "specReplicasPath").split('.').count() > DEEPEST {
            return Err(ApiError::not_simulated(format!("scale paths of more than {DEEPEST} steps")));
        }
        let shape = &version["schema"]["openAPIV3Schema"];
        if any(shape, &|one| UNCHECKED.contains(&text(one, "format"))) {
            return Err(ApiError::not_simulated("the formats isbn and creditcard"));
        }
    }
    Ok(())
}
