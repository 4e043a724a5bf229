//! Writes the files of an imported app: its manifest and its objects.
//!
//! An AppSet or Component has a layer of its own whose templates are the live objects. Only image and replicas come from the
//! manifest, as selectors and pod labels must not change.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::group::{AppDraft, text_at};
use super::yaml_text::{object_yaml, scalar};
use crate::apply::takeover;
use crate::model::ClusterName;

/// The kind of manifest that an app becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum ManifestForm {
    /// AppSet with image and replicas for each cluster; the live objects become templates
    AppSet,
    /// Component with the same image and replicas on all clusters; the live objects become templates
    Component,
    /// Objects manifest; the live objects are written as plain YAML files
    Objects,
}

impl ManifestForm {
    pub fn kind(self) -> &'static str {
        match self {
            Self::AppSet => "AppSet",
            Self::Component => "Component",
            Self::Objects => "Objects",
        }
    }
}

/// One app on each of its clusters.
pub type AppDrafts = BTreeMap<ClusterName, AppDraft>;

const IMAGE: &str = "IMAGE_OF_THE_POD_SET";
const REPLICAS: &str = "REPLICAS_OF_THE_POD_SET";

pub fn app_folder(app: &str) -> String {
    format!("apps/{app}/")
}

/// All files of an app, by path; or why this form cannot express it.
pub fn app_files(
    form: ManifestForm,
    namespace: &str,
    app: &str,
    drafts: &AppDrafts,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let Some((first, draft)) = drafts.iter().next() else { return Ok(BTreeMap::new()) };
    let differences = cluster_differences(form, drafts);
    if !differences.is_empty() {
        return Err(differences);
    }
    let folder = app_folder(app);
    let mut files = BTreeMap::new();
    files.insert(format!("{folder}app.yaml"), app_manifest(form, namespace, app, drafts));
    if form == ManifestForm::Objects {
        for object in draft.objects() {
            files.insert(format!("{folder}objects/{}.yaml", file_name(object)), object_yaml(object));
        }
        return Ok(files);
    }
    let workload = draft.kind.to_lowercase();
    let comment = format!("{{#- As it was on {first} when it was imported. -#}}\n");
    let template = |object: &Value| format!("{comment}{}", as_template(&object_yaml(object)));
    // In JSON they are quoted.
    let own = template(&draft.workload_with(IMAGE, REPLICAS))
        .replace(&format!("\"{IMAGE}\""), IMAGE)
        .replace(&format!("\"{REPLICAS}\""), REPLICAS)
        .replace(IMAGE, "{{ podSet.image | tojson }}")
        .replace(REPLICAS, "{{ podSet.replicas }}");
    files.insert(format!("{folder}layer/{workload}.yaml.j2"), own);
    if draft.kind == "StatefulSet" {
        let nothing = "{#- Its Service was imported: in the place of the one that the layers make. -#}\n";
        files.insert(format!("{folder}layer/headless.yaml.j2"), nothing.to_owned());
    }
    for object in draft.companions.values() {
        files.insert(format!("{folder}layer/{}.yaml.j2", file_name(object)), template(object));
    }
    Ok(files)
}

/// A patch that removes labels which an AppSet adds to its workload and pods.
pub fn labels_patch(draft: &AppDraft, of_workload: &[String], of_pods: &[String]) -> String {
    let nulls = |keys: &[String]| -> Value {
        let entries = keys.iter().map(|key| (key.clone(), Value::Null));
        Value::Object(entries.collect())
    };
    let mut merge = json!({});
    if !of_workload.is_empty() {
        merge["metadata"] = json!({"labels": nulls(of_workload)});
    }
    if !of_pods.is_empty() {
        merge["spec"] = json!({"template": {"metadata": {"labels": nulls(of_pods)}}});
    }
    let patch = json!({"target": {"kind": draft.kind, "name": draft.name}, "merge": merge});
    format!(
        "# Labels that an AppSet has by itself and that the live pods do not: new labels are new pods.\n{}",
        object_yaml(&patch)
    )
}

