//! Kind Instance: `tutti.yaml`.

use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::super::{codes, ignored_files};
use super::app_fields::{DRIFT_MODES, PRUNE_MODES};
use super::{derived, read_envelope, secret};
use crate::model::{
    ChartRepository, ConfigMapRegistry, DefaultRollout, DeleteCaps, ForgeSettings, Instance,
    InstanceDefaults, InstanceMode, SecretRef, UncomparedLocation, WebhookReceiver, WebhookReceiverKind,
};

/// Forges that come later.
const LATER_FORGES: &[&str] = &["github", "gitlab"];
const FORGES: &[(&str, ())] = &[("gitea", ()), ("forgejo", ())];
const ROLLOUTS: &[(&str, DefaultRollout)] =
    &[("rings", DefaultRollout::Rings), ("together", DefaultRollout::Together)];

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Instance> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut instance = Instance { location: Some(reading.location(root)), ..Instance::default() };
    if let Some(spec) = spec {
        read_spec(&spec, &mut instance, reading);
    }
    instance.name = metadata?.name;
    Some(instance)
}

fn read_spec(spec: &ManifestValue<'_>, instance: &mut Instance, reading: &mut ReadContext<'_>) -> Option<()> {
    let mut fields = ManifestFields::of(spec, reading)?;
    if let Some(mode) = fields.optional("mode", reading) {
        let modes = [("enforce", InstanceMode::Enforce), ("observe", InstanceMode::Observe)];
        instance.mode = reading.choice(&mode, &modes, &[], false).unwrap_or_default();
    }
    instance.forge = fields.optional("forge", reading).and_then(|forge| read_forge(&forge, reading));
    if let Some(list) = fields.optional("receivers", reading) {
        instance.receivers = read_receivers(&list, reading).unwrap_or_default();
    }
    if let Some(poll) = fields.optional("poll", reading) {
        instance.poll = reading.duration(&poll).unwrap_or(instance.poll);
    }
    if let Some(prefix) = fields.optional("statusPrefix", reading) {
        instance.status_prefix = reading.word(&prefix).unwrap_or_default();
    }
    instance.page_url = fields.optional("pageUrl", reading).and_then(|url| read_url(&url, reading));
    if let Some(defaults) = fields.optional("defaults", reading) {
        instance.defaults = read_defaults(&defaults, reading).unwrap_or_default();
    }
    if let Some(caps) = fields.optional("caps", reading) {
        instance.caps = read_caps(&caps, reading).unwrap_or_default();
    }
    if let Some(table) = fields.optional("labels", reading) {
        derived::read(&table, &mut instance.labels, reading);
    }
    if let Some(charts) = fields.optional("charts", reading) {
        instance.charts = read_charts(&charts, reading).unwrap_or_default();
    }
    instance.registry =
        fields.optional("clusterRegistry", reading).and_then(|registry| read_registry(&registry, reading));
    if let Some(list) = fields.optional("ignore", reading) {
        instance.ignore = read_ignore(&list, reading).unwrap_or_default();
    }
    fields.finish(reading);
    Some(())
}

