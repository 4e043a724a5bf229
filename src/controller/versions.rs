//! The VERSION of an app on a cluster: of its images as rendered, or as they run where the app leaves them to somebody else.

use std::sync::Arc;

use crate::model::{App, Diagnostic, ObjectId, Rendered, RenderedObject};
use crate::report::version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    rendered: String,
    /// Where the app leaves any field to others, or has podSets.
    workloads: Box<[Workload]>,
    /// The app leaves fields to others.
    are_left: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Workload {
    id: ObjectId,
    version: String,
    pod_sets: Arc<[Arc<str>]>,
}

impl Versions {
    /// What a hook runs once is no version of the app.
    pub fn of(render: &Result<Arc<Rendered>, Vec<Diagnostic>>, app: &App) -> Self {
        let objects = render.iter().flat_map(|rendered| rendered.objects.iter());
        let workload = |object: &RenderedObject| {
            let version = version::of_workload(&object.body.fields())?;
            Some(Workload { id: object.id.clone(), version, pod_sets: Arc::clone(&object.pod_sets) })
        };
        let workloads: Vec<Workload> = objects
            .filter(|object| object.hook.is_none() && object.body.mentions("image"))
            .filter_map(workload)
            .collect();
        let rendered = version::merge(workloads.iter().map(|workload| workload.version.as_str()));
        let are_left = !app.ignore.is_empty();
        let are_kept = are_left || workloads.iter().any(|workload| !workload.pod_sets.is_empty());
        let workloads = if are_kept { workloads } else { Vec::new() };
        Self { rendered, workloads: workloads.into(), are_left }
    }

    /// `live`: of a workload whose image is left to others.
    pub fn running<'a>(&'a self, live: impl Fn(&ObjectId) -> Option<&'a str>) -> String {
        if !self.are_left {
            return self.rendered.clone();
        }
        version::merge(self.workloads.iter().map(|workload| workload.running(&live)))
    }

    /// The same of one podSet.
    pub fn of_pod_set<'a>(&'a self, name: &str, live: impl Fn(&ObjectId) -> Option<&'a str>) -> String {
        let of_it = |workload: &&Workload| workload.pod_sets.iter().any(|pod_set| **pod_set == *name);
        version::merge(self.workloads.iter().filter(of_it).map(|workload| workload.running(&live)))
    }
}

impl Workload {
    fn running<'a>(&'a self, live: &impl Fn(&ObjectId) -> Option<&'a str>) -> &'a str {
        live(&self.id).unwrap_or(&self.version)
    }
}
