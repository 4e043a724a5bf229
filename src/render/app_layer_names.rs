//! The names of the layers that an app names.

use crate::model::AppSpec;

/// The layers that an app names: all but cluster layers and its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AppLayerNames {
    pub workload: Option<&'static str>,
    pub language: Option<String>,
    pub run_type: Option<String>,
}

impl AppLayerNames {
    pub fn of(spec: &AppSpec) -> Self {
        match spec {
            AppSpec::AppSet(app_set) => Self {
                workload: app_set.deploy_type.layer(),
                language: app_set.language.clone(),
                run_type: app_set.run_type.clone(),
            },
            AppSpec::Component(component) => Self {
                workload: component.workload_type.layer(),
                language: Some(component.language.clone()),
                run_type: Some(component.run_type.clone()),
            },
            AppSpec::Objects(_) | AppSpec::Project(_) => {
                Self { workload: None, language: None, run_type: None }
            }
        }
    }
}
