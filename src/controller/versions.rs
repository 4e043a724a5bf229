//! The VERSION of an app on a cluster: from its rendered images, or from the live ones if the app leaves them to other field
//! managers.

use std::sync::Arc;

use crate::model::{App, Diagnostic, ObjectId, Rendered, RenderedObject};
use crate::report::version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    rendered: String,
    /// Filled if the app ignores any field or has podSets.
    workloads: Box<[Workload]>,
    /// The app ignores fields.
    are_left: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Workload {
    id: ObjectId,
    version: String,
    pod_sets: Arc<[Arc<str>]>,
}

impl Versions {
    /// The image of a hook is not a version of the app.
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

    /// `live`: the image of a workload whose image is ignored.
    pub fn running<'a>(&'a self, live: impl Fn(&ObjectId) -> Option<&'a str>) -> String {
        if !self.are_left {
            return self.rendered.clone();
        }
        version::merge(self.workloads.iter().map(|workload| workload.running(&live)))
    }

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
