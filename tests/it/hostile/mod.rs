//! Hostile files and peers against the real binary under a memory limit: the process runs, a healthy cluster gets a
//! pushed commit within ten seconds, and the log names what is hostile.

mod api_server;
mod charts;
mod clusters;
mod execution;
mod files;
pub mod fixture;
mod limits;
mod listener;
mod peers;
mod process;
mod templates;

use crate::support::http1;
