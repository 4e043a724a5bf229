//! Identifies a process by id and start time, because ids are reused.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    id: u32,
    /// In clock ticks since the machine started, from `/proc/<id>/stat`.
    started: u64,
}

impl ProcessIdentity {
    pub fn of(id: u32) -> anyhow::Result<Self> {
        let started = start_time(id).with_context(|| format!("failed to find process {id} in /proc"))?;
        Ok(Self { id, started })
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn is_running(&self) -> bool {
        start_time(self.id) == Some(self.started)
    }

    /// Sends a signal (`TERM`, `KILL`), unless the process is gone.
    pub fn signal(&self, signal: &str) -> anyhow::Result<()> {
        if self.is_running() {
            let script = format!("kill -{signal} {}", self.id);
            Command::new("sh")
                .args(["-c", &script])
                .stderr(Stdio::null())
                .status()
                .context("failed to run sh")?;
        }
        Ok(())
    }

    /// Whether it was gone in time.
    pub fn wait(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        while self.is_running() {
            if begin.elapsed() > limit {
                return false;
            }
            sleep(Duration::from_millis(50));
        }
        true
    }
}

/// A zombie counts as gone: it does nothing any more.
fn start_time(id: u32) -> Option<u64> {
    parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Field 22; the second field is the program's name in parentheses and may contain anything.
fn parse(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_of_a_stat_line() {
        fn check(stat: &str, expected: Option<u64>) {
            assert_eq!(parse(stat), expected, "{stat}");
        }
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        check(&format!("7 (sleep) S {rest}"), Some(4711));
        check(&format!("7 (a ) S (b) S {rest}"), Some(4711));
        check(&format!("7 (sleep) Z {rest}"), None);
        check("", None);
    }

    #[test]
    fn start_time_distinguishes_processes() {
        let mut identity = ProcessIdentity::of(std::process::id()).unwrap();
        assert!(identity.is_running());
        identity.started += 1;
        assert!(!identity.is_running());
    }
}
