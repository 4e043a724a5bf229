//! How much a script has done: instructions, or what counts as some, memory, and the time by the clock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use mlua::{Error, Result};
use parking_lot::Mutex;

/// Far more than any script needs: about 10 ms.
pub const INSTRUCTIONS: u64 = 1_000_000;
/// A net for work that is counted too cheaply: a script ends at the first look at the clock after this. There is none while a function
/// of a library runs. Far above what the instructions take, so that a busy machine decides nothing.
pub const LONGEST: Duration = Duration::from_secs(3);

pub const OUT_OF_INSTRUCTIONS: &str = "it ran for too long";
pub const OUT_OF_MEMORY: &str = "it needed too much memory";

/// An instruction may take as long as the largest text is: with every so many bytes of the script's own each counts
/// once more, and with every so many of the object.
const OWN_BYTES: usize = 16 * 1024;
const GIVEN_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub struct Meter {
    begun: Mutex<Timestamp>,
    /// Bytes in use when the script begins.
    given: AtomicUsize,
    instructions: AtomicU64,
    /// Memory ran out once, or the collector had to run, which is the same.
    memory: AtomicU64,
}

impl Meter {
    pub fn new() -> Self {
        Self {
            begun: Mutex::new(Timestamp::now()),
            given: AtomicUsize::new(0),
            instructions: AtomicU64::new(0),
            memory: AtomicU64::new(0),
        }
    }

    pub fn reset(&self) {
        *self.begun.lock() = Timestamp::now();
        self.instructions.store(0, Ordering::Relaxed);
        self.memory.store(0, Ordering::Relaxed);
    }

    pub fn begin(&self, bytes: usize) {
        self.given.store(bytes, Ordering::Relaxed);
    }

    pub fn no_more_memory(&self) {
        self.memory.store(1, Ordering::Relaxed);
    }

    pub fn charge(&self, instructions: u64) -> Result<()> {
        // A sum of such numbers never comes around to a small one.
        let instructions = instructions.min(INSTRUCTIONS + 1);
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
        match self.is_used_up() {
            Some(limit) => Err(Error::runtime(limit)),
            None => Ok(()),
        }
    }

    /// By the clock of the machine, as scripts are told it: when it is put back nothing is told, and when it is put
    /// forward by more than [`LONGEST`], what runs just then ends.
    fn elapsed(&self) -> Duration {
        let begun = *self.begun.lock();
        Timestamp::now().duration_since(begun).try_into().unwrap_or_default()
    }

    /// How much an instruction counts with so many bytes in use.
    pub fn weight(&self, bytes: usize) -> u64 {
        let given = self.given.load(Ordering::Relaxed);
        let weight = 1 + bytes.saturating_sub(given) / OWN_BYTES + given / GIVEN_BYTES;
        u64::try_from(weight).unwrap_or(u64::MAX)
    }

    pub fn is_used_up(&self) -> Option<&'static str> {
        if self.memory.load(Ordering::Relaxed) > 0 {
            return Some(OUT_OF_MEMORY);
        }
        let is_over = self.instructions.load(Ordering::Relaxed) > INSTRUCTIONS;
        (is_over || self.elapsed() > LONGEST).then_some(OUT_OF_INSTRUCTIONS)
    }
}
