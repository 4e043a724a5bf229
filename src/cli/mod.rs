//! The commands; wires everything.

pub mod diagnostics;
