//! Webhooks of Gitea, and of Forgejo, which adds a few headers.
//!
//! The signature of a form covers its JSON, not the body. Some versions send `status` events with an empty event name, also to
//! hooks for pushes only. A push lists at most five commits, and a review names no commit. So only names are taken from the
//! payload, and Git and the forge are read for the rest.

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::Value;

use super::form;
use super::headers::{header, media_type, raw_header};
use super::json::{commit, is_null_commit, is_true, number, text};
use super::outcome::{ignored, ignored_event, with_payload};
use super::signature::{self, NO_SIGNATURE, WRONG_SIGNATURE};
use super::verified_delivery::{LONGEST_DELIVERY, VerifiedDelivery};
use crate::forge::{WebhookHint, WebhookHintKind, WebhookOutcome, WebhookRejection};
use crate::model::WebhookReceiverKind;

/// In this order: Forgejo also sends Gitea's headers, and both send those of Gogs.
pub(super) const EVENTS: [&str; 5] =
    ["x-forgejo-event", "x-gitea-event", "x-forgejo-event-type", "x-gitea-event-type", "x-gogs-event"];
const DELIVERIES: [&str; 3] = ["x-forgejo-delivery", "x-gitea-delivery", "x-gogs-delivery"];
const SIGNATURES: [&str; 4] =
    ["x-forgejo-signature", "x-gitea-signature", "x-gogs-signature", "x-hub-signature-256"];
/// The beginning of every comment that tutti writes.
const OWN_COMMENT: &str = "<!-- tutti:";
const FORM: &str = "application/x-www-form-urlencoded";

/// Forgejo signs with its own header, so others do not count there.
pub(super) fn signature_of(kind: WebhookReceiverKind, headers: &HeaderMap) -> Option<&[u8]> {
    let names = if kind == WebhookReceiverKind::Forgejo { &SIGNATURES[..1] } else { &SIGNATURES[..] };
    names.iter().find_map(|name| raw_header(headers, &[*name]).filter(|given| signature::is_present(given)))
}

pub(super) fn authenticate(
    kind: WebhookReceiverKind,
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
) -> Result<VerifiedDelivery, WebhookRejection> {
    let signature = signature_of(kind, headers).ok_or(NO_SIGNATURE)?;
    let media = media_type(headers);
    let payload = if media == FORM { form::field(&body, "payload") } else { None };
    let fits = |bytes: &[u8]| signature::fits_prefixed(signature, true, bytes, secrets);
    if !fits(&body) && !payload.as_deref().is_some_and(fits) {
        return Err(WRONG_SIGNATURE);
    }
    let body = match (media.as_str(), payload) {
        ("application/json" | "", _) => body,
        (FORM, Some(payload)) => payload,
        (FORM, None) => return Err(WebhookRejection::Malformed("the form has no `payload`".to_owned())),
        _ => return Err(WebhookRejection::UnsupportedMediaType(media)),
    };
    // A delivery that a person sends again has the same id.
    let delivery = header(headers, &DELIVERIES).filter(|id| id.len() <= LONGEST_DELIVERY);
    Ok(VerifiedDelivery { body, delivery: delivery.map(str::to_owned) })
}

pub(super) fn read(
    headers: &HeaderMap,
    payload: Value,
    size: usize,
    hint: WebhookHint,
) -> Result<WebhookOutcome, WebhookRejection> {
    let event = header(headers, &EVENTS)
        .ok_or_else(|| WebhookRejection::Malformed("there is no X-Gitea-Event header".to_owned()))?;
    let hint = WebhookHint {
        repository: text(&payload, &["repository", "full_name"]),
        sender: text(&payload, &["sender", "login"]).or_else(|| text(&payload, &["sender", "username"])),
        ..hint
    };
    match event {
        "push" => read_push(payload, size, hint),
        "create" => read_branch(&payload, hint, WebhookHintKind::BranchCreated),
        "delete" => read_branch(&payload, hint, WebhookHintKind::BranchDeleted),
        "pull_request" | "pull_request_sync" | "pull_request_label" => read_pull(&payload, hint),
        "pull_request_approved"
        | "pull_request_rejected"
        | "pull_request_review_approved"
        | "pull_request_review_rejected"
        | "pull_request_review_comment" => of_pull(&payload, hint, WebhookHintKind::Review),
        // As an event: a comment of a review. As a type, if the event has no name: also a plain comment.
        "pull_request_comment" if text(&payload, &["action"]).as_deref() == Some("reviewed") => {
            of_pull(&payload, hint, WebhookHintKind::Review)
        }
        "issue_comment" | "pull_request_comment" => read_comment(&payload, hint),
        "status" => Ok(ignored("event `status`: commit statuses change nothing here")),
        event => Ok(ignored_event(event)),
    }
}

