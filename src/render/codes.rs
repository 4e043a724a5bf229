//! Codes of mistakes in renders. They never change.

use crate::model::Diagnostic;

/// A template with a syntax error.
pub const SYNTAX: &str = "E3001";
pub const UNDEFINED: &str = "E3002";
/// Any other error of a template.
pub const TEMPLATE: &str = "E3003";
pub const FUEL: &str = "E3004";
/// `include`, `import` or `extends` of a file that no layer has.
pub const NO_TEMPLATE: &str = "E3005";
pub const SIZE: &str = "E3006";
pub const TIME: &str = "E3007";
pub const MEMORY: &str = "E3008";
/// A template that overflows the stack.
pub const STACK: &str = "E3009";
/// A template that crashes its worker, or no worker starts.
pub const WORKER: &str = "E3010";
/// Template output that is not YAML.
pub const OUTPUT: &str = "E3011";
/// A document that is no Kubernetes object.
pub const NOT_AN_OBJECT: &str = "E3012";
/// One object from two podSets, with different content.
pub const POD_SETS_DIFFER: &str = "E3013";
/// One object from two documents of one podSet or app.
pub const OBJECT_TWICE: &str = "E3014";
/// An app that renders to no object at all.
pub const NO_OBJECTS: &str = "E3015";
pub const NAMESPACE: &str = "E3016";
pub const LABEL: &str = "E3017";
/// A value of a Secret that is not a string.
pub const SECRET: &str = "E3018";
/// An annotation of ours that must be `true` or `false`.
pub const BOOLEAN_ANNOTATION: &str = "E3019";
/// A sync wave that is no number.
pub const SYNC_WAVE: &str = "E3020";
/// An invalid `values.yaml`.
pub const VALUES: &str = "E3021";
/// Two cluster layers of equal rank that set the same thing.
pub const TIE: &str = "E3022";
/// A missing or invalid `layer.yaml`.
pub const LAYER: &str = "E3023";
/// A file that has no meaning in a layer.
pub const LAYER_FILE: &str = "E3024";
/// A null that the server would store as an empty value.
pub const NULL: &str = "E3025";
/// A podSpec.template without a Deployment to merge it over.
pub const NO_WORKLOAD: &str = "E3031";
/// A podSpec.template that cannot be merged.
pub const POD_TEMPLATE: &str = "E3032";
/// A selector that its own pods do not fit.
pub const SELECTOR: &str = "E3033";
/// This process cannot render charts.
pub const NO_RENDERER: &str = "E3041";
/// A chart that is not there or cannot be fetched.
pub const NO_CHART: &str = "E3042";
/// An invalid chart or archive.
pub const MALFORMED_CHART: &str = "E3043";
/// Values that do not fit a chart.
pub const CHART_VALUES: &str = "E3044";
/// A template of a chart that fails.
pub const CHART_TEMPLATE: &str = "E3045";
/// Chart output that is not YAML.
pub const CHART_OUTPUT: &str = "E3046";
/// A chart over its limit of time, memory or output.
pub const CHART_LIMIT: &str = "E3047";
/// The chart renderer failed; the chart is not the cause.
pub const CHART_RENDERER: &str = "E3048";
/// An invalid annotation about chart hooks.
pub const CHART_HOOK: &str = "E3049";
/// A chart that calls `lookup` (a warning).
pub const CHART_LOOKUP: &str = "E3051";
/// A chart with another output in each render (a warning).
pub const CHART_CHANGES: &str = "E3052";
/// A podSet setting without a value in its chart.
pub const CHART_WITHOUT_VALUE: &str = "E3053";
/// `{{` in values of a chart.
pub const VALUES_NOT_TEMPLATED: &str = "E3054";
/// An invalid annotation about chart labels.
pub const CHART_LABELS: &str = "E3055";
/// An invalid patch, or one that does not fit its object.
pub const PATCH: &str = "E3061";
/// A patch that matches no object of any app.
pub const IDLE_PATCH: &str = "E3062";
/// An object of a kind that the project of the app does not allow.
pub const KIND_NOT_ALLOWED: &str = "E3071";
/// An image from a registry that the project of the app does not allow.
pub const IMAGE_NOT_ALLOWED: &str = "E3072";
/// A route to a Service or port that is not there.
pub const ROUTE: &str = "E3081";
/// An object that two apps of one cluster render.
pub const OBJECT_IN_TWO_APPS: &str = "E3091";
/// An annotation of another tool with an equivalent here (a warning).
pub const MARK_READ: &str = "E3095";
/// An annotation of another tool without one (a warning).
pub const MARK_NOT_KEPT: &str = "E3096";
/// A ConfigMap or Secret that podSets of several waves mount (a warning).
pub const SHARED_CONFIG: &str = "E3101";
/// A definition that podSets of several waves bring (a warning).
pub const SHARED_DEFINITION: &str = "E3102";
/// An object that a policy denies.
pub const DENIED: &str = "E3111";
/// An object that a policy warns of (a warning).
pub const WARNED: &str = "E3112";
/// A known feature that is not supported yet.
pub const NOT_SUPPORTED_YET: &str = "E3290";
/// No mistake: a chart is being fetched or templates take long. A later pass renders the target.
pub const AWAITED: &str = "E3998";
/// A fault of the renderer itself.
pub const CRASHED: &str = "E3999";

/// The render ended its worker; another attempt costs as much.
pub fn is_worker_end(mistake: &Diagnostic) -> bool {
    [TIME, MEMORY, STACK, WORKER].contains(&mistake.code)
}
