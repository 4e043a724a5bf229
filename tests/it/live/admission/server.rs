//! One API server, queried by dry runs.

use std::collections::BTreeMap;

use http::{Method, Request};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use live::LiveCluster;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tutti::model::{GroupVersionKind, usual_plural};

use super::cases::AdmissionCase;
use super::{AdmissionVerdict, eventually};

type Labels = BTreeMap<String, String>;

pub struct AdmissionServer {
    client: kube::Client,
    labels: BTreeMap<String, Labels>,
    existing_objects: Mutex<Vec<String>>,
}

const CLUSTER_SCOPED: [&str; 8] = [
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "PriorityClass",
    "IngressClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

pub fn is_namespaced(object: &Value) -> bool {
    // The kinds of params that are defined here.
    let is_defined = object["apiVersion"].as_str().is_some_and(|it| it.contains("example.com/"));
    !is_defined && !CLUSTER_SCOPED.iter().any(|kind| object["kind"] == *kind)
}

fn collection_path(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().expect("a version");
    let kind = GroupVersionKind::of(object).expect("a kind");
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let namespace = object["metadata"]["namespace"].as_str().filter(|_| is_namespaced(object));
    let namespace = namespace.map(|it| format!("/namespaces/{it}")).unwrap_or_default();
    format!("/{root}/{api_version}{namespace}/{}", usual_plural(&kind.kind))
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

fn object_path(object: &Value) -> String {
    format!("{}/{}", collection_path(object), name(object))
}

impl AdmissionServer {
    pub async fn of(cluster: &LiveCluster) -> Self {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions { context: Some("admin".to_owned()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        let client = kube::Client::try_from(config).expect("a client");
        Self { client, labels: BTreeMap::new(), existing_objects: Mutex::default() }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        self.client.request(request.body(body).expect("a request")).await
    }

    pub async fn namespace(&mut self, name: &str, labels: &Value) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.create_or_replace(&namespace).await;
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        let is_there = async || self.send(Method::GET, &account, None).await.map_err(|it| it.to_string());
        eventually(&format!("the service account of {name}"), String::new, is_there).await;
        let made = self.send(Method::GET, &object_path(&namespace), None).await.expect("a namespace");
        let labels = serde_json::from_value(made["metadata"]["labels"].clone()).expect("labels");
        self.labels.insert(name.to_owned(), labels);
    }

    pub fn labels_of(&self, namespace: &str) -> &Labels {
        &self.labels[namespace]
    }

    /// As the server stores it.
    pub async fn create_or_replace(&self, object: &Value) -> Value {
        // A new kind is served some moments after its definition.
        let is_made = async || match self.send(Method::POST, &collection_path(object), Some(object)).await {
            Ok(made) => Ok(made),
            Err(kube::Error::Api(status)) if status.code == 404 => Err(status.message),
            // Several policies share one definition of params.
            Err(kube::Error::Api(status))
                if status.code == 409 && object["kind"] == "CustomResourceDefinition" =>
            {
                Ok(object.clone())
            }
            Err(error) => panic!("{}: {error}", object_path(object)),
        };
        let made = eventually(&object_path(object), String::new, is_made).await;
        self.existing_objects.lock().push(object_path(object));
        made
    }

    /// Creates a policy; returns the error if the server refuses it.
    pub async fn create_policy(&self, policy: &Value) -> Option<String> {
        let answer = self.send(Method::POST, &collection_path(policy), Some(policy)).await;
        answer.err().map(|error| format!("{}: {error}", name(policy)))
    }

    /// The object with the server's defaults, before any policy exists.
    pub async fn with_server_defaults(&self, object: &Value, old: Option<&Value>) -> Value {
        self.write(object, old.is_some())
            .await
            .unwrap_or_else(|said| panic!("{}: {said:?}", object_path(object)))
    }

    /// The verdict of the server.
    pub async fn server_verdict(&self, case: &AdmissionCase) -> AdmissionVerdict {
        let answer = match &case.object {
            Some(object) => self.write(object, case.old.is_some()).await,
            None => {
                let old = case.old.as_ref().expect("what is deleted");
                self.dry_run(Method::DELETE, &object_path(old), None).await
            }
        };
        match answer {
            Ok(_) => AdmissionVerdict::Allowed,
            Err(message) => parse_denial(&message).unwrap_or_else(|| panic!("{}: {message}", case.name)),
        }
    }

    async fn write(&self, object: &Value, is_update: bool) -> Result<Value, String> {
        if !is_update {
            return self.dry_run(Method::POST, &collection_path(object), Some(object)).await;
        }
        loop {
            // Controllers write its status meanwhile.
            let live =
                self.send(Method::GET, &object_path(object), None).await.map_err(|it| it.to_string())?;
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            match self.dry_run(Method::PUT, &object_path(&object), Some(&object)).await {
                Err(message) if message.contains("the object has been modified") => {}
                answer => return answer,
            }
        }
    }

    async fn dry_run(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        match self.send(method, &format!("{path}?dryRun=All"), body).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(status.message),
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

/// Parses `… ValidatingAdmissionPolicy 'a' with binding 'a' denied request: MESSAGE`.
fn parse_denial(message: &str) -> Option<AdmissionVerdict> {
    let (_, rest) = message.split_once("ValidatingAdmissionPolicy '")?;
    let (_, said) = rest.split_once(" denied request: ")?;
    let is_failure = said.contains(" resulted in error: ")
        || said.starts_with("failed to evaluate ")
        || said.contains("errors occurred");
    Some(if is_failure {
        AdmissionVerdict::Failed(said.to_owned())
    } else {
        AdmissionVerdict::Denied(said.to_owned())
    })
}
