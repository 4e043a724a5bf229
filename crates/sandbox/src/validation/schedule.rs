//! Validates the schedules of CronJobs: five fields, or a name such as `@hourly`.

/// Name, least, most, names of values.
type CronFieldBounds = (u32, u32, &'static [&'static str]);

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [CronFieldBounds; 5] =
    [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, MONTHS), (0, 6, DAYS)];
const NAMES: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

pub(super) fn parse(text: &str) -> Result<(), String> {
    let rest = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(zoned) => {
            let (zone, rest) = zoned.split_once(' ').unwrap_or((zoned, ""));
            if !is_zone(zone) {
                return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
            }
            rest.trim()
        }
        None => text,
    };
    if rest.starts_with('@') {
        return named(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let said = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{said}]", fields.len()));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(field, bounds)| list(field, bounds))
}

/// Without a database every zone is as good as another.
pub(super) fn is_zone(name: &str) -> bool {
    jiff::tz::db().is_definitively_empty()
        || matches!(name, "UTC" | "Local")
        || jiff::tz::TimeZone::get(name).is_ok()
}

fn named(text: &str) -> Result<(), String> {
    if NAMES.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => {
            Err(format!("failed to parse duration {text}: time: invalid duration {duration:?}"))
        }
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let unit = number.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        let (digits, named) = (rest.len() - number.len(), number.len() - unit.len());
        let is_unit =
            number.get(..named).is_some_and(|unit| matches!(unit, "ns" | "us" | "ms" | "s" | "m" | "h"));
        if digits == 0 || !is_unit {
            return false;
        }
        rest = unit;
    }
    !text.is_empty()
}

fn list(field: &str, bounds: &CronFieldBounds) -> Result<(), String> {
    field.split(',').filter(|part| !part.is_empty()).try_for_each(|part| range(part, bounds))
}

/// `a`, `a-b`, `*`, each with `/step`.
fn range(text: &str, bounds: &CronFieldBounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (least, most, _) = *bounds;
    let (start, end) = match ends.as_slice() {
        ["*" | "?"] => (least, most),
        ["*" | "?", ..] => (least, most),
        [one] => {
            let start = value(one, bounds)?;
            (start, if parts.len() == 2 { most } else { start })
        }
        [first, last] => (value(first, bounds)?, value(last, bounds)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => number(step)?,
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn value(text: &str, (least, _, names): &CronFieldBounds) -> Result<u32, String> {
    match names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(at) => Ok(at as u32 + least),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number as u32),
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(), &str>) {
        assert_eq!(parse(text), expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn schedules() {
        for good in ["*/5 * * * *", "0 0 1 jan sun", "1-5,10 2/3 ? * MON-FRI", "@hourly", "@every 1h30m"] {
            check(good, Ok(()));
        }
        check("abc", Err("expected exactly 5 fields, found 1: [abc]"));
        check("60 * * * *", Err("end of range (60) above maximum (59): 60"));
        check("* * 0 * *", Err("beginning of range (0) below minimum (1): 0"));
        check("5-1 * * * *", Err("beginning of range (5) beyond end of range (1): 5-1"));
        check("*/0 * * * *", Err("step of range should be a positive number: */0"));
        check("1-2-3 * * * *", Err("too many hyphens: 1-2-3"));
        check("@never", Err("unrecognized descriptor: @never"));
        check("a * * * *", Err("failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"));
    }
}
