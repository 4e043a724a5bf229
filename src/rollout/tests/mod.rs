//! Decisions about a simulated fleet.

mod cost;
mod fleet;
mod scenarios;
mod simulator;
