//! Defaults as a table: path, field, value.

use serde_json::{Value, json};

/// The default of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldDefault {
    /// Also in place of an empty text.
    Text(&'static str),
    /// In place of nothing only: an empty text is a mistake.
    Choice(&'static str),
    Number(i64),
    /// Also in place of zero.
    Count(i64),
    Flag(bool),
    /// A struct with nothing in it.
    Empty,
}

use FieldDefault::{Choice, Count, Empty, Flag, Number, Text};

/// The way to a struct (`[]` is every item of a list), a field of it, what that is by default. Rules
/// apply to structs that are there; a rule may make one for the rules after it.
type DefaultRule = (&'static str, &'static str, FieldDefault);

pub(super) fn apply_rules(rules: &[DefaultRule], object: &mut Value) {
    for (path, field, unsaid) in rules {
        for_each_at(object, path, &mut |place| {
            if let Some(fields) = place.as_object_mut()
                && fields.get(*field).is_none_or(|said| unsaid.replaces(said))
            {
                fields.insert((*field).to_owned(), unsaid.value());
            }
        });
    }
}

/// Does something at every place that a path leads to.
pub(super) fn for_each_at(value: &mut Value, path: &str, act: &mut dyn FnMut(&mut Value)) {
    if path.is_empty() {
        return act(value);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    match step.strip_suffix("[]") {
        Some(list) => {
            for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                for_each_at(item, rest, act);
            }
        }
        None => {
            if let Some(below) = value.get_mut(step) {
                for_each_at(below, rest, act);
            }
        }
    }
}

impl FieldDefault {
    fn replaces(self, said: &Value) -> bool {
        said.is_null() || matches!(self, Text(_)) && said == "" || matches!(self, Count(_)) && *said == 0
    }

    fn value(self) -> Value {
        match self {
            Text(text) | Choice(text) => json!(text),
            Number(number) | Count(number) => json!(number),
            Flag(flag) => json!(flag),
            Empty => json!({}),
        }
    }
}

pub(super) const POD: &[DefaultRule] =
    &[("spec", "enableServiceLinks", Flag(true)), ("status", "phase", Text("Pending"))];

/// Defaults of every pod and template spec.
pub(super) const POD_SPEC: &[DefaultRule] = &[
    ("", "restartPolicy", Text("Always")),
    ("", "dnsPolicy", Text("ClusterFirst")),
    ("", "terminationGracePeriodSeconds", Number(30)),
    ("", "securityContext", Empty),
    ("", "schedulerName", Text("default-scheduler")),
    ("volumes[].configMap", "defaultMode", Number(420)),
    ("volumes[].secret", "defaultMode", Number(420)),
    ("volumes[].downwardAPI", "defaultMode", Number(420)),
    ("volumes[].downwardAPI.items[].fieldRef", "apiVersion", Text("v1")),
    ("volumes[].projected", "defaultMode", Number(420)),
    ("volumes[].projected.sources[].downwardAPI.items[].fieldRef", "apiVersion", Text("v1")),
    ("volumes[].projected.sources[].serviceAccountToken", "expirationSeconds", Number(3600)),
    ("volumes[].hostPath", "type", Text("")),
    ("volumes[].iscsi", "iscsiInterface", Text("default")),
    ("volumes[].rbd", "pool", Text("rbd")),
    ("volumes[].rbd", "user", Text("admin")),
    ("volumes[].rbd", "keyring", Text("/etc/ceph/keyring")),
    ("volumes[].azureDisk", "cachingMode", Choice("ReadWrite")),
    ("volumes[].azureDisk", "kind", Choice("Shared")),
    ("volumes[].azureDisk", "fsType", Text("ext4")),
    ("volumes[].azureDisk", "readOnly", Flag(false)),
    ("volumes[].scaleIO", "storageMode", Text("ThinProvisioned")),
    ("volumes[].scaleIO", "fsType", Text("xfs")),
    ("volumes[].ephemeral.volumeClaimTemplate.spec", "volumeMode", Choice("Filesystem")),
];

/// Defaults of every container.
pub(super) const CONTAINER: &[DefaultRule] = &[
    ("", "terminationMessagePath", Text("/dev/termination-log")),
    ("", "terminationMessagePolicy", Text("File")),
    ("ports[]", "protocol", Text("TCP")),
    ("env[].valueFrom.fieldRef", "apiVersion", Text("v1")),
    ("env[].valueFrom.fileKeyRef", "optional", Flag(false)),
    ("lifecycle.preStop.httpGet", "path", Text("/")),
    ("lifecycle.preStop.httpGet", "scheme", Text("HTTP")),
    ("lifecycle.postStart.httpGet", "path", Text("/")),
    ("lifecycle.postStart.httpGet", "scheme", Text("HTTP")),
];

pub(super) const PROBE: &[DefaultRule] = &[
    ("", "timeoutSeconds", Number(1)),
    ("", "periodSeconds", Number(10)),
    ("", "successThreshold", Number(1)),
    ("", "failureThreshold", Number(3)),
    ("httpGet", "path", Text("/")),
    ("httpGet", "scheme", Text("HTTP")),
    ("grpc", "service", Text("")),
];

pub(super) const DEPLOYMENT: &[DefaultRule] = &[
    ("spec", "replicas", Number(1)),
    ("spec", "revisionHistoryLimit", Number(10)),
    ("spec", "progressDeadlineSeconds", Number(600)),
    ("spec.strategy", "type", Text("RollingUpdate")),
];

pub(super) const DEPLOYMENT_ROLLING: &[DefaultRule] = &[
    ("spec.strategy", "rollingUpdate", Empty),
    ("spec.strategy.rollingUpdate", "maxUnavailable", Text("25%")),
    ("spec.strategy.rollingUpdate", "maxSurge", Text("25%")),
];

pub(super) const REPLICA_SET: &[DefaultRule] = &[("spec", "replicas", Number(1))];

pub(super) const STATEFUL_SET: &[DefaultRule] = &[
    ("spec", "replicas", Number(1)),
    ("spec", "revisionHistoryLimit", Number(10)),
    ("spec", "podManagementPolicy", Text("OrderedReady")),
    ("spec", "persistentVolumeClaimRetentionPolicy", Empty),
    ("spec.persistentVolumeClaimRetentionPolicy", "whenDeleted", Text("Retain")),
    ("spec.persistentVolumeClaimRetentionPolicy", "whenScaled", Text("Retain")),
    ("spec.volumeClaimTemplates[]", "kind", Text("PersistentVolumeClaim")),
    ("spec.volumeClaimTemplates[]", "apiVersion", Text("v1")),
    ("spec.volumeClaimTemplates[].spec", "volumeMode", Choice("Filesystem")),
    ("spec.volumeClaimTemplates[].status", "phase", Text("Pending")),
];

pub(super) const DAEMON_SET: &[DefaultRule] =
    &[("spec", "revisionHistoryLimit", Number(10)), ("spec.updateStrategy", "type", Text("RollingUpdate"))];

pub(super) const DAEMON_SET_ROLLING: &[DefaultRule] = &[
    ("spec.updateStrategy", "rollingUpdate", Empty),
    ("spec.updateStrategy.rollingUpdate", "maxUnavailable", Number(1)),
    ("spec.updateStrategy.rollingUpdate", "maxSurge", Number(0)),
];

pub(super) const JOB_SPEC: &[DefaultRule] = &[
    ("", "completionMode", Choice("NonIndexed")),
    ("", "suspend", Flag(false)),
    ("", "manualSelector", Flag(false)),
    ("podFailurePolicy.rules[].onPodConditions[]", "status", Text("True")),
];

pub(super) const CRON_JOB: &[DefaultRule] = &[
    ("spec", "concurrencyPolicy", Text("Allow")),
    ("spec", "suspend", Flag(false)),
    ("spec", "successfulJobsHistoryLimit", Number(3)),
    ("spec", "failedJobsHistoryLimit", Number(1)),
];

pub(super) const SERVICE: &[DefaultRule] = &[
    ("spec", "type", Text("ClusterIP")),
    ("spec", "sessionAffinity", Text("None")),
    ("spec.ports[]", "protocol", Text("TCP")),
];

pub(super) const SECRET: &[DefaultRule] = &[("", "type", Text("Opaque"))];

pub(super) const CLAIM: &[DefaultRule] =
    &[("spec", "volumeMode", Choice("Filesystem")), ("status", "phase", Text("Pending"))];

pub(super) const VOLUME: &[DefaultRule] = &[
    ("spec", "volumeMode", Choice("Filesystem")),
    ("spec", "persistentVolumeReclaimPolicy", Text("Retain")),
    ("spec.hostPath", "type", Text("")),
    ("spec.iscsi", "iscsiInterface", Text("default")),
    ("status", "phase", Text("Pending")),
];

pub(super) const STORAGE_CLASS: &[DefaultRule] =
    &[("", "reclaimPolicy", Choice("Delete")), ("", "volumeBindingMode", Choice("Immediate"))];

pub(super) const ENDPOINTS: &[DefaultRule] = &[("subsets[].ports[]", "protocol", Text("TCP"))];

pub(super) const ENDPOINT_SLICE: &[DefaultRule] =
    &[("ports[]", "name", Text("")), ("ports[]", "protocol", Text("TCP"))];

pub(super) const NETWORK_POLICY: &[DefaultRule] = &[
    ("spec.ingress[].ports[]", "protocol", Text("TCP")),
    ("spec.egress[].ports[]", "protocol", Text("TCP")),
];

pub(super) const INGRESS_CLASS: &[DefaultRule] = &[("spec.parameters", "scope", Choice("Cluster"))];

pub(super) const NAMESPACE: &[DefaultRule] = &[("status", "phase", Text("Active"))];

pub(super) const PRIORITY_CLASS: &[DefaultRule] = &[("", "preemptionPolicy", Choice("PreemptLowerPriority"))];

pub(super) const CSI_DRIVER: &[DefaultRule] = &[
    ("spec", "attachRequired", Flag(true)),
    ("spec", "podInfoOnMount", Flag(false)),
    ("spec", "storageCapacity", Flag(false)),
    ("spec", "fsGroupPolicy", Choice("ReadWriteOnceWithFSType")),
    ("spec", "requiresRepublish", Flag(false)),
    ("spec", "seLinuxMount", Flag(false)),
];

pub(super) const WEBHOOKS: &[DefaultRule] = &[
    ("webhooks[]", "failurePolicy", Choice("Fail")),
    ("webhooks[]", "matchPolicy", Choice("Equivalent")),
    ("webhooks[]", "namespaceSelector", Empty),
    ("webhooks[]", "objectSelector", Empty),
    ("webhooks[]", "timeoutSeconds", Number(10)),
    ("webhooks[].rules[]", "scope", Choice("*")),
    ("webhooks[].clientConfig.service", "port", Number(443)),
];

pub(super) const REINVOCATION: &[DefaultRule] = &[("webhooks[]", "reinvocationPolicy", Choice("Never"))];

pub(super) const ADMISSION_POLICY: &[DefaultRule] = &[
    ("spec", "failurePolicy", Choice("Fail")),
    ("spec.matchConstraints", "matchPolicy", Choice("Equivalent")),
    ("spec.matchConstraints", "namespaceSelector", Empty),
    ("spec.matchConstraints", "objectSelector", Empty),
    ("spec.matchConstraints.resourceRules[]", "scope", Choice("*")),
    ("spec.matchConstraints.excludeResourceRules[]", "scope", Choice("*")),
];

pub(super) const ADMISSION_BINDING: &[DefaultRule] = &[
    ("spec.matchResources", "matchPolicy", Choice("Equivalent")),
    ("spec.matchResources", "namespaceSelector", Empty),
    ("spec.matchResources", "objectSelector", Empty),
    ("spec.matchResources.resourceRules[]", "scope", Choice("*")),
    ("spec.matchResources.excludeResourceRules[]", "scope", Choice("*")),
];

pub(super) const BINDING: &[DefaultRule] = &[("roleRef", "apiGroup", Text("rbac.authorization.k8s.io"))];

pub(super) const FLOW_SCHEMA: &[DefaultRule] = &[("spec", "matchingPrecedence", Count(1000))];

pub(super) const PRIORITY_LEVEL: &[DefaultRule] = &[
    ("spec.limited", "nominalConcurrencyShares", Number(30)),
    ("spec.limited", "lendablePercent", Number(0)),
    ("spec.exempt", "nominalConcurrencyShares", Number(0)),
    ("spec.exempt", "lendablePercent", Number(0)),
    ("spec.limited.limitResponse.queuing", "handSize", Count(8)),
    ("spec.limited.limitResponse.queuing", "queues", Count(64)),
    ("spec.limited.limitResponse.queuing", "queueLengthLimit", Count(50)),
];

pub(super) const AUTOSCALER: &[DefaultRule] = &[("spec", "minReplicas", Number(1))];
