use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{ShutWindow, WindowActivity, WindowState, activity_at, shut_text, window_state};
use crate::model::{CronSchedule, Location, TargetSelector, Window, WindowAction, WindowTimes};

fn parse_time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn repeated(schedule: &str, hours: i64, zone: &str) -> WindowTimes {
    WindowTimes::Repeated {
        schedule: CronSchedule::parse(schedule).expect("a schedule"),
        duration: SignedDuration::from_mins(hours * 60),
        time_zone: TimeZone::get(zone).expect("a zone"),
    }
}

fn window(name: &str, action: WindowAction, times: &WindowTimes) -> Arc<Window> {
    Arc::new(Window {
        name: name.to_owned(),
        action,
        selector: TargetSelector::default(),
        times: times.clone(),
        reason: None,
        may_override: Vec::new(),
        location: Location::new("policies/w.yaml", 1, 1),
    })
}

/// Each case: the time, whether the window is active, and until when.
fn check(times: &WindowTimes, cases: &[(&str, bool, &str)]) {
    for (now, lasts, until) in cases {
        let expected = WindowActivity { is_active: *lasts, until: Some(parse_time(until)) };
        assert_eq!(activity_at(times, parse_time(now)), expected, "{now} {times:?}");
    }
}

#[test]
fn window_lasts_from_each_beginning() {
    // 27 November 2026 is a Friday.
    check(
        &repeated("0 18 * * Fri", 14, "Asia/Shanghai"),
        &[
            ("2026-11-27T17:59:59+08:00", false, "2026-11-27T18:00+08:00"),
            ("2026-11-27T18:00+08:00", true, "2026-11-28T08:00+08:00"),
            ("2026-11-28T07:59:59+08:00", true, "2026-11-28T08:00+08:00"),
            ("2026-11-28T08:00+08:00", false, "2026-12-04T18:00+08:00"),
            ("2026-11-27T12:00Z", true, "2026-11-28T00:00Z"),
        ],
    );
}

#[test]
fn overlapping_periods_are_one() {
    // Friday and Saturday evening, each for 26 hours.
    check(
        &repeated("0 18 * * Fri,Sat", 26, "UTC"),
        &[
            ("2026-11-27T18:00Z", true, "2026-11-29T20:00Z"),
            ("2026-11-28T19:00Z", true, "2026-11-29T20:00Z"),
            ("2026-11-29T19:59Z", true, "2026-11-29T20:00Z"),
            ("2026-11-29T20:00Z", false, "2026-12-04T18:00Z"),
        ],
    );
    // Back to back.
    check(&repeated("0 */6 27 11 *", 6, "UTC"), &[("2026-11-27T01:00Z", true, "2026-11-28T00:00Z")]);
    // One year, followed by the next.
    check(
        &repeated("0 0 1 1 *", 8760, "UTC"),
        &[
            ("2026-06-01T00:00Z", true, "2028-12-31T00:00Z"),
            // 2028 is a leap year.
            ("2028-12-31T12:00Z", false, "2029-01-01T00:00Z"),
        ],
    );
}

/// Work is bounded: for a window without end the answer is a time to check again.
#[test]
fn endless_window_is_checked_again() {
    let minutes = WindowTimes::Repeated {
        schedule: CronSchedule::parse("* * * * *").expect("a schedule"),
        duration: SignedDuration::from_mins(1),
        time_zone: TimeZone::UTC,
    };
    for (times, now) in [
        (minutes, parse_time("2026-11-27T12:00:30Z")),
        (repeated("0 0 * * *", 25, "UTC"), parse_time("2026-11-27T12:00Z")),
    ] {
        let WindowActivity { is_active: true, until: Some(until) } = activity_at(&times, now) else {
            panic!("{times:?}")
        };
        assert!(until > now, "{until}");
        assert!(activity_at(&times, until).is_active, "{until}");
    }
}

#[test]
fn leap_day_comes_in_leap_years() {
    check(
        &repeated("0 0 29 2 *", 24, "UTC"),
        &[
            ("2026-11-27T00:00Z", false, "2028-02-29T00:00Z"),
            ("2028-02-29T12:00Z", true, "2028-03-01T00:00Z"),
            ("2028-03-01T00:00Z", false, "2032-02-29T00:00Z"),
            // 2100 has none.
            ("2096-03-01T00:00Z", false, "2104-02-29T00:00Z"),
        ],
    );
}

