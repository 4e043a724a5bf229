//! Times by five fields: minute, hour, day of the month, month, day of the week, as crontab(5) writes them.

use std::fmt;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Of each field a bit for each value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronSchedule {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both fields of days are given: one of them is enough.
    is_either_day: bool,
    is_every_hour: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("a schedule has five fields, not {0}")]
    Fields(usize),
    #[error("{part:?} is not a valid {field}: it must be from {least} to {most}")]
    Value { part: String, field: &'static str, least: u32, most: u32 },
    #[error("{0:?} ends before it begins")]
    Range(String),
    #[error("no date matches this schedule")]
    Never,
}

/// A field: what it is called, its least and its largest value, and the names from the least on.
type CronField = (&'static str, u32, u32, &'static [&'static str]);

const FIELDS: [CronField; 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    ("month", 1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    // 7 is Sunday too.
    ("day of the week", 0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Every date falls on every day of the week within that time: 40 years around 2100, which is no leap year.
pub const CALENDAR_CYCLE_DAYS: usize = 41 * 366;

impl CronSchedule {
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let Ok(parts) = <[&str; 5]>::try_from(&*parts) else { return Err(CronError::Fields(parts.len())) };
        let mut bits = [0; 5];
        for ((bits, part), field) in bits.iter_mut().zip(parts).zip(FIELDS) {
            *bits = read_field(part, field)?;
        }
        let [minutes, hours, days, months, weekdays] = bits;
        let cron = Self {
            text: parts.join(" "),
            minutes,
            hours,
            days,
            months,
            weekdays: weekdays | weekdays >> 7 & 1,
            is_either_day: ![parts[2], parts[4]].iter().any(|part| part.starts_with('*')),
            is_every_hour: parts[1].starts_with('*'),
        };
        let ever = date(2000, 1, 1).series(1.day()).take(CALENDAR_CYCLE_DAYS).any(|day| cron.has_day(day));
        if ever { Ok(cron) } else { Err(CronError::Never) }
    }

    /// The times of one day, in order. A time that the clock skips is taken after the gap. One that it shows twice is taken the first
    /// time; with `*` in the field of hours, both times.
    pub fn times_on(&self, day: Date, zone: &TimeZone) -> Vec<Timestamp> {
        let mut times = Vec::new();
        if !self.has_day(day) {
            return times;
        }
        for hour in set_bits(self.hours) {
            for minute in set_bits(self.minutes) {
                let at = zone.to_ambiguous_timestamp(day.at(hour, minute, 0, 0));
                times.extend(at.compatible().ok());
                times.extend(at.later().ok().filter(|_| self.is_every_hour));
            }
        }
        times.sort_unstable();
        times.dedup();
        times
    }

    fn has_day(&self, day: Date) -> bool {
        let of_month = has_bit(self.days, day.day());
        let of_week = has_bit(self.weekdays, day.weekday().to_sunday_zero_offset());
        let is_day = if self.is_either_day { of_month || of_week } else { of_month && of_week };
        has_bit(self.months, day.month()) && is_day
    }
}

fn has_bit(bits: u64, value: i8) -> bool {
    bits & 1 << value != 0
}

fn set_bits(bits: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |value| has_bit(bits, *value))
}

/// `*`, `5`, `1-5`, `Mon-Fri`, `*/15`, `8-18/2`, and lists of these.
fn read_field(text: &str, field: CronField) -> Result<u64, CronError> {
    let (name, least, most, names) = field;
    let refused = |part: &str| CronError::Value { part: part.to_owned(), field: name, least, most };
    let value = |part: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(part));
        let number = || part.parse().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()));
        let value = named.map(|at| least + at as u32).or_else(number);
        value.filter(|value| (least..=most).contains(value)).ok_or_else(|| refused(part))
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse().ok().filter(|step| (1..=most).contains(step))),
            None => (part, Some(1)),
        };
        let step = step.ok_or_else(|| refused(part))?;
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((first, last)) => (value(first)?, value(last)?),
            // As crontab has it: from there to the end.
            None if part.contains('/') => (value(range)?, most),
            None => (value(range)?, value(range)?),
        };
        if last < first {
            return Err(CronError::Range(part.to_owned()));
        }
        (first..=last).step_by(step as usize).for_each(|value| bits |= 1 << value);
    }
    Ok(bits)
}

