//! Kind Project: a namespace on many clusters, with its members, quota and limits.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::super::codes;
use super::super::read::{self, ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::{YamlNode, YamlNodeKind};
use super::app_fields::CommonAppFields;
use super::{app_fields, placement, read_envelope};
use crate::model::{
    App, AppId, AppSpec, MemberRole, MemberSubject, Placement, Project, ProjectMember, ProjectRestrictions,
};

const ROLES: &[(&str, MemberRole)] =
    &[("admin", MemberRole::Admin), ("edit", MemberRole::Edit), ("view", MemberRole::View)];

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<App> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let name = metadata.as_ref().map(|metadata| metadata.name.as_str());
    let (project, common) = match spec {
        Some(spec) => read_spec(&spec, name, reading)?,
        None => (empty(name?), CommonAppFields::default()),
    };
    Some(app_fields::build_app(metadata?, &common, AppSpec::Project(Box::new(project)), AppId::PROJECT))
}

/// The namespace of a project, even if its manifest has mistakes; `None` when it is unknown.
pub fn namespace_of(root: &YamlNode) -> Option<String> {
    let has_like = |map: Option<&YamlNode>, key: &str| {
        let entries = map.and_then(YamlNode::as_map).unwrap_or_default();
        entries.iter().any(|entry| entry.key != key && read::nearest(&entry.key, &[key]).is_some())
    };
    let (spec, metadata) = (root.get("spec"), root.get("metadata"));
    let namespace = match spec {
        Some(spec) if spec.as_map().is_none() => None,
        Some(spec) if spec.get("namespace").is_some() => spec.get("namespace")?.as_str(),
        // It has the name of the project, unless it was meant to be written somewhere.
        _ if has_like(Some(root), "spec") || has_like(spec, "namespace") => None,
        _ if metadata.is_some_and(|metadata| metadata.get("namespace").is_some()) => None,
        _ => metadata?.get("name")?.as_str(),
    }?;
    NameRule::Label.fits(namespace).then(|| namespace.to_owned())
}

