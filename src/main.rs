//! The binary: everything is in the library's module `cli`.

use std::process::ExitCode;

/// jemalloc: with the system's allocator, long-lived records between short-lived JSON trees keep twice the memory in
/// use.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tutti::cli::main()
}
