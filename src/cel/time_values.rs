//! Reads fields of timestamps in time zones, and formats timestamps and durations.

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// A field of a timestamp.
#[derive(Clone, Copy, Debug)]
pub enum TimeField {
    FullYear,
    Month,
    DayOfYear,
    DayOfMonth,
    Date,
    DayOfWeek,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

impl TimeField {
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "getFullYear" => Self::FullYear,
            "getMonth" => Self::Month,
            "getDayOfYear" => Self::DayOfYear,
            "getDayOfMonth" => Self::DayOfMonth,
            "getDate" => Self::Date,
            "getDayOfWeek" => Self::DayOfWeek,
            "getHours" => Self::Hours,
            "getMinutes" => Self::Minutes,
            "getSeconds" => Self::Seconds,
            "getMilliseconds" => Self::Milliseconds,
            _ => return None,
        })
    }

    /// `zone`: a name, or `+02:00`. `None`: UTC.
    pub fn get(self, seconds: i64, nanoseconds: u32, zone: Option<&str>) -> Option<i64> {
        let zone = match zone {
            None => TimeZone::UTC,
            Some(zone) => parse_zone(zone)?,
        };
        let at: Zoned = Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok()?.to_zoned(zone);
        Some(match self {
            Self::FullYear => i64::from(at.year()),
            Self::Month => i64::from(at.month()) - 1,
            Self::DayOfYear => i64::from(at.day_of_year()) - 1,
            Self::DayOfMonth => i64::from(at.day()) - 1,
            Self::Date => i64::from(at.day()),
            Self::DayOfWeek => i64::from(at.weekday().to_sunday_zero_offset()),
            Self::Hours => i64::from(at.hour()),
            Self::Minutes => i64::from(at.minute()),
            Self::Seconds => i64::from(at.second()),
            Self::Milliseconds => i64::from(at.subsec_nanosecond()) / 1_000_000,
        })
    }
}

fn parse_zone(zone: &str) -> Option<TimeZone> {
    let Some((hours, minutes)) = zone.split_once(':') else { return TimeZone::get(zone).ok() };
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(TimeZone::fixed(
        Offset::from_seconds(hours.checked_mul(3600)?.checked_add(sign * 60 * minutes)?).ok()?,
    ))
}

/// RFC 3339, with all decimals.
pub fn format_timestamp(seconds: i64, nanoseconds: u32, offset: i32) -> Option<String> {
    let offset = Offset::from_seconds(offset).ok()?;
    let at = Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok()?;
    let zone = TimeZone::fixed(offset);
    let text = at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%.f").to_string();
    let zone = match offset.seconds() {
        0 => "Z".to_owned(),
        seconds => {
            let sign = if seconds < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", seconds.abs() / 3600, seconds.abs() / 60 % 60)
        }
    };
    Some(text + &zone)
}

/// A duration in seconds: `5400s`, `0.5s`.
pub fn format_duration(seconds: i64, nanoseconds: i32) -> String {
    let sign = if seconds < 0 || nanoseconds < 0 { "-" } else { "" };
    let decimals = format!("{:09}", nanoseconds.abs());
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{decimals}s", seconds.abs())
}
