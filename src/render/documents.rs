//! Parses template output and files into Kubernetes objects, checks them, and adds our labels and annotations.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::AppDefinedKinds;
use super::layer_source::LayerSource;
use super::nulls::{self, InvalidValue};
use super::object_document::{ObjectDocument, describe_metadata, kind_of};
use super::render_job::RenderJob;
use super::template_error::shortened;
use super::trace::{field_locations, line_marks};
use super::{canonical, codes, foreign_annotations, object_lists};
use crate::manifest::yaml;
use crate::model::{
    Diagnostic, Digest, GroupVersionKind, InvalidSyncWave, KindInfo, Location, ObjectBody, ObjectId,
    PruneMode, RenderedObject, SyncWave, labels, secret_masking, secret_text,
};
use crate::sops::{self, DecryptedDocument};

/// Splits template output into documents. A position in the output means nothing to the reader, so mistakes point at the
/// template and quote the line.
pub fn parse_output(
    job: &RenderJob<'_>,
    template: &LayerSource,
    output: &str,
) -> Result<Vec<ObjectDocument>, Vec<Diagnostic>> {
    let marked = job.trace.filter(|notes| notes.marked).map(|notes| (notes, line_marks::strip(output)));
    let output = marked.as_ref().map_or(output, |(_, (output, _))| output.as_str());
    let (documents, mistakes) = yaml::parse_objects(&template.path, output);
    if !mistakes.is_empty() {
        return Err(mistakes.iter().map(|mistake| output_mistake(job, template, output, mistake)).collect());
    }
    let start = template.start();
    collect(documents.iter().flat_map(|document| object_lists::items_with_nodes(&document.root)).map(
        |(value, node)| {
            let line = node.start.line;
            let what = || format!("line {line} of the output of {}", template.path);
            let mut made = object_document(job, value, start.clone(), &what)?;
            if let Some((notes, (_, marks))) = &marked {
                made.fields = notes.field_locations(node, marks);
            }
            Ok(made)
        },
    ))
}

/// Parses a plain file.
pub fn parse_file(job: &RenderJob<'_>, file: &LayerSource) -> Result<Vec<ObjectDocument>, Vec<Diagnostic>> {
    let (documents, mistakes) = yaml::parse_objects(&file.path, &file.text);
    let rescope = |mistake: Diagnostic| Diagnostic { scope: job.scope(), ..mistake };
    if !mistakes.is_empty() {
        return Err(mistakes.into_iter().map(rescope).collect());
    }
    let opened = sops::decrypt_documents(&file.path, documents, &job.snapshot.keys)
        .map_err(|mistakes| mistakes.into_iter().map(rescope).collect::<Vec<_>>())?;
    let objects = opened.iter().flat_map(|DecryptedDocument { document, sealed }| match sealed {
        // The paths of encrypted values are those of the whole document, so a list is not split.
        Some(sealed) => vec![(document.root.to_json(), &document.root, Some(sealed.clone()))],
        None => object_lists::items_with_nodes(&document.root)
            .into_iter()
            .map(|(value, node)| (value, node, None))
            .collect(),
    });
    collect(objects.map(|(value, node, sealed)| {
        let place = node.location(&file.path);
        let what = || format!("the document at {place}");
        let mut made = object_document(job, value, Location { end: None, ..place.clone() }, &what)?;
        made.sealed = sealed;
        if job.trace.is_some_and(|notes| notes.marked) {
            made.fields = field_locations::fields_of_file(&file.path, node);
        }
        Ok(made)
    }))
}

