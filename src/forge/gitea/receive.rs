//! From the bytes of a webhook to a hint.
//!
//! Facts that are not obvious: the signature of a form is made over its JSON, not over the body;
//! some versions send `status` events with an empty event name, and to hooks that only asked for
//! pushes; a push lists at most five commits. So only names are taken, and Git is asked for the rest.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use secrecy::SecretString;
use serde_json::Value;

use super::{form, signature};
use crate::forge::{Hint, HintKind, Received, Rejected, is_commit};

/// In this order: Forgejo also sends Gitea's headers, and both send those of Gogs.
const EVENTS: [&str; 5] =
    ["x-forgejo-event", "x-gitea-event", "x-forgejo-event-type", "x-gitea-event-type", "x-gogs-event"];
const DELIVERIES: [&str; 3] = ["x-forgejo-delivery", "x-gitea-delivery", "x-gogs-delivery"];
/// A delivery id is a UUID; anything much longer is not remembered.
const LONGEST_DELIVERY: usize = 128;
const UNSIGNED: Rejected = Rejected::Unauthorized("there is none");

/// The JSON of a delivery whose signature fits.
#[derive(Debug)]
pub struct Genuine(Vec<u8>);

/// Whether the sender signed at all. What it signed is seen when the body is there.
pub fn check_signed(headers: &HeaderMap) -> Result<(), Rejected> {
    signature::given(headers).map(drop).ok_or(UNSIGNED)
}

/// Checks the signature and what kind of body it is about; reads nothing of what the body says.
pub fn authenticate(
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
) -> Result<Genuine, Rejected> {
    let signature = signature::given(headers).ok_or(UNSIGNED)?;
    let media = media_type(headers);
    let payload = match media.as_str() {
        "application/x-www-form-urlencoded" => form::field(&body, "payload"),
        _ => None,
    };
    let fits = |bytes: &[u8]| signature::fits(signature, bytes, secrets);
    if !fits(&body) && !payload.as_deref().is_some_and(fits) {
        return Err(Rejected::Unauthorized("it does not fit the body and the secret"));
    }
    match (media.as_str(), payload) {
        ("application/json" | "", _) => Ok(Genuine(body)),
        ("application/x-www-form-urlencoded", Some(payload)) => Ok(Genuine(payload)),
        ("application/x-www-form-urlencoded", None) => {
            Err(Rejected::Malformed("the form has no `payload`".to_owned()))
        }
        _ => Err(Rejected::UnsupportedMediaType(media)),
    }
}

/// Never panics, whatever the bytes are.
pub fn read(receiver: &str, headers: &HeaderMap, body: &Genuine) -> Result<Received, Rejected> {
    let event = header(headers, &EVENTS)
        .ok_or_else(|| Rejected::Malformed("there is no X-Gitea-Event header".to_owned()))?;
    let payload: Value =
        serde_json::from_slice(&body.0).map_err(|error| Rejected::Malformed(format!("not JSON: {error}")))?;
    if !payload.is_object() {
        return Err(Rejected::Malformed("not a JSON object".to_owned()));
    }
    let hint = Hint {
        receiver: receiver.to_owned(),
        repository: text(&payload, &["repository", "full_name"]),
        reference: None,
        after: None,
        kind: HintKind::Push,
        sender: text(&payload, &["sender", "login"]).or_else(|| text(&payload, &["sender", "username"])),
        delivery: delivery(headers),
    };
    match event {
        "push" => pushed(&payload, hint),
        "create" => branch(&payload, hint, HintKind::BranchCreated),
        "delete" => branch(&payload, hint, HintKind::BranchDeleted),
        "status" => Ok(ignored("event `status`: commit statuses change nothing here")),
        event => Ok(ignored(&format!("event `{}` is not of interest", event.escape_debug()))),
    }
}

/// The forge's id of this delivery; the same when somebody sends it again by hand.
pub fn delivery(headers: &HeaderMap) -> Option<String> {
    header(headers, &DELIVERIES).filter(|id| id.len() <= LONGEST_DELIVERY).map(str::to_owned)
}

fn pushed(payload: &Value, hint: Hint) -> Result<Received, Rejected> {
    let reference =
        text(payload, &["ref"]).ok_or_else(|| Rejected::Malformed("the push names no `ref`".to_owned()))?;
    if !reference.starts_with("refs/heads/") {
        return Ok(ignored("the push is not to a branch"));
    }
    let after = text(payload, &["after"]);
    if after.as_deref().is_some_and(is_nothing) {
        return Ok(ignored("the push deletes a branch"));
    }
    Ok(Received::Accepted(Hint {
        reference: Some(reference),
        after: after.filter(|id| is_commit(id)),
        ..hint
    }))
}

fn branch(payload: &Value, hint: Hint, kind: HintKind) -> Result<Received, Rejected> {
    if text(payload, &["ref_type"]).as_deref() != Some("branch") {
        return Ok(ignored("not about a branch"));
    }
    let name = text(payload, &["ref"]).ok_or_else(|| Rejected::Malformed("there is no `ref`".to_owned()))?;
    let reference = if name.starts_with("refs/") { name } else { format!("refs/heads/{name}") };
    let after = text(payload, &["sha"]).filter(|id| is_commit(id) && !is_nothing(id));
    Ok(Received::Accepted(Hint { reference: Some(reference), after, kind, ..hint }))
}

fn ignored(reason: &str) -> Received {
    Received::Ignored { reason: reason.to_owned() }
}

/// Lower case, without parameters; empty when there is none.
fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok().filter(|text| !text.is_empty()))
}

/// A non-empty text at a path; anything else there is as if it were missing.
fn text(value: &Value, path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(value, |value, key| value.get(*key))?;
    found.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The id that stands for "no commit".
fn is_nothing(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte == b'0')
}
