//! The User-Agent of all requests: audit logs tell processes of tutti apart by it.

use std::fs;
use std::sync::LazyLock;

use http::HeaderValue;

/// `tutti/0.1.0 (HOST PROCESS)`.
pub(super) static AGENT: LazyLock<HeaderValue> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let agent = format!("tutti/{version} ({} {})", host_name(), std::process::id());
    HeaderValue::from_str(&agent).unwrap_or_else(|_| HeaderValue::from_static("tutti"))
});

/// Of this machine, or of its pod.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