fn collect(
    documents: impl Iterator<Item = Result<ObjectDocument, Box<Diagnostic>>>,
) -> Result<Vec<ObjectDocument>, Vec<Diagnostic>> {
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for document in documents {
        match document {
            Ok(document) => found.push(document),
            Err(mistake) => mistakes.push(*mistake),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

fn output_mistake(
    job: &RenderJob<'_>,
    template: &LayerSource,
    output: &str,
    mistake: &Diagnostic,
) -> Diagnostic {
    let line = mistake.location.as_ref().map_or(1, |location| location.start.line);
    let text = output.lines().nth(line.saturating_sub(1) as usize).unwrap_or("").trim();
    let text = shortened(text);
    let text = if secret_text::has_secret(output) { secret_text::line_without_values(&text) } else { text };
    let message =
        format!("{} renders a text that is not YAML: {} (line {line} of it)", template.path, mistake.message);
    let help = match &mistake.help {
        Some(help) => format!("line {line} is `{text}`; {help}"),
        None => format!("line {line} is `{text}`"),
    };
    job.error(codes::OUTPUT, message).at(template.start()).help(help)
}

pub fn object_document(
    job: &RenderJob<'_>,
    mut value: Value,
    source: Location,
    what: &dyn Fn() -> String,
) -> Result<ObjectDocument, Box<Diagnostic>> {
    foreign_annotations::set_hook_name(&mut value);
    let error =
        |problem: &str| job.error(codes::NOT_AN_OBJECT, format!("{} {problem}", what())).at(source.clone());
    let Value::Object(object) = value else {
        return Err(error("is not a Kubernetes object")
            .help("an object is a map with apiVersion, kind and metadata")
            .into());
    };
    for field in ["apiVersion", "kind"] {
        if object.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(error(&format!("has no {field}"))
                .help("an object is a map with apiVersion, kind and metadata")
                .into());
        }
    }
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("");
    if kind.ends_with("List") && object.get("items").is_some_and(Value::is_array) {
        return Err(error(&format!("is a {kind} that is encrypted, or inside of another list"))
            .help("write its items as documents of their own, with `---` between")
            .into());
    }
    if object
        .get("apiVersion")
        .and_then(Value::as_str)
        .is_some_and(|version| version.starts_with("tutti.dev/"))
    {
        let help = "narrow the patterns of spec.files, so that they do not fit it";
        return Err(error(&format!("is a manifest ({kind}), not an object of a cluster")).help(help).into());
    }
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    if name.and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(error(&format!("({kind}) has no metadata.name"))
            .help(match object.get("metadata").and_then(|metadata| metadata.get("generateName")) {
                Some(_) => "generateName creates a new object with each apply: write metadata.name instead",
                None => "the name must be a text; put numbers in quotes",
            })
            .into());
    }
    if object.contains_key("sops") {
        return Err(job
            .error(
                codes::NOT_SUPPORTED_YET,
                format!("{} is encrypted with SOPS, which is not supported here yet", what()),
            )
            .at(source)
            .help("only files of Objects apps that are not templates are opened")
            .into());
    }
    Ok(ObjectDocument::new(object, source))
}

/// Brings a document into its applied form: canonical, with namespace, labels and annotations. `definitions`: the kinds that
/// the app defines.
pub fn finish_object(
    job: &RenderJob<'_>,
    document: ObjectDocument,
    definitions: &AppDefinedKinds,
) -> Result<RenderedObject, Vec<Diagnostic>> {
    let ObjectDocument { object, source, .. } = &document;
    let one = |mistake: Box<Diagnostic>| vec![*mistake];
    check_decrypted(job, object).map_err(|mistake| vec![mistake.at(source.clone())])?;
    check_secret(job, object)
        .map_err(|(mistake, path)| vec![mistake.at(document.locate_field(job, &path))])?;
    let kind = kind_of(object);
    let wrong: Vec<Diagnostic> = nulls::find_invalid_values(object, &kind)
        .iter()
        .map(|mistake| match mistake {
            InvalidValue::Null(path) => {
                null_mistake(job, &describe_object(object, &kind), path).at(document.locate_field(job, path))
            }
            InvalidValue::NotAText(path) => not_a_text_mistake(job, &document, &kind, path),
        })
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    check_labels(job, &document, &kind).map_err(one)?;
    label_object(job, document, definitions, kind).map_err(one)
}

fn label_object(
    job: &RenderJob<'_>,
    document: ObjectDocument,
    definitions: &AppDefinedKinds,
    kind: GroupVersionKind,
) -> Result<RenderedObject, Box<Diagnostic>> {
    let ObjectDocument { mut object, source, fields, sealed, hook, is_from_chart: _ } = document;
    let facts =
        if kind.is_built_in() { None } else { definitions.get(&kind).or_else(|| job.cluster.kind(&kind)) };
    let shown = sealed.is_none();
    canonical::canonicalize(&mut object, &kind, facts.as_ref().is_some_and(|facts| !facts.has_status));
    set_namespace(job, &mut object, &kind, &source, facts).map_err(|mistake| mistake.at(source.clone()))?;
    check_boolean_annotations(job, &object, &kind, shown).map_err(|mistake| mistake.at(source.clone()))?;
    let wave = sync_wave(job, &object, &kind, shown).map_err(|mistake| mistake.at(source.clone()))?;

    let mut body = Value::Object(object);
    let Some(id) = ObjectId::of(&body) else {
        let mistake = job.error(codes::NOT_AN_OBJECT, format!("{kind} has no identity")).at(source);
        return Err(mistake.help("write apiVersion, kind and metadata.name as texts").into());
    };
    let app = &job.app.id;
    let ours = [
        ("labels", labels::MANAGED_BY, job.fleet.instance.name.clone()),
        ("labels", labels::APP, labels::app_label(app)),
        ("annotations", labels::APP, app.to_string()),
        ("annotations", labels::ORIGIN, id.origin()),
    ];
    for (field, key, value) in ours {
        body["metadata"][field][key] = json!(value);
    }
    // After the manifest is removed, only the object records that it must stay.
    let stays = job.app.prune == Some(PruneMode::Never);
    if stays && body["metadata"]["annotations"].get(labels::PRUNE).is_none() {
        body["metadata"]["annotations"][labels::PRUNE] = json!("keep");
    }
    let hash = sealed.as_ref().map_or_else(|| Digest::of_json(&body), |sealed| sealed.digest(&body));
    let defines = RenderedObject::custom_kind_of(&id, &body);
    let object = RenderedObject {
        id,
        kind,
        body: ObjectBody::new(&body),
        hash,
        source,
        encrypted_values: sealed,
        hook,
        wave,
        defines,
        pod_sets: Arc::default(),
    };
    if let Some(notes) = job.trace {
        notes.record(&object, fields);
    }
    Ok(object)
}

fn is_cluster_scoped(kind: &GroupVersionKind) -> bool {
    CLUSTER_SCOPED_KINDS.iter().any(|(group, kinds)| **group == *kind.group && kinds.contains(&&*kind.kind))
}

/// Cluster-scoped built-in kinds; all others are namespaced.
const CLUSTER_SCOPED_KINDS: &[(&str, &[&str])] = &[
    ("", &["Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("networking.k8s.io", &["IngressClass", "IPAddress", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
];

/// Sets the namespace of the app on a namespaced object without one, and removes the namespace of a cluster-scoped object.
/// Without a definition of the kind, the object stays unchanged.
fn set_namespace(
    job: &RenderJob<'_>,
    object: &mut Map<String, Value>,
    kind: &GroupVersionKind,
    source: &Location,
    facts: Option<KindInfo>,
) -> Result<(), Box<Diagnostic>> {
    let namespaced =
        if kind.is_built_in() { Some(!is_cluster_scoped(kind)) } else { facts.map(|it| it.namespaced) };
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return Ok(()) };
    let written = metadata.get("namespace");
    if written.is_some_and(|namespace| !namespace.is_string()) {
        let message = format!("the namespace of {} is not a text", describe_metadata(metadata, kind));
        return Err(job.error(codes::NAMESPACE, message).help("put it in quotes").into());
    }
    let written = written.and_then(Value::as_str).filter(|namespace| !namespace.is_empty());
    match (namespaced, written) {
        (Some(false), Some(namespace)) => {
            let message = format!(
                "{} belongs to the whole cluster: metadata.namespace {namespace} is ignored",
                describe_metadata(metadata, kind)
            );
            job.warn(codes::NAMESPACE, message, source, "remove metadata.namespace");
            metadata.shift_remove("namespace");
        }
        (Some(false), None) => {
            metadata.shift_remove("namespace");
        }
        (Some(true), None) => {
            metadata.insert("namespace".to_owned(), json!(&*job.app.id.namespace));
        }
        (Some(true), Some(_)) | (None, _) => {}
    }
    Ok(())
}

fn null_mistake(job: &RenderJob<'_>, whom: &str, path: &[String]) -> Diagnostic {
    let message = format!("{whom} has no value at {}", path.join("."));
    job.error(codes::NULL, message).in_path(path.join(".")).help(
        "the cluster would take it for an empty value; write `\"\"` where that is meant, else give it a value or remove the key",
    )
}

/// The message shows the value if it is short and not encrypted.
fn not_a_text_mistake(
    job: &RenderJob<'_>,
    document: &ObjectDocument,
    kind: &GroupVersionKind,
    path: &[String],
) -> Diagnostic {
    let object = &document.object;
    let (key, field) = match path.split_last() {
        Some((key, before)) => (key.as_str(), before.last().map_or("", String::as_str)),
        None => ("", ""),
    };
    let value = find(object, path).filter(|_| document.sealed.is_none());
    let told = match value {
        None => String::new(),
        Some(Value::Object(_)) => "a map, ".to_owned(),
        Some(Value::Array(_)) => "a list, ".to_owned(),
        Some(value) => format!("{value}, "),
    };
    let message = format!("{field} of {}: {key} is {told}not a text", describe_object(object, kind));
    let help = if value.is_some_and(Value::is_boolean) {
        "YAML reads yes, no, on, off, true and false without quotes as booleans: put it in quotes; in a template, add `| string | tojson`"
    } else {
        "put it in quotes; in a template, add `| string | tojson`"
    };
    let diagnostic = job.error(codes::LABEL, message).in_path(path.join(".")).help(help);
    diagnostic.at(document.locate_field(job, path))
}

fn find<'o>(object: &'o Map<String, Value>, path: &[String]) -> Option<&'o Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(first)?, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

fn describe_object(object: &Map<String, Value>, kind: &GroupVersionKind) -> String {
    let metadata = object.get("metadata").and_then(Value::as_object);
    metadata.map_or_else(|| kind.to_string(), |metadata| describe_metadata(metadata, kind))
}

/// The API server refuses a label that is no string, without its position. Maps in the schema were checked before; this
/// covers pod templates of custom kinds, and labels that are no map.
fn check_labels(
    job: &RenderJob<'_>,
    document: &ObjectDocument,
    kind: &GroupVersionKind,
) -> Result<(), Box<Diagnostic>> {
    for place in [&["metadata"][..], &["spec", "template", "metadata"]] {
        for field in ["labels", "annotations"] {
            let mut path: Vec<String> = place.iter().chain([&field]).map(ToString::to_string).collect();
            match find(&document.object, &path) {
                None | Some(Value::Null) => {}
                Some(Value::Object(entries)) => {
                    if let Some((key, _)) = entries.iter().find(|(_, value)| !value.is_string()) {
                        path.push(key.clone());
                        return Err(not_a_text_mistake(job, document, kind, &path).into());
                    }
                }
                Some(_) => {
                    let message =
                        format!("{field} of {} is not a map", describe_object(&document.object, kind));
                    let help = format!("write {field} as a map of names to texts");
                    let mistake = job.error(codes::LABEL, message).in_path(path.join(".")).help(help);
                    return Err(mistake.at(document.locate_field(job, &path)).into());
                }
            }
        }
    }
    Ok(())
}

fn check_boolean_annotations(
    job: &RenderJob<'_>,
    object: &Map<String, Value>,
    kind: &GroupVersionKind,
    shown: bool,
) -> Result<(), Box<Diagnostic>> {
    for name in [labels::FORCE, labels::REPLACE] {
        if let Some(says) = annotation(object, name).filter(|says| !matches!(*says, "true" | "false")) {
            let help = "it is `\"true\"` or `\"false\"`, in quotes; without it, the app decides";
            return Err(job
                .error(
                    codes::BOOLEAN_ANNOTATION,
                    invalid_annotation(object, kind, name, shown.then_some(says)),
                )
                .help(help)
                .into());
        }
    }
    Ok(())
}

fn sync_wave(
    job: &RenderJob<'_>,
    object: &Map<String, Value>,
    kind: &GroupVersionKind,
    shown: bool,
) -> Result<SyncWave, Box<Diagnostic>> {
    SyncWave::of(|name| annotation(object, name)).map_err(|InvalidSyncWave(says)| {
        let help = format!(
            "it is a whole number from {} to {}, in quotes; without it, the object is of wave 0",
            SyncWave::LOWEST,
            SyncWave::HIGHEST
        );
        let message = invalid_annotation(object, kind, labels::SYNC_WAVE, shown.then_some(says));
        job.error(codes::SYNC_WAVE, message).help(help).into()
    })
}

fn annotation<'o>(object: &'o Map<String, Value>, name: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// `says`: the value, unless it is encrypted.
fn invalid_annotation(
    object: &Map<String, Value>,
    kind: &GroupVersionKind,
    annotation: &str,
    says: Option<&str>,
) -> String {
    let name = describe_object(object, kind);
    let says = says.map_or_else(|| "not a valid value".to_owned(), |says| format!("{says:?}"));
    format!("annotation {annotation} of {name} is {says}")
}

/// A file that lost its `sops` map looks plain, and its ciphertext would replace the passwords in use.
fn check_decrypted(job: &RenderJob<'_>, object: &Map<String, Value>) -> Result<(), Box<Diagnostic>> {
    let Some(path) = secret_masking::ciphertext_path(object) else { return Ok(()) };
    let name = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let message =
        format!("{path} of {kind} {} is encrypted with SOPS, and was not opened", name.unwrap_or_default());
    let help = "the file lost its `sops`, perhaps in a merge: take the last good version; only files of \
                Objects apps that are not templates are opened";
    Err(job.error(sops::codes::VALUE, message).help(help).into())
}

/// The API server refuses such a Secret and repeats the value. This mistake hides the value.
fn check_secret(
    job: &RenderJob<'_>,
    object: &Map<String, Value>,
) -> Result<(), (Box<Diagnostic>, nulls::ValuePath)> {
    if !canonical::is_secret(object) {
        return Ok(());
    }
    let name = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let name = name.unwrap_or_default();
    for field in ["data", "stringData"] {
        let wrong = match object.get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(entries)) => {
                entries.iter().find(|(_, value)| !value.is_string() && !value.is_null())
            }
            Some(_) => {
                let message = format!("{field} of Secret {name} is not a map");
                let help = format!("write {field} as a map of keys to texts");
                return Err((job.error(codes::SECRET, message).help(help).into(), vec![field.to_owned()]));
            }
        };
        if let Some((key, _)) = wrong {
            let message = format!("{field} of Secret {name}: {key} is not a text");
            let help = "put it in quotes; in a template, add `| string | tojson`";
            let mistake = job.error(codes::SECRET, message).help(help);
            return Err((mistake.into(), vec![field.to_owned(), key.clone()]));
        }
    }
    Ok(())
}
