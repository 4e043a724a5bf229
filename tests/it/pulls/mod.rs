//! Pull requests of the config repository with the simulated forge: their statuses and comments, and those that tutti opens.

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
