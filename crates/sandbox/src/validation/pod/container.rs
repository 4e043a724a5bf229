//! Containers and init containers.

use std::collections::BTreeSet;

use serde_json::json;

use super::pod_validation::PodValidation;
use super::{environment, mount, network, probe, resources, security};
use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::ValidationErrors;

pub(super) fn check_all(pod: &PodValidation<'_, '_>, problems: &mut ValidationErrors) {
    let containers = pod.spec.at("containers");
    let mut names = BTreeSet::new();
    if containers.is_empty() {
        problems.required(&containers, "");
    }
    for container in containers.items() {
        check_common(pod, &container, problems);
        check_unique(&container, &mut names, problems);
        probe::check_lifecycle(pod, &container, problems);
        probe::check_all(pod, &container, problems);
        check_restart_rules(&container, problems);
    }
    network::check_conflicts(&containers, problems);
    let first = pod.spec.at("initContainers");
    for container in first.items() {
        check_common(pod, &container, problems);
        check_init(pod, &first, &container, &mut names, problems);
    }
}

fn check_unique<'v>(
    container: &FieldCursor<'_, 'v>,
    names: &mut BTreeSet<&'v str>,
    problems: &mut ValidationErrors,
) {
    let name = container.at("name");
    if !names.insert(name.text()) {
        problems.duplicate(&name, &json!(name.text()));
    }
}

fn check_init<'v>(
    pod: &PodValidation<'_, 'v>,
    list: &FieldCursor,
    container: &FieldCursor<'_, 'v>,
    names: &mut BTreeSet<&'v str>,
    problems: &mut ValidationErrors,
) {
    check_restart_rules(container, problems);
    if container.at("name").is_empty() {
        if names.contains("") {
            problems.duplicate(&container.at("name"), &json!(""));
        }
    } else {
        check_unique(container, names, problems);
    }
    let port_list = json!([container.value()]);
    let alone = list.called("", &port_list);
    network::check_conflicts_in(list, &alone, problems);
    if container.at("restartPolicy").is("Always") {
        probe::check_lifecycle(pod, container, problems);
        probe::check_all(pod, container, problems);
    } else {
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(field) {
                let why = "may not be set for init containers without restartPolicy=Always";
                problems.forbidden(&container.at(field), why);
            }
        }
        for policy in container.at("resizePolicy").items() {
            if policy.at("restartPolicy").is("RestartContainer") {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                problems.invalid(&policy.at("restartPolicy"), why);
            }
        }
    }
}

fn check_common(pod: &PodValidation<'_, '_>, container: &FieldCursor, problems: &mut ValidationErrors) {
    let name = container.at("name");
    if name.is_empty() {
        problems.required(&name, "");
    } else {
        problems.invalid_each(&name, formats::dns_label(name.text()));
    }
    if container.at("image").is_empty() {
        problems.required(&container.at("image"), "");
    }
    let policies = ["File", "FallbackToLogsOnError"];
    problems.check_one_of(&container.at("terminationMessagePolicy"), &policies);
    network::check_container_ports(&container.at("ports"), problems);
    environment::check(container, problems);
    mount::check(pod, container, problems);
    problems.check_one_of(&container.at("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    resources::check_container(&container.at("resources"), pod.spec, problems);
    check_resize(pod, &container.at("resizePolicy"), problems);
    security::check_container(pod, &container.at("securityContext"), problems);
}

fn check_resize(pod: &PodValidation<'_, '_>, policies: &FieldCursor, problems: &mut ValidationErrors) {
    let mut seen = BTreeSet::new();
    for policy in policies.items() {
        let (resource, restart) = (policy.at("resourceName"), policy.at("restartPolicy"));
        if !seen.insert(resource.text()) {
            problems.duplicate(&policy, &json!(resource.text()));
        }
        // the server speaks of the list
        for (field, supported) in
            [(&resource, ["cpu", "memory"]), (&restart, ["NotRequired", "RestartContainer"])]
        {
            if field.is_empty() {
                problems.required(policies, "");
            } else if !supported.contains(&field.text()) {
                problems.not_supported_value(policies, field.value(), &supported);
            }
        }
        if pod.spec.at("restartPolicy").is("Never") && !restart.is("NotRequired") {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            problems.invalid_value(policies, restart.value(), why);
        }
    }
}

fn check_restart_rules(container: &FieldCursor, problems: &mut ValidationErrors) {
    let (policy, rules) = (container.at("restartPolicy"), container.at("restartPolicyRules"));
    if policy.is_set() {
        problems.check_if_one_of(&policy, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_empty() {
        problems.required(&policy, "must specify restartPolicy when restart rules are used");
    }
    if rules.len() > 20 {
        problems.too_many(&rules, 20);
    }
    for rule in rules.items() {
        let action = rule.at("action");
        if !matches!(action.text(), "Restart" | "RestartAllContainers") {
            problems.not_supported(&action, &["Restart", "RestartAllContainers"]);
        }
        let codes = rule.at("exitCodes");
        if !codes.is_set() {
            problems.required(&codes, "must be specified");
            continue;
        }
        if !matches!(codes.at("operator").text(), "In" | "NotIn") {
            problems.not_supported(&codes.at("operator"), &["In", "NotIn"]);
        }
        if codes.at("values").len() > 255 {
            problems.too_many(&codes.at("values"), 255);
        }
    }
}

/// The claims for devices that a pod names.
pub(super) fn check_claims(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let mut names = BTreeSet::new();
    for claim in spec.at("resourceClaims").items() {
        let name = claim.at("name");
        if name.is_empty() {
            problems.required(&name, "");
        } else if !names.insert(name.text()) {
            problems.duplicate(&name, name.value());
        } else {
            problems.invalid_each(&name, formats::dns_label(name.text()));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let shown = json!({"Name": name.text(), "ResourceClaimName": claim.at(sources[0]).value(),
            "ResourceClaimTemplateName": claim.at(sources[1]).value()});
        match sources.iter().filter(|source| claim.has(source)).count() {
            0 => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                problems.invalid_value(&claim, &shown, why);
            }
            2 => {
                let why =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                problems.invalid_value(&claim, &shown, why);
            }
            _ => {}
        }
        for source in sources {
            let source = claim.at(source);
            if source.is_set() {
                problems.invalid_each(&source, formats::dns_subdomain(source.text()));
            }
        }
    }
}
