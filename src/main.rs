//! The binary: everything is in the library's module `cli`.

use std::process::ExitCode;

/// Records that stay lie between trees of JSON that go: the system's allocator keeps twice the memory that is in use.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tutti::cli::main()
}
