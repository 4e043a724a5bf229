//! Rollouts in waves: what each unit runs, and what it waits for. An oracle checks the write logs of the API servers after each test.

mod after;
mod analysis;
mod approvals;
mod baseline;
mod basics;
mod changed_render;
mod clusters;
mod fixture;
mod hooks;
mod incidents;
mod limits;
mod moves;
mod oracle_tests;
mod order;
mod pins;
mod pushes;
mod reverts;
mod rollout_statuses;
mod scale;
mod takeover;
mod windows;
