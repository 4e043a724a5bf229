//! The table of checks over the whole fleet. Each check returns its mistakes, and none stops another. Called by `assemble`.

mod after;
mod analyses;
mod approval_rules;
mod canary;
mod charts;
mod check_input;
mod files;
mod identity;
mod layers;
mod notifications;
mod pins;
mod placement;
mod pod_sets;
mod projects;
mod rings;
mod rollout_approvals;
mod routes;
mod selectors;
mod triggers;
mod waves;

pub use check_input::CheckInput;
pub use files::kustomize_error_filter;

use crate::model::Diagnostic;

pub type FleetCheck = fn(&CheckInput<'_>) -> Vec<Diagnostic>;

pub const CHECKS: &[(&str, FleetCheck)] = &[
    ("one approval has one manifest", identity::approvals),
    ("one trigger has one manifest", identity::triggers),
    ("one route of notifications has one manifest", identity::notifications),
    ("one server has one manifest", identity::servers),
    ("one policy has one manifest", identity::policies),
    ("one admission policy has one manifest", identity::admission_policies),
    ("one binding of a policy has one manifest", identity::admission_bindings),
    ("a trigger names what exists", triggers::triggers_fit),
    ("what a selector names exists", selectors::selectors_fit),
    ("one window has one manifest", identity::windows),
    ("one analysis has one manifest", identity::analyses),
    ("an analysis can be evaluated", analyses::can_be_evaluated),
    ("what is measured after a wave exists", analyses::analyses_exist),
    ("one approval rule has one manifest", identity::approval_rules),
    ("one role has one manifest", identity::approvers),
    ("enough people can satisfy an approval rule", approval_rules::can_be_satisfied),
    ("a route of notifications can be sent", notifications::can_be_sent),
    ("the cluster of a server is registered", notifications::servers_fit),
    ("a cluster is in at most one ring", rings::one_ring_each),
    ("a ring has clusters", rings::no_empty_ring),
    ("a cluster is in a ring", rings::no_cluster_left_out),
    ("a named cluster is registered", placement::clusters_exist),
    ("a named cluster stays", placement::clusters_stay),
    ("a named cluster takes the app", placement::taints_are_tolerated),
    ("a named ring exists", placement::rings_exist),
    ("an app is placed somewhere", placement::placed_somewhere),
    ("an app keeps to what its project allows", projects::apps_are_allowed),
    ("a ring that a route names exists", routes::rings_exist),
    ("a host and path of a cluster has one route", routes::hosts_differ),
    ("a pin fits an app and a ring", pins::pins_fit),
    ("a canary cluster is one of the app", canary::clusters_fit),
    ("a wave selects what no other does", waves::waves_fit),
    ("a group of upgradeType selects a podSet", waves::groups_select),
    ("an app that another waits for exists", after::apps_exist),
    ("no app waits for itself", after::no_cycles),
    ("a rollout that is approved exists", rollout_approvals::rollout_approvals_fit),
    ("podSets come to the replicas of their app", pod_sets::replicas_fit),
    ("a podSet has one tag", pod_sets::tags_agree),
    ("a podSet's name is used once in a namespace", pod_sets::names_differ),
    ("a layer that an app names exists", layers::layers_exist),
    ("a chart that an app names can be found", charts::can_be_found),
    ("a pattern of an Objects app fits a file", files::patterns_fit),
    ("a Kubernetes document belongs to an app", files::no_stray_document),
    ("files are ignored by tutti.yaml", files::ignore_is_read),
    ("nothing waits for kustomize", files::no_kustomization),
];
