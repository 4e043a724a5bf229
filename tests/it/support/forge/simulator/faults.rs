//! Requests that go wrong.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answered so, and not carried out.
    Status(u16),
    /// 429, with the seconds to wait.
    RateLimit(u64),
    /// Never answered, and not carried out.
    Silence,
    /// Carried out, and answered with 502.
    LostAnswer,
}

#[derive(Default)]
pub struct Faults {
    faults: Vec<(String, usize, Fault)>,
    /// Requests that are still answered; `None`: all.
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

    pub fn still_after(&mut self, requests: usize) {
        (self.left, self.is_still) = (Some(requests), false);
    }

    pub fn take(&mut self, line: &str) -> Option<Fault> {
        if let Some(left) = &mut self.left {
            let Some(less) = left.checked_sub(1) else {
                self.is_still = true;
                return Some(Fault::Silence);
            };
            *left = less;
        }
        let found =
            self.faults.iter_mut().find(|(text, times, _)| *times > 0 && line.contains(text.as_str()))?;
        found.1 -= 1;
        Some(found.2)
    }
}
