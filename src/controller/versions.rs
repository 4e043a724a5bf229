//! The VERSION of an app on a cluster: from its rendered images, or from the live ones if the app leaves them to other field
//! managers.

use std::sync::Arc;

use crate::model::{App, Diagnostic, ObjectId, RenderedObject, RenderedTarget};
use crate::report::version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppVersions {
    rendered: String,
    /// Filled if the app ignores any field or has podSets.
    workloads: Box<[WorkloadVersion]>,
    /// The app ignores fields.
    has_ignored_fields: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WorkloadVersion {
    id: ObjectId,
    version: String,
    pod_sets: Arc<[Arc<str>]>,
}

impl AppVersions {
    /// The image of a hook is not a version of the app.
    pub fn of(render: &Result<Arc<RenderedTarget>, Vec<Diagnostic>>, app: &App) -> Self {
        let objects = render.iter().flat_map(|rendered| rendered.objects.iter());
        let workload = |object: &RenderedObject| {
            let version = version::of_workload(&object.body.fields())?;
            Some(WorkloadVersion { id: object.id.clone(), version, pod_sets: Arc::clone(&object.pod_sets) })
        };
        let workloads: Vec<WorkloadVersion> = objects
            .filter(|object| object.hook.is_none() && object.body.contains_text("image"))
            .filter_map(workload)
            .collect();
        let rendered = version::merge_versions(workloads.iter().map(|workload| workload.version.as_str()));
        let are_left = !app.ignore.is_empty();
        let are_kept = are_left || workloads.iter().any(|workload| !workload.pod_sets.is_empty());
        let workloads = if are_kept { workloads } else { Vec::new() };
        Self { rendered, workloads: workloads.into(), has_ignored_fields: are_left }
    }

    /// `live`: the image of a workload whose image is ignored.
    pub fn running_version<'a>(&'a self, live: impl Fn(&ObjectId) -> Option<&'a str>) -> String {
        if !self.has_ignored_fields {
            return self.rendered.clone();
        }
        version::merge_versions(self.workloads.iter().map(|workload| workload.running_version(&live)))
    }

    pub fn pod_set_version<'a>(&'a self, name: &str, live: impl Fn(&ObjectId) -> Option<&'a str>) -> String {
        let of_it = |workload: &&WorkloadVersion| workload.pod_sets.iter().any(|pod_set| **pod_set == *name);
        version::merge_versions(
            self.workloads.iter().filter(of_it).map(|workload| workload.running_version(&live)),
        )
    }
}

impl WorkloadVersion {
    fn running_version<'a>(&'a self, live: &impl Fn(&ObjectId) -> Option<&'a str>) -> &'a str {
        live(&self.id).unwrap_or(&self.version)
    }
}
