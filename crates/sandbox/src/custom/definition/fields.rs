//! Validates the spec of a definition, in the server's order.

use serde_json::{Value, json};

use super::{names, openapi, shared_parts, versions};
use crate::api_error::FieldError;
use crate::custom::schema::{list, text};

pub(super) fn spec(new: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = names::group_and_scope(new);
    let all = list(spec, "versions");
    for (at, version) in all.iter().enumerate() {
        let schema = version.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
        if schema.is_none_or(Value::is_null) {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
        }
    }
    for (at, version) in all.iter().enumerate() {
        let path = format!("spec.versions[{at}]");
        let name = text(version, "name");
        if let Some(why) = names::label_mistake(name) {
            errors.push(FieldError::invalid(format!("{path}.name"), &json!(name), &why));
        }
        errors.extend(versions::own(new, version, &path));
    }
    errors.extend(versions::of_all(new));
    let first = all.first().map_or("", |version| text(version, "name"));
    if let Some(why) = names::label_mistake(first).filter(|_| !first.is_empty()) {
        errors.push(FieldError::invalid("spec.version", &json!(first), &why));
    }
    errors.extend(names::requested(new));
    if let Some(shared) = shared_parts::shared_part(new, shared_parts::SCHEMA) {
        let with_status = all.iter().any(|version| version["subresources"].get("status").is_some());
        errors.extend(openapi::of_version(shared, "spec.validation", with_status));
    }
    errors.extend(versions::shared(new));
    errors.extend(conversion(&spec["conversion"]));
    errors
}

fn conversion(conversion: &Value) -> Vec<FieldError> {
    let base = "spec.conversion";
    let mut errors = Vec::new();
    let webhook = conversion.get("webhook").filter(|webhook| !webhook.is_null());
    let review = webhook.map_or(&[][..], |webhook| list(webhook, "conversionReviewVersions"));
    match text(conversion, "strategy") {
        "Webhook" => {
            let client = webhook.and_then(|webhook| webhook.get("clientConfig"));
            let field = format!("{base}.webhookClientConfig");
            match client {
                None => {
                    errors.push(FieldError::required(field, "required when strategy is set to Webhook"));
                }
                Some(client) if client.get("url").is_none() == client.get("service").is_none() => {
                    errors.push(FieldError::required(field, "exactly one of url or service is required"));
                }
                Some(_) => {}
            }
            if review.is_empty() {
                errors.push(FieldError::required(format!("{base}.conversionReviewVersions"), ""));
            }
        }
        "None" | "" => {
            let why = "should not be set when strategy is not set to Webhook";
            if webhook.is_some_and(|webhook| webhook.get("clientConfig").is_some()) {
                errors.push(FieldError::forbidden(format!("{base}.webhookClientConfig"), why));
            }
            if !review.is_empty() {
                errors.push(FieldError::forbidden(format!("{base}.conversionReviewVersions"), why));
            }
        }
        other => {
            errors.push(names::not_supported(format!("{base}.strategy"), other, &["None", "Webhook"]));
        }
    }
    errors
}
