//! Kind Cluster: one registered cluster.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::{YamlNode, YamlNodeKind};
use super::{read_envelope, secret, spec_fields, taint};
use crate::model::{Cluster, ClusterName, ClusterState, Connection, KubeVersion};
use serde_json::{Map, Value as Json};

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Cluster> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let connection =
        fields.required("connection", reading).and_then(|connection| read_connection(&connection, reading));
    let state = match fields.optional("state", reading) {
        Some(state) => {
            let states = [
                ("Ready", ClusterState::Ready),
                ("Maintaining", ClusterState::Maintaining),
                ("Removed", ClusterState::Removed),
            ];
            reading.choice(&state, &states, &[], false).unwrap_or_default()
        }
        None => ClusterState::default(),
    };
    let vip = fields.optional("vip", reading).and_then(|vip| reading.word(&vip));
    let meta = fields.optional("meta", reading).and_then(|meta| read_meta(&meta, reading));
    let version = fields.optional("version", reading).and_then(|version| read_version(&version, reading));
    let capabilities = fields.optional("capabilities", reading).and_then(|list| read_apis(&list, reading));
    let taints = fields.optional("taints", reading).map(|list| taint::taints(&list, reading));
    fields.refuse_planned_unless(
        "weight",
        |weight| matches!(&weight.node.kind, YamlNodeKind::Int(one, _) if one.as_u64() == Some(1)),
        reading,
    );
    fields.refuse_planned(&["capacity", "expiresAt"], reading);
    fields.finish(reading);
    let metadata = metadata?;
    Some(Cluster {
        name: ClusterName::from(metadata.name.as_str()),
        labels: metadata.labels,
        connection: connection?,
        state,
        vip,
        meta: meta.unwrap_or_default(),
        version,
        capabilities: capabilities.unwrap_or_default(),
        // Unreadable taints must not count as none.
        taints: taints.map_or(Some(Vec::new()), |read| read)?,
        location: metadata.location,
    })
}

/// `1.27`, which YAML takes for a number, or `v1.27.4`.
fn read_version(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<KubeVersion> {
    let text = match &value.node.kind {
        YamlNodeKind::Float(_, text) => text.to_string(),
        _ => reading.text(value)?,
    };
    let version = KubeVersion::parse(&text);
    if version.is_none() {
        reading.bad_value(
            value,
            format!("{text:?} is not a version of Kubernetes"),
            "for example \"1.27\" or v1.27.4",
        );
    }
    version
}

/// API versions: `autoscaling/v2`, `gateway.networking.k8s.io/v1`; or one kind of them: `apps/v1/Deployment`.
fn read_apis(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<String>> {
    let fits = |text: &str| {
        let kind = |text: &str| text.starts_with(|it: char| it.is_ascii_uppercase());
        let text = text.rsplit_once('/').filter(|(_, last)| kind(last)).map_or(text, |(version, _)| version);
        let (group, version) = text.rsplit_once('/').unwrap_or(("", text));
        let is_version =
            version.strip_prefix('v').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
        is_version && (group.is_empty() || NameRule::Subdomain.fits(group))
    };
    let items = reading.list(value)?;
    let apis: Vec<_> = items
        .iter()
        .map(|item| {
            let text = reading.text(item)?;
            if !fits(&text) {
                reading.bad_value(
                    item,
                    format!("{text:?} is not an API version"),
                    "for example autoscaling/v2, or v1",
                );
            }
            Some(text)
        })
        .collect();
    apis.into_iter().collect()
}

fn read_meta(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Map<String, Json>> {
    match value.node.to_json() {
        Json::Object(meta) => Some(meta),
        _ => {
            reading.wrong_type(value, "a map");
            None
        }
    }
}

/// Exactly one way to reach the cluster.
fn read_connection(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Connection> {
    let mut fields = ManifestFields::of(value, reading)?;
    let kubeconfig = fields.optional("kubeconfig", reading);
    // `sandbox:` without a value means `{}` to users, and null to Kubernetes.
    let in_cluster = fields.optional("inCluster", reading);
    let sandbox = fields.optional("sandbox", reading);
    let secret = fields.optional("kubeconfigSecret", reading);
    let before = reading.mistakes.len();
    fields.refuse_planned(&["agent"], reading);
    let came_later = reading.mistakes.len() > before;
    let given = [&kubeconfig, &secret, &in_cluster, &sandbox].into_iter().flatten().count();
    if given > 1 || given == 0 && !came_later {
        let (place, path) = (fields.location().clone(), value.path.clone());
        reading
            .mistake(
                codes::NOT_EXACTLY_ONE,
                "a connection has exactly one of kubeconfig, kubeconfigSecret, inCluster and sandbox",
                place,
                &path,
            )
            .help("for example `kubeconfig: {path: bj5.kubeconfig}`, or `sandbox: {}`");
    }
    let connection = if let Some(kubeconfig) = kubeconfig {
        read_kubeconfig(&kubeconfig, reading)
    } else if let Some(secret) = secret {
        read_kubeconfig_secret(&secret, reading)
    } else if let Some(in_cluster) = in_cluster {
        ManifestFields::of(&in_cluster, reading)?.finish(reading);
        Some(Connection::InCluster)
    } else if let Some(sandbox) = sandbox {
        let mut fields = ManifestFields::of(&sandbox, reading)?;
        fields.refuse_planned(&["scenario"], reading);
        fields.finish(reading);
        Some(Connection::Sandbox)
    } else {
        None
    };
    fields.finish(reading);
    connection
}

fn read_kubeconfig(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Connection> {
    let mut fields = ManifestFields::of(value, reading)?;
    let path = fields.required("path", reading);
    let text = path.as_ref().and_then(|path| reading.word(path));
    if let (Some(path), Some(text)) = (&path, &text)
        && (text.starts_with('/') || text.split('/').any(|part| part == ".."))
    {
        // Write access to the repository must not allow a choice among all files of the machine.
        reading.bad_value(
            path,
            format!("the path {text:?} leaves the folder of kubeconfigs"),
            "write a path relative to that folder",
        );
    }
    let context = fields.optional("context", reading).and_then(|context| reading.text(&context));
    fields.finish(reading);
    Some(Connection::Kubeconfig { path: text?, context })
}

fn read_kubeconfig_secret(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Connection> {
    let mut fields = ManifestFields::of(value, reading)?;
    let at = secret::read_key(&mut fields, reading);
    let context = fields.optional("context", reading).and_then(|context| reading.text(&context));
    fields.finish(reading);
    Some(Connection::KubeconfigSecret { at: at?, context })
}
