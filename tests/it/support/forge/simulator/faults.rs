//! Faults of requests.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeFault {
    /// Answered with this status, and not executed.
    Status(u16),
    /// 429, with the seconds to wait.
    RateLimit(u64),
    /// Never answered, and not executed.
    NoAnswer,
    /// Executed, and answered with 502.
    LostAnswer,
}

#[derive(Default)]
pub struct ForgeFaults {
    faults: Vec<(String, usize, ForgeFault)>,
    /// Writes that are still executed; `None`: all.
    remaining_writes: Option<usize>,
    pub is_unresponsive: bool,
}

impl ForgeFaults {
    pub fn add(&mut self, text: &str, times: usize, fault: ForgeFault) {
        self.faults.push((text.to_owned(), times, fault));
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn stop_after_writes(&mut self, writes: usize) {
        (self.remaining_writes, self.is_unresponsive) = (Some(writes), false);
    }

    pub fn take_fault(&mut self, line: &str) -> Option<ForgeFault> {
        if let Some(left) = self.remaining_writes.as_mut().filter(|_| !line.starts_with("GET ")) {
            self.is_unresponsive |= *left == 0;
            *left = left.saturating_sub(1);
        }
        if self.is_unresponsive {
            return Some(ForgeFault::NoAnswer);
        }
        let found =
            self.faults.iter_mut().find(|(text, times, _)| *times > 0 && line.contains(text.as_str()))?;
        found.1 -= 1;
        Some(found.2)
    }
}
