//! Says whether a new version may begin now, by the Windows that select its target.
//!
//! Depends on the windows and the time alone, so downtime or a jumping clock changes nothing. Computed by days, in bounded work
//! for every schedule. `rollout`, `promotion`, `report` and `tutti get` use it.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::model::{Cron, MOST_DAYS, Window, WindowAction, WindowTimes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    pub lasts: bool,
    /// Until when this is so at least. `None`: for ever.
    pub until: Option<Timestamp>,
}

/// Combined state of the windows that select one target.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Open,
    Shut(Shut),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Shut {
    pub by: Arc<Window>,
    /// When it may end. `None`: not by itself.
    pub until: Option<Timestamp>,
}

/// Text about a shut window, for all reports.
pub fn words(name: &str, until: Option<Timestamp>, reason: Option<&str>, may_override: &[String]) -> String {
    format!("window {name} is {}", state_words(until, reason, may_override))
}

pub fn state_words(until: Option<Timestamp>, reason: Option<&str>, may_override: &[String]) -> String {
    let until = until.map(|until| format!(" until {}", until.strftime("%F %H:%M UTC"))).unwrap_or_default();
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let who = match may_override {
        [] => String::new(),
        names => format!(", {} may override", names.join(", ")),
    };
    format!("shut{until}{who}{reason}")
}

/// Limit of beginnings that follow each other without a break.
const MOST_BEGINNINGS: usize = 4096;

/// A `deny` window shuts while it is active. `allow` windows shut while none of them is active.
pub fn state<'w>(windows: impl IntoIterator<Item = &'w Arc<Window>>, now: Timestamp) -> State {
    let (mut denied, mut allowed, mut is_allowed) = (Vec::new(), Vec::new(), false);
    for window in windows {
        let Lasting { lasts, until } = lasting(&window.times, now);
        let shut = || Shut { by: Arc::clone(window), until };
        match window.action {
            WindowAction::Deny if lasts => denied.push(shut()),
            WindowAction::Deny => {}
            WindowAction::Allow if lasts => is_allowed = true,
            WindowAction::Allow => allowed.push(shut()),
        }
    }
    // No end counts as the latest.
    let end = |shut: &Shut| (shut.until.is_none(), shut.until);
    let last = denied.into_iter().max_by_key(|shut| (end(shut), Reverse(shut.by.name.clone())));
    let next = allowed.into_iter().min_by_key(|shut| (end(shut), shut.by.name.clone()));
    match last.or(next.filter(|_| !is_allowed)) {
        Some(shut) => State::Shut(shut),
        None => State::Open,
    }
}

pub fn lasting(times: &WindowTimes, now: Timestamp) -> Lasting {
    match times {
        WindowTimes::Unknown => Lasting { lasts: true, until: None },
        WindowTimes::Once { from, .. } if now < *from => Lasting { lasts: false, until: Some(*from) },
        WindowTimes::Once { to, .. } => Lasting { lasts: now < *to, until: Some(*to).filter(|to| now < *to) },
        WindowTimes::Repeated { schedule, duration, time_zone } => {
            match end_of_now(schedule, *duration, time_zone, now) {
                Some(end) => Lasting { lasts: true, until: Some(end) },
                None => Lasting { lasts: false, until: next_beginning(schedule, time_zone, now) },
            }
        }
    }
}

/// The end of the active period, including periods that begin before it ends.
fn end_of_now(
    schedule: &Cron,
    duration: SignedDuration,
    zone: &TimeZone,
    now: Timestamp,
) -> Option<Timestamp> {
    let day_of = |at: Timestamp| zone.to_datetime(at).date();
    let end_of = |begins: Timestamp| begins.saturating_add(duration).unwrap_or(Timestamp::MAX);
    let oldest = day_of(now.saturating_sub(duration).unwrap_or(Timestamp::MIN));
    let before = day_of(now).series(-1.day()).take_while(|day| *day >= oldest);
    let newest_of = |day| schedule.times_on(day, zone).into_iter().rev().find(|begins| *begins <= now);
    let begins = { before }.find_map(newest_of)?;
    let mut end = Some(end_of(begins)).filter(|end| now < *end)?;
    let mut number = 0;
    for day in day_of(begins).series(1.day()) {
        if day > day_of(end) || number > MOST_BEGINNINGS {
            break;
        }
        for begins in schedule.times_on(day, zone) {
            if begins <= end {
                number += 1;
                end = end.max(end_of(begins));
            }
        }
    }
    Some(end)
}

fn next_beginning(schedule: &Cron, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let days = zone.to_datetime(now).date().series(1.day()).take(MOST_DAYS);
    { days }.find_map(|day| schedule.times_on(day, zone).into_iter().find(|begins| now < *begins))
}
