//! Counts steps and bytes of an evaluation, and defines its failures.

use std::borrow::Cow;
use std::fmt;

/// Steps: nodes, map entries, and chunks of [`PART`] bytes of texts and lists. The limit takes some tens of milliseconds, a
/// thousand times what policies need.
const STEPS: u64 = 1_000_000;
/// Bytes of all built values, freed ones included.
const BYTES: usize = 16 * 1024 * 1024;
const PART: usize = 32;
/// Nested lists, maps and optional values: each level uses stack. Objects have far fewer.
const MOST_LEVELS: usize = 200;

/// The budget of one evaluation, or of several.
#[derive(Clone, Debug)]
pub struct Meter {
    limit: u64,
    steps: u64,
    bytes: usize,
    level: usize,
}

impl Default for Meter {
    fn default() -> Self {
        Self::within(STEPS)
    }
}

impl Meter {
    /// At most `steps`, and never more than one evaluation may take.
    pub fn within(steps: u64) -> Self {
        let limit = steps.min(STEPS);
        Self { limit, steps: limit, bytes: BYTES, level: 0 }
    }

    pub fn used(&self) -> u64 {
        self.limit - self.steps
    }

    /// Descends one level into a value.
    pub(super) fn within_level<T>(
        &mut self,
        go: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.level >= MOST_LEVELS {
            return Err(Failure::Said("a value has too many levels".into()));
        }
        self.level += 1;
        let found = go(self);
        self.level -= 1;
        found
    }

    pub(super) fn step(&mut self) -> Result<(), Failure> {
        self.steps(1)
    }

    /// An exhausted budget stays exhausted, so no operator continues.
    pub(super) fn steps(&mut self, count: u64) -> Result<(), Failure> {
        match self.steps.checked_sub(count) {
            Some(rest) => {
                self.steps = rest;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(Failure::OutOfSteps)
            }
        }
    }

    pub(super) fn items(&mut self, count: usize) -> Result<(), Failure> {
        self.steps(u64::try_from(count).unwrap_or(u64::MAX))
    }

    pub(super) fn look(&mut self, bytes: usize) -> Result<(), Failure> {
        self.steps(u64::try_from(bytes / PART).unwrap_or(u64::MAX))
    }

    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        match self.bytes.checked_sub(bytes) {
            Some(rest) => self.bytes = rest,
            None => {
                (self.bytes, self.steps) = (0, 0);
                return Err(Failure::OutOfMemory);
            }
        }
        self.look(bytes)
    }
}

/// Why an expression has no value. It does not repeat values of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    NoField(Box<str>),
    /// An operator or function does not accept these types.
    NoOverload(&'static str),
    Said(Cow<'static, str>),
    OutOfSteps,
    OutOfMemory,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoField(name) => write!(f, "there is no field `{name}`; ask `has(…)` first"),
            Self::NoOverload(name) => write!(f, "`{name}` does not take values of these types"),
            Self::Said(words) => f.write_str(words),
            Self::OutOfSteps => f.write_str("it takes too long on an object of this size"),
            Self::OutOfMemory => f.write_str("it needs too much memory on an object of this size"),
        }
    }
}
