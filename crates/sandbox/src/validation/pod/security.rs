//! Security contexts, and what an operating system has no use for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::path;
use super::pod_validation::PodValidation;
use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::ValidationErrors;

/// A user or group of Unix.
fn check_id(id: &FieldCursor, problems: &mut ValidationErrors) {
    let most = i64::from(i32::MAX);
    if id.integer().is_some_and(|number| !(0..=most).contains(&number)) {
        problems.invalid(id, &formats::between(0, most));
    }
}

pub(super) fn check_pod(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let context = spec.at("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        check_id(&context.at(field), problems);
    }
    for group in context.at("supplementalGroups").items() {
        check_id(&group, problems);
    }
    let share = spec.at("shareProcessNamespace");
    if share.is_true() && spec.at("hostPID").is_true() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        problems.invalid(&context.called("shareProcessNamespace", share.value()), why);
    }
    check_sysctls(spec, &context.at("sysctls"), problems);
    problems.check_if_one_of(&context.at("fsGroupChangePolicy"), &["Always", "OnRootMismatch"]);
    check_seccomp(&context.at("seccompProfile"), problems);
    check_app_armor(&context.at("appArmorProfile"), problems);
    problems.check_if_one_of(&context.at("supplementalGroupsPolicy"), &["Merge", "Strict"]);
    problems.check_if_one_of(&context.at("seLinuxChangePolicy"), &["MountOption", "Recursive"]);
}

fn check_sysctls(spec: &FieldCursor, sysctls: &FieldCursor, problems: &mut ValidationErrors) {
    let mut seen = BTreeSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.at("name");
        if name.is_empty() {
            problems.required(&name, "");
        } else if !is_sysctl(name.text()) {
            let part = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
            let why = format!("must have at most 253 characters and match regex ^({part}[\\./])*{part}$");
            problems.invalid(&name, &why);
        } else if seen.contains(name.text()) {
            problems.duplicate(&name, name.value());
        }
        let dotted = name.text().replace('/', ".");
        if spec.at("hostNetwork").is_true() && dotted.starts_with("net.") {
            problems.invalid(&name, "may not be specified when 'hostNetwork' is true");
        } else if spec.at("hostIPC").is_true() && is_of_ipc(&dotted) {
            problems.invalid(&name, "may not be specified when 'hostIPC' is true");
        }
        seen.insert(name.text());
    }
}

fn is_of_ipc(name: &str) -> bool {
    name == "kernel.sem" || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|one| name.starts_with(one))
}

fn is_sysctl(name: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(inner)
            && part.ends_with(inner)
            && part.chars().all(|letter| inner(letter) || "-_".contains(letter))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

/// A profile of a kind, with a file only when it is of this machine.
fn check_seccomp(profile: &FieldCursor, problems: &mut ValidationErrors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.at("type"), profile.at("localhostProfile"));
    if kind.is_empty() {
        problems.required(&kind, "type is required when seccompProfile is set");
    } else {
        problems.check_if_one_of(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
    if !kind.is("Localhost") {
        if file.is_set() {
            let shown = json!({"LocalhostProfile": file.value(), "Type": kind.text()});
            problems.invalid_value(&file, &shown, "can only be set when seccomp type is Localhost");
        }
    } else if file.is_set() {
        path::check_relative(&file, problems);
    } else {
        problems.required(&file, "must be set when seccomp type is Localhost");
    }
}

fn check_app_armor(profile: &FieldCursor, problems: &mut ValidationErrors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.at("type"), profile.at("localhostProfile"));
    match kind.text() {
        "" => problems.required(&kind, "type is required when appArmorProfile is set"),
        "Localhost" => {
            if file.text().trim() != file.text() {
                problems.invalid(&file, "must not be padded with whitespace");
            } else if file.is_empty() {
                problems.required(&file, "must be set when AppArmor type is Localhost");
            }
            if file.len() > 4_095 {
                problems.too_long(&file, 4_095);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if file.is_set() {
                problems.invalid(&file, "can only be set when AppArmor type is Localhost");
            }
        }
        _ => problems.not_supported(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

pub(super) fn check_container(
    pod: &PodValidation<'_, '_>,
    context: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    if !context.is_set() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        check_id(&context.at(field), problems);
    }
    let mount = context.at("procMount");
    problems.check_if_one_of(&mount, &["Default", "Unmasked"]);
    if mount.is("Unmasked") && pod.spec.at("hostUsers").value() != &Value::Bool(false) {
        problems.invalid(&mount, "`hostUsers` must be false to use `Unmasked`");
    }
    check_seccomp(&context.at("seccompProfile"), problems);
    if context.at("allowPrivilegeEscalation").value() == &Value::Bool(false) {
        if context.at("privileged").is_true() {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            problems.invalid_value(context, &internal(context), why);
        }
        for capability in context.at("capabilities.add").items() {
            if capability.is("CAP_SYS_ADMIN") {
                let why =
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
                problems.invalid_value(context, &internal(context), why);
            }
        }
    }
    check_app_armor(&context.at("appArmorProfile"), problems);
}

/// The context as the server's messages show it: by the names of its own types.
fn internal(context: &FieldCursor) -> Value {
    let fields = [
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("AppArmorProfile", "appArmorProfile"),
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("ProcMount", "procMount"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("RunAsUser", "runAsUser"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("SeccompProfile", "seccompProfile"),
        ("WindowsOptions", "windowsOptions"),
    ];
    fields.iter().map(|(name, field)| ((*name).to_owned(), context.at(field).value().clone())).collect()
}

/// Users of their own, and the host's namespaces, exclude each other.
pub(super) fn check_host_users(spec: &FieldCursor, problems: &mut ValidationErrors) {
    if spec.at("hostUsers").value() != &Value::Bool(false) {
        return;
    }
    for (field, named) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.at(field).is_true() {
            problems.forbidden(&spec.called(named, &Value::Null), "when `hostUsers` is false");
        }
    }
}

/// Windows has no use for most of Linux, and the other way round.
pub(super) fn check_operating_system(pod: &PodValidation<'_, '_>, problems: &mut ValidationErrors) {
    let system = pod.spec.at("os");
    if !system.is_set() {
        return;
    }
    let name = system.at("name");
    if name.is_empty() {
        return problems.required(&name, "");
    }
    problems.check_if_one_of(&name, &["linux", "windows"]);
    if name.is("linux") {
        let options = pod.spec.at("securityContext.windowsOptions");
        if options.is_set() {
            problems.forbidden(&options, "windows options cannot be set for a linux pod");
        }
    }
}
