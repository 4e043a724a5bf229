//! Options of lists and watches: page, limit and revision.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::query::QueryParameters;
use crate::api_error::{ApiError, FieldError};
use crate::decoding;

/// The revision that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedRevision {
    /// The present one, which is this revision or a later one.
    NotOlderThan(u64),
    /// The one of this revision, for a first page.
    Exact(u64),
    /// The one of the first page's revision.
    Continued(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListOptions {
    pub(crate) limit: usize,
    /// The first key of the page, without the namespace of the list.
    pub(crate) start: String,
    pub(crate) moment: ListedRevision,
}

/// Bits that are left over at the end do not matter.
const LENIENT_BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl ListOptions {
    pub(crate) fn parse(query: &QueryParameters) -> Result<Self, ApiError> {
        let limit = query.integer("limit")?.filter(|limit| *limit > 0);
        query.integer("timeoutSeconds")?;
        check_list(query)?;
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (token, revision) = (query.text("continue"), query.text("resourceVersion"));
        if !token.is_empty() {
            let (revision_of_page, start) = read_token(token).map_err(|why| {
                ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
            })?;
            if !matches!(revision, "" | "0") {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            // a token with a negative revision continues at the current revision
            let moment = u64::try_from(revision_of_page)
                .map_or(ListedRevision::NotOlderThan(0), ListedRevision::Continued);
            // with a zero the rest is answered whole
            let limit = if revision == "0" { usize::MAX } else { limit };
            return Ok(Self { limit, start, moment });
        }
        let at = query.revision().map_err(|why| {
            ApiError::bad_request(format!("invalid resource version: resourceVersion: {why}"))
        })?;
        let paged = limit < usize::MAX;
        let (limit, moment) = match query.text("resourceVersionMatch") {
            "Exact" => (limit, ListedRevision::Exact(at)),
            // the watch cache answers these whole
            _ if revision == "0" => (usize::MAX, ListedRevision::NotOlderThan(0)),
            "" if paged && at > 0 => (limit, ListedRevision::Exact(at)),
            _ => (limit, ListedRevision::NotOlderThan(at)),
        };
        Ok(Self { limit, start: String::new(), moment })
    }
}

/// A token for the page after the object at `place`; a negative revision means the present state.
pub(crate) fn token(revision: i64, place: &str) -> String {
    token_from(revision, &format!("/{place}\0"))
}

/// A token for the page that starts with this key.
pub(crate) fn token_from(revision: i64, start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": TOKEN_VERSION, "rv": revision, "start": start}).to_string())
}

/// The revision and the first key of a page. Errors are those of Go.
fn read_token(token: &str) -> Result<(i64, String), String> {
    let decoded = LENIENT_BASE64.decode(token).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            base64::DecodeError::InvalidLength(length) => length.saturating_sub(1),
            base64::DecodeError::InvalidPadding => token.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })?;
    let content = decoding::json_value(&decoded)?;
    if !content.is_object() {
        let found = decoding::noun(&content);
        return Err(format!("json: cannot unmarshal {found} into Go value of type storage.continueToken"));
    }
    for (field, fits, wanted) in [
        ("v", content["v"].is_string(), "string"),
        ("rv", content["rv"].is_i64(), "int64"),
        ("start", content["start"].is_string(), "string"),
    ] {
        if !fits && !content[field].is_null() {
            let found = decoding::noun(&content[field]);
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field continueToken.{field} of type {wanted}"
            ));
        }
    }
    let version = content["v"].as_str().unwrap_or("");
    if version != TOKEN_VERSION {
        return Err(format!("server does not recognize this encoded version {version}"));
    }
    let revision = content["rv"].as_i64().unwrap_or(0);
    if revision == 0 {
        return Err(format!("incorrect encoded start resourceVersion (version {version})"));
    }
    let start = content["start"].as_str().unwrap_or("");
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {version})"));
    }
    let key = start.strip_prefix('/').unwrap_or(start);
    let clean = key.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if clean { Ok((revision, key.to_owned())) } else { Err(start.to_owned()) }
}

