//! Records the fields that readers request, so that a test compares them with the schemas.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static ASKED: RefCell<BTreeSet<(String, String)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Records a field of the map at a path; all items of a list share one path.
pub fn record(path: &str, name: &str) {
    let mut parts = path.split('[');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        path.push_str("[]");
        path.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    ASKED.with_borrow_mut(|asked| asked.insert((path, name.to_owned())));
}

pub fn reset() {
    ASKED.with_borrow_mut(BTreeSet::clear);
}

pub fn take() -> BTreeSet<(String, String)> {
    ASKED.take()
}
