//! The codes of mistakes that rendering finds; stable for ever.

/// A template that is not one.
pub const SYNTAX: &str = "E3001";
pub const UNDEFINED: &str = "E3002";
/// Anything else that a template does wrong.
pub const TEMPLATE: &str = "E3003";
pub const FUEL: &str = "E3004";
/// `include`, `import` or `extends` of a file that no layer has.
pub const NO_TEMPLATE: &str = "E3005";
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
/// A `values.yaml` that is not one.
pub const VALUES: &str = "E3021";
/// Two cluster layers of equal rank that set the same thing.
pub const TIE: &str = "E3022";
/// A `layer.yaml` that is missing or not one.
pub const LAYER: &str = "E3023";
/// A file that has no meaning in a layer.
pub const LAYER_FILE: &str = "E3024";
/// A podSpec.template without a Deployment to merge it over.
pub const NO_WORKLOAD: &str = "E3031";
/// A podSpec.template that cannot be merged.
pub const POD_TEMPLATE: &str = "E3032";
/// A selector that its own pods do not fit.
pub const SELECTOR: &str = "E3033";
/// A patch that is none, or that its object cannot take.
pub const PATCH: &str = "E3061";
/// A patch that fits no object of any app.
pub const IDLE_PATCH: &str = "E3062";
/// Known, and comes later.
pub const NOT_YET: &str = "E3290";
