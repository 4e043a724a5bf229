//! Webhooks of Gitea, and of Forgejo, which adds a few headers.
//!
//! The signature of a form covers its JSON, not the body. Some versions send `status` events with an empty event name, also to
//! hooks for pushes only. A push lists at most five commits, and a review names no commit. So only names are taken from the
//! payload, and Git and the forge are read for the rest.

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::Value;

use super::json::{commit, is_nothing, is_true, number, text};
use super::{Genuine, LONGEST_DELIVERY, UNFIT, UNSIGNED, form, header, ignored, media_type, with_payload};
use super::{given, not_of_interest, signature};
use crate::forge::{Hint, HintKind, Received, Rejected};
use crate::model::ReceiverKind;

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
pub(super) fn signature_of(kind: ReceiverKind, headers: &HeaderMap) -> Option<&[u8]> {
    let names = if kind == ReceiverKind::Forgejo { &SIGNATURES[..1] } else { &SIGNATURES[..] };
    names.iter().find_map(|name| given(headers, &[*name]).filter(|given| signature::is_there(given)))
}

pub(super) fn authenticate(
    kind: ReceiverKind,
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
) -> Result<Genuine, Rejected> {
    let signature = signature_of(kind, headers).ok_or(UNSIGNED)?;
    let media = media_type(headers);
    let payload = if media == FORM { form::field(&body, "payload") } else { None };
    let fits = |bytes: &[u8]| signature::fits_prefixed(signature, true, bytes, secrets);
    if !fits(&body) && !payload.as_deref().is_some_and(fits) {
        return Err(UNFIT);
    }
    let body = match (media.as_str(), payload) {
        ("application/json" | "", _) => body,
        (FORM, Some(payload)) => payload,
        (FORM, None) => return Err(Rejected::Malformed("the form has no `payload`".to_owned())),
        _ => return Err(Rejected::UnsupportedMediaType(media)),
    };
    // A delivery that a person sends again has the same id.
    let delivery = header(headers, &DELIVERIES).filter(|id| id.len() <= LONGEST_DELIVERY);
    Ok(Genuine { body, delivery: delivery.map(str::to_owned) })
}

pub(super) fn read(
    headers: &HeaderMap,
    payload: Value,
    size: usize,
    hint: Hint,
) -> Result<Received, Rejected> {
    let event = header(headers, &EVENTS)
        .ok_or_else(|| Rejected::Malformed("there is no X-Gitea-Event header".to_owned()))?;
    let hint = Hint {
        repository: text(&payload, &["repository", "full_name"]),
        sender: text(&payload, &["sender", "login"]).or_else(|| text(&payload, &["sender", "username"])),
        ..hint
    };
    match event {
        "push" => pushed(payload, size, hint),
        "create" => branch(&payload, hint, HintKind::BranchCreated),
        "delete" => branch(&payload, hint, HintKind::BranchDeleted),
        "pull_request" | "pull_request_sync" | "pull_request_label" => pull(&payload, hint),
        "pull_request_approved"
        | "pull_request_rejected"
        | "pull_request_review_approved"
        | "pull_request_review_rejected"
        | "pull_request_review_comment" => of_pull(&payload, hint, HintKind::Review),
        // As an event: a comment of a review. As a type, if the event has no name: also a plain comment.
        "pull_request_comment" if text(&payload, &["action"]).as_deref() == Some("reviewed") => {
            of_pull(&payload, hint, HintKind::Review)
        }
        "issue_comment" | "pull_request_comment" => comment(&payload, hint),
        "status" => Ok(ignored("event `status`: commit statuses change nothing here")),
        event => Ok(not_of_interest(event)),
    }
}

fn pushed(payload: Value, size: usize, hint: Hint) -> Result<Received, Rejected> {
    let reference =
        text(&payload, &["ref"]).ok_or_else(|| Rejected::Malformed("the push names no `ref`".to_owned()))?;
    let is_gone = text(&payload, &["after"]).is_some_and(|id| is_nothing(&id));
    let hint = Hint { after: commit(&payload, &["after"]), ..hint };
    let is_tag = reference.starts_with("refs/tags/");
    if !is_tag && !reference.starts_with("refs/heads/") {
        return Ok(ignored("the push is not to a branch or a tag"));
    }
    if is_gone {
        return Ok(ignored("the push deletes the branch or tag"));
    }
    let hint = Hint { reference: Some(reference), ..hint };
    Ok(match is_tag {
        true => with_payload(payload, size, Hint { kind: HintKind::Tag, ..hint }),
        false => Received::Accepted(hint),
    })
}

/// A tag is also sent as a push.
fn branch(payload: &Value, hint: Hint, kind: HintKind) -> Result<Received, Rejected> {
    if text(payload, &["ref_type"]).as_deref() != Some("branch") {
        return Ok(ignored("not about a branch"));
    }
    let name = text(payload, &["ref"]).ok_or_else(|| Rejected::Malformed("there is no `ref`".to_owned()))?;
    let reference = if name.starts_with("refs/") { name } else { format!("refs/heads/{name}") };
    let after = commit(payload, &["sha"]);
    Ok(Received::Accepted(Hint { reference: Some(reference), after, kind, ..hint }))
}

fn pull(payload: &Value, hint: Hint) -> Result<Received, Rejected> {
    let kind = match text(payload, &["action"]).as_deref() {
        Some("label_updated" | "label_cleared") => HintKind::Label,
        Some(
            action @ ("assigned"
            | "unassigned"
            | "milestoned"
            | "demilestoned"
            | "review_requested"
            | "review_request_removed"),
        ) => return Ok(not_of_interest(&format!("pull_request, {action}"))),
        // An unknown action may matter, so the forge is read.
        _ => HintKind::Pull,
    };
    of_pull(payload, hint, kind)
}

fn of_pull(payload: &Value, hint: Hint, kind: HintKind) -> Result<Received, Rejected> {
    let number = number(payload, &["number"]).or_else(|| number(payload, &["pull_request", "number"]));
    let number = number.ok_or_else(|| Rejected::Malformed("the pull request has no `number`".to_owned()))?;
    let after = commit(payload, &["pull_request", "head", "sha"]);
    Ok(Received::Accepted(Hint { pull: Some(number), after, kind, ..hint }))
}

fn comment(payload: &Value, hint: Hint) -> Result<Received, Rejected> {
    if !is_true(payload, &["is_pull"]) {
        return Ok(ignored("a comment on an issue"));
    }
    if text(payload, &["comment", "body"]).is_some_and(|body| body.starts_with(OWN_COMMENT)) {
        return Ok(ignored("a comment of our own"));
    }
    let number = number(payload, &["issue", "number"])
        .ok_or_else(|| Rejected::Malformed("the comment names no pull request".to_owned()))?;
    Ok(Received::Accepted(Hint { pull: Some(number), kind: HintKind::Comment, ..hint }))
}
