//! Kind Server: a machine of the inventory, and until when it is paid.

use jiff::civil::Date;
use serde_json::Value as Json;

use super::super::read::{ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::{read_envelope, spec_fields};
use crate::model::InventoryServer;

/// Where the inventory of a repository is.
pub const FOLDER: &str = "servers/";

/// Without `warnBefore`.
const WARN_DAYS: u16 = 14;

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<InventoryServer> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let address = fields.optional("address", reading).and_then(|it| reading.word(&it));
    let provider = fields.optional("provider", reading).and_then(|it| reading.word(&it));
    let cluster = fields.optional("cluster", reading);
    let cluster_location = cluster.as_ref().map(|it| reading.location(it.node));
    let cluster = cluster.and_then(|it| reading.name(&it, NameRule::Subdomain));
    let meta = fields.optional("meta", reading).map(|it| (it.node.to_json(), it));
    let expires = fields.required("expiresAt", reading).and_then(|it| read_date(&it, reading));
    let warn_days = match fields.optional("warnBefore", reading) {
        Some(days) => read_days(&days, reading),
        None => Some(WARN_DAYS),
    };
    fields.finish(reading);
    let meta = match meta {
        Some((Json::Object(meta), _)) => meta,
        Some((_, value)) => {
            reading.wrong_type(&value, "a map");
            return None;
        }
        None => Default::default(),
    };
    let metadata = metadata?;
    Some(InventoryServer {
        name: metadata.name,
        labels: metadata.labels,
        address,
        provider,
        cluster,
        meta,
        expires: expires?,
        warn_days: warn_days?,
        location: metadata.location,
        cluster_location,
    })
}

fn read_date(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Date> {
    let text = reading.text(value)?;
    let is_sign = |(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { u8::is_ascii_digit(&byte) };
    let has_form = text.len() == 10 && text.bytes().enumerate().all(is_sign);
    let date = text.parse().ok().filter(|_| has_form);
    if date.is_none() {
        reading.bad_value(value, format!("{text:?} is not a date"), "write year, month and day: 2027-01-31");
    }
    date
}

/// `14d`
fn read_days(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<u16> {
    let text = reading.text(value)?;
    let number = text.strip_suffix('d').filter(|it| it.len() <= 3 && !it.starts_with(['0', '+']));
    let days = number.and_then(|number| number.parse().ok());
    if days.is_none() {
        let help = "write whole days, from 1d to 999d";
        reading.bad_value(value, format!("{text:?} is not a number of days"), help);
    }
    days
}
