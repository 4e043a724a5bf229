//! Hours in which messages wait.

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;

use super::NotificationPhase;

/// Messages wait until these hours are over, except those of the given phases.
#[derive(Clone, Debug, PartialEq)]
pub struct QuietHours {
    pub from: Time,
    /// Not later than `from`: on the next day.
    pub to: Time,
    /// On which `from` is. Empty: all.
    pub days: Vec<Weekday>,
    pub time_zone: TimeZone,
    /// What is sent all the same.
    pub except: Vec<NotificationPhase>,
}

impl QuietHours {
    /// The end of the hours that `now` is in; `None` when the message may be sent at once.
    pub fn until(&self, now: Timestamp, happened: NotificationPhase) -> Option<Timestamp> {
        if self.except.contains(&happened) {
            return None;
        }
        let today = self.time_zone.to_datetime(now).date();
        let days = [today.yesterday().ok(), Some(today)];
        let hours = days.into_iter().flatten().filter_map(|day| self.hours_on(day));
        hours.filter(|(from, to)| (*from..*to).contains(&now)).map(|(_, to)| to).max()
    }

    /// The hours that begin on a day. A time that the clock skips is taken after the gap; of one that it shows twice, the first begins
    /// the hours and the second ends them.
    fn hours_on(&self, day: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.is_empty() && !self.days.contains(&day.weekday()) {
            return None;
        }
        let last = if self.to <= self.from { day.tomorrow().ok()? } else { day };
        let at = |day: Date, time| self.time_zone.to_ambiguous_timestamp(day.to_datetime(time));
        Some((at(day, self.from).compatible().ok()?, at(last, self.to).later().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(zone: &str, from: &str, to: &str, days: &[Weekday]) -> QuietHours {
        QuietHours {
            from: from.parse().expect("a time"),
            to: to.parse().expect("a time"),
            days: days.to_vec(),
            time_zone: TimeZone::get(zone).expect("a zone of the database in the program"),
            except: vec![NotificationPhase::Failed],
        }
    }

    /// Each case: now and the end, as the clock there shows them, with the offset.
    #[track_caller]
    fn check(hours: &QuietHours, cases: &[(&str, Option<&str>)]) {
        let at = |text: &str| text.parse::<Timestamp>().unwrap_or_else(|error| panic!("{text}: {error}"));
        for (now, end) in cases {
            assert_eq!(hours.until(at(now), NotificationPhase::Waiting), end.map(at), "{hours:?} {now}");
            assert_eq!(hours.until(at(now), NotificationPhase::Failed), None, "{now}");
        }
    }

    #[test]
    fn night_ends_in_the_morning() {
        let end = Some("2026-11-28T08:00+08:00");
        check(
            &hours("Asia/Shanghai", "22:00", "08:00", &[]),
            &[
                ("2026-11-27T21:59:59+08:00", None),
                ("2026-11-27T22:00+08:00", end),
                ("2026-11-28T00:00+08:00", end),
                ("2026-11-28T07:59:59+08:00", end),
                ("2026-11-28T08:00+08:00", None),
                ("2026-11-27T14:00Z", end),
            ],
        );
        check(
            &hours("Asia/Shanghai", "12:00", "13:30", &[]),
            &[
                ("2026-11-27T11:59+08:00", None),
                ("2026-11-27T13:00+08:00", Some("2026-11-27T13:30+08:00")),
                ("2026-11-27T13:30+08:00", None),
            ],
        );
    }

    #[test]
    fn days_are_those_of_the_start() {
        // 27 November 2026 is a Friday.
        check(
            &hours("Asia/Shanghai", "22:00", "08:00", &[Weekday::Friday]),
            &[
                ("2026-11-27T07:00+08:00", None),
                ("2026-11-27T23:00+08:00", Some("2026-11-28T08:00+08:00")),
                ("2026-11-28T07:00+08:00", Some("2026-11-28T08:00+08:00")),
                ("2026-11-28T23:00+08:00", None),
            ],
        );
        let whole = hours("Asia/Shanghai", "00:00", "00:00", &[Weekday::Saturday, Weekday::Sunday]);
        check(
            &whole,
            &[
                ("2026-11-27T23:59+08:00", None),
                ("2026-11-28T00:00+08:00", Some("2026-11-29T00:00+08:00")),
                ("2026-11-29T23:59+08:00", Some("2026-11-30T00:00+08:00")),
                ("2026-11-30T00:00+08:00", None),
            ],
        );
    }

    /// Clocks go from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October 2026.
    #[test]
    fn clocks_of_berlin_change() {
        let night = hours("Europe/Berlin", "22:00", "08:00", &[]);
        check(
            &night,
            &[
                ("2026-03-28T22:00+01:00", Some("2026-03-29T08:00+02:00")),
                ("2026-03-29T03:00+02:00", Some("2026-03-29T08:00+02:00")),
                ("2026-10-24T22:00+02:00", Some("2026-10-25T08:00+01:00")),
                ("2026-10-25T02:30+01:00", Some("2026-10-25T08:00+01:00")),
            ],
        );
        let inside = hours("Europe/Berlin", "02:30", "05:00", &[]);
        check(
            &inside,
            &[
                // 02:30 does not exist: the hours begin at 03:30.
                ("2026-03-29T01:59+01:00", None),
                ("2026-03-29T03:29+02:00", None),
                ("2026-03-29T03:30+02:00", Some("2026-03-29T05:00+02:00")),
                // 02:30 exists twice: the hours begin at the first.
                ("2026-10-25T02:29+02:00", None),
                ("2026-10-25T02:30+02:00", Some("2026-10-25T05:00+01:00")),
                ("2026-10-25T02:00+01:00", Some("2026-10-25T05:00+01:00")),
            ],
        );
        check(
            &hours("Europe/Berlin", "01:00", "02:30", &[]),
            &[
                ("2026-03-29T01:30+01:00", Some("2026-03-29T03:30+02:00")),
                // They end at the second.
                ("2026-10-25T02:45+02:00", Some("2026-10-25T02:30+01:00")),
                ("2026-10-25T02:30+01:00", None),
            ],
        );
    }

    /// Clocks go from 02:00 to 03:00 on 8 March 2026, and from 02:00 to 01:00 on 1 November 2026.
    #[test]
    fn clocks_of_new_york_change() {
        check(
            &hours("America/New_York", "20:00", "07:30", &[Weekday::Saturday]),
            &[
                ("2026-03-07T20:00-05:00", Some("2026-03-08T07:30-04:00")),
                ("2026-03-08T03:00-04:00", Some("2026-03-08T07:30-04:00")),
                ("2026-03-08T20:00-04:00", None),
                ("2026-10-31T20:00-04:00", Some("2026-11-01T07:30-05:00")),
                ("2026-11-01T01:30-04:00", Some("2026-11-01T07:30-05:00")),
                ("2026-11-01T01:30-05:00", Some("2026-11-01T07:30-05:00")),
                ("2026-11-01T07:30-05:00", None),
            ],
        );
    }

    #[test]
    fn ends_of_time_are_no_panic() {
        let night = hours("UTC", "22:00", "08:00", &[]);
        for now in [Timestamp::MIN, Timestamp::MAX] {
            let _ = night.until(now, NotificationPhase::Done);
        }
        assert_eq!(
            night.until(Timestamp::UNIX_EPOCH, NotificationPhase::Done).map(|it| it.as_second()),
            Some(8 * 3600)
        );
    }
}
