//! The five fields of a CronJob's schedule, or a name for them, and when they match next. In UTC.
//!
//! Whether a schedule makes sense, and what the server says when it does not, is in `validation`.

/// Minutes of an hour, hours of a day, days of a month, months, days of a week: a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CronJobSchedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Neither days field is `*`: either of them may match.
    either_day: bool,
    /// `@every`: the seconds between matches; the fields are unused then.
    every: Option<i64>,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTE: i64 = 60;
const DAY: i64 = 24 * 3600;
/// Leap days come back within eight years.
const SEARCHED_DAYS: i64 = 8 * 366;

impl CronJobSchedule {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(duration) = text.strip_prefix("@every ") {
            return Some(Self { every: Some(whole_seconds(duration)?), ..Self::default() });
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        // `*/2` chooses, `*/1` does not
        let is_star = |part: &str| match part.split_once('/') {
            Some((range, step)) => matches!(range, "*" | "?") && step.parse() == Ok(1),
            None => matches!(part, "*" | "?"),
        };
        let any = |field: &str| field.split(',').any(is_star);
        let mut week = field_bits(weekdays, 0, 7, WEEKDAYS, 0)?;
        // Sunday is 0 and 7
        week |= week >> 7;
        Some(Self {
            minutes: field_bits(minutes, 0, 59, &[], 0)?,
            hours: field_bits(hours, 0, 23, &[], 0)?,
            days: field_bits(days, 1, 31, &[], 0)?,
            months: field_bits(months, 1, 12, MONTHS, 1)?,
            weekdays: week,
            either_day: !any(days) && !any(weekdays),
            every: None,
        })
    }

    /// The first match after a time, in seconds since 1970.
    pub(super) fn next_after(&self, seconds: i64) -> Option<i64> {
        if let Some(every) = self.every {
            return seconds.checked_add(every);
        }
        let first = (seconds.div_euclid(MINUTE) + 1) * MINUTE;
        let today = first.div_euclid(DAY);
        for day in today..today + SEARCHED_DAYS {
            if !self.matches_day(day) {
                continue;
            }
            let from = if day == today { first.rem_euclid(DAY) / MINUTE } else { 0 };
            let found = (from..24 * 60).find(|minute| {
                self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1
            });
            if let Some(minute) = found {
                return Some(day * DAY + minute * MINUTE);
            }
        }
        None
    }

    fn matches_day(&self, day: i64) -> bool {
        let (month, of_month) = month_and_day(day);
        let of_week = (day + 4).rem_euclid(7);
        let in_month = self.days >> of_month & 1 == 1;
        let in_week = self.weekdays >> of_week & 1 == 1;
        let day = if self.either_day { in_month || in_week } else { in_month && in_week };
        self.months >> month & 1 == 1 && day
    }
}

/// Month and day of a day since 1970 (Hinnant's algorithm).
fn month_and_day(day: i64) -> (i64, i64) {
    let of_era = (day + 719_468).rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// A duration as Go writes it (`1h30m`, `1.5h`) in whole seconds, at least one.
fn whole_seconds(duration: &str) -> Option<i64> {
    const LONGEST: f64 = 100.0 * 365.0 * 24.0 * 3600.0;
    let (mut rest, mut seconds) = (duration.trim(), 0.0);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|letter: char| letter.is_ascii_alphabetic())?);
        let (unit, after) =
            after.split_at(after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len()));
        let unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    (!duration.is_empty()).then(|| seconds.clamp(1.0, LONGEST) as i64)
}

/// `*`, `5`, `1-5`, `*/15`, `mon-fri`, and lists of them.
fn field_bits(field: &str, least: u64, most: u64, names: &[&str], first_name: u64) -> Option<u64> {
    let number = |text: &str| {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = named.map_or_else(|| text.parse().ok(), |at| Some(at as u64 + first_name))?;
        (least..=most).contains(&number).then_some(number)
    };
    let mut bits = 0;
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<u64>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None if matches!(range, "*" | "?") => (least, most),
            None if part.contains('/') => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        if first > last {
            return None;
        }
        for one in (first..=last).step_by(usize::try_from(step).ok()?) {
            bits |= 1 << one;
        }
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21, a Saturday, at 15:00 UTC.
    const NOW: i64 = 1_795_273_200;

    fn check(schedule: &str, expected: Option<i64>) {
        let next = CronJobSchedule::parse(schedule).and_then(|schedule| schedule.next_after(NOW));
        assert_eq!(next.map(|next| next - NOW), expected, "{schedule}");
    }

    #[test]
    fn the_next_match() {
        check("* * * * *", Some(60));
        check("*/15 * * * *", Some(15 * 60));
        check("0 15 * * *", Some(24 * 3600));
        check("30 16-18 * * *", Some(90 * 60));
        check("0 0 * * mon", Some(33 * 3600));
        check("0 0 22 11 7", Some(9 * 3600));
        check("0 0 */2 * sat", Some(33 * 3600));
        check("0 0 */1 * sat", Some(153 * 3600));
        check("5,,10 * * * *", Some(5 * 60));
        check("@every 1h30m", Some(90 * 60));
        check("@every 1.5s", Some(1));
        check("@every 200ms", Some(1));
        check("@hourly", Some(3600));
        check("0 0 29 2 *", Some(465 * 24 * 3600 - 15 * 3600));
        check("0 0 30 2 *", None);
    }

    #[test]
    fn mistakes() {
        for text in [
            "",
            "* * * *",
            "61 * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "soon",
            "@every",
            "@every 5",
            "@every x",
        ] {
            assert_eq!(CronJobSchedule::parse(text), None, "{text}");
        }
    }
}