/// Everything has a default.
fn empty(name: &str) -> Project {
    Project {
        namespace: name.to_owned(),
        placement: Placement::default(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        members: Vec::new(),
        quota: BTreeMap::new(),
        limits: Vec::new(),
        isolated: false,
        allow: None,
    }
}

fn read_spec(
    spec: &ManifestValue<'_>,
    name: Option<&str>,
    reading: &mut ReadContext<'_>,
) -> Option<(Project, CommonAppFields)> {
    let mut fields = ManifestFields::of(spec, reading)?;
    let common = app_fields::read_common(&mut fields, reading);
    let mut project = empty(name.unwrap_or_default());
    if let Some(namespace) = fields.optional("namespace", reading) {
        project.namespace = reading.name(&namespace, NameRule::Label).unwrap_or_default();
    }
    if let Some(value) = fields.optional_selector("clusters", reading) {
        let clusters = placement::selector(&value, true, reading).unwrap_or_default();
        project.placement =
            Placement { clusters, location: Some(reading.location(value.node)), ..Placement::default() };
    }
    if let Some(labels) = fields.optional("labels", reading) {
        project.labels = reading.labels(&labels).unwrap_or_default();
    }
    if let Some(annotations) = fields.optional("annotations", reading) {
        project.annotations = read_annotations(&annotations, reading).unwrap_or_default();
    }
    if let Some(members) = fields.optional("members", reading) {
        project.members = read_members(&members, &project.namespace, reading).unwrap_or_default();
    }
    if let Some(quota) = fields.optional("quota", reading) {
        project.quota = quantities(&quota, reading).unwrap_or_default();
    }
    if let Some(limits) = fields.optional("limits", reading) {
        project.limits = read_limits(&limits, reading).unwrap_or_default();
    }
    let help = "write isolate or open, or remove the field: without it, the namespace is open";
    if let Some(policy) = fields.optional_with_value("networkPolicy", help, reading) {
        let policies = [("isolate", true), ("open", false)];
        project.isolated = reading.choice(&policy, &policies, &[], false).unwrap_or_default();
    }
    let help = "write what it allows, or remove the field: without it, everything is allowed";
    project.allow =
        fields.optional_with_value("allow", help, reading).and_then(|allow| read_allow(&allow, reading));
    fields.finish(reading);
    Some((project, common))
}

fn read_annotations(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<BTreeMap<String, String>> {
    for (key, value) in reading.entries(value)? {
        reading.label_key(key, &value);
    }
    reading.text_map(value)
}

fn read_members(
    value: &ManifestValue<'_>,
    namespace: &str,
    reading: &mut ReadContext<'_>,
) -> Option<Vec<ProjectMember>> {
    let mut members: Vec<(ProjectMember, ManifestValue<'_>)> = Vec::new();
    for item in reading.list(value)? {
        let Some(member) = read_member(&item, namespace, reading) else { continue };
        if let Some((_, first)) = members.iter().find(|(known, _)| *known == member) {
            let (place, first) = (reading.location(item.node), reading.location(first.node));
            reading
                .mistake(codes::DUPLICATE_ITEM, "this member is given twice", place, &item.path)
                .related(first, "here first");
        }
        members.push((member, item));
    }
    let mut members: Vec<ProjectMember> = members.into_iter().map(|(member, _)| member).collect();
    // The order of the file means nothing.
    members.sort();
    Some(members)
}

fn read_member(
    value: &ManifestValue<'_>,
    namespace: &str,
    reading: &mut ReadContext<'_>,
) -> Option<ProjectMember> {
    let mut fields = ManifestFields::of(value, reading)?;
    let user = fields.optional("user", reading);
    let group = fields.optional("group", reading);
    let account = fields.optional("serviceAccount", reading);
    let role = fields.required("role", reading).and_then(|role| reading.choice(&role, ROLES, &[], false));
    let place = fields.location().clone();
    fields.finish(reading);
    let subject = match (user, group, account) {
        (Some(user), None, None) => MemberSubject::User(reading.word(&user)?),
        (None, Some(group), None) => MemberSubject::Group(reading.word(&group)?),
        (None, None, Some(account)) => read_account(&account, namespace, reading)?,
        _ => {
            let message = "a member is exactly one of user, group and serviceAccount";
            reading
                .mistake(codes::NOT_EXACTLY_ONE, message, place, &value.path)
                .help("for example `{group: shop-developers, role: edit}`");
            return None;
        }
    };
    Some(ProjectMember { role: role?, subject })
}

/// `name` of the project's own namespace, or `namespace/name`.
fn read_account(
    value: &ManifestValue<'_>,
    namespace: &str,
    reading: &mut ReadContext<'_>,
) -> Option<MemberSubject> {
    let text = reading.text(value)?;
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, &text));
    if NameRule::Label.fits(namespace) && NameRule::Subdomain.fits(name) {
        return Some(MemberSubject::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
    }
    let location = reading.location(value.node);
    reading
        .mistake(codes::BAD_NAME, format!("{text:?} is not a service account"), location, &value.path)
        .help("write its name, or namespace/name when it lives in another namespace");
    None
}

/// A map of resource to quantity.
fn quantities(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<BTreeMap<String, String>> {
    let mut quantities = BTreeMap::new();
    for (resource, quantity) in reading.entries(value)? {
        reading.label_key(resource, &quantity);
        if let Some(text) = read_quantity(&quantity, reading) {
            quantities.insert(resource.to_owned(), text);
        }
    }
    Some(quantities)
}

fn read_quantity(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = match &value.node.kind {
        YamlNodeKind::Int(number, _) => number.to_string(),
        YamlNodeKind::Float(number, _) => number.to_string(),
        YamlNodeKind::String(text) => text.clone(),
        _ => {
            reading.wrong_type(value, "a quantity such as 20 or 1.5Gi");
            return None;
        }
    };
    if read::is_quantity(&text) && !text.starts_with('-') {
        return Some(text);
    }
    reading.bad_value(value, format!("{text:?} is not a quantity"), "for example 20, 500m or 1.5Gi");
    None
}

/// The limits of a container, or a list of items as a LimitRange has them.
fn read_limits(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<Json>> {
    if value.node.as_map().is_some() {
        return Some(vec![read_limit(value, reading)?]);
    }
    if value.node.as_seq().is_none() {
        reading.wrong_type(value, "a map, or a list of maps");
        return None;
    }
    Some(reading.list(value)?.iter().filter_map(|item| read_limit(item, reading)).collect())
}

fn read_limit(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Json> {
    const KINDS: [(&str, &str); 3] =
        [("Container", "Container"), ("Pod", "Pod"), ("PersistentVolumeClaim", "PersistentVolumeClaim")];
    let mut fields = ManifestFields::of(value, reading)?;
    let kind = match fields.optional("type", reading) {
        Some(kind) => reading.choice(&kind, &KINDS, &[], false),
        None => Some("Container"),
    };
    let mut item = Map::new();
    for name in ["default", "defaultRequest", "max", "min", "maxLimitRequestRatio"] {
        let Some(value) = fields.optional(name, reading) else { continue };
        if name.starts_with("default") && kind.is_some_and(|kind| kind != "Container") {
            let message = format!("`{name}` is for containers, not for type {}", kind.unwrap_or_default());
            reading.bad_value(&value, message, "remove it, or write `type: Container`");
        }
        if let Some(quantities) = quantities(&value, reading) {
            item.insert(name.to_owned(), quantities.into_iter().collect());
        }
    }
    fields.finish(reading);
    if item.is_empty() {
        reading.bad_value(value, "these limits have no values", "for example `default: {cpu: 500m}`");
    }
    item.insert("type".to_owned(), Json::from(kind?));
    Some(Json::Object(item))
}

fn read_allow(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ProjectRestrictions> {
    let mut fields = ManifestFields::of(value, reading)?;
    let kinds = fields.optional_selector("kinds", reading).map(|kinds| {
        let help = "a kind such as Component or Deployment, or with its group: apps/Deployment";
        read_words(&kinds, "a kind", help, is_kind, reading)
    });
    let clusters = fields.optional_selector("clusters", reading);
    let clusters = clusters.map(|clusters| placement::selector(&clusters, true, reading));
    let registries = fields.optional_selector("registries", reading).map(|registries| {
        let help = "a host, or the beginning of an image, without https://: registry.example.com/shop";
        read_words(&registries, "a registry", help, is_registry, reading)
    });
    fields.finish(reading);
    let location = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
    Some(ProjectRestrictions {
        kinds: kinds.flatten(),
        clusters: clusters.flatten(),
        registries: registries.flatten(),
        location,
    })
}

/// A list of at least one word, each of which fits.
fn read_words(
    value: &ManifestValue<'_>,
    what: &str,
    help: &str,
    fits: impl Fn(&str) -> bool,
    reading: &mut ReadContext<'_>,
) -> Option<Vec<String>> {
    let items = reading.list(value)?;
    if items.is_empty() {
        reading.bad_value(
            value,
            format!("`{}` allows nothing", value.name()),
            "name one, or remove the field",
        );
    }
    let mut words = Vec::new();
    for item in &items {
        let Some(word) = reading.word(item) else { continue };
        if !fits(&word) {
            reading.bad_value(item, format!("{word:?} is not {what}"), help);
        }
        words.push(word);
    }
    Some(words)
}

fn is_kind(text: &str) -> bool {
    let (group, kind) = text.rsplit_once('/').unwrap_or(("", text));
    let is_group = group.is_empty() || NameRule::Subdomain.fits(group);
    is_group
        && kind.starts_with(|letter: char| letter.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_registry(text: &str) -> bool {
    !text.contains("://") && !text.ends_with('/') && !text.starts_with('/') && text.contains(['.', ':', '/'])
        || text == "localhost"
}

#[cfg(test)]
mod tests {
    use crate::manifest::{self, ManifestKind};
    use crate::model::Snapshot;

    /// Every mistake of a Project with this spec, in order: a part of its one line.
    fn check(spec: &str, expected: &[&str]) {
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Project\nmetadata: {{name: shop}}\nspec: {spec}\n"
        );
        let manifests = manifest::read(&Snapshot::of_texts([("projects/shop.yaml", text.as_str())]));
        let told: Vec<String> = manifests.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (told, part) in told.iter().zip(expected) {
            assert!(told.contains(part), "{told} has not {part}");
        }
        assert_eq!(manifests.apps.len(), usize::from(expected.is_empty()));
        assert_eq!(
            manifests.invalid_projects.is_empty() && manifests.unreadable.is_empty(),
            expected.is_empty()
        );
    }

    #[test]
    fn mistakes_have_their_places() {
        check("{}", &[]);
        check(
            "{namespace: Shop, cluster: {}}",
            &["E1205]: \"Shop\"", "E1201]: unknown field `cluster` in `spec`"],
        );
        check(
            "{members: [{user: a, group: b, role: edit}, {role: view}, {user: a, role: owner}]}",
            &["E1208]: a member is exactly one", "E1208", "E1204]: `role` cannot be \"owner\""],
        );
        check(
            "{members: [{user: a, role: edit}, {group: a, role: edit}, {user: a, role: edit}]}",
            &["E1210]: this member is given twice"],
        );
        check("{members: [{serviceAccount: a/b/c, role: edit}]}", &["E1205]: \"a/b/c\" is not a service"]);
        check(
            "{quota: {pods: 20, requests.cpu: many, limits.memory: -1Gi, a b: 1}}",
            &["E1206]: \"many\"", "E1206]: \"-1Gi\"", "E1205]: \"a b\""],
        );
        check(
            "{limits: [{type: Pod, default: {cpu: 1}}, {type: Node}, {}]}",
            &["`default` is for containers", "these limits have no values", "E1204", "have no values"],
        );
        check("{networkPolicy: closed}", &["E1204]: `networkPolicy` cannot be \"closed\""]);
        check(
            "{allow: {kinds: [deployment], registries: ['https://a.b', web], clusters: {ring: [x]}}}",
            &["\"deployment\" is not a kind", "\"https://a.b\" is not a registry", "\"web\"", "E1203"],
        );
        check("{allow: {kinds: []}}", &["`kinds` allows nothing"]);
    }

    #[test]
    fn namespace_of_invalid_project_is_known() {
        let check = |rest: &str, expected: &[&str]| {
            let text = format!("apiVersion: tutti.dev/v1alpha1\nkind: Project\n{rest}\n");
            let manifests = manifest::read(&Snapshot::of_texts([("a.yaml", text.as_str())]));
            let namespaces: Vec<&str> =
                manifests.invalid_projects.iter().map(|(_, namespace, _)| namespace.as_str()).collect();
            assert_eq!(namespaces, expected, "{rest}");
            // Where it is not, it may be any.
            assert_eq!(
                manifests.unreadable.contains_key(&ManifestKind::Project),
                expected.is_empty(),
                "{rest}"
            );
        };
        check("metadata: {name: shop}\nspec: {namespace: store, x: 1}", &["store"]);
        check("metadata: {name: shop}\nspec: {x: 1}", &["shop"]);
        check("metadata: {name: shop}\nspec: {namespace: []}", &[]);
        check("metadata: {name: shop}\nspec: {namespace: !env store}", &[]);
        check("metadata: {name: shop}\nspec: {namepsace: store}", &[]);
        check("metadata: {name: shop}\nspce: {namespace: store}", &[]);
        check("metadata: {name: shop, namespace: store}\nspec: {}", &[]);
        check("metadata: {name: shop}\nspec: [store]", &[]);
        check("metadata: {name: shop}\nspec: {namespace: Shop}", &[]);
        check("metadata: {name: Shop}\nspec: {namespace: shop}", &[]);
        check("metadata: {nme: shop}", &[]);
        check("spec: {}", &[]);
    }
}
