//! Peers that request foreign credentials, answer without end, or redirect elsewhere.

mod credentials;
mod forge;
mod git;
mod registry;
mod server;

use crate::support::http1;