/// Clocks go from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October 2026.
#[test]
fn clocks_of_berlin_change() {
    let zone = "Europe/Berlin";
    check(
        &repeated("30 2 * * *", 1, zone),
        &[
            // 02:30 is skipped: it begins at 03:30.
            ("2026-03-29T01:59+01:00", false, "2026-03-29T03:30+02:00"),
            ("2026-03-29T03:30+02:00", true, "2026-03-29T04:30+02:00"),
            ("2026-03-29T04:30+02:00", false, "2026-03-30T02:30+02:00"),
            // 02:30 comes twice: it begins at the first, and lasts an hour.
            ("2026-10-25T02:29+02:00", false, "2026-10-25T02:30+02:00"),
            ("2026-10-25T02:30+02:00", true, "2026-10-25T02:30+01:00"),
            ("2026-10-25T02:30+01:00", false, "2026-10-26T02:30+01:00"),
        ],
    );
    // Durations are elapsed time, whatever the clock shows.
    check(
        &repeated("0 22 * * *", 10, zone),
        &[
            ("2026-03-28T23:00+01:00", true, "2026-03-29T09:00+02:00"),
            ("2026-10-24T23:00+02:00", true, "2026-10-25T07:00+01:00"),
        ],
    );
    // The hour that comes twice counts twice.
    let quarters = WindowTimes::Repeated {
        schedule: CronSchedule::parse("0 * * * *").expect("a schedule"),
        duration: SignedDuration::from_mins(15),
        time_zone: TimeZone::get(zone).expect("a zone"),
    };
    check(
        &quarters,
        &[
            ("2026-10-25T02:05+02:00", true, "2026-10-25T02:15+02:00"),
            ("2026-10-25T02:20+02:00", false, "2026-10-25T02:00+01:00"),
            ("2026-10-25T02:05+01:00", true, "2026-10-25T02:15+01:00"),
            ("2026-03-29T01:20+01:00", false, "2026-03-29T03:00+02:00"),
        ],
    );
}

/// Clocks go from 02:00 to 03:00 on 8 March 2026, and from 02:00 to 01:00 on 1 November 2026.
#[test]
fn clocks_of_new_york_change() {
    check(
        &repeated("15 2 * * Sun", 2, "America/New_York"),
        &[
            ("2026-03-08T01:59-05:00", false, "2026-03-08T03:15-04:00"),
            ("2026-03-08T03:15-04:00", true, "2026-03-08T05:15-04:00"),
            ("2026-03-08T05:15-04:00", false, "2026-03-15T02:15-04:00"),
        ],
    );
    check(
        &repeated("45 1 1 11 *", 1, "America/New_York"),
        &[
            ("2026-11-01T01:44-04:00", false, "2026-11-01T01:45-04:00"),
            ("2026-11-01T01:45-04:00", true, "2026-11-01T01:45-05:00"),
            ("2026-11-01T01:45-05:00", false, "2027-11-01T01:45-04:00"),
        ],
    );
}

/// By half an hour: from 02:00 to 02:30 on 4 October 2026, and from 02:00 to 01:30 on 5 April 2026.
#[test]
fn clocks_of_lord_howe_change() {
    check(
        &repeated("10 2 * * *", 1, "Australia/Lord_Howe"),
        &[
            ("2026-10-04T01:59+10:30", false, "2026-10-04T02:40+11:00"),
            ("2026-10-04T02:40+11:00", true, "2026-10-04T03:40+11:00"),
        ],
    );
    check(
        &repeated("40 1 * * *", 1, "Australia/Lord_Howe"),
        &[
            ("2026-04-05T01:39+11:00", false, "2026-04-05T01:40+11:00"),
            ("2026-04-05T01:40+11:00", true, "2026-04-05T02:10+10:30"),
            ("2026-04-05T02:10+10:30", false, "2026-04-06T01:40+10:30"),
        ],
    );
}

#[test]
fn freeze_is_one_stretch() {
    let freeze =
        WindowTimes::Once { from: parse_time("2026-12-23T16:00Z"), to: parse_time("2027-01-01T16:00Z") };
    check(
        &freeze,
        &[
            ("2026-12-01T00:00Z", false, "2026-12-23T16:00Z"),
            ("2026-12-23T16:00Z", true, "2027-01-01T16:00Z"),
        ],
    );
    assert_eq!(
        activity_at(&freeze, parse_time("2027-01-01T16:00Z")),
        WindowActivity { is_active: false, until: None }
    );
}

