//! Windows as they are read.

use super::read_texts;
use crate::model::{TargetSelector, Window, WindowAction, WindowTimes};

fn manifest(spec: &str) -> String {
    format!("apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {{name: w}}\nspec:\n  {spec}\n")
}

/// The only window, and the mistakes: `line:column code`.
fn read(spec: &str) -> (Window, Vec<String>) {
    let read = read_texts(&[("policies/w.yaml", &manifest(spec))]);
    let [window] = &read.windows[..] else { panic!("{read:?}") };
    let told = read.diagnostics.iter().map(|it| {
        let start = it.location.as_ref().expect("a place").start;
        format!("{}:{} {}", start.line, start.column, it.code)
    });
    (Window::clone(window), told.collect())
}

const GOOD: &str = "{action: deny, schedule: 0 18 * * Fri, duration: 14h, timeZone: Asia/Shanghai}";

#[test]
fn schedules_and_freezes_are_read() {
    let (window, told) = read(&GOOD.replace('}', ", reason: weekend, override: [managers, ops]}"));
    assert_eq!((window.action, told), (WindowAction::Deny, Vec::<String>::new()));
    let WindowTimes::Repeated { schedule, duration, time_zone } = &window.times else { panic!("{window:?}") };
    assert_eq!(schedule.to_string(), "0 18 * * Fri");
    assert_eq!((duration.as_hours(), time_zone.iana_name()), (14, Some("Asia/Shanghai")));
    assert_eq!(window.reason.as_deref(), Some("weekend"));
    assert_eq!(window.may_override, ["managers", "ops"]);
    let (window, _) = read(
        "{action: allow, select: {apps: {names: [shop/*]}, rings: [prod]}, schedule: 0 8 * * 1-5, duration: 8h, timeZone: UTC}",
    );
    assert_eq!(window.action, WindowAction::Allow);
    assert_eq!(
        (window.selector.apps, window.selector.rings),
        (Some(vec!["shop/*".to_owned()]), Some(vec!["prod".to_owned()]))
    );
}

#[test]
fn freeze_is_of_the_clocks_of_its_zone() {
    let check = |from: &str, to: &str, zone: &str, expected: (&str, &str)| {
        let (window, told) = read(&format!("{{action: deny, from: {from}, to: {to}, timeZone: {zone}}}"));
        assert_eq!(told, Vec::<String>::new());
        let WindowTimes::Once { from, to } = window.times else { panic!("{window:?}") };
        assert_eq!((from.to_string().as_str(), to.to_string().as_str()), expected);
    };
    let year_end = ("2026-12-24T00:00", "2027-01-02T00:00");
    check(year_end.0, year_end.1, "Asia/Shanghai", ("2026-12-23T16:00:00Z", "2027-01-01T16:00:00Z"));
    // 02:30 is skipped: after the gap.
    check(
        "2026-03-29T02:30",
        "2026-03-30T00:00",
        "Europe/Berlin",
        ("2026-03-29T01:30:00Z", "2026-03-29T22:00:00Z"),
    );
    // 02:30 comes twice: from the first to the second.
    check(
        "2026-10-25T02:30",
        "2026-10-25T02:31",
        "Europe/Berlin",
        ("2026-10-25T00:30:00Z", "2026-10-25T01:31:00Z"),
    );
}

/// A freeze with a slip of the finger must not count as if it were not there.
#[test]
fn window_with_mistake_lasts() {
    for (spec, expected) in [
        ("{action: dny, schedule: 0 18 * * Fri, duration: 14h, timeZone: UTC}", "5:12 E1204"),
        ("{action: deny, schedule: 0 18 * * Frd, duration: 14h, timeZone: UTC}", "5:28 E1206"),
        ("{action: deny, schedule: 0 18 * * Fri, duration: 9000h, timeZone: UTC}", "5:52 E1206"),
        ("{action: deny, schedule: 0 18 * * Fri, duration: 14h}", "4:1 E1202"),
        ("{action: deny, schedule: 0 18 * * Fri, timeZone: UTC}", "4:1 E1208"),
        (
            "{action: deny, schedule: 0 18 * * Fri, duration: 14h, timeZone: UTC, select: {rings: }}",
            "5:81 E1202",
        ),
        ("{action: deny, schedule: 0 18 * * Fri, duration: 14h, timeZone: UTC, extra: 1}", "5:72 E1201"),
        ("{action: deny, from: 2026-12-24T00:00:00, to: 2027-01-02T00:00, timeZone: UTC}", "5:24 E1206"),
        ("{action: deny, from: 2026-13-24T00:00, to: 2027-01-02T00:00, timeZone: UTC}", "5:24 E1206"),
        ("{action: deny, from: 2027-01-02T00:00, to: 2027-01-02T00:00, timeZone: UTC}", "5:46 E1206"),
    ] {
        let (window, told) = read(spec);
        assert_eq!(told, [expected], "{spec}");
        let is_of_all = window.selector == TargetSelector::default();
        assert!(is_of_all && window.times == WindowTimes::Unknown, "{window:?}");
        assert_eq!((window.action, window.name.as_str()), (WindowAction::Deny, "w"));
    }
    let broken = read_texts(&[("policies/w.yaml", &format!("{}  x: [\n", manifest(GOOD)))]);
    assert!(broken.windows.iter().any(|window| window.times == WindowTimes::Unknown), "{broken:?}");
    assert!(!broken.diagnostics.is_empty());
}

/// Who may write apps freezes nobody.
#[test]
fn window_elsewhere_is_none() {
    let read = read_texts(&[("apps/pay/w.yaml", &manifest(GOOD))]);
    assert_eq!(read.windows, []);
    assert_eq!(read.diagnostics.len(), 1, "{read:?}");
}
