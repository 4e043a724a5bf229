//! The cost of evaluations, in the units of a server: about one for each step and each ten bytes.

use std::collections::HashSet;

use super::fault::RuleFault;

/// The cost limit of one expression, as on a server.
pub(super) const MAX_EXPRESSION_COST: u64 = 1_000_000;
/// The cost limit of all rules of a write, as on a server.
pub(super) const MAX_WRITE_COST: u64 = 10_000_000;
/// Costs are counted in tenths: a byte costs one.
pub(super) const STEP: u64 = 10;

/// Patterns of one expression that are paid for once.
const PATTERNS: usize = 100;

/// The remaining cost budget of one expression.
#[derive(Debug)]
pub(super) struct CostMeter {
    left: u64,
    /// Patterns that were paid for: each is compiled once.
    compiled: HashSet<String>,
}

impl CostMeter {
    pub(super) fn new() -> Self {
        Self { left: MAX_EXPRESSION_COST * STEP, compiled: HashSet::new() }
    }

    pub(super) fn charge(&mut self, tenths: u64) -> Result<(), RuleFault> {
        match self.left.checked_sub(tenths) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(RuleFault::Cost)
            }
        }
    }

    pub(super) fn charge_pattern(&mut self, pattern: &str, tenths: u64) -> Result<(), RuleFault> {
        if self.compiled.contains(pattern) {
            return Ok(());
        }
        self.charge(tenths)?;
        // No more than are kept.
        if self.compiled.len() < PATTERNS {
            self.compiled.insert(pattern.to_owned());
        }
        Ok(())
    }

    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Result<(), RuleFault> {
        self.charge(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    pub(super) fn spent(&self) -> u64 {
        (MAX_EXPRESSION_COST * STEP - self.left).div_ceil(STEP)
    }
}
