//! What is logged on the thread of a test, where its controller runs too.

use std::io;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Level};

/// Hears nothing. While one subscriber alone is alive, whichever thread comes to a place first decides for all of them whether that
/// place is heard, and a test beside this one has no subscriber. Of two, each is asked each time.
static DEAF: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_max_level(LevelFilter::OFF).finish()));

/// Keeps the log for as long as it lives.
pub struct Log {
    text: Text,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub fn keep() -> Self {
        Self::from(Level::INFO)
    }

    /// What nobody sees who does not ask for it, too.
    pub fn keep_all() -> Self {
        Self::from(Level::TRACE)
    }

    fn from(level: Level) -> Self {
        LazyLock::force(&DEAF);
        let text = Text::default();
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

    /// How often it says so.
    pub fn count(&self, words: &str) -> usize {
        self.text().matches(words).count()
    }
}
