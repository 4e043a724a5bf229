//! Rollouts in waves: what each unit runs, and what it waits for. An oracle checks the write logs of the API servers after each test.

mod analysis;
mod approvals;
mod back;
mod baseline;
mod basics;
mod clusters;
mod follow;
mod hooks;
mod incidents;
mod limits;
mod moves;
mod oracle;
mod order;
mod pins;
mod pushes;
mod scale;
mod scene;
mod taken;
mod told;
mod upgrade;
mod windows;
