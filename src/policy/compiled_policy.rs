//! Compiles one policy and evaluates it.

use std::sync::Arc;

use super::{PolicyVerdict, VerdictCause};
use crate::cel::{
    CelMeter, CelProgram, CelValue, EvaluationFailure, EvaluationScope, ExpressionMistake, ExpressionNames,
};
use crate::model::{CelExpression, Policy, Validation, short_line};

/// The variables of expressions: those of Kubernetes, and four of tutti.
const ROOTS: [&str; 9] =
    ["object", "oldObject", "request", "params", "namespaceObject", "app", "cluster", "ring", "objects"];
const OLD_OBJECT: usize = 1;
pub const REQUEST: usize = 2;
pub const NAMESPACE: usize = 4;
pub const CLUSTER: usize = 6;
const OBJECTS: usize = 8;

const REFUSED: [(&str, &str); 4] = [
    ("authorizer", "`authorizer` asks a cluster, and policies are evaluated without one"),
    ("request.userInfo", "`request.userInfo` is not known: no request is made yet"),
    ("request.uid", "`request.uid` is not known: no request is made yet"),
    ("request.options", "`request.options` is not known: no request is made yet"),
];
const NO_PARAMS: (&str, &str) = ("params", "`params` is not known: the policy has no params");

/// The API server hides longer messages too.
const LONGEST_MESSAGE: usize = 5 * 1024;
/// Characters of an expression that replaces a missing message.
const LONGEST_EXPRESSION: usize = 300;

/// An invalid expression of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyMistake {
    pub policy: String,
    pub expression: CelExpression,
    pub mistake: ExpressionMistake,
}

#[derive(Debug)]
pub struct CompiledPolicy {
    pub policy: Arc<Policy>,
    /// `None`: the policy has a mistake.
    rules: Option<PolicyPrograms>,
}

#[derive(Debug)]
struct PolicyPrograms {
    conditions: Vec<CelProgram>,
    /// Each with the indices of the variables that it needs.
    variables: Vec<(CelProgram, Vec<usize>)>,
    /// Each with its message expression.
    validations: Vec<(CelProgram, Option<CelProgram>)>,
}

/// Steps to compile all policies of a repository. Policies after the limit have a mistake.
#[derive(Clone, Copy, Debug)]
pub struct CompileBudget(pub u64);

impl Default for CompileBudget {
    /// About a second, a hundred times what shipped policies need.
    fn default() -> Self {
        Self(50_000_000)
    }
}

impl CompileBudget {
    fn take(&mut self, steps: u64) -> bool {
        let rest = self.0.checked_sub(steps);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }
}

impl CompiledPolicy {
    pub fn of(policy: &Arc<Policy>, budget: &mut CompileBudget) -> (Self, Vec<PolicyMistake>) {
        let mut compiler = PolicyCompiler { policy, budget, is_budget_spent: false, mistakes: Vec::new() };
        let rules = if policy.has_mistake { None } else { compiler.rules() };
        (Self { policy: Arc::clone(policy), rules }, compiler.mistakes)
    }

    pub fn uses_root(&self, root: usize) -> bool {
        self.rules
            .iter()
            .flat_map(PolicyPrograms::programs)
            .any(|program| program.roots.get(root) == Some(&true))
    }

    pub fn needs_old_object(&self) -> bool {
        self.uses_root(OLD_OBJECT) || self.policy.constraints.iter().any(|it| it.objects.is_some())
    }

    pub fn uses_app_objects(&self) -> bool {
        self.uses_root(OBJECTS)
    }

    pub fn uses_namespace(&self) -> bool {
        self.uses_root(NAMESPACE) || self.policy.constraints.iter().any(|it| it.namespaces.is_some())
    }

