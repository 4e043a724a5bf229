//! Chaos tests: seeded schedules of commits, edits by others, cluster faults and process ends, under a paused clock.
//!
//! [`schedule`] draws everything from a seed, and [`run`] executes it on embedded clusters and a Git repository.
//! The generator keeps the desired state itself ([`wanted`]). [`witness`] checks each write with [`judge`]; [`truth`] and
//! [`quiet`] check clusters and reported phases; [`budget`] limits the number of writes, [`pace`] the retries.

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