/// Differences between clusters that this form cannot express.
fn cluster_differences(form: ManifestForm, drafts: &AppDrafts) -> Vec<String> {
    let mut found = Vec::new();
    let mut all = drafts.iter();
    let Some((first, one)) = all.next() else { return found };
    for (cluster, other) in all {
        let what = |text: &str| format!("{text} is not the same on {first} and on {cluster}");
        let shapes = match form {
            ManifestForm::AppSet => {
                [one.workload_with(IMAGE, REPLICAS), other.workload_with(IMAGE, REPLICAS)]
            }
            ManifestForm::Component | ManifestForm::Objects => [one.workload.clone(), other.workload.clone()],
        };
        let title = super::group::title(&one.workload);
        let [before, after] = &shapes;
        found.extend(
            takeover::changed_paths(before, after).into_iter().map(|path| what(&format!("{title}: {path}"))),
        );
        for (id, object) in &one.companions {
            match other.companions.get(id) {
                None => found.push(format!("{id} is on {first} and not on {cluster}")),
                Some(twin) => {
                    let paths = takeover::changed_paths(object, twin);
                    found.extend(paths.into_iter().map(|path| what(&format!("{id}: {path}"))));
                }
            }
        }
        let more = other.companions.keys().filter(|id| !one.companions.contains_key(id));
        found.extend(more.map(|id| format!("{id} is on {cluster} and not on {first}")));
    }
    found
}

fn app_manifest(form: ManifestForm, namespace: &str, app: &str, drafts: &AppDrafts) -> String {
    let clusters: Vec<&str> = drafts.keys().map(ClusterName::as_str).collect();
    let Some(draft) = drafts.values().next() else { return String::new() };
    let head = format!(
        "# Imported from {} {}/{} on {}.\napiVersion: tutti.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}, namespace: {}}}\nspec:\n  \
         # Takes over existing objects; remove this line when that is done.\n  adopt: true\n",
        draft.kind,
        namespace,
        draft.name,
        clusters.join(", "),
        form.kind(),
        scalar(app),
        scalar(namespace),
    );
    let names: Vec<String> = clusters.iter().map(|name| scalar(name)).collect();
    let placement = format!("  placement: {{clusters: {{names: [{}]}}}}\n", names.join(", "));
    match form {
        ManifestForm::Objects => format!("{head}{placement}  files: [objects/*.yaml]\n"),
        ManifestForm::Component => {
            let replicas = draft.replicas().map_or(String::new(), |count| format!("  replicas: {count}\n"));
            format!(
                "{head}  # layer/ defines the {}; image and replicas are set here.\n  workloadType: {}\n  \
                 developLanguage: generic\n  runType: worker\n  image: {}\n{replicas}{placement}",
                draft.kind,
                draft.kind,
                scalar(&draft.image()),
            )
        }
        ManifestForm::AppSet => {
            let mut text = format!(
                "{head}  # layer/ defines the {}; images and replicas are set here.\n  podSpec: \
                 {{deployType: {}}}\n  \
                 clusterTopology:\n    clusters:\n",
                draft.kind,
                draft.kind.to_lowercase(),
            );
            for (cluster, draft) in drafts {
                let replicas = draft.replicas().map_or(String::new(), |count| format!(" replicas: {count},"));
                // Writing to a String cannot fail.
                let _ = write!(
                    text,
                    "      - name: {}\n        podSets: [{{name: {},{replicas} image: {}}}]\n",
                    scalar(cluster.as_str()),
                    scalar(&draft.name),
                    scalar(&draft.image()),
                );
            }
            text
        }
    }
}

/// The file name, such as `service-web-admin`.
fn file_name(object: &Value) -> String {
    let kind = text_at(object, "/kind").to_lowercase();
    let name =
        text_at(object, "/metadata/name").replace(|it: char| !it.is_ascii_alphanumeric() && it != '-', "-");
    format!("{kind}-{name}")
}

/// Escapes a text so that it renders to itself.
fn as_template(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        let token = ["{{", "{%", "{#"].into_iter().find(|token| from.starts_with(token));
        match token {
            Some(token) => {
                made.push_str("{{ '");
                made.push_str(token);
                made.push_str("' }}");
                rest = from.get(token.len()..).unwrap_or_default();
            }
            None => {
                made.push('{');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    made.push_str(rest);
    made
}
