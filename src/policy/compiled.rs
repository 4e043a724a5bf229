//! Compiles one policy and evaluates it.

use std::sync::Arc;

use super::{Cause, Verdict};
use crate::cel::{Failure, Meter, Mistake, Names, Program, Scope, Value};
use crate::model::{Expression, Policy, Validation, short_line};

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
const LONGEST_SHOWN: usize = 300;

/// An invalid expression of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyMistake {
    pub policy: String,
    pub expression: Expression,
    pub mistake: Mistake,
}

#[derive(Debug)]
pub struct Compiled {
    pub policy: Arc<Policy>,
    /// `None`: the policy has a mistake.
    rules: Option<Rules>,
}

#[derive(Debug)]
struct Rules {
    conditions: Vec<Program>,
    /// Each with the indices of the variables that it needs.
    variables: Vec<(Program, Vec<usize>)>,
    /// Each with its message expression.
    validations: Vec<(Program, Option<Program>)>,
}

/// Steps to compile all policies of a repository. Policies after the limit have a mistake.
#[derive(Clone, Copy, Debug)]
pub struct Budget(pub u64);

impl Default for Budget {
    /// About a second, a hundred times what shipped policies need.
    fn default() -> Self {
        Self(50_000_000)
    }
}

impl Budget {
    fn take(&mut self, steps: u64) -> bool {
        let rest = self.0.checked_sub(steps);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }
}

impl Compiled {
    pub fn of(policy: &Arc<Policy>, budget: &mut Budget) -> (Self, Vec<PolicyMistake>) {
        let mut compiler = Compiler { policy, budget, is_over: false, mistakes: Vec::new() };
        let rules = if policy.has_mistake { None } else { compiler.rules() };
        (Self { policy: Arc::clone(policy), rules }, compiler.mistakes)
    }

    pub fn names_root(&self, root: usize) -> bool {
        self.rules.iter().flat_map(Rules::programs).any(|program| program.roots.get(root) == Some(&true))
    }

    pub fn looks_at_old(&self) -> bool {
        self.names_root(OLD_OBJECT) || self.policy.constraints.iter().any(|it| it.objects.is_some())
    }

    pub fn looks_at_objects(&self) -> bool {
        self.names_root(OBJECTS)
    }

    pub fn looks_at_namespaces(&self) -> bool {
        self.names_root(NAMESPACE) || self.policy.constraints.iter().any(|it| it.namespaces.is_some())
    }

    /// Adds the verdicts on one object.
    pub fn judge<'a>(
        &'a self,
        roots: [Value<'a>; ROOTS.len()],
        hides_values: bool,
        meter: &mut Meter,
        verdicts: &mut Vec<Verdict>,
    ) {
        let Some(rules) = &self.rules else {
            let message = format!("the policy has a mistake: {}", self.policy.location);
            verdicts.push(self.verdict(Cause::Broken, &message, None));
            return;
        };
        let mut scope = Scope { roots: roots.into(), variables: vec![None; rules.variables.len()] };
        match rules.select(&scope, meter) {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) if self.policy.ignores_failures => return,
            Err((index, failure)) => {
                let name = self.policy.conditions.get(index).map_or("", |it| &it.name);
                let message =
                    format!("the condition {name} cannot be evaluated: {}", why(&failure, hides_values));
                verdicts.push(self.verdict(Cause::NotEvaluated, &message, None));
                return;
            }
        }
        for (written, (program, message)) in self.policy.validations.iter().zip(&rules.validations) {
            rules.prepare(program, &mut scope, meter);
            let mut cause = Cause::Untrue;
            let message = match program.holds(&scope, meter) {
                Ok(true) => continue,
                Err(_) if self.policy.ignores_failures => continue,
                Err(failure) => {
                    cause = Cause::NotEvaluated;
                    format!("{} cannot be evaluated: {}", shown(written), why(&failure, hides_values))
                }
                Ok(false) => {
                    let message = message.as_ref().filter(|_| !hides_values);
                    let computed = message.and_then(|message| {
                        rules.prepare(message, &mut scope, meter);
                        as_message(&message.value(&scope, meter).ok()?)
                    });
                    let given = || written.message.as_deref().map(str::trim).map(str::to_owned);
                    computed
                        .or_else(given)
                        .unwrap_or_else(|| format!("failed expression: {}", shown(written)))
                }
            };
            verdicts.push(Verdict {
                field: program.field.clone(),
                ..self.verdict(cause, &message, Some(&written.expression))
            });
        }
    }

    fn verdict(&self, cause: Cause, message: &str, expression: Option<&Expression>) -> Verdict {
        let place = expression.map_or(&self.policy.location, |it| &it.location);
        Verdict {
            policy: Arc::clone(&self.policy),
            action: self.policy.action,
            cause,
            message: short_line(message, LONGEST_MESSAGE),
            place: place.clone(),
            field: None,
        }
    }
}

