//! The contract with kube-apiserver.
//!
//! Each check is one function that sends requests through a [`ContractProbe`](probe::ContractProbe). The probe records requests and
//! responses, and replaces values that differ between runs (uids, times, resource versions, addresses). Responses of a real
//! server are stored in `tests/contract/observed/`; the sandbox must give the same, line by line, except for the
//! differences in `tests/contract/ledger.yaml`, each with its reason.
//!
//! - Every test run: each check on the sandbox, on a paused clock.
//! - With the live tier: all checks on a real server too; the observations must still be true.
//!   `TUTTI_CONTRACT=write` writes them (`TUTTI_CONTRACT_SERVER=<kubeconfig>` uses a running server,
//!   `TUTTI_CONTRACT_ONLY=<text>` only checks whose name contains the text).

mod apply_records;
mod known_differences;
mod normalization;
mod observation_files;
mod probe;
mod run;
mod watch_stream;

mod applied;
mod apply;
mod bad_input;
mod custom;
mod defaults;
mod deletion;
mod dry_runs;
mod jobs;
mod lists;
mod patches;
mod rest;
mod rules;
mod watches;
mod workloads;

use futures::future::BoxFuture;
use probe::ContractProbe;

/// One comparison of API servers.
pub struct Check {
    /// Its number in the list of proposed checks; several functions may share one.
    pub number: u32,
    pub name: &'static str,
    pub run: for<'p> fn(&'p mut ContractProbe) -> BoxFuture<'p, ()>,
}

/// Declares the checks: each becomes a test on the sandbox, and an entry of the list for real servers.
macro_rules! checks {
    ($($number:literal $module:ident::$name:ident,)*) => {
        pub const CHECKS: &[Check] = &[$(
            Check { number: $number, name: stringify!($name), run: |probe| Box::pin($module::$name(probe)) },
        )*];

        mod on_the_sandbox {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::run::on_the_sandbox(stringify!($name)).await;
                }
            )*
        }
    };
}

