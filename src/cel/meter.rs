//! What an evaluation may take, and why it has no value.

use std::borrow::Cow;
use std::fmt;

/// Nodes of the expression, entries of maps, and parts of texts and lists of about [`PART`] bytes: some tens of milliseconds, and a
/// thousand times what policies need.
const STEPS: u64 = 1_000_000;
/// Of all that is built on the way, whether it is still held or not.
const BYTES: usize = 16 * 1024 * 1024;
const PART: usize = 32;

/// The account of one evaluation, or of several that share a limit.
#[derive(Clone, Debug)]
pub struct Meter {
    limit: u64,
    steps: u64,
    bytes: usize,
}

impl Default for Meter {
    fn default() -> Self {
        Self::within(STEPS)
    }
}

impl Meter {
    /// Of so many steps at most, and never more than an evaluation may take.
    pub fn within(steps: u64) -> Self {
        let limit = steps.min(STEPS);
        Self { limit, steps: limit, bytes: BYTES }
    }

    /// Steps so far.
    pub fn used(&self) -> u64 {
        self.limit - self.steps
    }

    pub(super) fn step(&mut self) -> Result<(), Failure> {
        self.steps(1)
    }

    /// Once they are used up, there are none any more: no operator goes on after that.
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

    /// So many entries of a map are looked through.
    pub(super) fn items(&mut self, count: usize) -> Result<(), Failure> {
        self.steps(u64::try_from(count).unwrap_or(u64::MAX))
    }

    /// So many bytes are looked through.
    pub(super) fn look(&mut self, bytes: usize) -> Result<(), Failure> {
        self.steps(u64::try_from(bytes / PART).unwrap_or(u64::MAX))
    }

    /// So many bytes are built.
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

/// Why an expression has no value. What an object holds is not repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    NoField(Box<str>),
    /// An operator or function does not take such values.
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
