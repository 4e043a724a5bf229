//! Chaos: seeded schedules of commits, edits of others, trouble of clusters and ends of tutti's process, under a paused clock.
//!
//! A schedule is drawn whole from its seed ([`schedule`]) and carried out ([`run`]) on embedded clusters and a Git repository.
//! The generator keeps its own copy of what the repository says ([`wanted`]), which is the truth; a [`witness`] on the wire holds
//! every write to it ([`judge`]), [`truth`] and [`quiet`] the clusters and what tutti says of them, [`budget`] the number of writes, [`pace`] how soon they are tried again.

mod budget;
mod change;
pub mod draw;
mod edit;
mod hands;
mod judge;
mod many;
mod object;
mod pace;
mod quiet;
pub mod replicas;
mod report;
mod run;
mod schedule;
mod shrink;
mod side_by_side;
#[cfg(test)]
mod tests;
mod trouble;
mod truth;
mod wanted;
pub mod waves;
mod witness;

#[cfg_attr(test, allow(unused_imports, reason = "for the example of the same name"))]
pub use {
    many::many,
    shrink::tell,
    side_by_side::{Outcome, each},
};