/// Clusters beside those of the files: which ConfigMaps of the home cluster register one each.
fn read_registry(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ConfigMapRegistry> {
    let mut fields = ManifestFields::of(value, reading)?;
    let maps = fields.required("configMaps", reading);
    fields.finish(reading);
    let mut fields = ManifestFields::of(&maps?, reading)?;
    let mut registry = ConfigMapRegistry::default();
    if let Some(namespace) = fields.optional("namespace", reading) {
        registry.namespace = reading.name(&namespace, NameRule::Label)?;
    }
    if let Some(labels) = fields.optional_selector("matchLabels", reading) {
        registry.match_labels = reading.labels(&labels)?;
        if registry.match_labels.is_empty() {
            // Every namespace has a ConfigMap that is no cluster: the root certificates for its pods.
            let help = "leave it out for {ClusterOwner: sym-admin}";
            reading.bad_value(&labels, "`matchLabels` selects every ConfigMap", help);
        }
    }
    if let Some(key) = fields.optional("key", reading) {
        registry.key = secret::data_key(&key, reading)?;
    }
    fields.finish(reading);
    Some(registry)
}

/// Patterns of files that hold no manifests.
fn read_ignore(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<String>> {
    let mut patterns = Vec::new();
    let items = reading.list(value)?;
    if items.len() > ignored_files::MOST_PATTERNS {
        let message = format!("`ignore` has more than {} patterns", ignored_files::MOST_PATTERNS);
        reading.bad_value(value, message, "write wider patterns");
        return None;
    }
    for item in items {
        let Some(pattern) = reading.text(&item) else { continue };
        let leaves = pattern.starts_with('/') || pattern.split('/').any(|part| part == "..");
        let mistake = match ignored_files::globs_of(&pattern) {
            _ if leaves => format!("the pattern {pattern:?} leaves the config repository"),
            _ if ignored_files::trim_pattern(&pattern).is_empty() => "the pattern is empty".to_owned(),
            Err(error) => format!("{pattern:?} is not a pattern: {error}"),
            Ok(_) => {
                patterns.push(pattern);
                continue;
            }
        };
        let location = reading.location(item.node);
        reading
            .mistake(codes::BAD_PATTERN, mistake, location, &item.path)
            .help("write a path from the folder of tutti.yaml, for example docs/ or **/kustomization.yaml");
    }
    Some(patterns)
}

fn read_forge(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ForgeSettings> {
    let mut fields = ManifestFields::of(value, reading)?;
    let kind =
        fields.required("type", reading).and_then(|kind| reading.choice(&kind, FORGES, LATER_FORGES, false));
    let url = fields.required("url", reading).and_then(|url| read_url(&url, reading));
    let repository =
        fields.required("repository", reading).and_then(|repository| read_repository(&repository, reading));
    let token = match fields.optional("credentials", reading) {
        Some(credentials) => read_token(&credentials, reading),
        None => None,
    };
    fields.finish(reading);
    kind?;
    let written = UncomparedLocation(Some(reading.location(value.node)));
    Some(ForgeSettings { url: url?, repository: repository?, token, written })
}

fn read_token(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<SecretRef> {
    if value.node.as_map().is_none() {
        return secret::read(value, reading);
    }
    let mut fields = ManifestFields::of(value, reading)?;
    let token = fields.required("token", reading).and_then(|token| secret::read(&token, reading));
    fields.finish(reading);
    token
}

fn read_repository(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.word(value)?;
    match text.split_once('/') {
        Some((owner, name)) if !owner.is_empty() && !name.is_empty() && !name.contains('/') => Some(text),
        _ => {
            reading.bad_value(
                value,
                format!("{text:?} is not a repository of a forge"),
                "write it as owner/name",
            );
            None
        }
    }
}

/// An http or https address, without its final `/`. One with a password in it is a secret written out.
fn read_url(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.word(value)?;
    let after = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match after.map(|after| after.split('/').next().unwrap_or(after)) {
        Some(host) if host.contains('@') => {
            let location = reading.location(value.node);
            let message = format!("`{}` has credentials in it", value.path);
            reading.mistake(codes::LITERAL_SECRET, message, location, &value.path).help(
                "remove them, and name the token under credentials; and change it, it is in the history now",
            );
            None
        }
        Some(host) if !host.is_empty() => Some(text.trim_end_matches('/').to_owned()),
        _ => {
            reading.bad_value(
                value,
                format!("{text:?} is not an address"),
                "write it as https://gitea.example.com",
            );
            None
        }
    }
}

fn read_charts(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<ChartRepository>> {
    let mut fields = ManifestFields::of(value, reading)?;
    let list = fields.optional("repositories", reading);
    fields.finish(reading);
    let mut repositories: Vec<(ChartRepository, ManifestValue<'_>)> = Vec::new();
    for item in list.and_then(|list| reading.list(&list)).unwrap_or_default() {
        let Some((repository, name)) = read_chart_repository(&item, reading) else { continue };
        if let Some((_, first)) = repositories.iter().find(|(known, _)| known.name == repository.name) {
            reading.duplicate(&repository.name, &name, first);
        }
        repositories.push((repository, name));
    }
    Some(repositories.into_iter().map(|(repository, _)| repository).collect())
}

fn read_chart_repository<'v>(
    value: &ManifestValue<'v>,
    reading: &mut ReadContext<'_>,
) -> Option<(ChartRepository, ManifestValue<'v>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.name(name, NameRule::Label));
    let url = fields.required("url", reading).and_then(|url| {
        let text = reading.word(&url)?;
        if text == "charts" || text == "charts/" {
            return Some("charts/".to_owned());
        }
        match text.strip_prefix("oci://") {
            Some(rest) if !rest.is_empty() && !rest.contains('@') => {
                Some(text.trim_end_matches('/').to_owned())
            }
            _ => read_url(&url, reading),
        }
    });
    fields.refuse_planned(&["credentials"], reading);
    fields.finish(reading);
    Some((ChartRepository { name: name?, url: url? }, place?))
}

fn read_receivers(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<WebhookReceiver>> {
    let mut receivers: Vec<(WebhookReceiver, ManifestValue<'_>)> = Vec::new();
    for item in reading.list(value)? {
        let Some((receiver, name)) = read_receiver(&item, reading) else { continue };
        if let Some((_, first)) = receivers.iter().find(|(known, _)| known.name == receiver.name) {
            reading.duplicate(&receiver.name, &name, first);
        }
        receivers.push((receiver, name));
    }
    Some(receivers.into_iter().map(|(receiver, _)| receiver).collect())
}

fn read_receiver<'v>(
    value: &ManifestValue<'v>,
    reading: &mut ReadContext<'_>,
) -> Option<(WebhookReceiver, ManifestValue<'v>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.name(name, NameRule::Label));
    let kind = fields
        .required("type", reading)
        .and_then(|kind| reading.choice(&kind, &WebhookReceiverKind::NAMES, LATER_FORGES, false));
    let secrets = match fields.optional("secrets", reading) {
        Some(secrets) => read_secrets(&secrets, reading),
        None => Some(Vec::new()),
    };
    fields.finish(reading);
    let written = UncomparedLocation(Some(reading.location(value.node)));
    Some((WebhookReceiver { name: name?, kind: kind?, secrets: secrets?, written }, place?))
}

fn read_secrets(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<SecretRef>> {
    if value.node.as_seq().is_none() && value.node.as_map().is_none() {
        return secret::read(value, reading).map(|one| vec![one]);
    }
    let items = reading.list(value)?;
    if items.len() > 2 {
        reading.bad_value(value, "more than two secrets", "one, or two while the secret is being changed");
    }
    let secrets: Vec<_> = items.iter().map(|item| secret::read(item, reading)).collect();
    secrets.into_iter().collect()
}

fn read_defaults(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<InstanceDefaults> {
    let mut fields = ManifestFields::of(value, reading)?;
    let mut defaults = InstanceDefaults::default();
    if let Some(namespace) = fields.optional("namespace", reading) {
        defaults.namespace = reading.name(&namespace, NameRule::Label).unwrap_or(defaults.namespace);
    }
    if let Some(prune) = fields.optional("prune", reading) {
        defaults.prune = reading.choice(&prune, PRUNE_MODES, &[], false).unwrap_or_default();
    }
    if let Some(force) = fields.optional("force", reading) {
        defaults.force = reading.boolean(&force).unwrap_or_default();
    }
    if let Some(create) = fields.optional("createNamespace", reading) {
        defaults.create_namespace = reading.boolean(&create).unwrap_or_default();
    }
    if let Some(drift) = fields.optional("drift", reading) {
        defaults.drift = reading.choice(&drift, DRIFT_MODES, &[], false).unwrap_or_default();
    }
    if let Some(rollout) = fields.optional("rollout", reading) {
        defaults.rollout = reading.choice(&rollout, ROLLOUTS, &[], false).unwrap_or_default();
    }
    fields.finish(reading);
    Some(defaults)
}

fn read_caps(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<DeleteCaps> {
    let mut fields = ManifestFields::of(value, reading)?;
    let mut caps = DeleteCaps::default();
    if let Some(deletes) = fields.optional("deletes", reading) {
        caps.deletes = reading.count(&deletes, 0..=u32::MAX).unwrap_or(caps.deletes);
    }
    if let Some(percent) = fields.optional("deletePercent", reading) {
        caps.delete_percent = reading.count(&percent, 0..=100).unwrap_or(caps.delete_percent);
    }
    fields.finish(reading);
    Some(caps)
}
