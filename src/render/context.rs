//! Builds the variables that templates read, in this process or in a worker.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Variable};
use serde_json::{Map, Value, json};

use super::Job;
use super::engine::PARENT;
use super::site::{Notebook, serialized};
use crate::model::{App, AppSpec, DeployType};
use crate::schedule::AssignedPodSet;

/// `app` and `component`.
pub fn of_app(app: &App) -> [(&'static str, Value); 2] {
    let (service_name, deploy_type, pod_template) = match &app.spec {
        AppSpec::AppSet(app_set) => {
            (app_set.service_name.as_deref(), Some(app_set.deploy_type), app_set.template.as_ref())
        }
        AppSpec::Component(component) => (None, Some(component.workload_type), None),
        AppSpec::Objects(_) | AppSpec::Project(_) => (None, None, None),
    };
    let workload = match deploy_type.and_then(DeployType::workload) {
        Some(workload) => json!(workload),
        None => json!({"apiVersion": null, "kind": null, "scales": false}),
    };
    let component = match &app.spec {
        AppSpec::Component(component) => component.values.clone(),
        AppSpec::AppSet(_) | AppSpec::Objects(_) | AppSpec::Project(_) => Map::new(),
    };
    let of_app = json!({
        "name": &*app.id.name,
        "namespace": &*app.id.namespace,
        "labels": app.labels,
        "annotations": app.annotations,
        "kind": app.kind(),
        "serviceName": service_name,
        "workload": workload,
        "podTemplate": pod_template,
    });
    [("app", of_app), ("component", Value::Object(component))]
}

/// The variables of one podSet, or of an app without any.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    job: &'a Job<'a>,
    values: Map<String, Value>,
    pod_set: Option<&'a AssignedPodSet>,
}

impl<'a> Context<'a> {
    pub fn new(job: &'a Job<'a>, values: Map<String, Value>, pod_set: Option<&'a AssignedPodSet>) -> Self {
        Self { job, values, pod_set }
    }

    /// The variables for the engine in this process.
    pub fn variables(&self) -> Variable {
        let mut fixed: BTreeMap<Cow<'static, str>, Variable> =
            of_app(self.job.app).into_iter().map(|(name, value)| (name.into(), serialized(&value))).collect();
        fixed.insert("values".into(), serialized(&self.values));
        fixed.extend(self.pod_set.map(|pod_set| ("podSet".into(), serialized(pod_set))));
        variables(fixed, self.job.site.notebook())
    }

    /// The variables for a worker, without cluster facts.
    pub fn told(&self) -> Map<String, Value> {
        let mut told: Map<String, Value> =
            of_app(self.job.app).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        told.insert("values".to_owned(), Value::Object(self.values.clone()));
        told.extend(self.pod_set.map(|pod_set| ("podSet".to_owned(), json!(pod_set))));
        told
    }

    /// All variables, for suggestions in mistakes.
    pub fn to_json(&self) -> Value {
        let mut context = self.told();
        context.extend(self.job.site.to_json().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(context)
    }
}

/// The variables in a worker, built from its request.
pub fn read(told: Map<String, Value>, notebook: Notebook) -> Variable {
    let fixed = told.into_iter().map(|(name, value)| (name.into(), serialized(&value)));
    variables(fixed.collect(), notebook)
}

fn variables(mut fixed: BTreeMap<Cow<'static, str>, Variable>, notebook: Notebook) -> Variable {
    fixed.insert("parent".into(), Variable::from(PARENT));
    Variable::from_object(Variables { fixed, notebook })
}

/// Looks up each variable when the engine reads it, so that cluster facts are recorded.
#[derive(Debug)]
struct Variables {
    fixed: BTreeMap<Cow<'static, str>, Variable>,
    notebook: Notebook,
}

impl Object for Variables {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Variable) -> Option<Variable> {
        let name = key.as_str()?;
        let of_site =
            || Notebook::VARIABLES.contains(&name).then(|| self.notebook.variable(vec![name.to_owned()]));
        self.fixed.get(name).cloned().or_else(|| of_site().flatten())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.fixed.keys().map(|name| &**name).chain(Notebook::VARIABLES).map(Variable::from).collect(),
        )
    }
}
