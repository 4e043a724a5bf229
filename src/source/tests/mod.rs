//! Against real repositories in temporary folders; remotes are `file://` or a closed port.

mod bounds;
mod errors;
mod fixture;
mod history;
mod http;
mod ignored;
mod local;
mod merged;
mod remote;
mod waking;
