//! Rollouts in waves: what each unit runs, and what it waits for. An oracle checks the write logs of the API servers after each test.

mod back;
mod baseline;
mod basics;
mod limits;
mod oracle;
mod order;
mod scale;
mod scene;
