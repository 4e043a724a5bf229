//! Kind Component: the eight-line form.

use super::super::codes;
use super::super::read::{self, ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::{YamlNode, YamlNodeKind};
use super::{app_fields, patch, placement, read_envelope, route, spec_fields};
use crate::model::{App, AppSpec, Component, DeployType, Location, Patch, Placement};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// The run type whose pods answer on a port.
const SERVER: &str = "server";

pub fn read(root: &YamlNode, default_namespace: &str, reading: &mut ReadContext<'_>) -> Option<App> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, true, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let create_namespace = app_fields::create_namespace(&mut fields, reading);
    let mut common =
        app_fields::CommonAppFields { create_namespace, ..app_fields::read_common(&mut fields, reading) };
    let namespace = metadata.as_ref().map_or(default_namespace, |it| it.namespace_or(default_namespace));
    common.read_strategy(&mut fields, namespace, reading);
    common.promotion_group = app_fields::promotion_group(&mut fields, reading);
    let workload_type =
        fields.required("workloadType", reading).and_then(|value| app_fields::deploy_type(&value, reading));
    let language = fields.required("developLanguage", reading).and_then(|value| layer_name(&value, reading));
    let run_type = fields.required("runType", reading).and_then(|value| layer_name(&value, reading));
    let mut values = Map::new();
    if let Some(image) = fields.required("image", reading).and_then(|image| reading.word(&image)) {
        values.insert("image".to_owned(), Json::from(image));
    }
    let port = if run_type.as_deref() == Some(SERVER) {
        fields.required("port", reading)
    } else {
        fields.optional("port", reading)
    };
    if let Some(port) = port.and_then(|port| reading.count(&port, 1..=65_535)) {
        values.insert("port".to_owned(), Json::from(port));
    }
    let replicas = fields.optional("replicas", reading);
    if let Some(replicas) = replicas.and_then(|replicas| reading.count(&replicas, 0..=1_000_000)) {
        values.insert("replicas".to_owned(), Json::from(replicas));
    }
    if let Some(env) = fields.optional("env", reading).and_then(|env| read_env(&env, reading)) {
        values.insert("env".to_owned(), env);
    }
    if let Some(resources) = fields.optional("resources", reading) {
        check_resources(&resources, reading);
        values.insert("resources".to_owned(), resources.node.to_json());
    }
    if let Some(probes) = fields.optional("probes", reading) {
        check_probes(&probes, reading);
        values.insert("probes".to_owned(), probes.node.to_json());
    }
    let schedule = if workload_type == Some(DeployType::CronJob) {
        fields.required("schedule", reading)
    } else {
        fields.optional("schedule", reading)
    };
    if let Some(schedule) = schedule.and_then(|schedule| reading.text(&schedule)) {
        values.insert("schedule".to_owned(), Json::from(schedule));
    }
    if let Some(config) = fields.optional("config", reading).and_then(|config| read_config(&config, reading))
    {
        values.insert("config".to_owned(), config);
    }
    if let Some(autoscale) = fields.optional("autoscale", reading) {
        check_autoscale(&autoscale, reading);
        values.insert("autoscale".to_owned(), autoscale.node.to_json());
    }
    if let Some(service) = fields.optional("svc", reading).and_then(|svc| read_service(&svc, reading)) {
        values.insert("service".to_owned(), service);
    }
    let placement = match fields.optional_selector("placement", reading) {
        Some(value) => placement::read(&value, reading),
        None => Some(Placement::default()),
    };
    let name = metadata.as_ref().map_or("", |metadata| metadata.name.as_str());
    let routes = route::list(&mut fields, name, reading);
    let patches = fields.optional("patches", reading).and_then(|list| read_patches(&list, reading));
    fields.finish(reading);
    let spec = AppSpec::Component(Component {
        workload_type: workload_type?,
        language: language?,
        run_type: run_type?,
        placement: placement?,
        values,
        patches: patches.unwrap_or_default(),
    });
    Some(App { routes, ..app_fields::build_app(metadata?, &common, spec, default_namespace) })
}

fn read_patches(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<Patch>> {
    let patches: Vec<_> = reading.list(value)?.iter().map(|item| patch::read(item, reading)).collect();
    patches.into_iter().collect()
}

/// Layers are folders with lower-case names.
fn layer_name(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.text(value)?;
    let name = text.to_lowercase();
    if !NameRule::Label.fits(&name) {
        let location = reading.location(value.node);
        reading
            .mistake(
                codes::BAD_NAME,
                format!("{text:?} cannot be the name of a layer"),
                location,
                &value.path,
            )
            .help(format!("a name has {}", NameRule::Label.description()));
        return None;
    }
    Some(name)
}

/// A map of name to value, or the list that Kubernetes has; becomes that list, sorted by name.
fn read_env(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    let before = reading.mistakes.len();
    let mut variables: BTreeMap<String, (String, Location)> = BTreeMap::new();
    if value.node.as_seq().is_some() {
        for item in reading.list(value)? {
            let Some((name, value, place)) = read_variable(&item, reading) else { continue };
            if let Some((_, first)) = variables.get(&name) {
                let message = format!("the variable {name} is set twice");
                reading
                    .mistake(codes::DUPLICATE_ITEM, message, place, &item.path)
                    .related(first.clone(), "here first");
                continue;
            }
            variables.insert(name, (value, place));
        }
    } else {
        if value.node.as_map().is_none() {
            reading.wrong_type(value, "a map of name to value, or a list of name and value");
            return None;
        }
        for (name, value) in reading.entries(value)? {
            let place = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
            check_variable_name(name, place.clone(), &value.path, reading);
            if let Some(text) = variable_text(&value, reading) {
                variables.insert(name.to_owned(), (text, place));
            }
        }
    }
    let list =
        variables.into_iter().map(|(name, (value, _))| json!({"name": name, "value": value})).collect();
    (reading.mistakes.len() == before).then_some(Json::Array(list))
}

fn read_variable(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<(String, String, Location)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.text(name));
    let text = match fields.optional("value", reading) {
        Some(value) => variable_text(&value, reading),
        None => Some(String::new()),
    };
    fields.refuse_planned(&["valueFrom"], reading);
    fields.finish(reading);
    let location = reading.location(place?.node);
    let name = name?;
    check_variable_name(&name, location.clone(), &value.path, reading);
    Some((name, text?, location))
}

fn check_variable_name(name: &str, place: Location, path: &str, reading: &mut ReadContext<'_>) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) || !name.bytes().all(fits)
    {
        reading
            .mistake(codes::BAD_NAME, format!("{name:?} is not the name of a variable"), place, path)
            .help("letters, digits, `_`, `-` and `.`, no digit first");
    }
}

/// The value of a variable, which is a text to Kubernetes. A number or boolean is taken when its text is
/// beyond doubt: `8080` and `true` are, `0644`, `1.10` and `yes` are not.
fn variable_text(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let (text, plain) = match &value.node.kind {
        YamlNodeKind::String(text) => return Some(text.clone()),
        YamlNodeKind::Null => return Some(String::new()),
        YamlNodeKind::Bool(boolean, text) => (text, boolean.to_string()),
        YamlNodeKind::Int(number, text) => (text, number.to_string()),
        YamlNodeKind::Float(number, text) => (text, number.to_string()),
        YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => {
            reading.wrong_type(value, "a text");
            return None;
        }
    };
    if **text == *plain {
        return Some(plain);
    }
    let message = format!("the variable `{}` could be \"{text}\" or \"{plain}\"", value.name());
    reading.bad_value(value, message, &format!("put it in quotes: \"{text}\""));
    None
}

/// `requests` and `limits`, each a map of resource to quantity.
fn check_resources(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let Some(mut fields) = ManifestFields::of(value, reading) else { return };
    for name in ["requests", "limits"] {
        let Some(quantities) = fields.optional(name, reading).and_then(|part| reading.entries(&part)) else {
            continue;
        };
        for (_, quantity) in quantities {
            match &quantity.node.kind {
                YamlNodeKind::Int(..) | YamlNodeKind::Float(..) => {}
                YamlNodeKind::String(text) if read::is_quantity(text) => {}
                YamlNodeKind::String(text) => {
                    reading.bad_value(
                        &quantity,
                        format!("{text:?} is not a quantity"),
                        "for example 500m, 2 or 1.5Gi",
                    );
                }
                _ => reading.wrong_type(&quantity, "a quantity such as 500m or 1.5Gi"),
            }
        }
    }
    fields.refuse_planned(&["claims"], reading);
    fields.finish(reading);
}

/// `liveness`, `readiness`, `startup`, each a Probe of Kubernetes.
fn check_probes(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let Some(mut fields) = ManifestFields::of(value, reading) else { return };
    for name in ["liveness", "readiness", "startup"] {
        if let Some(probe) = fields.optional(name, reading)
            && probe.node.as_map().is_none()
        {
            reading.wrong_type(&probe, "a map");
        }
    }
    fields.finish(reading);
}

/// How the Service is reached: a type of Kubernetes, or the class of a load balancer.
fn read_service(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    let mut fields = ManifestFields::of(value, reading)?;
    let kind = fields.required("type", reading);
    fields.finish(reading);
    let kind = kind?;
    let text = reading.text(&kind)?;
    if ["ClusterIP", "NodePort", "LoadBalancer"].contains(&text.as_str()) {
        return Some(json!({"type": text}));
    }
    if !read::is_label_key(&text) || text.starts_with(|letter: char| letter.is_ascii_uppercase()) {
        let help = "ClusterIP, NodePort, LoadBalancer, or the class of a load balancer such as luoji-slb";
        reading.bad_value(&kind, format!("`type` cannot be {text:?}"), help);
        return None;
    }
    Some(json!({"type": "LoadBalancer", "loadBalancerClass": text}))
}

/// Files by name, each a text: they become a ConfigMap.
fn read_config(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    let mut files = Map::new();
    for (name, text) in reading.entries(value)? {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > 253 || name.starts_with("..") || !name.bytes().all(fits) {
            let place = text.name_location.clone().unwrap_or_else(|| reading.location(text.node));
            reading
                .mistake(codes::BAD_NAME, format!("{name:?} is not the name of a file"), place, &text.path)
                .help("letters, digits, `-`, `_` and `.`, at most 253");
        }
        if let Some(text) = reading.text(&text) {
            files.insert(name.to_owned(), Json::from(text));
        }
    }
    Some(Json::Object(files))
}

/// `minReplicas`, `maxReplicas`, `cpu` and `memory` in percent, or `metrics` and `behavior` of Kubernetes.
fn check_autoscale(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let Some(mut fields) = ManifestFields::of(value, reading) else { return };
    let mut count = |name: &'static str, most: u32, reading: &mut ReadContext<'_>| {
        fields.optional(name, reading).and_then(|count| reading.count(&count, 1..=most))
    };
    let least = count("minReplicas", 1_000_000, reading);
    let most = count("maxReplicas", 1_000_000, reading);
    count("cpu", 1000, reading);
    count("memory", 1000, reading);
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        let help = "the first must not be above the second";
        reading.bad_value(value, format!("minReplicas {least} is above maxReplicas {most}"), help);
    }
    if let Some(metrics) = fields.optional("metrics", reading) {
        reading.list(&metrics);
    }
    if let Some(behavior) = fields.optional("behavior", reading)
        && behavior.node.as_map().is_none()
    {
        reading.wrong_type(&behavior, "a map");
    }
    fields.finish(reading);
}
