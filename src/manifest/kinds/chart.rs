//! Charts in an AppSet: `chart` and `rawValues`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json};

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use super::super::yaml;
use crate::model::{ChartName, ChartRef, secret_masking};

/// `{chartUrl: {url, chartVersion}}` or `{rawChart}`. With both, chartUrl is what counts: rawChart is for when there is no
/// chart repository.
pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ChartRef> {
    let mut fields = ManifestFields::of(value, reading)?;
    let url = fields.optional("chartUrl", reading);
    let raw = fields.optional("rawChart", reading);
    let place = fields.location().clone();
    let path = value.path.clone();
    fields.finish(reading);
    let (location, named) = match (url, raw) {
        (Some(url), _) => (reading.location(url.node), read_url(&url, reading)?),
        (None, Some(raw)) => (reading.location(raw.node), read_raw(&raw, reading)?),
        (None, None) => {
            reading
                .mistake(codes::NOT_EXACTLY_ONE, format!("`{path}` names no chart"), place, &path)
                .help("give chartUrl: {url, chartVersion}, or rawChart");
            return None;
        }
    };
    Some(ChartRef { named, location })
}

fn read_url(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ChartName> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("url", reading);
    let url = place.as_ref().and_then(|url| reading.word(url));
    let version = fields.optional("chartVersion", reading).map(|version| reading.word(&version));
    fields.finish(reading);
    let (place, url) = (place?, url?);
    let path = url.strip_prefix("oci://").unwrap_or(&url);
    let parts: Vec<&str> = path.split('/').collect();
    let plain = parts.iter().all(|part| !part.is_empty() && *part != "." && *part != "..");
    if !plain || parts.len() < 2 || url.contains("://") && !url.starts_with("oci://") {
        let help = "write it as repository/chart (repositories are declared in tutti.yaml under charts), \
                    charts/chart for a \
                    folder of this repository, or oci://registry/path/chart";
        reading.bad_value(&place, format!("{url:?} names no chart"), help);
        return None;
    }
    Some(ChartName::Url { url, version: version.map_or(Some(None), |version| version.map(Some))? })
}

fn read_raw(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ChartName> {
    let text = reading.text(value)?;
    // Long base64 is broken into lines.
    let text: String = text.split_whitespace().collect();
    match BASE64_STANDARD.decode(&text) {
        Ok(bytes) => Some(ChartName::Raw(bytes.into())),
        Err(error) => {
            let help = "a chart as `helm package` writes it (.tgz), in base64: `base64 -w0 chart.tgz`";
            reading.bad_value(value, format!("`rawChart` is not base64: {error}"), help);
            None
        }
    }
}

/// The values of a podSet's chart: YAML in a text, or a map. Nulls stay: they delete.
pub fn values(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Map<String, Json>> {
    let encrypted = |values: &Map<String, Json>| {
        values.get("sops").is_some_and(|sops| sops.get("mac").is_some())
            || secret_masking::ciphertext_path(values).is_some()
    };
    if let Json::Object(map) = value.node.to_json() {
        if encrypted(&map) {
            reading.not_yet("`rawValues` that are encrypted with SOPS", value);
            return None;
        }
        return Some(map);
    }
    let text = reading.text(value)?;
    match yaml::parse_values("rawValues", &text) {
        Ok(values) if encrypted(&values) => {
            reading.not_yet("`rawValues` that are encrypted with SOPS", value);
            None
        }
        Ok(values) => Some(values),
        Err(mistakes) => {
            for mistake in mistakes {
                let line = mistake.location.as_ref().map_or(1, |location| location.start.line);
                let location = reading.location(value.node);
                let message = format!("`rawValues` has an error in its line {line}: {}", mistake.message);
                let noted = reading.mistake(codes::BAD_VALUE, message, location, &value.path);
                if let Some(help) = mistake.help {
                    noted.help(help);
                }
            }
            None
        }
    }
}