/// The result depends on the given time only.
#[test]
fn clock_that_jumps_changes_nothing() {
    let evening = window("evening", WindowAction::Deny, &repeated("0 18 * * *", 2, "UTC"));
    let is_shut = |now: &str| matches!(window_state([&evening], parse_time(now)), WindowState::Shut(_));
    let days = [
        "2026-11-27T19:00Z",
        "2026-11-27T12:00Z",
        "2031-05-05T19:00Z",
        "2026-11-27T19:00Z",
        "1999-01-01T18:30Z",
    ];
    assert_eq!(days.map(is_shut), [true, false, true, true, true]);
}

#[test]
fn extreme_times_do_not_panic() {
    let zones = ["UTC", "Pacific/Apia", "America/New_York"];
    for times in zones.map(|zone| repeated("* * * * *", 8784, zone)) {
        assert!(activity_at(&times, Timestamp::UNIX_EPOCH).is_active, "{times:?}");
        // Must not panic; the result does not matter.
        for now in [Timestamp::MIN, Timestamp::MAX] {
            let _ = activity_at(&times, now);
        }
    }
    let once = WindowTimes::Once { from: Timestamp::MIN, to: Timestamp::MAX };
    assert_eq!(activity_at(&once, Timestamp::MAX), WindowActivity { is_active: false, until: None });
    let never_again = repeated("0 0 1 1 *", 1, "UTC");
    assert_eq!(activity_at(&never_again, Timestamp::MAX), WindowActivity { is_active: false, until: None });
}

#[test]
fn windows_combine() {
    let (deny, allow) = (WindowAction::Deny, WindowAction::Allow);
    let noon = repeated("0 12 * * *", 1, "UTC");
    let day = repeated("0 8 * * *", 8, "UTC");
    let evening = repeated("0 18 * * *", 2, "UTC");
    let check = |windows: &[Arc<Window>], hour: &str, expected: Option<(&str, &str)>| {
        let now = parse_time(&format!("2026-11-27T{hour}Z"));
        let expected = match expected {
            None => WindowState::Open,
            Some((name, until)) => {
                let by = windows.iter().find(|window| window.name == name).expect("a window");
                WindowState::Shut(ShutWindow {
                    window: Arc::clone(by),
                    until: Some(parse_time(&format!("2026-11-{until}Z"))),
                })
            }
        };
        assert_eq!(window_state(windows, now), expected, "{hour}");
    };
    check(&[], "12:00", None);
    let denied = [window("noon", deny, &noon), window("day", deny, &day)];
    check(&denied, "07:00", None);
    // The one that ends last.
    check(&denied, "12:30", Some(("day", "27T16:00")));
    let allowed = [window("noon", allow, &noon), window("evening", allow, &evening)];
    check(&allowed, "12:30", None);
    check(&allowed, "18:30", None);
    // The one that opens first.
    check(&allowed, "11:00", Some(("noon", "27T12:00")));
    check(&allowed, "13:00", Some(("evening", "27T18:00")));
    check(&allowed, "21:00", Some(("noon", "28T12:00")));
    // `deny` wins.
    let both = [window("noon", deny, &noon), window("day", allow, &day)];
    check(&both, "09:00", None);
    check(&both, "12:30", Some(("noon", "27T13:00")));
    check(&both, "17:00", Some(("day", "28T08:00")));
}

#[test]
fn window_with_mistake_does_not_end() {
    let unknown = window("bad", WindowAction::Deny, &WindowTimes::Unknown);
    let noon = window("noon", WindowAction::Deny, &repeated("0 12 * * *", 1, "UTC"));
    let WindowState::Shut(shut) = window_state([&noon, &unknown], parse_time("2026-11-27T12:30Z")) else {
        panic!("shut")
    };
    assert_eq!((shut.window.name.as_str(), shut.until), ("bad", None));
}

#[test]
fn text_names_end_reason_and_people() {
    let until = Some(parse_time("2027-01-01T16:00Z"));
    let names = ["release-managers".to_owned(), "ops".to_owned()];
    assert_eq!(
        shut_text("year-end", until, Some("year end"), &names),
        "window year-end is shut until 2027-01-01 16:00 UTC, release-managers, ops may override (year end)"
    );
    assert_eq!(shut_text("bad", None, None, &[]), "window bad is shut");
}
