//! `include_dir!` names to Cargo the files that it found, not their folder. So a file that is added needs these lines to be built in.

#![allow(clippy::print_stdout, reason = "Cargo reads it")]

fn main() {
    for folder in ["deploy", "examples", "tests/fixtures/seeds"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
