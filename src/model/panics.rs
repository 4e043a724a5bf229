//! Catches panics of libraries that parse foreign texts. Such a text is reported as a mistake.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Returns `None` on a panic, which is not printed.
pub fn catch_panic<T>(read: impl FnOnce() -> T) -> Option<T> {
    let before = IS_EXPECTED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    IS_EXPECTED.set(before);
    result.ok()
}

/// Sets the process's panic hook, which is not called for caught panics.
pub fn set_panic_hook(tell: impl Fn(&panic::PanicHookInfo<'_>) + Send + Sync + 'static) {
    panic::set_hook(Box::new(move |panic| {
        if !IS_EXPECTED.get() {
            tell(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::panic, reason = "that is what it is about")]
    fn panic_gives_nothing_and_is_expected_only_there() {
        assert_eq!(catch_panic(|| 1), Some(1));
        assert_eq!(catch_panic(|| -> u8 { panic!("a text that a library gives up on") }), None);
        assert!(!IS_EXPECTED.get());
        assert_eq!(catch_panic(|| catch_panic(|| IS_EXPECTED.get())), Some(Some(true)));
    }
}