impl fmt::Display for CronSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of a schedule on one day, as clocks of the zone show them.
    fn check(schedule: &str, day: &str, expected: &[&str]) {
        let cron = CronSchedule::parse(schedule).expect("a schedule");
        let times = cron.times_on(day.parse().expect("a day"), &TimeZone::UTC);
        let times: Vec<String> = times.iter().map(|at| at.strftime("%H:%M").to_string()).collect();
        assert_eq!(times, expected, "{schedule} on {day}");
    }

    #[test]
    fn fields_are_values_ranges_steps_and_names() {
        // 27 November 2026 is a Friday.
        check("0 18 * * Fri", "2026-11-27", &["18:00"]);
        check("0 18 * * fri", "2026-11-26", &[]);
        check("*/20 8-9 * * *", "2026-11-27", &["08:00", "08:20", "08:40", "09:00", "09:20", "09:40"]);
        check("5,50 0 27 NOV *", "2026-11-27", &["00:05", "00:50"]);
        check("40/10 23 * * Mon-Fri", "2026-11-27", &["23:40", "23:50"]);
        check("0 0 * * 0", "2026-11-29", &["00:00"]);
        check("0 0 * * 7", "2026-11-29", &["00:00"]);
        check("0 0 * * 5-7", "2026-11-29", &["00:00"]);
        check("0 6-18/6 * 1-6,11 *", "2026-11-27", &["06:00", "12:00", "18:00"]);
        // Of two fields of days one is enough; with a star, both are asked.
        check("0 0 1 * Fri", "2026-11-27", &["00:00"]);
        check("0 0 27 * Mon", "2026-11-27", &["00:00"]);
        check("0 0 */13 * Mon", "2026-11-27", &[]);
        check("0 0 */13 * Fri", "2026-11-27", &["00:00"]);
        check("0 0 29 2 *", "2028-02-29", &["00:00"]);
        check("0 0 29 2 *", "2026-02-28", &[]);
    }

    #[test]
    fn mistakes_name_the_field() {
        for (schedule, expected) in [
            ("", "a schedule has five fields, not 0"),
            ("0 18 * *", "a schedule has five fields, not 4"),
            ("0 18 * * Fri 2026", "a schedule has five fields, not 6"),
            ("60 18 * * *", "\"60\" is not a valid minute: it must be from 0 to 59"),
            ("0 24 * * *", "\"24\" is not a valid hour: it must be from 0 to 23"),
            ("0 0 0 * *", "\"0\" is not a valid day of the month: it must be from 1 to 31"),
            ("0 0 1 Foo *", "\"Foo\" is not a valid month: it must be from 1 to 12"),
            ("0 0 * * 8", "\"8\" is not a valid day of the week: it must be from 0 to 7"),
            ("+5 0 * * *", "\"+5\" is not a valid minute: it must be from 0 to 59"),
            ("5- 0 * * *", "\"\" is not a valid minute: it must be from 0 to 59"),
            ("*/0 0 * * *", "\"*/0\" is not a valid minute: it must be from 0 to 59"),
            ("*/99999999999 0 * * *", "\"*/99999999999\" is not a valid minute: it must be from 0 to 59"),
            ("0 0 * * Fri-Mon", "\"Fri-Mon\" ends before it begins"),
            ("0 0 30 2 *", "no date matches this schedule"),
        ] {
            let error = CronSchedule::parse(schedule).expect_err("an error");
            assert_eq!(error.to_string(), expected, "{schedule}");
        }
    }
}
