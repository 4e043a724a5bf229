//! Peers that ask for what is not theirs, answer without end, or send their callers elsewhere.

mod credentials;
mod forge;
mod git;
mod registry;
mod server;

use crate::support::http1;
