//! Time zones by their names in the IANA database, which is part of the program.

use jiff::tz::{self, TimeZone};

use super::super::codes;
use super::super::read::{ManifestValue, ReadContext, nearest};

pub fn read_zone(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<TimeZone> {
    let text = reading.text(value)?;
    let zone = TimeZone::get(&text).ok().filter(|zone| !zone.is_unknown());
    if zone.is_none() {
        let known: Vec<String> = tz::db().available().map(|name| name.to_string()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let help = match nearest(&text, &known) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "write a name of the IANA database, such as Asia/Shanghai or UTC".to_owned(),
        };
        let location = reading.location(value.node);
        reading
            .mistake(codes::UNKNOWN_VALUE, format!("there is no time zone {text:?}"), location, &value.path)
            .help(help);
    }
    zone
}
