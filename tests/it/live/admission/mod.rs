//! A real API server and `policy` must give equal verdicts on the same rules and objects.
//!
//! Each file of `tests/fixtures/admission` has a ValidatingAdmissionPolicy with its binding, its params, and objects that it allows or
//! denies. All are on one server at once, each bound to objects with its own label. The requests are dry runs.
//!
//! `policy` judges each object twice: with the defaults of the server, and as written. Both verdicts and messages must equal those of
//! the server, except as written for cases with `filledIn`.

mod cases;
mod server;
mod shipped;

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tutti::fleet::{Fleet, assemble};
use tutti::manifest;
use tutti::model::{AppId, ClusterFacts, GroupVersionKind, Snapshot};
use tutti::policy::{PolicyObjectChange, PolicyTarget, VerdictCause, default_namespace_labels};

use super::support::{eventually, print_uncaptured, tier};
use cases::{AdmissionCase, AdmissionPolicyFile};
use server::AdmissionServer;

/// The verdict on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AdmissionVerdict {
    Allowed,
    Denied(String),
    /// It cannot be evaluated; the messages differ between both.
    Failed(String),
}

impl AdmissionVerdict {
    fn is_same(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Failed(_), Self::Failed(_))) || self == other
    }
}

const MAX_CONCURRENT: usize = 8;
/// The namespace of objects without one.
const NAMESPACE: &str = "admission";

fn fleet(file: &str, documents: &[Value]) -> Fleet {
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    let path = format!("policies/{file}.yaml");
    let snapshot = Snapshot::of_texts([(path.as_str(), texts.join("\n---\n").as_str())]);
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    let errors: Vec<_> = fleet.diagnostics.iter().filter(|it| it.is_error()).collect();
    assert!(errors.is_empty(), "{file}: {errors:?}");
    fleet
}

/// The verdict of this program. `labels` are those of a namespace.
fn verdict_of_tutti(
    fleet: &Fleet,
    labels: impl Fn(&str) -> BTreeMap<String, String>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> AdmissionVerdict {
    let either = object.or(old).expect("an object");
    let of_namespace = either["metadata"]["namespace"].as_str().map(labels);
    let (app, labels) = (AppId::new("shop", "web"), Default::default());
    let cluster = ClusterFacts { name: "bj1", labels: &labels, ring: None };
    let target = PolicyTarget { app: &app, app_labels: &labels, version: None, cluster, objects: &[] };
    let change = PolicyObjectChange {
        kind: &GroupVersionKind::of(either).expect("a kind"),
        plurals: &[],
        object,
        old_object: old,
        namespace_labels: of_namespace.as_ref(),
        hides_values: false,
    };
    match fleet.policies.select(&target).evaluate(&change).verdicts.into_iter().next() {
        None => AdmissionVerdict::Allowed,
        Some(verdict) if verdict.cause == VerdictCause::Untrue => AdmissionVerdict::Denied(verdict.message),
        Some(verdict) => AdmissionVerdict::Failed(verdict.message),
    }
}

/// Whether it is allowed if no namespace is known.
fn is_allowed(fleet: &Fleet, case: &AdmissionCase) -> bool {
    verdict_of_tutti(fleet, default_namespace_labels, case.object.as_ref(), case.old.as_ref())
        == AdmissionVerdict::Allowed
}

/// A label that only objects of one policy have.
fn add_policy_label(object: &mut Value, policy: &str) {
    object["metadata"]["labels"]["case"] = json!(policy);
}

fn differences(
    name: &str,
    case: &AdmissionCase,
    server: &AdmissionVerdict,
    filled: &AdmissionVerdict,
    written: &AdmissionVerdict,
) -> Vec<String> {
    let mut found = Vec::new();
    let what = format!("{name}, {}", case.name);
    if (*server == AdmissionVerdict::Allowed) != case.is_allowed {
        found.push(format!("{what}: the server says {server:?}, and the case allowed: {}", case.is_allowed));
    }
    if !server.is_same(filled) {
        found.push(format!("{what}: the server says {server:?}, tutti {filled:?}"));
    }
    if server.is_same(written) == case.depends_on_defaults {
        found.push(format!("{what}, as written: the server says {server:?}, tutti {written:?}"));
    }
    found
}

#[tokio::test]
async fn verdicts_are_those_of_a_real_api_server() {
    let Some(live) = tier().await else { return };
    let mut server = AdmissionServer::of(live.cluster(0)).await;
    let files = AdmissionPolicyFile::all();
    assert!(files.len() >= 40, "{} policies", files.len());
    let shipped = shipped::files();
    server.namespace(NAMESPACE, &json!({})).await;
    for (name, labels) in files.iter().flat_map(|file| &file.namespaces) {
        server.namespace(name, labels).await;
    }
    // Before the policies exist: creates the old objects, and gets the defaults for the new ones.
    for file in files.iter().chain(&shipped) {
        for object in &file.other_objects {
            server.create_or_replace(object).await;
        }
    }
    let cases: Vec<(&AdmissionPolicyFile, &AdmissionCase)> = files
        .iter()
        .chain(&shipped)
        .flat_map(|file| file.cases.iter().map(move |case| (file, case)))
        .collect();
    let filled = stream::iter(&cases).map(|(file, case)| {
        let server = &server;
        async move {
            let old = match &case.old {
                Some(old) => Some(server.create_or_replace(old).await),
                None => None,
            };
            let object = match &case.object {
                Some(object) => Some(server.with_server_defaults(object, old.as_ref()).await),
                None => None,
            };
            (file, case, object, old)
        }
    });
    let filled: Vec<_> = filled.buffered(MAX_CONCURRENT).collect().await;
    let mut refused = Vec::new();
    for file in files.iter().chain(&shipped) {
        refused.extend(server.create_policy(&file.policy).await);
        server.create_or_replace(&file.binding).await;
    }
    assert!(refused.is_empty(), "the server does not take policies:\n{}", refused.join("\n"));
    // A policy is in force some moments after its creation.
    for file in files.iter().chain(&shipped) {
        let Some(denied) = file.cases.iter().find(|case| !case.is_allowed) else { continue };
        let is_denied = async || match server.server_verdict(denied).await {
            AdmissionVerdict::Allowed => Err("it is allowed".to_owned()),
            _ => Ok(()),
        };
        eventually(&format!("{} is in force", file.name), String::new, is_denied).await;
    }
    let asked = stream::iter(&filled).map(|(file, case, object, old)| {
        let server = &server;
        async move {
            let fleet = fleet(&file.name, &file.documents());
            let labels = |name: &str| server.labels_of(name).clone();
            let said = server.server_verdict(case).await;
            let of_filled = verdict_of_tutti(&fleet, labels, object.as_ref(), old.as_ref());
            let written = verdict_of_tutti(&fleet, labels, case.object.as_ref(), case.old.as_ref());
            (differences(&file.name, case, &said, &of_filled, &written), said)
        }
    });
    let asked: Vec<_> = asked.buffered(MAX_CONCURRENT).collect().await;
    let denied = asked.iter().filter(|(_, said)| *said != AdmissionVerdict::Allowed).count();
    let found: Vec<&String> = asked.iter().flat_map(|(differences, _)| differences).collect();
    assert!(
        found.is_empty(),
        "{} differences:\n{}",
        found.len(),
        found.into_iter().cloned().collect::<Vec<_>>().join("\n")
    );
    print_uncaptured(&format!(
        "admission on Kubernetes {}: {} policies, {} shipped ones, {} objects, {denied} denied, no verdict differs",
        live.cluster(0).version(),
        files.len(),
        shipped.len(),
        asked.len()
    ));
}
