//! Hostile files and peers against the real binary, under a limit of memory: the process lives, a healthy cluster gets a
//! commit that is pushed meanwhile within ten seconds, and what is hostile is named.

mod api_server;
pub mod arena;
mod charts;
mod clusters;
mod execution;
mod files;
mod limits;
mod listener;
mod peers;
mod process;
mod templates;

use crate::support::http1;
