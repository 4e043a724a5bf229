//! Pull requests of the config repository with the simulated forge: their statuses and comments, and those that tutti opens.

mod approvals;
mod budget;
mod fixture;
mod forks;
mod promotions;
mod pull_request_statuses;
mod restarts;
mod reverts;
mod statuses;
mod triggers;
