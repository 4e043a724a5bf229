//! The data types that all other modules share: names, revisions, digests, objects, diagnostics, parsed manifests, snapshots of the
//! config repository and observations of clusters. Nothing here does IO, reads a clock or takes a decision.

pub mod address;
mod analysis;
mod app;
pub mod approval;
mod approval_rule;
pub mod beside;
pub mod body;
pub mod capabilities;
pub mod chart;
pub mod cluster;
mod cron;
pub mod derived;
pub mod diagnostic;
pub mod digest;
pub mod glob;
pub mod health;
pub mod hook;
pub mod ignore;
pub mod image;
mod instance;
mod judged;
pub mod keys;
pub mod labels;
mod line;
pub mod mark;
pub mod name;
pub mod notification;
pub mod object;
pub mod observation;
mod panics;
pub mod patch;
pub mod policy;
mod project;
mod quiet_hours;
pub mod registry;
pub mod rendered;
pub mod rings;
pub mod rollout;
pub mod route;
pub mod scale;
pub mod sealed;
pub mod secret_text;
pub mod secret_values;
pub mod selector;
pub mod size;
mod snapshot;
pub mod sync_wave;
pub mod taint;
mod target_selector;
mod templates;
mod trigger;
pub mod unit_mark;
mod window;

pub use address::{Hosts, ip_of, is_loopback, shown_address, without_credentials};
pub use analysis::{Analysis, AnalysisSpec, Probe, ProbeCredential, ProbeMethod};
pub use app::{
    App, AppSet, AppSpec, Component, DeployType, Objects, Pin, Placement, PodSet, Replicas, TopologyCluster,
    WorkloadKind,
};
pub use approval::{
    Approval, ApprovedAction, ApprovedObject, FileVersion, RolloutAction, RolloutApproval,
    RolloutApprovalPlaces,
};
pub use approval_rule::{
    Answer, Answers, ApprovalRule, ApprovalRules, Approvers, Lack, Needed, People, Question, Roles, RuleAsks,
    RuledAction, RuledKind, Unread, agreed,
};
pub use body::Body;
pub use capabilities::{Capabilities, KindFacts, KindsByName, KubeVersion, Questions};
pub use chart::{
    Chart, ChartCapabilities, ChartFailure, ChartFault, ChartHook, ChartName, ChartObject, ChartOutput,
    ChartRef, ChartRequest, ChartSource, Charts, NoCharts, OnlyTemplates,
};
pub use cluster::{Cluster, ClusterState, Connection};
pub use cron::{Cron, CronError, MOST_DAYS};
pub use derived::{Derived, Fact};
pub use diagnostic::{Diagnostic, Location, MISTAKES_KEPT, Position, Scope, Severity, left_off};
pub use digest::Digest;
pub use health::{Health, Status};
pub use hook::{Hook, InstallMark, Occasion, Stage};
pub use ignore::{FieldPath, IgnoreRule, IgnoreTarget, Ignores, PathStep, ignored};
pub use image::{ImageReference, image_tag, retag, with_version};
pub use instance::{
    Caps, ChartRepository, DefaultRollout, Defaults, DriftMode, Forge, Instance, Mode, PruneMode, Receiver,
    ReceiverKind, SecretRef, Written,
};
pub use judged::{Denial, Judged};
pub use keys::Keys;
pub use line::{one_line, short_line, shortened, visible_line};
pub use mark::Mark;
pub use name::{AppId, ClusterName, Revision};
pub use notification::{Happened, Language, Notification, NotificationService, Server};
pub use object::{Kind, ObjectId, unusual_plural, usual_plural};
pub use observation::{
    Displacement, Effect, Evidence, ForeignChanges, ForeignField, Ignored, Immutable, Live, LiveReplicas,
    Marks, Observation, Ownership, PodCount, Scaler, Stranger, Takeover, Was,
};
pub use panics::{tell_of_panics, unless_it_panics};
pub use patch::{Change, JsonStep, Patch, PatchTarget};
pub use policy::{
    AdmissionBinding, AdmissionPolicy, Expression, MatchConstraints, NamedExpression, Operation, ParamObject,
    ParamRef, Policy, PolicyAction, PolicyExample, ResourceRule, Validation,
};
pub use project::{Allow, Member, Project, Role, Subject};
pub use quiet_hours::QuietHours;
pub use registry::{ConfigMapRegistry, Registered, RegisteredCluster, StoredKey};
pub use rendered::{Rendered, RenderedObject, UnitRender};
pub use rings::{PromotionMode, Ring, RingPromotion, Rings};
pub use rollout::{
    After, GroupOrder, OnFailure, Rollout, RolloutGroup, Share, WaveLimits, WaveOrder, WaveRule,
};
pub use route::{Entry, Route, RoutePath, RouteSettings, Tls};
pub use scale::Scale;
pub use sealed::{Sealed, hide_both, hide_changed, is_secret, masked};
pub use secret_values::SecretValues;
pub use selector::{ClusterFacts, LabelSelector, Operator, Requirement, Selector};
pub use size::size_in_memory;
pub use snapshot::{Changed, File, History, Snapshot, over_limit};
pub use sync_wave::{NotAWave, SyncWave};
pub use taint::{Effect as TaintEffect, Taint, Toleration};
pub use target_selector::{SelectorPlaces, TargetSelector};
pub use templates::{
    KeptText, NO_WORKER_HELP, RenderEnd, RenderEndCause, TemplateAnswer, TemplateRequest, TemplateWorkers,
    Wait, WorkerTask,
};
pub use trigger::{
    LONGEST_RESULT, MatchRule, PayloadPath, PayloadTemplate, TemplateMistake, Trigger, TriggerField,
    TriggerPlace, TriggerValue, TriggerWrite,
};
pub use unit_mark::{ObjectMark, Previous, Refused, UnitMark};
pub use window::{Window, WindowAction, WindowTimes};