impl Rules {
    fn programs(&self) -> impl Iterator<Item = &Program> {
        let validations = self.validations.iter().flat_map(|(one, message)| [Some(one), message.as_ref()]);
        let variables = self.variables.iter().map(|(program, _)| program);
        self.conditions.iter().chain(variables).chain(validations.flatten())
    }

    /// A false condition decides, even if others fail.
    fn select<'a>(&'a self, scope: &Scope<'a>, meter: &mut Meter) -> Result<bool, (usize, Failure)> {
        let mut failed = None;
        for (index, condition) in self.conditions.iter().enumerate() {
            match condition.holds(scope, meter) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(failure) => failed = failed.or(Some((index, failure))),
            }
        }
        failed.map_or(Ok(true), Err)
    }

    /// Evaluates the variables of an expression, once for each object. A failed variable fails only where it is used.
    fn prepare<'a>(&'a self, program: &Program, scope: &mut Scope<'a>, meter: &mut Meter) {
        for index in &program.variables {
            let Some((_, needs)) = self.variables.get(*index) else { continue };
            for needed in needs.iter().chain([index]) {
                let is_known = scope.variables.get(*needed).is_some_and(Option::is_some);
                if let (false, Some((variable, _))) = (is_known, self.variables.get(*needed)) {
                    let value = variable.value(scope, meter);
                    if let Some(known) = scope.variables.get_mut(*needed) {
                        *known = Some(value);
                    }
                }
            }
        }
    }
}

/// Field names may be values of the object.
fn why(failure: &Failure, hides_values: bool) -> String {
    match failure {
        Failure::NoField(_) | Failure::Said(_) if hides_values => {
            "a field is missing, or a value does not fit".to_owned()
        }
        _ => failure.to_string(),
    }
}

fn shown(validation: &Validation) -> String {
    short_line(validation.expression.text.trim(), LONGEST_SHOWN)
}

/// `None`: not one line of text; then the written message is shown.
fn as_message(value: &Value<'_>) -> Option<String> {
    let text = value.as_str()?.trim();
    let is_usable = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
    is_usable.then(|| text.to_owned())
}

struct Compiler<'p> {
    policy: &'p Policy,
    budget: &'p mut Budget,
    /// The budget ended at this policy, which was reported.
    is_over: bool,
    mistakes: Vec<PolicyMistake>,
}

impl Compiler<'_> {
    fn rules(&mut self) -> Option<Rules> {
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
        let mut known: Vec<(Program, Vec<usize>)> = Vec::new();
        for program in variables.into_iter().collect::<Option<Vec<_>>>()? {
            let mut needs = program.variables.clone();
            needs.extend(
                program.variables.iter().filter_map(|it| known.get(*it)).flat_map(|(_, needs)| needs),
            );
            needs.sort_unstable();
            needs.dedup();
            known.push((program, needs));
        }
        Some(Rules {
            conditions: conditions.into_iter().collect::<Option<_>>()?,
            variables: known,
            validations: validations.into_iter().collect::<Option<_>>()?,
        })
    }

    fn program(&mut self, expression: &Expression, variables: &[&str]) -> Option<Program> {
        let no_params = self.policy.params.is_none().then_some(NO_PARAMS);
        let refused: Vec<_> = REFUSED.into_iter().chain(no_params).collect();
        let names = Names { roots: &ROOTS, refused: &refused, variables };
        const OF_A_BYTE: u64 = 50;
        if self.is_over {
            return None;
        }
        let bytes = u64::try_from(expression.text.len()).unwrap_or(u64::MAX);
        let mistakes = match self.budget.take(bytes.saturating_mul(OF_A_BYTE)) {
            true => match Program::of(&expression.text, names) {
                Ok(program) if self.budget.take(program.patterns) => return Some(program),
                Ok(_) => self.over(),
                Err(mistakes) => mistakes,
            },
            false => self.over(),
        };
        self.mistakes.extend(mistakes.into_iter().map(|mistake| PolicyMistake {
            policy: self.policy.name.clone(),
            expression: expression.clone(),
            mistake,
        }));
        None
    }

    fn over(&mut self) -> Vec<Mistake> {
        self.is_over = true;
        let message = "the expressions and regular expressions of all policies are too large together";
        vec![Mistake::of_all(message)]
    }
}
