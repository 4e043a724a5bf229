//! How a version travels from ring to ring: which pull requests there should be, and what each of them says.
//!
//! Everything here is a pure function of the repository, of what runs, and of the pull requests that the forge has. Nothing is
//! stored: after a restart the same inputs give the same answer. Never does IO, never reads a clock.

pub mod edit;
#[cfg(test)]
mod tests;
