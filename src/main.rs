//! The binary: everything is in the library's module `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tutti::cli::main()
}