fn read_push(payload: Value, size: usize, hint: WebhookHint) -> Result<WebhookOutcome, WebhookRejection> {
    let reference = text(&payload, &["ref"])
        .ok_or_else(|| WebhookRejection::Malformed("the push names no `ref`".to_owned()))?;
    let is_gone = text(&payload, &["after"]).is_some_and(|id| is_null_commit(&id));
    let hint = WebhookHint { after: commit(&payload, &["after"]), ..hint };
    let is_tag = reference.starts_with("refs/tags/");
    if !is_tag && !reference.starts_with("refs/heads/") {
        return Ok(ignored("the push is not to a branch or a tag"));
    }
    if is_gone {
        return Ok(ignored("the push deletes the branch or tag"));
    }
    let hint = WebhookHint { reference: Some(reference), ..hint };
    Ok(match is_tag {
        true => with_payload(payload, size, WebhookHint { kind: WebhookHintKind::Tag, ..hint }),
        false => WebhookOutcome::Accepted(hint),
    })
}

/// A tag is also sent as a push.
fn read_branch(
    payload: &Value,
    hint: WebhookHint,
    kind: WebhookHintKind,
) -> Result<WebhookOutcome, WebhookRejection> {
    if text(payload, &["ref_type"]).as_deref() != Some("branch") {
        return Ok(ignored("not about a branch"));
    }
    let name =
        text(payload, &["ref"]).ok_or_else(|| WebhookRejection::Malformed("there is no `ref`".to_owned()))?;
    let reference = if name.starts_with("refs/") { name } else { format!("refs/heads/{name}") };
    let after = commit(payload, &["sha"]);
    Ok(WebhookOutcome::Accepted(WebhookHint { reference: Some(reference), after, kind, ..hint }))
}

fn read_pull(payload: &Value, hint: WebhookHint) -> Result<WebhookOutcome, WebhookRejection> {
    let kind = match text(payload, &["action"]).as_deref() {
        Some("label_updated" | "label_cleared") => WebhookHintKind::Label,
        Some(
            action @ ("assigned"
            | "unassigned"
            | "milestoned"
            | "demilestoned"
            | "review_requested"
            | "review_request_removed"),
        ) => return Ok(ignored_event(&format!("pull_request, {action}"))),
        // An unknown action may matter, so the forge is read.
        _ => WebhookHintKind::Pull,
    };
    of_pull(payload, hint, kind)
}

fn of_pull(
    payload: &Value,
    hint: WebhookHint,
    kind: WebhookHintKind,
) -> Result<WebhookOutcome, WebhookRejection> {
    let number = number(payload, &["number"]).or_else(|| number(payload, &["pull_request", "number"]));
    let number =
        number.ok_or_else(|| WebhookRejection::Malformed("the pull request has no `number`".to_owned()))?;
    let after = commit(payload, &["pull_request", "head", "sha"]);
    Ok(WebhookOutcome::Accepted(WebhookHint { pull: Some(number), after, kind, ..hint }))
}

fn read_comment(payload: &Value, hint: WebhookHint) -> Result<WebhookOutcome, WebhookRejection> {
    if !is_true(payload, &["is_pull"]) {
        return Ok(ignored("a comment on an issue"));
    }
    if text(payload, &["comment", "body"]).is_some_and(|body| body.starts_with(OWN_COMMENT)) {
        return Ok(ignored("a comment of tutti itself"));
    }
    let number = number(payload, &["issue", "number"])
        .ok_or_else(|| WebhookRejection::Malformed("the comment names no pull request".to_owned()))?;
    Ok(WebhookOutcome::Accepted(WebhookHint { pull: Some(number), kind: WebhookHintKind::Comment, ..hint }))
}
