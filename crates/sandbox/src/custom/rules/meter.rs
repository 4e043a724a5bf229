//! The cost of evaluations, in the units of a server: about one for each step and each ten bytes.

use super::evaluate::Fault;

/// What one expression may cost, as on a server.
pub(super) const OF_EXPRESSION: u64 = 1_000_000;
/// What all rules of a write may cost together, as on a server.
pub(super) const OF_WRITE: u64 = 10_000_000;
/// Costs are counted in tenths: a byte costs one.
pub(super) const STEP: u64 = 10;

/// What is left of the cost of one expression.
#[derive(Debug)]
pub(super) struct Meter {
    left: u64,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { left: OF_EXPRESSION * STEP }
    }

    pub(super) fn charge(&mut self, tenths: u64) -> Result<(), Fault> {
        match self.left.checked_sub(tenths) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Fault::Cost)
            }
        }
    }

    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        self.charge(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    pub(super) fn spent(&self) -> u64 {
        (OF_EXPRESSION * STEP - self.left).div_ceil(STEP)
    }
}
