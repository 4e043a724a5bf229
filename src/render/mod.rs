//! Renders targets to Kubernetes objects.
//!
//! Input is a valid target of a [`Fleet`](crate::fleet::Fleet) and the snapshot that it was read from; output is the objects of the app
//! on that cluster. Layers, lowest first: base, workload, language, runType, cluster, app, podSet. Shipped files are below those of
//! the repository. Values merge. The highest template of a name is rendered once for each podSet. Equal objects of several
//! podSets are one object; different ones are a mistake that names both.
//!
//! - [`fleet_renderer`] makes a [`render_job`] for a target, and [`render_run`] runs it to a [`render_output`];
//! - [`layers`] reads the files of a target's [`template_layers`], [`cluster_layers`] selects and orders cluster layers, [`layer_stacks`]
//!   shares both between targets;
//! - [`layer_values`] merges values, [`template_context`] builds the template variables, [`engine`] runs templates within [`output_limits`],
//!   [`template_mistakes`] reports their errors;
//! - [`templates`] renders them here or in workers, where [`worker_templates`] runs;
//! - [`cluster_facts`] answers and records questions about the cluster, [`app_inputs`] holds all other inputs of an app, [`fleet_render`] skips
//!   renders of the [`render_cache`] whose inputs and answers are equal;
//! - [`app_set`] merges the pod template of an AppSet into the workload ([`strategic_merge`] merge);
//! - [`charts`] renders Helm charts into documents, [`hooks`] gives hooks their stage and names each run after its release;
//! - [`foreign_annotations`] reads annotations of other tools, [`annotation_warnings`] collects the warnings about them;
//! - [`unknown_charts`] checks chart names in layers;
//! - [`unit_contents`] splits a render into units, without replica counts;
//! - [`routes`] adds Ingresses and HTTPRoutes for the Services of the app;
//! - [`mod@project`] renders projects, [`project_allowlist`] checks apps against their project;
//! - [`patches`] changes objects, layer by layer;
//! - [`trace`] finds where each field comes from, by rendering again;
//! - [`documents`] reads texts to an [`object_document`] each and builds objects from these, [`canonical`] gives them the form that is hashed.
//!
//! Templates see no clock, network, environment or files but those of the layers, and their steps are counted. Equal inputs
//! give equal bytes. This module never reads a live object.

mod admission;
mod annotation_warnings;
mod app_inputs;
mod app_layer_names;
mod app_set;
mod canonical;
mod changed_apps;
mod chart_images;
mod chart_values;
mod charts;
mod claims;
mod cluster_facts;
mod cluster_layers;
pub mod codes;
mod definitions;
mod documents;
mod engine;
mod field_locator;
mod field_types;
mod fleet_render;
mod fleet_renderer;
mod foreign_annotations;
mod hooks;
mod layer_chart_scope;
mod layer_file;
mod layer_source;
mod layer_stacks;
mod layer_text;
mod layer_values;
mod layers;
mod node_affinity;
mod nulls;
mod object_document;
mod object_files;
mod object_lists;
mod objects_app;
mod output_limits;
mod patches;
mod pod_sets;
mod policy_facts;
mod policy_verdicts;
mod project;
mod project_allowlist;
mod render_cache;
mod render_job;
mod render_output;
mod render_run;
mod renders;
mod routes;
mod shared_by_waves;
mod strategic_merge;
mod template_context;
mod template_depth;
mod template_error;
mod template_layers;
mod template_mistakes;
mod templates;
#[cfg(test)]
mod tests;
mod time_slice;
pub mod trace;
mod unit_contents;
mod unknown_charts;
mod worker_templates;

pub use admission::{Admission, AdmissionContext, TargetAdmission};
pub use changed_apps::{ChangedApps, changed_apps};
pub use claims::{ObjectClaims, objects_in_two_apps};
pub use fleet_renderer::{DefinedKindsByCluster, DiscoveredCapabilities, FleetRenderer, render};
pub use policy_verdicts::{
    EarlierRevision, PolicyVerdicts, TargetPolicyVerdict, policy_verdicts, policy_verdicts_of_app,
};
pub use render_cache::RenderCache;
pub use renders::{Renders, TargetRender, is_awaited};
pub use shared_by_waves::shared_by_waves;
pub use time_slice::Pacing;
pub use unit_contents::{UnitContent, UnitContents, is_hook_run, is_unit_content, unit_contents};
pub use unknown_charts::unknown_charts;
pub use worker_templates::{DigestedText, ReportLine, WorkerTemplates};