checks! {
    1 rest::a_created_object_is_answered_whole,
    1 rest::the_server_decides_about_metadata_of_a_new_object,
    1 rest::managers_are_named_by_parameter_or_agent,
    2 rest::a_second_create_already_exists,
    3 rest::a_missing_object_is_not_found,
    3 rest::missing_objects_by_every_verb,
    3 rest::logs_that_no_server_gives,
    4 rest::a_put_without_a_revision_is_unconditional_for_most_kinds,
    4 rest::a_put_creates_objects_of_some_kinds_only,
    5 rest::a_put_with_a_stale_revision_conflicts,
    5 rest::a_put_with_another_uid_conflicts,
    6 rest::names_in_body_and_path_must_agree,
    7 rest::a_create_needs_its_namespace,
    8 rest::bad_names_are_invalid,
    8 rest::bad_metadata_is_invalid,
    8 rest::metadata_of_an_object_is_immutable,
    9 bad_input::broken_bodies_are_bad_requests,
    9 bad_input::broken_bodies_of_other_verbs,
    9 bad_input::bodies_of_other_kinds_are_bad_requests,
    9 bad_input::deep_bodies_are_refused,
    9 bad_input::bodies_have_a_largest_size,
    9 bad_input::yaml_bodies_are_read,
    10 bad_input::unknown_paths_are_not_found,
    10 bad_input::strange_paths,
    11 bad_input::methods_that_a_path_has_not,
    11 bad_input::unknown_content_types_are_unsupported,
    11 bad_input::what_a_client_accepts,
    12 rest::generated_names_are_a_prefix_and_five_characters,
    13 rest::a_generation_counts_changes_of_the_spec,
    13 rest::generations_of_kinds,
    14 rest::a_write_that_changes_nothing_is_none,
    15 dry_runs::a_dry_run_answers_as_if,
    15 dry_runs::a_dry_run_fills_defaults_and_checks,
    15 dry_runs::bad_values_of_dry_run,
    16 rest::secrets_take_plain_text,
    17 rest::immutable_objects_stay_as_they_are,
    18 lists::a_list_in_pages,
    18 lists::pages_with_a_selector_count_nothing,
    18 lists::limits_of_all_sorts,
    19 lists::bad_continue_tokens,
    20 lists::label_selectors,
    20 lists::label_selectors_that_do_not_parse,
    21 lists::field_selectors,
    21 lists::field_selectors_of_kinds,
    21 lists::pods_by_phase_and_node,
    21 lists::events_by_their_object,
    22 lists::revisions_and_how_they_match,
    22 lists::a_list_of_the_past,
    23 lists::a_revision_of_the_future,
    24 lists::items_of_a_list_carry_no_kind,
    24 lists::parameters_that_mean_nothing_are_ignored,
    25 watches::a_watch_tells_every_change_in_order,
    26 watches::a_selector_makes_its_own_adds_and_deletes,
    26 watches::a_watch_of_one_name,
    27 watches::a_watch_without_a_revision_starts_with_what_is_there,
    28 watches::a_watch_of_a_forgotten_revision_is_told,
    29 watches::a_watch_ends_when_its_time_is_over,
    29 watches::watch_parameters_of_all_sorts,
    29 watches::the_old_watch_paths,
    30 watches::a_streaming_list_ends_with_a_bookmark,
    30 watches::streaming_lists_need_their_parameters,
    31 watches::a_reflector_ends_with_the_same_store,
    32 lists::metadata_only,
    32 watches::a_watch_of_metadata_only,
    57 patches::a_merge_patch_deletes_with_null,
    57 patches::merge_patches_that_do_not_fit,
    58 patches::json_patches,
    58 patches::json_patches_that_do_not_fit,
    59 patches::strategic_patches_merge_lists_by_key,
    59 patches::strategic_patches_that_do_not_fit,
    59 patches::custom_kinds_take_no_strategic_patch,
    60 patches::status_and_spec_are_written_apart,
    60 patches::a_scale_changes_replicas_and_generation,
    61 patches::workloads_keep_their_selector,
    62 deletion::a_finalizer_holds_an_object,
    62 deletion::the_last_finalizer_goes_by_put,
    63 deletion::a_delete_answers_what_is_gone,
    63 deletion::preconditions_must_hold,
    63 deletion::options_of_a_delete,
    63 deletion::running_pods_are_given_time,
    64 deletion::background_deletion_takes_dependents_later,
    64 deletion::foreground_deletion_takes_dependents_first,
    64 deletion::orphans_lose_their_owner,
    64 deletion::dangling_owners_are_collected,
    65 deletion::a_namespace_ends_with_what_is_in_it,
    65 deletion::namespaces_that_may_not_be_deleted,
    65 deletion::namespaces_are_finalized,
    66 deletion::a_collection_is_deleted_by_selector,
    66 deletion::a_collection_is_deleted_whole,
    66 deletion::bad_options_of_a_collection_delete,
    33 apply::an_apply_creates_and_says_what_it_owns,
    34 apply::an_apply_needs_a_manager,
    35 apply::a_conflict_names_the_manager_and_the_field,
    36 apply::conflicts_with_several_managers_are_listed,
    37 apply::equal_values_are_shared,
    38 apply::force_takes_fields_away,
    39 apply::a_field_that_is_no_longer_applied_goes,
    39 apply::a_dropped_field_stays_for_whoever_else_holds_it,
    40 apply::a_dropped_field_with_a_default_gets_it,
    41 apply::two_managers_share_a_list_by_its_keys,
    42 apply::applied_lists_keep_an_order,
    43 apply::atomic_lists_and_maps_have_one_owner,
    44 apply::sets_are_united,
    45 apply::doubled_keys_are_refused,
    46 apply::service_ports_are_known_by_port_and_protocol,
    47 applied::null_in_an_apply,
    47 custom::nulls_of_custom_objects,
    48 applied::what_an_apply_may_say_about_itself,
    48 applied::the_type_of_an_apply_must_be_right,
    49 applied::unknown_fields_in_an_apply,
    50 applied::other_writes_are_recorded_as_updates,
    51 applied::subresources_are_owned_apart,
    51 applied::a_scale_is_owned_apart,
    51 applied::a_scale_can_be_applied,
    51 applied::scales_of_other_workloads_can_be_applied,
    51 custom::a_scale_of_a_custom_kind_is_not_applied,
    52 applied::a_dry_apply_changes_nothing,
    53 applied::managed_fields_can_be_emptied,
    54 defaults::quantities_are_written_in_one_way,
    55 defaults::defaults_of_workloads,
    55 defaults::defaults_of_other_kinds,
    56 applied::random_applies,
    67 custom::a_definition_is_served_until_it_goes,
    67 custom::custom_objects_are_pruned_and_filled,
    67 custom::schemas_of_definitions_are_checked,
    67 rules::rules_of_definitions_are_evaluated,
    67 rules::rules_of_definitions_are_checked,
    67 rules::expressions_have_the_same_values,
    68 custom::resources_of_the_groups,
    68 custom::both_discoveries_tell_the_same,
    69 custom::tables_of_kinds,
    69 custom::tables_of_custom_objects,
    70 workloads::a_deployment_is_rolled_out,
    70 workloads::a_rollout_keeps_its_bounds,
    70 workloads::a_broken_image_holds_a_rollout,
    71 workloads::a_rollback_takes_the_old_replica_set,
    72 workloads::a_stateful_set_goes_in_order,
    72 workloads::a_partition_holds_pods_back,
    73 workloads::jobs_succeed_and_fail,
    73 jobs::jobs_follow_their_policies,
    74 workloads::a_daemon_set_runs_on_every_node,
    74 workloads::endpoints_follow_readiness,
    75 workloads::a_scaled_deployment_and_its_applier,
}

#[tokio::test(flavor = "multi_thread")]
async fn on_real_servers() {
    run::on_real_servers().await;
}

#[tokio::test]
async fn every_observation_belongs_to_a_check() {
    observation_files::check_files(CHECKS);
    known_differences::check_entries(CHECKS);
}
