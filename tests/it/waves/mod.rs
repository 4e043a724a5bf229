//! Rollouts in waves: what each unit runs, and what it waits for. An oracle checks the write logs of the API servers after each test.

mod basics;
mod oracle;
mod scene;
