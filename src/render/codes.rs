//! The codes of mistakes that rendering finds; stable for ever.

use crate::model::Diagnostic;

/// A template that is not one.
pub const SYNTAX: &str = "E3001";
pub const UNDEFINED: &str = "E3002";
/// Anything else that a template does wrong.
pub const TEMPLATE: &str = "E3003";
pub const FUEL: &str = "E3004";
/// `include`, `import` or `extends` of a file that no layer has.
pub const NO_TEMPLATE: &str = "E3005";
/// A template that makes too much text.
pub const SIZE: &str = "E3006";
/// A template that takes too long.
pub const TIME: &str = "E3007";
/// A template that takes too much memory.
pub const MEMORY: &str = "E3008";
/// A template that goes deeper than the stack is.
pub const STACK: &str = "E3009";
/// A template that ends the process that renders it otherwise, or nothing renders it.
pub const WORKER: &str = "E3010";
/// Not YAML, after templates are filled in.
pub const OUTPUT: &str = "E3011";
/// A document that is no Kubernetes object.
pub const NOT_AN_OBJECT: &str = "E3012";
/// One object from two podSets, with different content.
pub const POD_SETS_DIFFER: &str = "E3013";
/// One object from two documents of one podSet or app.
pub const OBJECT_TWICE: &str = "E3014";
/// An app that renders to no object at all.
pub const NOTHING: &str = "E3015";
pub const NAMESPACE: &str = "E3016";
pub const LABEL: &str = "E3017";
/// A value of a Secret that is not a text.
pub const SECRET: &str = "E3018";
/// An annotation of ours that is neither yes nor no.
pub const SWITCH: &str = "E3019";
/// An annotation for the place of an object in its app that is no number.
pub const SYNC_WAVE: &str = "E3020";
/// A `values.yaml` that is not one.
pub const VALUES: &str = "E3021";
/// Two cluster layers of equal rank that set the same thing.
pub const TIE: &str = "E3022";
/// A `layer.yaml` that is missing or not one.
pub const LAYER: &str = "E3023";
/// A file that has no meaning in a layer.
pub const LAYER_FILE: &str = "E3024";
/// A null where the cluster would take an empty value.
pub const NULL: &str = "E3025";
/// A podSpec.template without a Deployment to merge it over.
pub const NO_WORKLOAD: &str = "E3031";
/// A podSpec.template that cannot be merged.
pub const POD_TEMPLATE: &str = "E3032";
/// A selector that its own pods do not fit.
pub const SELECTOR: &str = "E3033";
/// Nothing here renders charts.
pub const NO_RENDERER: &str = "E3041";
/// A chart that is not there or cannot be fetched.
pub const NO_CHART: &str = "E3042";
/// Files that are no chart, or an archive that is not taken.
pub const MALFORMED_CHART: &str = "E3043";
/// Values that do not fit a chart.
pub const CHART_VALUES: &str = "E3044";
/// A template of a chart that fails.
pub const CHART_TEMPLATE: &str = "E3045";
/// A template of a chart that makes no YAML.
pub const CHART_OUTPUT: &str = "E3046";
/// A chart that takes too long, too much memory, or makes too much.
pub const CHART_LIMIT: &str = "E3047";
/// The renderer of charts failed, through no fault of the chart.
pub const CHART_RENDERER: &str = "E3048";
/// What an app says of the hooks of its charts is nothing that can be done.
pub const CHART_HOOK: &str = "E3049";
/// A chart that asks the cluster (a warning).
pub const CHART_LOOKUP: &str = "E3051";
/// A chart that makes something else each time (a warning).
pub const CHART_CHANGES: &str = "E3052";
/// A podSet sets what its chart has no value for.
pub const CHART_WITHOUT_VALUE: &str = "E3053";
/// `{{` in values of a chart.
pub const VALUES_NOT_TEMPLATED: &str = "E3054";
/// An annotation on the labels of charts that cannot be understood.
pub const CHART_LABELS: &str = "E3055";
/// A patch that is none, or that its object cannot take.
pub const PATCH: &str = "E3061";
/// A patch that fits no object of any app.
pub const IDLE_PATCH: &str = "E3062";
/// An object of a kind that the project of the app does not allow.
pub const KIND_NOT_ALLOWED: &str = "E3071";
/// An image from a registry that the project of the app does not allow.
pub const IMAGE_NOT_ALLOWED: &str = "E3072";
/// A route to a Service or port that is not there.
pub const ROUTE: &str = "E3081";
/// An object that two apps of one cluster render.
pub const OBJECT_IN_TWO_APPS: &str = "E3091";
/// A mark of another tool that has an equal here (a warning).
pub const MARK_READ: &str = "E3095";
/// A mark of another tool that has none (a warning).
pub const MARK_NOT_KEPT: &str = "E3096";
/// A ConfigMap or Secret that podSets of several waves mount (a warning).
pub const SHARED_CONFIG: &str = "E3101";
/// A definition that podSets of several waves bring (a warning).
pub const SHARED_DEFINITION: &str = "E3102";
/// An object that a policy denies.
pub const DENIED: &str = "E3111";
/// An object that a policy warns of (a warning).
pub const WARNED: &str = "E3112";
/// Known, and comes later.
pub const NOT_YET: &str = "E3290";
/// No mistake: a chart is being fetched, or its templates take long. It is rendered by itself.
pub const AWAITED: &str = "E3998";
/// A fault of the renderer itself.
pub const CRASHED: &str = "E3999";

/// A render ended so, and took its worker with it: another try costs as much.
pub fn is_end(mistake: &Diagnostic) -> bool {
    [TIME, MEMORY, STACK, WORKER].contains(&mistake.code)
}
