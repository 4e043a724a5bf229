//! The VERSION of an app on a cluster: of its images as rendered, or as they run where the app leaves them to somebody else.

use std::sync::Arc;

use crate::model::{App, Diagnostic, ObjectId, Rendered};
use crate::report::version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    rendered: String,
    /// Of each workload, where the app leaves any field to others.
    workloads: Box<[(ObjectId, String)]>,
}

impl Versions {
    /// What a hook runs once is no version of the app.
    pub fn of(render: &Result<Arc<Rendered>, Vec<Diagnostic>>, app: &App) -> Self {
        let objects = render.iter().flat_map(|rendered| rendered.objects.iter());
        let workloads: Vec<(ObjectId, String)> = objects
            .filter(|object| object.hook.is_none() && object.body.mentions("image"))
            .flat_map(|object| Some((object.id.clone(), version::of_workload(&object.body.fields())?)))
            .collect();
        let rendered = version::merge(workloads.iter().map(|(_, version)| version.as_str()));
        let workloads = if app.ignore.is_empty() { Vec::new() } else { workloads };
        Self { rendered, workloads: workloads.into() }
    }

    /// `live`: of a workload whose image is left to others.
    pub fn running<'a>(&'a self, live: impl Fn(&ObjectId) -> Option<&'a str>) -> String {
        if self.workloads.is_empty() {
            return self.rendered.clone();
        }
        version::merge(self.workloads.iter().map(|(id, version)| live(id).unwrap_or(version)))
    }
}