    /// Adds the verdicts on one object.
    pub fn evaluate<'a>(
        &'a self,
        roots: [CelValue<'a>; ROOTS.len()],
        hides_values: bool,
        meter: &mut CelMeter,
        verdicts: &mut Vec<PolicyVerdict>,
    ) {
        let Some(rules) = &self.rules else {
            let message = format!("the policy has an error: {}", self.policy.location);
            verdicts.push(self.verdict(VerdictCause::Broken, &message, None));
            return;
        };
        let mut scope = EvaluationScope { roots: roots.into(), variables: vec![None; rules.variables.len()] };
        match rules.conditions_hold(&scope, meter) {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) if self.policy.ignores_failures => return,
            Err((index, failure)) => {
                let name = self.policy.conditions.get(index).map_or("", |it| &it.name);
                let message = format!(
                    "the condition {name} cannot be evaluated: {}",
                    failure_message(&failure, hides_values)
                );
                verdicts.push(self.verdict(VerdictCause::NotEvaluated, &message, None));
                return;
            }
        }
        for (written, (program, message)) in self.policy.validations.iter().zip(&rules.validations) {
            rules.evaluate_variables(program, &mut scope, meter);
            let mut cause = VerdictCause::Untrue;
            let message = match program.evaluate_bool(&scope, meter) {
                Ok(true) => continue,
                Err(_) if self.policy.ignores_failures => continue,
                Err(failure) => {
                    cause = VerdictCause::NotEvaluated;
                    format!(
                        "{} cannot be evaluated: {}",
                        shown_expression(written),
                        failure_message(&failure, hides_values)
                    )
                }
                Ok(false) => {
                    let message = message.as_ref().filter(|_| !hides_values);
                    let computed = message.and_then(|message| {
                        rules.evaluate_variables(message, &mut scope, meter);
                        usable_message(&message.evaluate(&scope, meter).ok()?)
                    });
                    let given = || written.message.as_deref().map(str::trim).map(str::to_owned);
                    computed
                        .or_else(given)
                        .unwrap_or_else(|| format!("failed expression: {}", shown_expression(written)))
                }
            };
            verdicts.push(PolicyVerdict {
                field: program.field.clone(),
                ..self.verdict(cause, &message, Some(&written.expression))
            });
        }
    }

    fn verdict(
        &self,
        cause: VerdictCause,
        message: &str,
        expression: Option<&CelExpression>,
    ) -> PolicyVerdict {
        let place = expression.map_or(&self.policy.location, |it| &it.location);
        PolicyVerdict {
            policy: Arc::clone(&self.policy),
            action: self.policy.action,
            cause,
            message: short_line(message, LONGEST_MESSAGE),
            place: place.clone(),
            field: None,
        }
    }
}

impl PolicyPrograms {
    fn programs(&self) -> impl Iterator<Item = &CelProgram> {
        let validations = self.validations.iter().flat_map(|(one, message)| [Some(one), message.as_ref()]);
        let variables = self.variables.iter().map(|(program, _)| program);
        self.conditions.iter().chain(variables).chain(validations.flatten())
    }

    /// A false condition decides, even if others fail.
    fn conditions_hold<'a>(
        &'a self,
        scope: &EvaluationScope<'a>,
        meter: &mut CelMeter,
    ) -> Result<bool, (usize, EvaluationFailure)> {
        let mut failed = None;
        for (index, condition) in self.conditions.iter().enumerate() {
            match condition.evaluate_bool(scope, meter) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(failure) => failed = failed.or(Some((index, failure))),
            }
        }
        failed.map_or(Ok(true), Err)
    }

    /// Evaluates the variables of an expression, once for each object. A failed variable fails only where it is used.
    fn evaluate_variables<'a>(
        &'a self,
        program: &CelProgram,
        scope: &mut EvaluationScope<'a>,
        meter: &mut CelMeter,
    ) {
        for index in &program.variables {
            let Some((_, needs)) = self.variables.get(*index) else { continue };
            for needed in needs.iter().chain([index]) {
                let is_known = scope.variables.get(*needed).is_some_and(Option::is_some);
                if let (false, Some((variable, _))) = (is_known, self.variables.get(*needed)) {
                    let value = variable.evaluate(scope, meter);
                    if let Some(known) = scope.variables.get_mut(*needed) {
                        *known = Some(value);
                    }
                }
            }
        }
    }
}

