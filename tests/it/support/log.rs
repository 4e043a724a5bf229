//! Captures the log of a test's thread, on which its controller runs too.

use std::io;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Level};

/// A subscriber that records nothing. With only one subscriber alive, the first thread at a callsite decides for all whether
/// it is enabled, and other tests have no subscriber. With two, each is asked every time.
static SILENT_SUBSCRIBER: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_max_level(LevelFilter::OFF).finish()));

/// Captures the log until it is dropped.
pub struct CapturedLog {
    text: LogBuffer,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    pub fn capture() -> Self {
        Self::with_level(Level::INFO)
    }

    /// Also captures levels that are off by default.
    pub fn capture_all() -> Self {
        Self::with_level(Level::TRACE)
    }

    fn with_level(level: Level) -> Self {
        LazyLock::force(&SILENT_SUBSCRIBER);
        let text = LogBuffer::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.0.lock()).into_owned()
    }

    /// How often the log contains these words.
    pub fn count(&self, words: &str) -> usize {
        self.text().matches(words).count()
    }
}
