//! How much of its time a child has used: its processor time, so that renders do not fail only because the machine is busy.

use std::time::{Duration, Instant};

/// A child that gets little of the processor, or sleeps, ends after this many times its limit.
const MAX_STRETCH: u32 = 4;
/// The limit is stretched to at most this. Below `MAX_REQUEST_TIME` of a worker, and the longest turn of a render.
const LONGEST_STRETCH: Duration = Duration::from_secs(100);
/// Shorter waits are not worth another look at the processor time.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct TimeLimit {
    pid: u32,
    limit: Duration,
    start: Instant,
    /// The processor time of the child at the start; `None`: the system does not say.
    processor: Option<Duration>,
}

impl TimeLimit {
    pub fn start(pid: u32, limit: Duration) -> Self {
        Self { pid, limit, start: Instant::now(), processor: processor_time(pid) }
    }

    /// The least time after which the child may be over its limit. Zero: it is.
    pub fn remaining(&self) -> Duration {
        let elapsed = self.start.elapsed();
        let used = if elapsed < self.limit { elapsed } else { self.used_of(elapsed) };
        let longest = LONGEST_STRETCH.max(self.limit);
        match self.limit.saturating_sub(used).min(longest.saturating_sub(elapsed)) {
            Duration::ZERO => Duration::ZERO,
            left => left.max(SHORTEST_WAIT),
        }
    }

    pub fn used(&self) -> Duration {
        self.used_of(self.start.elapsed())
    }

    fn used_of(&self, elapsed: Duration) -> Duration {
        // A failed read is no reason to end the child early.
        let now = || processor_time(self.pid).unwrap_or_default();
        used_time(elapsed, self.processor.map(|before| now().saturating_sub(before)))
    }
}

/// At least a part of what has elapsed, so that the requests of one render end. Never more: a child may have several threads.
fn used_time(elapsed: Duration, processor: Option<Duration>) -> Duration {
    processor.map_or(elapsed, |processor| processor.max(elapsed / MAX_STRETCH).min(elapsed))
}

/// Of all threads of a process (proc_pid_stat(5)).
#[cfg(target_os = "linux")]
fn processor_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks_of(&stat)?;
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)))
}

#[cfg(not(target_os = "linux"))]
fn processor_time(_: u32) -> Option<Duration> {
    None
}

/// The fields `utime` and `stime`. The name of the program before them may contain anything, parentheses too.
#[cfg(any(target_os = "linux", test))]
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    Some(fields.next()?? + fields.next()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_counts_within_bounds() {
        let seconds = Duration::from_secs;
        for (elapsed, processor, expected) in [
            (2, Some(2), 2),
            // A busy machine.
            (6, Some(2), 2),
            // It sleeps.
            (8, Some(0), 2),
            // Two threads.
            (2, Some(4), 2),
            // The system does not say.
            (2, None, 2),
        ] {
            let used = used_time(seconds(elapsed), processor.map(seconds));
            assert_eq!(used, seconds(expected), "{elapsed} {processor:?}");
        }
    }

    #[test]
    fn ticks_are_read_from_stat() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 500 1000 10";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("7 (a) R 1"), None);
    }

    #[test]
    fn sleeping_child_is_over_its_limit_in_the_end() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let limit = TimeLimit::start(child.id(), Duration::from_millis(20));
        let begin = Instant::now();
        while !limit.remaining().is_zero() {
            assert!(begin.elapsed() < Duration::from_secs(30), "it never ends");
            std::thread::sleep(limit.remaining());
        }
        child.kill().expect("it runs");
        child.wait().expect("it ended");
    }
}
