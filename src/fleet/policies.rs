//! The policies of the repository, compiled.

use std::sync::Arc;

use super::codes;
use super::text_places::within;
use crate::model::{Diagnostic, Policy, Scope, Snapshot};
use crate::policy::{Policies, PolicyMistake};

const HELP: &str = "an expression in CEL with the variables of a ValidatingAdmissionPolicy: object, oldObject, request, params, \
                    namespaceObject and variables, and with app, cluster and ring";

pub fn of(policies: &[Arc<Policy>], snapshot: &Snapshot) -> (Policies, Vec<Diagnostic>) {
    let (compiled, mistakes) = Policies::of(policies);
    (compiled, mistakes.iter().map(|mistake| told(mistake, snapshot)).collect())
}

fn told(found: &PolicyMistake, snapshot: &Snapshot) -> Diagnostic {
    let PolicyMistake { policy, expression, mistake } = found;
    let message = format!("an expression of Policy {policy} cannot be used: {}", mistake.message);
    let place = within(&expression.location, mistake.line, mistake.column, snapshot);
    let scope = Scope::File(expression.location.file.clone());
    Diagnostic::error(codes::POLICY, message, scope).at(place).in_path(expression.path.clone()).help(HELP)
}
