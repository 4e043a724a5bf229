//! Faults of requests.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answered with this status, and not executed.
    Status(u16),
    /// 429, with the seconds to wait.
    RateLimit(u64),
    /// Never answered, and not executed.
    Silence,
    /// Executed, and answered with 502.
    LostAnswer,
}

#[derive(Default)]
pub struct Faults {
    faults: Vec<(String, usize, Fault)>,
    /// Writes that are still executed; `None`: all.
    left: Option<usize>,
    pub is_still: bool,
}

impl Faults {
    pub fn add(&mut self, text: &str, times: usize, fault: Fault) {
        self.faults.push((text.to_owned(), times, fault));
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn still_after(&mut self, writes: usize) {
        (self.left, self.is_still) = (Some(writes), false);
    }

    pub fn take(&mut self, line: &str) -> Option<Fault> {
        if let Some(left) = self.left.as_mut().filter(|_| !line.starts_with("GET ")) {
            self.is_still |= *left == 0;
            *left = left.saturating_sub(1);
        }
        if self.is_still {
            return Some(Fault::Silence);
        }
        let found =
            self.faults.iter_mut().find(|(text, times, _)| *times > 0 && line.contains(text.as_str()))?;
        found.1 -= 1;
        Some(found.2)
    }
}
