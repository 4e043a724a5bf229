//! Ingresses and their classes.

use serde_json::json;

use super::field_cursor::FieldCursor;
use super::formats;
use super::validation_errors::ValidationErrors;

/// Forbidden parts and endings of a path.
const INVALID_PARTS: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const INVALID_ENDS: &[&str] = &["/..", "/."];

pub(super) fn check(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let (backend, rules) = (spec.at("defaultBackend"), spec.at("rules"));
    if rules.is_empty() && !backend.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        problems.invalid_value(&spec, rules.value(), why);
    }
    if backend.is_set() {
        check_backend(&backend, problems);
    }
    for rule in rules.items() {
        check_host(&rule.at("host"), problems);
        if rule.has("http") {
            check_paths(&rule.at("http.paths"), problems);
        }
    }
    for tls in spec.at("tls").items() {
        for host in tls.at("hosts").items() {
            problems.invalid_each(&host, host_form(host.text()));
        }
        let secret = tls.at("secretName");
        if !secret.is_empty() {
            problems.invalid_each(&secret, formats::dns_subdomain(secret.text()));
        }
    }
    let class = spec.at("ingressClassName");
    if class.is_set() {
        problems.invalid_each(&class, formats::dns_subdomain(class.text()));
    }
}

/// The class in the annotation of old is the class of the spec.
pub(super) fn check_new(object: &FieldCursor, problems: &mut ValidationErrors) {
    let annotations = object.at("metadata.annotations");
    let (annotated, class) =
        (annotations.key("kubernetes.io/ingress.class"), object.at("spec.ingressClassName"));
    if annotated.is_set() && class.is_set() && annotated.value() != class.value() {
        let why = "must match `ingressClassName` when both are specified";
        let named = object.called("annotations.kubernetes.io/ingress.class", annotated.value());
        problems.invalid(&named, why);
    }
}

fn host_form(host: &str) -> Vec<String> {
    if host.contains('*') { formats::dns_wildcard(host) } else { formats::dns_subdomain(host) }
}

fn check_host(host: &FieldCursor, problems: &mut ValidationErrors) {
    if host.is_empty() {
        return;
    }
    if formats::parse_ip(host.text()).is_some() {
        problems.invalid(host, "must be a DNS name, not an IP address");
    }
    problems.invalid_each(host, host_form(host.text()));
}

fn check_paths(paths: &FieldCursor, problems: &mut ValidationErrors) {
    if paths.is_empty() {
        problems.required(paths, "");
    }
    for entry in paths.items() {
        let (kind, path) = (entry.at("pathType"), entry.at("path"));
        let text = path.text();
        if !kind.is_set() {
            problems.required(&kind, "pathType must be specified");
            continue;
        }
        let is_matched = matches!(kind.text(), "Exact" | "Prefix");
        if !is_matched && !kind.is("ImplementationSpecific") {
            problems.not_supported(&kind, &["Exact", "ImplementationSpecific", "Prefix"]);
        } else if !text.starts_with('/') && (is_matched || !text.is_empty()) {
            problems.invalid_value(&path, &json!(text), "must be an absolute path");
        }
        if is_matched {
            for part in INVALID_PARTS.iter().filter(|part| text.contains(**part)) {
                problems.invalid(&path, &format!("must not contain '{part}'"));
            }
            for end in INVALID_ENDS.iter().filter(|end| text.ends_with(**end)) {
                problems.invalid(&path, &format!("cannot end with '{end}'"));
            }
        }
        check_backend(&entry.at("backend"), problems);
    }
}

fn check_backend(backend: &FieldCursor, problems: &mut ValidationErrors) {
    let (service, resource) = (backend.at("service"), backend.at("resource"));
    let mut wrong = |why: &str| problems.invalid_value(backend, &json!(""), why);
    match (service.is_set(), resource.is_set()) {
        (true, true) => wrong("cannot set both resource and service backends"),
        (false, false) => wrong("resource or service backend is required"),
        (false, true) => check_resource(&resource, problems),
        (true, false) => check_service(backend, &service, problems),
    }
}

fn check_service(backend: &FieldCursor, service: &FieldCursor, problems: &mut ValidationErrors) {
    let (name, port, number) = (service.at("name"), service.at("port.name"), service.at("port.number"));
    if name.is_empty() {
        problems.required(&name, "");
    } else {
        problems.invalid_each(&name, formats::dns_label(name.text()));
    }
    match (!port.is_empty(), number.number() != 0) {
        (true, true) => {
            problems.invalid_value(backend, &json!(""), "cannot set both port name & port number")
        }
        (true, false) => problems.invalid_each(&port, formats::port_name(port.text())),
        (false, true) => problems.invalid_each(&number, formats::port_number(number.number())),
        (false, false) => problems.required(backend, "port name or number is required"),
    }
}

fn check_resource(resource: &FieldCursor, problems: &mut ValidationErrors) {
    let (group, kind, name) = (resource.at("apiGroup"), resource.at("kind"), resource.at("name"));
    if group.is_set() {
        problems.invalid_each(&group, formats::dns_subdomain(group.text()));
    }
    for field in [kind, name] {
        if field.is_empty() {
            problems.required(&field, "");
        } else {
            problems.invalid_each(&field, formats::path_segment(field.text()));
        }
    }
}

pub(super) fn check_class(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let controller = spec.at("controller");
    if controller.len() > 250 {
        problems.too_long(&controller, 250);
    }
    formats::check_prefixed_path(&controller, problems);
    let parameters = spec.at("parameters");
    if !parameters.is_set() {
        return;
    }
    check_resource(&parameters, problems);
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    match scope.text() {
        "" => problems.required(&scope, ""),
        "Namespace" if namespace.is_empty() => {
            problems.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => problems.invalid_each(&namespace, formats::dns_label(namespace.text())),
        "Cluster" if namespace.is_set() => {
            problems.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        _ => problems.not_supported(&scope, &["Cluster", "Namespace"]),
    }
}
