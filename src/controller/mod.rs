//! Decides when to reconcile: one closed [`Event`](event::Event) enum, one queue, one loop.
//!
//! Each turn of the loop handles the events and then advances the state: it starts due work within limits per cluster, and sets
//! the next deadline. The loop never blocks. Every request is a task that reports back as an event. A wait (for health, for an
//! approval, for a cluster) is only the absence of an event. A newer revision takes over at once.
//!
//! Its state is a cache of Git and of the clusters: a restarted process decides the same.
//!
//! A turn costs what has happened since the turn before: `targets.rs` is the work queue of targets, `desired_index.rs` indexes the
//! rendered objects of a cluster. Retries: after a failed request 1 s, 2 s … 5 min, after a refusal 30 s, 1 min … 5 min, because
//! no watch event reports that the obstacle is gone. A retry delay ends when the rendered objects, the apply settings or the
//! refused object change, or when the cluster answers again.
//!
//! A standby process runs in observe mode and posts nothing. `Event::Elected` has the effect of another `mode` in `tutti.yaml`.
//! `plan`, `diff`, `get`, `why` and `approve` run the same controller once in observe mode.

mod advance;
mod agreements;
mod api_discovery;
mod apps;
mod cause_lists;
mod cause_results;
mod cause_searches;
mod causes;
mod channels;
mod claim_consumers;
mod cluster_entry;
mod cluster_removal;
mod clusters;
mod crash_log_lines;
mod crash_logs;
mod delete_approvals;
mod delete_policies;
mod desired_index;
mod dispatch;
mod event;
mod event_causes;
mod expiry_warnings;
mod file_versions;
mod forge_posting;
mod git_loads;
mod grants;
mod head_renders;
mod in_flight;
mod interner;
mod jitter;
mod kubeconfig_watch;
mod list_limiter;
mod load;
mod load_result;
mod mistakes;
mod non_fast_forward;
mod overview;
mod pending_removal;
mod phase;
mod policy_state;
mod posting;
mod prune;
mod prune_state;
mod queue_memory;
mod registry;
mod render_results;
mod rollouts;
mod run_ending;
mod run_loop;
mod secrets;
mod settings;
mod state;
mod storage_class_reads;
mod supervisor;
mod target_entry;
mod targets;
mod task_results;
mod unbound_claims;
mod unregistered;
mod unregistered_cluster;
mod versions;
mod volume_claims;

pub use apps::{RuntimeClock, approvals_of_other_versions};
pub use channels::{ConfigHead, ControllerInputs, ControllerOutputs};
pub use cluster_entry::STARTUP_GRACE_PERIOD;
pub use grants::RepositoryGrants;
pub use load::ManifestOrigin;
pub use load_result::LoadError;
pub use registry::read_registered_clusters;
pub use run_ending::RunEnding;
pub use run_loop::run;
pub use secrets::{SecretError, resolve_operator_secret};
pub use settings::{ControllerSettings, LinkResolver, RunUntil};
