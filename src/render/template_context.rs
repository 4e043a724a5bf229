//! Builds the variables that templates read, in this process or in a worker.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Variable};
use serde_json::{Map, Value, json};

use super::cluster_facts::{FactRecorder, to_template_value};
use super::engine::PARENT;
use super::render_job::RenderJob;
use crate::model::{App, AppSpec, DeployType};
use crate::schedule::AssignedPodSet;

/// `app` and `component`.
pub fn app_variables(app: &App) -> [(&'static str, Value); 2] {
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
pub struct TemplateContext<'a> {
    job: &'a RenderJob<'a>,
    values: Map<String, Value>,
    pod_set: Option<&'a AssignedPodSet>,
}

impl<'a> TemplateContext<'a> {
    pub fn new(
        job: &'a RenderJob<'a>,
        values: Map<String, Value>,
        pod_set: Option<&'a AssignedPodSet>,
    ) -> Self {
        Self { job, values, pod_set }
    }

    /// The variables for the engine in this process.
    pub fn variables(&self) -> Variable {
        let mut fixed: BTreeMap<Cow<'static, str>, Variable> = app_variables(self.job.app)
            .into_iter()
            .map(|(name, value)| (name.into(), to_template_value(&value)))
            .collect();
        fixed.insert("values".into(), to_template_value(&self.values));
        fixed.extend(self.pod_set.map(|pod_set| ("podSet".into(), to_template_value(pod_set))));
        template_variables(fixed, self.job.cluster.recorder())
    }

    /// The variables for a worker, without cluster facts.
    pub fn worker_variables(&self) -> Map<String, Value> {
        let mut told: Map<String, Value> =
            app_variables(self.job.app).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        told.insert("values".to_owned(), Value::Object(self.values.clone()));
        told.extend(self.pod_set.map(|pod_set| ("podSet".to_owned(), json!(pod_set))));
        told
    }

    /// All variables, for suggestions in mistakes.
    pub fn to_json(&self) -> Value {
        let mut context = self.worker_variables();
        context.extend(self.job.cluster.to_json().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(context)
    }
}

/// The variables in a worker, built from its request.
pub fn variables_in_worker(told: Map<String, Value>, notebook: FactRecorder) -> Variable {
    let fixed = told.into_iter().map(|(name, value)| (name.into(), to_template_value(&value)));
    template_variables(fixed.collect(), notebook)
}

fn template_variables(mut fixed: BTreeMap<Cow<'static, str>, Variable>, notebook: FactRecorder) -> Variable {
    fixed.insert("parent".into(), Variable::from(PARENT));
    Variable::from_object(TemplateVariables { known: fixed, recorder: notebook })
}

/// Looks up each variable when the engine reads it, so that cluster facts are recorded.
#[derive(Debug)]
struct TemplateVariables {
    known: BTreeMap<Cow<'static, str>, Variable>,
    recorder: FactRecorder,
}

impl Object for TemplateVariables {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Variable) -> Option<Variable> {
        let name = key.as_str()?;
        let of_site =
            || FactRecorder::VARIABLES.contains(&name).then(|| self.recorder.variable(vec![name.to_owned()]));
        self.known.get(name).cloned().or_else(|| of_site().flatten())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.known
                .keys()
                .map(|name| &**name)
                .chain(FactRecorder::VARIABLES)
                .map(Variable::from)
                .collect(),
        )
    }
}
