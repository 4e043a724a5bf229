//! The integration tests: one binary, one file per behaviour, named after it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking; the exemption for tests does not reach their helpers"
)]

mod adopt;
mod autoscalers;
mod bad_input;
mod beside;
mod budgets;
mod capabilities;
mod caps;
mod cases;
mod causes;
mod certificates;
mod chaos;
mod charts;
mod chats;
mod claims;
mod cold_start;
mod containers;
mod deletes;
mod deploy;
mod diff;
mod diff_ends;
mod diff_secrets;
mod displaced;
mod doubt;
mod drift;
mod example_repo;
mod exit_reasons;
mod explained;
mod faults;
mod foreign_edits;
mod forge_client;
mod forge_commands;
mod forge_settings;
mod forge_setup;
mod health;
mod health_cases;
mod hostile;
mod import;
mod incidents;
mod inventory;
mod kruise;
mod kubeconfigs;
mod last_lines;
mod layering;
mod layers;
mod live;
mod looks;
mod marks;
mod metrics;
mod mistakes;
mod moves;
mod namespaces;
mod notification_log;
mod notifications;
mod notify_commands;
mod nulls;
mod observe;
mod occasions;
mod offline;
mod old_servers;
mod orphan;
mod own_status;
mod ownership;
mod partings;
mod patience;
mod pins;
mod plan_revisions;
mod plug_ins;
mod policies;
mod policy_verdicts;
mod projects;
mod proxy;
mod prune;
mod pulls;
mod reading_cost;
mod registered;
mod removed;
mod restart;
mod rollout_commands;
mod routes;
mod scaffold;
#[cfg(feature = "sops")]
mod secrets;
mod seeds;
mod shared_objects;
mod shutdown;
mod standing_by;
mod statuses;
mod supersede;
mod support;
mod sync_waves;
mod taints;
mod tidy;
mod traces;
mod transcripts;
mod triggers;
mod undone;
mod units;
mod vanished;
mod versions;
mod waking;
mod watches;
mod waves;
mod went_back;
mod why;
mod without_apply;
mod work_in_flight;
mod workloads;
mod write_permit;
