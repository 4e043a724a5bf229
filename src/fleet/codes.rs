//! Codes of mistakes found across manifests. A code never changes its meaning.

/// Two manifests with one identity.
pub const DUPLICATE: &str = "E2001";
pub const UNKNOWN_CLUSTER: &str = "E2002";
pub const UNKNOWN_RING: &str = "E2003";
pub const TWO_RINGS: &str = "E2004";
pub const EMPTY_RING: &str = "E2005";
pub const NO_RING: &str = "E2006";
/// A placement that matches no cluster.
pub const PLACED_NOWHERE: &str = "E2007";
/// An app names a cluster in state Removed.
pub const CLUSTER_REMOVED: &str = "E2008";
/// An app names a cluster whose taint it does not tolerate.
pub const CLUSTER_TAINTED: &str = "E2009";
pub const REPLICAS_MISMATCH: &str = "E2011";
pub const PERCENT_WITHOUT_TOTAL: &str = "E2012";
/// Two podSets with one name in one namespace of one cluster.
pub const POD_SET_TWICE: &str = "E2013";
/// The image of a podSet has another tag than its version.
pub const TWO_TAGS: &str = "E2014";
/// A pattern of an Objects app that matches no file.
pub const NO_SUCH_FILE: &str = "E2021";
/// A Kubernetes document that belongs to no app.
pub const STRAY_DOCUMENT: &str = "E2022";
/// A kustomization file. tutti does not run kustomize.
pub const KUSTOMIZATION: &str = "E2023";
/// A manifest outside of its folder (a warning).
pub const MISPLACED: &str = "E2024";
pub const UNKNOWN_LAYER: &str = "E2031";
/// A chart repository that tutti.yaml does not name.
pub const UNKNOWN_REPOSITORY: &str = "E2041";
/// A chart that is not in the folder `charts/`, or not in that version.
pub const NO_SUCH_CHART: &str = "E2042";
/// A chart without `deployType: helm`, or that type without a chart.
pub const CHART_DEPLOY_TYPE: &str = "E2043";
/// Two projects with one namespace.
pub const NAMESPACE_TWICE: &str = "E2051";
/// A kind of app, or a cluster, that the project of the app does not allow.
pub const NOT_ALLOWED: &str = "E2052";
/// An app whose project has mistakes.
pub const PROJECT_BROKEN: &str = "E2053";
/// Two routes with one host and path on one cluster.
pub const ROUTE_TWICE: &str = "E2061";
/// A Route manifest without an app.
pub const ROUTE_WITHOUT_APP: &str = "E2062";
/// A health rule that cannot be compiled.
pub const HEALTH_RULE_EXPRESSION: &str = "E2081";
/// A file among the health rules that is no rule, is for an unsupported kind, or is a second rule.
pub const NOT_A_HEALTH_RULE: &str = "E2082";
/// A pin without its app, for an app without a version, or beside another version.
pub const INVALID_PIN: &str = "E2071";
pub const NO_CANARY: &str = "E2101";
/// Canary clusters of which the app uses none.
pub const CANARY_UNUSED: &str = "E2102";
/// A wave that selects nothing of its app.
pub const EMPTY_WAVE: &str = "E2103";
/// Two waves that select one podSet, or one cluster.
pub const TWO_WAVES: &str = "E2104";
/// A wave names a group that no podSet of the app is in.
pub const UNKNOWN_GROUP: &str = "E2105";
/// Apps that wait for each other.
pub const AFTER_CYCLE: &str = "E2106";
/// `after` names an app that does not exist.
pub const AFTER_UNKNOWN_APP: &str = "E2107";
/// An approval of an unknown rollout, wave or window.
pub const APPROVAL_UNKNOWN_ROLLOUT: &str = "E2108";
/// An approval of another version than the one in Git.
pub const APPROVAL_OTHER_VERSION: &str = "E2109";
/// A trigger names a receiver, an app, a ring or a file that does not exist.
pub const TRIGGER_UNKNOWN_NAME: &str = "E2121";
/// A route of notifications selects an app, a ring or a cluster that does not exist.
pub const NOTIFICATION_SELECTS: &str = "E2131";
/// A server is of a cluster that is not registered.
pub const SERVER_UNKNOWN_CLUSTER: &str = "E2132";
/// A route of notifications by mail, in a build without mail.
pub const NO_MAIL: &str = "E2133";
/// An expression of a policy that cannot be used.
pub const POLICY_EXPRESSION: &str = "E2141";
/// A policy selects an app, a ring or a cluster that does not exist.
pub const POLICY_SELECTS: &str = "E2142";
/// A binding of a policy, or its params, that does not fit.
pub const POLICY_BINDING: &str = "E2143";
/// A window selects an app, a ring or a cluster that does not exist.
pub const WINDOW_SELECTS: &str = "E2151";
/// A wave or ring names an analysis that does not exist.
pub const UNKNOWN_ANALYSIS: &str = "E2161";
/// An expression of an analysis that cannot be used.
pub const ANALYSIS_EXPRESSION: &str = "E2162";
/// A wave or ring waits for a commit status that cannot come.
pub const IMPOSSIBLE_STATUS: &str = "E2163";
/// An approval rule selects an app, a ring or a cluster that does not exist.
pub const APPROVAL_RULE_SELECTS: &str = "E2171";
/// An approval rule that nobody can satisfy.
pub const UNSATISFIABLE_APPROVAL_RULE: &str = "E2172";
/// The registry of clusters in the home cluster could not be read.
pub const REGISTRY_UNREAD: &str = "E2091";
/// A ConfigMap of that registry without a kubeconfig.
pub const REGISTERED_WITHOUT_KUBECONFIG: &str = "E2092";
