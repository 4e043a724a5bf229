//! Counts steps and bytes of an evaluation, and defines its failures.

use std::borrow::Cow;
use std::fmt;

/// Steps: nodes, map entries, and chunks of [`BYTES_PER_STEP`] bytes of texts and lists. The limit takes some tens of milliseconds, a
/// thousand times what policies need.
const MOST_STEPS: u64 = 1_000_000;
/// Bytes of all built values, freed ones included.
const MOST_BYTES: usize = 16 * 1024 * 1024;
const BYTES_PER_STEP: usize = 32;
/// Nested lists, maps and optional values: each level uses stack. Objects have far fewer.
const MOST_LEVELS: usize = 200;

/// The budget of one evaluation, or of several.
#[derive(Clone, Debug)]
pub struct CelMeter {
    limit: u64,
    steps: u64,
    bytes: usize,
    level: usize,
}

impl Default for CelMeter {
    fn default() -> Self {
        Self::with_steps(MOST_STEPS)
    }
}

impl CelMeter {
    /// At most `steps`, and never more than one evaluation may take.
    pub fn with_steps(steps: u64) -> Self {
        let limit = steps.min(MOST_STEPS);
        Self { limit, steps: limit, bytes: MOST_BYTES, level: 0 }
    }

    pub fn used_steps(&self) -> u64 {
        self.limit - self.steps
    }

    /// Descends one level into a value.
    pub(super) fn within_level<T>(
        &mut self,
        go: impl FnOnce(&mut Self) -> Result<T, EvaluationFailure>,
    ) -> Result<T, EvaluationFailure> {
        if self.level >= MOST_LEVELS {
            return Err(EvaluationFailure::Message("a value has too many levels".into()));
        }
        self.level += 1;
        let found = go(self);
        self.level -= 1;
        found
    }

    pub(super) fn step(&mut self) -> Result<(), EvaluationFailure> {
        self.steps(1)
    }

    /// An exhausted budget stays exhausted, so no operator continues.
    pub(super) fn steps(&mut self, count: u64) -> Result<(), EvaluationFailure> {
        match self.steps.checked_sub(count) {
            Some(rest) => {
                self.steps = rest;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(EvaluationFailure::OutOfSteps)
            }
        }
    }

    pub(super) fn charge_items(&mut self, count: usize) -> Result<(), EvaluationFailure> {
        self.steps(u64::try_from(count).unwrap_or(u64::MAX))
    }

    pub(super) fn charge_reading(&mut self, bytes: usize) -> Result<(), EvaluationFailure> {
        self.steps(u64::try_from(bytes / BYTES_PER_STEP).unwrap_or(u64::MAX))
    }

    pub(super) fn charge_memory(&mut self, bytes: usize) -> Result<(), EvaluationFailure> {
        match self.bytes.checked_sub(bytes) {
            Some(rest) => self.bytes = rest,
            None => {
                (self.bytes, self.steps) = (0, 0);
                return Err(EvaluationFailure::OutOfMemory);
            }
        }
        self.charge_reading(bytes)
    }
}

/// Why an expression has no value. It does not repeat values of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationFailure {
    NoField(Box<str>),
    /// An operator or function does not accept these types.
    NoOverload(&'static str),
    Message(Cow<'static, str>),
    OutOfSteps,
    OutOfMemory,
}

impl fmt::Display for EvaluationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoField(name) => write!(f, "there is no field `{name}`; ask `has(…)` first"),
            Self::NoOverload(name) => write!(f, "`{name}` does not take values of these types"),
            Self::Message(words) => f.write_str(words),
            Self::OutOfSteps => f.write_str("it takes too long on an object of this size"),
            Self::OutOfMemory => f.write_str("it needs too much memory on an object of this size"),
        }
    }
}
