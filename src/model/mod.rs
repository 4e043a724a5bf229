//! The data types that all other modules share: names, revisions, digests, objects, diagnostics, parsed manifests, snapshots of the
//! config repository and observations of clusters. Nothing here does IO, reads a clock or takes a decision.

pub mod address;
mod analysis;
mod app;
pub mod approval;
mod approval_rule;
pub mod capabilities;
pub mod chart;
pub mod cluster;
mod cron;
pub mod decryption_keys;
pub mod derived_labels;
pub mod diagnostic;
pub mod digest;
mod display_text;
mod encrypted_values;
pub mod foreign_annotation;
pub mod glob;
pub mod health;
pub mod hook;
pub mod ignore;
pub mod image;
mod instance;
mod kube_version;
pub mod labels;
mod live_object;
pub mod name;
pub mod notification;
mod notification_phase;
pub mod object;
pub mod object_body;
pub mod observation;
pub mod outside_path;
mod panics;
pub mod patch;
mod placement;
pub mod policy;
mod project;
mod quiet_hours;
pub mod registry;
pub mod rendered;
pub mod rings;
pub mod rollout_annotations;
pub mod route;
pub mod scale;
pub mod secret_masking;
pub mod secret_text;
pub mod secret_values;
pub mod selector;
pub mod size;
mod snapshot;
pub mod sync_wave;
pub mod taint;
mod target_selector;
mod template_workers;
mod trigger;
pub mod update_strategy;
mod window;
mod write_verdict;

pub use address::{Hosts, is_loopback, parse_ip, redacted_address, without_credentials};
pub use analysis::{Analysis, AnalysisSpec, Probe, ProbeCredential, ProbeMethod};
pub use app::{
    App, AppSet, AppSpec, Component, DeployType, ObjectsApp, Pin, PodSet, Replicas, TopologyCluster,
    WorkloadKind,
};
pub use approval::{
    Approval, ApprovedAction, ApprovedObject, FileVersion, RolloutAction, RolloutApproval,
    RolloutApprovalLocations,
};
pub use approval_rule::{
    ApprovalQuery, ApprovalQueryError, ApprovalQueryLookup, ApprovalQueryResult, ApprovalRule,
    ApprovalRuleAction, ApprovalRuleKind, ApprovalRules, ApprovalShortfall, ApproverRoles, Approvers,
    ForgePeople, RequiredApprovers, UnmetApprovalRule, check_approval,
};
pub use capabilities::{Capabilities, CapabilityQueries, KindInfo, KindsByName};
pub use chart::{
    Chart, ChartCapabilities, ChartFailure, ChartFailureKind, ChartHook, ChartName, ChartObject, ChartOutput,
    ChartProvider, ChartRef, ChartRequest, ChartSource, NoCharts, TemplatesOnly,
};
pub use cluster::{Cluster, ClusterState, Connection};
pub use cron::{CALENDAR_CYCLE_DAYS, CronError, CronSchedule};
pub use decryption_keys::DecryptionKeys;
pub use derived_labels::{DerivedFact, DerivedLabels};
pub use diagnostic::{
    Diagnostic, DiagnosticScope, DiagnosticSeverity, Location, MOST_MISTAKES, TextPosition, further_mistakes,
};
pub use digest::Digest;
pub use display_text::{one_line, short_line, shortened, visible_line};
pub use encrypted_values::EncryptedValues;
pub use foreign_annotation::ForeignAnnotation;
pub use health::{Health, HealthStatus};
pub use hook::{HookReleases, HookStage, InstallAnnotation, ObjectHook};
pub use ignore::{FieldPath, FieldPathStep, IgnoreRule, IgnoreRulesByApp, IgnoreTarget, ignored_paths};
pub use image::{ImageReference, image_tag, retag, with_version};
pub use instance::{
    ChartRepository, DefaultRollout, DeleteCaps, DriftMode, ForgeSettings, Instance, InstanceDefaults,
    InstanceMode, PruneMode, SecretRef, UncomparedLocation, WebhookReceiver, WebhookReceiverKind,
};
pub use kube_version::KubeVersion;
pub use live_object::{
    Displacement, FieldOwnership, ForeignChanges, ForeignField, IgnoredFields, LastApplied, LiveObject,
    LiveReplicas, OwnershipEvidence, PodCount, ReplicasOwner, TrackingAnnotations,
};
pub use name::{AppId, ClusterName, Revision};
pub use notification::{InventoryServer, MessageLanguage, Notification, NotificationService};
pub use notification_phase::NotificationPhase;
pub use object::{GroupVersionKind, ObjectId, unusual_plural, usual_plural};
pub use object_body::ObjectBody;
pub use observation::{AdoptionEffect, AdoptionPreview, ImmutableChange, Observation, UnmanagedObject};
pub use panics::{catch_panic, set_panic_hook};
pub use patch::{JsonPatchStep, Patch, PatchChange, PatchTarget};
pub use placement::Placement;
pub use policy::{
    AdmissionBinding, AdmissionPolicy, CelExpression, MatchConstraints, NamedExpression, Operation,
    ParamObject, ParamRef, Policy, PolicyAction, PolicyExample, ResourceRule, Validation,
};
pub use project::{MemberRole, MemberSubject, Project, ProjectMember, ProjectRestrictions};
pub use quiet_hours::QuietHours;
pub use registry::{ConfigMapRegistry, DataKeyRef, RegisteredCluster, RegistryContents};
pub use rendered::{RenderedObject, RenderedTarget, UnitRender, is_secret_kind};
pub use rings::{PromotionMode, Ring, RingPromotion, Rings};
pub use rollout_annotations::{
    ObjectRolloutAnnotations, PreviousContent, RefusedVersion, UnitRolloutAnnotations,
};
pub use route::{Route, RouteEntryPoint, RoutePath, RouteSettings, RouteTls};
pub use scale::ObjectScale;
pub use secret_masking::{mask_both, mask_changes, masked_body};
pub use secret_values::SecretValues;
pub use selector::{ClusterFacts, ClusterSelector, LabelOperator, LabelRequirement, LabelSelector};
pub use size::size_in_memory;
pub use snapshot::{PathHistory, Snapshot, SnapshotFile, SnapshotFileChange, UNREADABLE_HELP, size_problem};
pub use sync_wave::{InvalidSyncWave, SyncWave};
pub use taint::{Taint, TaintEffect, Toleration};
pub use target_selector::{SelectorLocations, TargetSelector};
pub use template_workers::{
    CachedText, NO_WORKER_HELP, RenderFailure, RenderFailureCause, RenderWait, TemplateRequest,
    TemplateResponse, TemplateWorkers, WorkerTask,
};
pub use trigger::{
    LONGEST_TEMPLATE_RESULT, PayloadPath, PayloadTemplate, PayloadTemplateError, Trigger, TriggerField,
    TriggerMatchRule, TriggerTarget, TriggerValue, TriggerWrite,
};
pub use update_strategy::{
    GroupOrder, OnFailure, RolloutDependency, RolloutGroup, UnitShare, UpdateStrategy, WaveLimits, WaveOrder,
    WaveRule,
};
pub use window::{Window, WindowAction, WindowTimes};
pub use write_verdict::{PolicyDenial, WriteVerdict};
