//! Compiles the health rules of a config repository, and decides which rule judges an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::json_fields;
use super::super::shipped_rules::{is_metadata_only, shipped, terminating};
use super::expressions::CompiledExpressions;
use super::rule_source::{RuleBody, RuleMistake, RuleSource};
use super::script::Script;
use crate::model::{GroupVersionKind, Health, HealthStatus};

/// The health rules in use: those of a config repository, then the shipped ones.
#[derive(Debug, Default)]
pub struct HealthRules {
    exact: BTreeMap<(String, String), Arc<CompiledRule>>,
    /// In the order of their files.
    patterns: Vec<Arc<CompiledRule>>,
}

#[derive(Debug)]
struct CompiledRule {
    source: RuleSource,
    mark: RuleDigest,
    judge: RuleEvaluator,
}

#[derive(Debug)]
enum RuleEvaluator {
    Expressions(CompiledExpressions),
    Script(Script),
    /// It has a mistake, which is reported elsewhere.
    Broken,
}

/// Identifies the rule of a kind: another mark means another judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDigest([u8; 32]);

impl HealthRules {
    /// Compiles the rules. One with a mistake is kept and makes its objects Unknown. The first of two rules for a
    /// kind counts.
    pub fn compile(sources: Vec<RuleSource>) -> (Self, Vec<RuleMistake>) {
        let (mut rules, mut mistakes) = (Self::default(), Vec::new());
        for (number, source) in sources.into_iter().enumerate() {
            let judge = match &source.body {
                RuleBody::Expressions(texts) => {
                    CompiledExpressions::of(texts).map(RuleEvaluator::Expressions)
                }
                RuleBody::Script(text) => Script::of(&source.file, text).map(RuleEvaluator::Script),
                RuleBody::Rejected => Ok(RuleEvaluator::Broken),
            };
            let judge = judge.unwrap_or_else(|found| {
                mistakes.extend(found.into_iter().map(|mistake| RuleMistake { source: number, ..mistake }));
                RuleEvaluator::Broken
            });
            let key = (source.group.clone(), source.kind.clone());
            let is_pattern = source.group.contains('_') || source.kind.contains('_');
            let rule = Arc::new(CompiledRule { mark: digest_rule(&source), source, judge });
            if is_pattern {
                rules.patterns.push(rule);
            } else {
                rules.exact.entry(key).or_insert(rule);
            }
        }
        (rules, mistakes)
    }

    /// The health of one object as the API server returns it.
    pub fn health_of(&self, object: &Value) -> Health {
        let Some(kind) = json_fields::kind(object) else {
            return Health::new(
                HealthStatus::Unknown,
                "not a Kubernetes object: apiVersion or kind is missing",
            );
        };
        if let Some(terminating) = terminating(object) {
            return terminating;
        }
        match self.rule(&kind) {
            Some(rule) => rule.judge(object).unwrap_or_else(|| shipped(&kind, object)),
            None => shipped(&kind, object),
        }
    }

    /// The metadata of this kind is enough.
    pub fn is_metadata_only(&self, kind: &GroupVersionKind) -> bool {
        self.rule(kind).is_none() && is_metadata_only(kind)
    }

    /// `None`: the shipped rules decide.
    pub fn rule_digest(&self, kind: &GroupVersionKind) -> Option<RuleDigest> {
        Some(self.rule(kind)?.mark)
    }

    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.patterns.is_empty()
    }

    fn rule(&self, kind: &GroupVersionKind) -> Option<&CompiledRule> {
        if self.is_empty() {
            return None;
        }
        let exact = self.exact.get(&(kind.group.to_string(), kind.kind.to_string()));
        let fits = |rule: &&Arc<CompiledRule>| {
            fits(&rule.source.group, &kind.group) && fits(&rule.source.kind, &kind.kind)
        };
        // Patterns for custom kinds do not match the core group, which has Secrets.
        let by_pattern = || self.patterns.iter().find(fits).filter(|_| !kind.group.is_empty());
        exact.or_else(by_pattern).map(|rule| &**rule)
    }
}

/// Rules are equal if their sources are.
impl PartialEq for HealthRules {
    fn eq(&self, other: &Self) -> bool {
        let marks = |rules: &Self| -> Vec<[u8; 32]> {
            rules.exact.values().chain(&rules.patterns).map(|rule| rule.mark.0).collect()
        };
        marks(self) == marks(other)
    }
}

impl CompiledRule {
    /// `None`: the script returned nothing for this object.
    fn judge(&self, object: &Value) -> Option<Health> {
        let judged = match &self.judge {
            RuleEvaluator::Expressions(compiled) => compiled.health_of(object).map(Some),
            RuleEvaluator::Script(script) => script.health_of(object),
            RuleEvaluator::Broken => Err("it has an error".to_owned()),
        };
        judged.unwrap_or_else(|why| {
            let words = json_fields::sentence(&format!("the health rule {}: {why}", self.source.file));
            Some(Health::new(HealthStatus::Unknown, words))
        })
    }
}

fn digest_rule(source: &RuleSource) -> RuleDigest {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    };
    add(&source.group);
    add(&source.kind);
    match &source.body {
        RuleBody::Script(text) => add(text),
        RuleBody::Rejected => {}
        RuleBody::Expressions(texts) => {
            add("expressions");
            add(texts.in_progress.as_deref().unwrap_or_default());
            add(texts.failed.as_deref().unwrap_or_default());
            add(&texts.current);
        }
    }
    RuleDigest(hash.finalize().into())
}

/// `_` stands for any text, also an empty one.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('_') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(before) else { return false };
    let mut parts: Vec<&str> = after.split('_').collect();
    let Some(last) = parts.pop() else { return true };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}
