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
pub struct Faults(Vec<(String, usize, Fault)>);

impl Faults {
    pub fn add(&mut self, text: &str, times: usize, fault: Fault) {
        self.0.push((text.to_owned(), times, fault));
    }

    pub fn take(&mut self, line: &str) -> Option<Fault> {
        let found = self.0.iter_mut().find(|(text, times, _)| *times > 0 && line.contains(text.as_str()))?;
        found.1 -= 1;
        Some(found.2)
    }
}