/// Field names may be values of the object.
fn failure_message(failure: &EvaluationFailure, hides_values: bool) -> String {
    match failure {
        EvaluationFailure::NoField(_) | EvaluationFailure::Message(_) if hides_values => {
            "a field is missing, or a value does not fit".to_owned()
        }
        _ => failure.to_string(),
    }
}

fn shown_expression(validation: &Validation) -> String {
    short_line(validation.expression.text.trim(), LONGEST_EXPRESSION)
}

/// `None`: not one line of text; then the written message is shown.
fn usable_message(value: &CelValue<'_>) -> Option<String> {
    let text = value.as_str()?.trim();
    let is_usable = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
    is_usable.then(|| text.to_owned())
}

struct PolicyCompiler<'p> {
    policy: &'p Policy,
    budget: &'p mut CompileBudget,
    /// The budget ended at this policy, which was reported.
    is_budget_spent: bool,
    mistakes: Vec<PolicyMistake>,
}

impl PolicyCompiler<'_> {
    fn rules(&mut self) -> Option<PolicyPrograms> {
        let policy = self.policy;
        let names: Vec<&str> = policy.variables.iter().map(|it| it.name.as_str()).collect();
        let conditions = policy.conditions.iter().map(|it| self.program(&it.expression, &[]));
        let conditions: Vec<_> = conditions.collect();
        let variables = policy.variables.iter().enumerate();
        let variables = variables.map(|(index, it)| self.program(&it.expression, names.get(..index)?));
        let variables: Vec<_> = variables.collect();
        let validations = policy.validations.iter().map(|it| {
            let holds = self.program(&it.expression, &names);
            let message = it.message_expression.as_ref().map(|message| self.program(message, &names));
            Some((holds?, message.map_or(Some(None), |read| read.map(Some))?))
        });
        let validations: Vec<_> = validations.collect();
        let mut known: Vec<(CelProgram, Vec<usize>)> = Vec::new();
        for program in variables.into_iter().collect::<Option<Vec<_>>>()? {
            let mut needs = program.variables.clone();
            needs.extend(
                program.variables.iter().filter_map(|it| known.get(*it)).flat_map(|(_, needs)| needs),
            );
            needs.sort_unstable();
            needs.dedup();
            known.push((program, needs));
        }
        Some(PolicyPrograms {
            conditions: conditions.into_iter().collect::<Option<_>>()?,
            variables: known,
            validations: validations.into_iter().collect::<Option<_>>()?,
        })
    }

    fn program(&mut self, expression: &CelExpression, variables: &[&str]) -> Option<CelProgram> {
        let no_params = self.policy.params.is_none().then_some(NO_PARAMS);
        let refused: Vec<_> = REFUSED.into_iter().chain(no_params).collect();
        let names = ExpressionNames { roots: &ROOTS, refused: &refused, variables };
        const OF_A_BYTE: u64 = 50;
        if self.is_budget_spent {
            return None;
        }
        let bytes = u64::try_from(expression.text.len()).unwrap_or(u64::MAX);
        let mistakes = match self.budget.take(bytes.saturating_mul(OF_A_BYTE)) {
            true => match CelProgram::of(&expression.text, names) {
                Ok(program) if self.budget.take(program.regex_steps) => return Some(program),
                Ok(_) => self.spend_budget(),
                Err(mistakes) => mistakes,
            },
            false => self.spend_budget(),
        };
        self.mistakes.extend(mistakes.into_iter().map(|mistake| PolicyMistake {
            policy: self.policy.name.clone(),
            expression: expression.clone(),
            mistake,
        }));
        None
    }

    fn spend_budget(&mut self) -> Vec<ExpressionMistake> {
        self.is_budget_spent = true;
        let message = "the expressions and regular expressions of all policies are too large together";
        vec![ExpressionMistake::of_whole_text(message)]
    }
}
