//! Pull requests of the config repository, against the simulated forge: what is said of them, and those that tutti opens itself.

mod approvals;
mod budget;
mod forks;
mod promotions;
mod restarts;
mod reverts;
mod road;
mod scene;
mod statuses;
mod triggers;