fn check_list(query: &QueryParameters) -> Result<(), ApiError> {
    let (wanted, revision) = (query.text("resourceVersionMatch"), query.text("resourceVersion"));
    let mut mistakes = Vec::new();
    if !wanted.is_empty() {
        if revision.is_empty() {
            mistakes.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !query.text("continue").is_empty() {
            mistakes.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            mistakes.push(unsupported(wanted, "\"Exact\", \"NotOlderThan\", \"\""));
        }
        if wanted == "Exact" && revision == "0" {
            mistakes.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        let why = "sendInitialEvents is forbidden for list";
        mistakes.push(FieldError::forbidden("sendInitialEvents", why));
    }
    refuse(&mistakes)
}

/// Whether a watch starts with the existing objects; validates the related options.
pub(crate) fn initial_events(
    query: &QueryParameters,
    streaming_lists: Option<bool>,
) -> Result<bool, ApiError> {
    let sent = query.get("sendInitialEvents").filter(|_| streaming_lists.is_some());
    let sent = sent.map(|_| query.flag("sendInitialEvents"));
    let streaming_lists = streaming_lists.unwrap_or_default();
    let wanted = query.text("resourceVersionMatch");
    let from_present = matches!(query.text("resourceVersion"), "" | "0");
    // watches from the present state have their initial events marked as well
    let implied = streaming_lists && sent.is_none() && wanted.is_empty() && from_present;
    let mut mistakes = Vec::new();
    if sent.is_some() {
        if wanted != "NotOlderThan" {
            mistakes
                .push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
        if !streaming_lists {
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            mistakes.push(FieldError::forbidden("sendInitialEvents", why));
        }
    }
    if !wanted.is_empty() {
        if sent.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            mistakes.push(forbidden(why));
        }
        if wanted != "NotOlderThan" {
            mistakes.push(unsupported(wanted, "\"NotOlderThan\""));
        }
    }
    if (implied || !wanted.is_empty()) && !query.text("continue").is_empty() {
        mistakes.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
    }
    refuse(&mistakes)?;
    Ok(implied || sent == Some(true))
}

fn forbidden(why: &str) -> FieldError {
    FieldError::forbidden("resourceVersionMatch", why)
}

fn unsupported(value: &str, supported: &str) -> FieldError {
    FieldError {
        field: "resourceVersionMatch".to_owned(),
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {value:?}: supported values: {supported}"),
    }
}

fn refuse(mistakes: &[FieldError]) -> Result<(), ApiError> {
    if mistakes.is_empty() { Ok(()) } else { Err(ApiError::invalid_options("ListOptions", mistakes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, limit: usize, moment: ListedRevision) {
        let parsed = ListOptions::parse(&QueryParameters::parse(query)).unwrap();
        assert_eq!((parsed.limit, parsed.moment), (limit, moment), "{query}");
    }

    #[test]
    fn which_state_a_list_shows() {
        check("", usize::MAX, ListedRevision::NotOlderThan(0));
        check("limit=-1", usize::MAX, ListedRevision::NotOlderThan(0));
        check("limit=2", 2, ListedRevision::NotOlderThan(0));
        check("limit=2&resourceVersion=0", usize::MAX, ListedRevision::NotOlderThan(0));
        check("resourceVersion=7", usize::MAX, ListedRevision::NotOlderThan(7));
        check("resourceVersion=7&limit=2", 2, ListedRevision::Exact(7));
        check(
            "resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan",
            2,
            ListedRevision::NotOlderThan(7),
        );
        check("resourceVersion=7&resourceVersionMatch=Exact", usize::MAX, ListedRevision::Exact(7));
        check(&format!("continue={}", token(7, "a/b")), usize::MAX, ListedRevision::Continued(7));
        check(&format!("continue={}", token(-1, "a/b")), usize::MAX, ListedRevision::NotOlderThan(0));
    }

    fn check_refused(query: &str, expected: &str) {
        let error = ListOptions::parse(&QueryParameters::parse(query)).unwrap_err();
        assert_eq!(error.message, expected, "{query}");
    }

    #[test]
    fn broken_tokens_are_refused_with_go_s_words() {
        let refused = |token: &str, why: &str| {
            let expected = format!("invalid continue token: continue key is not valid: {why}");
            check_refused(&format!("continue={token}"), &expected);
        };
        refused("%24%24", "illegal base64 data at input byte 0");
        refused("a", "illegal base64 data at input byte 0");
        refused("abc", "invalid character 'i' looking for beginning of value");
        refused("e30", "server does not recognize this encoded version ");
        refused(&token_from(0, "/a\0"), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
        refused(&token_from(5, ""), "encoded start key empty (version meta.k8s.io/v1)");
        refused(&token_from(5, "../x"), "../x");
    }
}
