//! Counts the work of a script: instructions or their equivalent, memory, and real time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use mlua::{Error, Result};
use parking_lot::Mutex;

/// An object may have 1.5 MiB as JSON, and a few times that in tables.
pub const MEMORY: usize = 16 * 1024 * 1024;
/// Far more than scripts need: about 10 ms.
pub const INSTRUCTIONS: u64 = 1_000_000;
/// A limit of real time, for work that is counted too cheaply. The clock is not checked inside library functions. It
/// is far above the time of the instructions, so a busy machine changes no result.
pub const LONGEST: Duration = Duration::from_secs(3);

pub const OUT_OF_INSTRUCTIONS: &str = "it ran for too long";
pub const OUT_OF_MEMORY: &str = "it needed too much memory";

/// An instruction may take as long as the largest text: it counts once more for every so many bytes of the script and
/// of the object.
const OWN_BYTES: usize = 16 * 1024;
const GIVEN_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub struct ScriptMeter {
    begun: Mutex<Timestamp>,
    /// Bytes in use when the script begins.
    given: AtomicUsize,
    instructions: AtomicU64,
    /// Memory ran out, or the collector had to run, which means the same.
    memory: AtomicU64,
}

impl ScriptMeter {
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

    pub fn set_out_of_memory(&self) {
        self.memory.store(1, Ordering::Relaxed);
    }

    pub fn charge(&self, instructions: u64) -> Result<()> {
        // Prevents an overflow of the sum.
        let instructions = instructions.min(INSTRUCTIONS + 1);
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
        match self.exceeded_limit() {
            Some(limit) => Err(Error::runtime(limit)),
            None => Ok(()),
        }
    }

    /// By the machine's clock: setting it back adds time, and setting it forward by more than [`LONGEST`] ends the
    /// running script.
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

    pub fn exceeded_limit(&self) -> Option<&'static str> {
        if self.memory.load(Ordering::Relaxed) > 0 {
            return Some(OUT_OF_MEMORY);
        }
        let is_over = self.instructions.load(Ordering::Relaxed) > INSTRUCTIONS;
        (is_over || self.elapsed() > LONGEST).then_some(OUT_OF_INSTRUCTIONS)
    }
}
