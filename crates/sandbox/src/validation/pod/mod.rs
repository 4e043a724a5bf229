//! Pods, and the pod templates of everything that makes pods.
//!
//! Looks at a spec whose defaults are filled in. The order of the rules is the order of the problems
//! in the server's answer.

mod affinity;
mod container;
mod environment;
mod mount;
mod network;
mod path;
mod pod_validation;
mod probe;
mod resources;
mod scheduling;
mod security;
mod update;
mod volume;

use super::field_cursor::FieldCursor;
use super::validation_errors::ValidationErrors;
use super::{formats, metadata};

use pod_validation::PodValidation;

pub(super) use affinity::node_selector;
pub(super) use network::check_port;
pub(super) use resources::{
    check_quantity_value, container_resource, is_standard_quota_resource, resource_name,
};
pub(super) use update::check_update;

/// Validates a pod, with the rules that templates do not have.
pub(super) fn check_pod(pod: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = pod.at("spec");
    check_spec(&spec, Some(pod.at("metadata.name").text()), problems);
    check_tokens(&spec, problems);
    for list in ["containers", "initContainers"] {
        for container in spec.at(list).items() {
            let image = container.at("image");
            if image.text() != image.text().trim() {
                problems.invalid(&image, "must not have leading or trailing whitespace");
            }
        }
    }
}

/// Fields that must be empty when a pod is created.
pub(super) fn check_new(pod: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = pod.at("spec");
    if !spec.at("ephemeralContainers").is_empty() {
        problems.forbidden(&spec.at("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.at("nodeName").is_empty() && !spec.at("schedulingGates").is_empty() {
        problems.forbidden(&spec.at("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
}

/// Tokens of a service account need a service account.
fn check_tokens(spec: &FieldCursor, problems: &mut ValidationErrors) {
    if !spec.at("serviceAccountName").is_empty() {
        return;
    }
    for volume in spec.at("volumes").items() {
        for source in volume.at("projected.sources").items() {
            if source.has("serviceAccountToken") {
                let why = "must not be specified when serviceAccountName is not set";
                problems.forbidden(&source.at("serviceAccountToken"), why);
            }
        }
    }
}

/// The template of a workload.
pub(super) fn check_template(template: &FieldCursor, problems: &mut ValidationErrors) {
    // the server leaves `metadata` out of these paths
    let labels = template.at("metadata.labels");
    metadata::labels(&template.called("labels", labels.value()), problems);
    let annotations = template.at("metadata.annotations");
    metadata::annotations(&template.called("annotations", annotations.value()), problems);
    check_spec(&template.at("spec"), None, problems);
    let ephemeral = template.at("spec.ephemeralContainers");
    if !ephemeral.is_empty() {
        problems.forbidden(&ephemeral, "ephemeral containers not allowed in pod template");
    }
}

fn check_spec(spec: &FieldCursor, name: Option<&str>, problems: &mut ValidationErrors) {
    let grace_seconds = spec.at("terminationGracePeriodSeconds").integer();
    let volumes = volume::check(&spec.at("volumes"), name, problems);
    let pod = PodValidation { spec, name, volumes, grace_seconds };
    container::check_claims(spec, problems);
    container::check_all(&pod, problems);
    resources::check_pod(&pod, problems);
    network::check_host_ports(&pod, problems);
    problems.check_one_of(&spec.at("restartPolicy"), &["Always", "OnFailure", "Never"]);
    let dns_policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    problems.check_one_of(&spec.at("dnsPolicy"), &dns_policies);
    metadata::labels(&spec.at("nodeSelector"), problems);
    security::check_pod(spec, problems);
    affinity::check(&spec.at("affinity"), problems);
    network::check_dns(spec, problems);
    scheduling::check_gates(spec, problems);
    scheduling::check_spread(&spec.at("topologySpreadConstraints"), problems);
    security::check_host_users(spec, problems);
    check_host_name(spec, problems);
    check_names(spec, problems);
    scheduling::check_tolerations(&spec.at("tolerations"), problems);
    network::check_host_aliases(&spec.at("hostAliases"), problems);
    check_scheduling_names(spec, problems);
    for (resource, quantity) in spec.at("overhead").entries() {
        check_quantity_value(resource, &quantity, problems);
    }
    security::check_operating_system(&pod, problems);
    environment::check_file_volumes(&pod, problems);
}

fn check_host_name(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let name = spec.at("hostnameOverride");
    if !name.is_set() {
        return;
    }
    if spec.at("setHostnameAsFQDN").is_true() {
        problems.forbidden(&name, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.at("hostNetwork").is_true() {
        problems.forbidden(&name, "may not be specified when hostNetwork is true");
    }
    if name.len() > 64 {
        problems.too_long(&name, 64);
    }
    problems.invalid_each(&name, formats::dns_subdomain(name.text()));
}

fn check_names(spec: &FieldCursor, problems: &mut ValidationErrors) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = spec.at(field);
        if !name.is_empty() {
            problems.invalid_each(&name, formats::dns_subdomain(name.text()));
        }
    }
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.integer().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        problems.invalid(&deadline, &formats::between(1, i64::from(i32::MAX)));
    }
    for field in ["hostname", "subdomain"] {
        let name = spec.at(field);
        if !name.is_empty() {
            problems.invalid_each(&name, formats::dns_label(name.text()));
        }
    }
}

fn check_scheduling_names(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let class = spec.at("priorityClassName");
    if !class.is_empty() {
        problems.invalid_each(&class, formats::dns_subdomain(class.text()));
    }
    let runtime = spec.at("runtimeClassName");
    if runtime.is_set() {
        problems.invalid_each(&runtime, formats::dns_subdomain(runtime.text()));
    }
    let preemption = spec.at("preemptionPolicy");
    if preemption.is_set() {
        problems.check_one_of(&preemption, &["PreemptLowerPriority", "Never"]);
    }
}
