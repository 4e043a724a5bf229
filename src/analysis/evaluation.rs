//! Evaluates answers of measurements, and counts them to an outcome. Pure.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::cel::{CelMeter, CelProgram, CelValue, EvaluationScope, ExpressionNames};
use crate::model::{AnalysisSpec, CelExpression, short_line};
use crate::rollout::MeasurementOutcome;

/// Series of a query result that an expression reads.
const MOST_SERIES: usize = 1000;
const MOST_SHOWN: usize = 3;
const LONGEST_SHOWN: usize = 120;

#[derive(Clone, Debug, PartialEq)]
pub enum MeasurementAnswer {
    /// The values of a query.
    Values(Vec<f64>),
    /// The body is JSON, or a text.
    Http { status: u16, body: Json },
    /// The units of the wave, from the overview.
    Units(Json),
}

/// The result of one measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasurementVerdict {
    Good(String),
    Bad(String),
    /// No result, with the reason.
    Unclear(String),
    /// No request was sent, with the reason. Another measurement would not change that.
    NotAsked(String),
}

/// The compiled expressions of an analysis.
#[derive(Debug)]
pub struct AnalysisExpressions {
    success: CelProgram,
    failure: Option<CelProgram>,
}

impl AnalysisExpressions {
    pub fn of(spec: &AnalysisSpec) -> Result<Self, String> {
        let names = ExpressionNames { roots: spec.probe.expression_roots(), refused: &[], variables: &[] };
        let program = |expression: &CelExpression| {
            CelProgram::of(&expression.text, names).map_err(|mistakes| {
                let first = mistakes.into_iter().next().map(|it| it.message).unwrap_or_default();
                format!("an expression cannot be used: {first}")
            })
        };
        let failure = spec.failure.as_ref().map(program).transpose()?;
        Ok(Self { success: program(&spec.success)?, failure })
    }

    pub fn evaluate(&self, answer: &MeasurementAnswer) -> MeasurementVerdict {
        if let MeasurementAnswer::Values(values) = answer {
            if values.is_empty() {
                return MeasurementVerdict::Unclear("the query returned no data".to_owned());
            }
            if values.iter().any(|value| value.is_nan()) {
                return MeasurementVerdict::Unclear(format!(
                    "the query result is not a number: {}",
                    answer.summary()
                ));
            }
        }
        let scope = EvaluationScope { roots: answer.roots(), variables: Vec::new() };
        let mut meter = CelMeter::default();
        let mut holds = |program: &CelProgram| {
            let holds = program.evaluate_bool(&scope, &mut meter);
            holds.map_err(|failure| format!("cannot be evaluated: {failure}, with {}", answer.summary()))
        };
        // A true failure expression decides before success.
        let is_bad = match self.failure.as_ref().map(&mut holds).transpose() {
            Ok(is_bad) => is_bad,
            Err(why) => return MeasurementVerdict::Unclear(format!("failure {why}")),
        };
        if is_bad == Some(true) {
            return MeasurementVerdict::Bad(answer.summary());
        }
        match (holds(&self.success), is_bad) {
            (Ok(true), _) => MeasurementVerdict::Good(answer.summary()),
            (Ok(false), None) => MeasurementVerdict::Bad(answer.summary()),
            (Ok(false), Some(_)) => {
                MeasurementVerdict::Unclear(format!("neither success nor failure: {}", answer.summary()))
            }
            (Err(why), _) => MeasurementVerdict::Unclear(format!("success {why}")),
        }
    }
}

impl MeasurementAnswer {
    fn roots(&self) -> Vec<CelValue<'_>> {
        match self {
            Self::Values(values) => vec![CelValue::doubles(values)],
            Self::Http { status, body } => vec![CelValue::Int(i64::from(*status)), CelValue::of(body)],
            Self::Units(units) => vec![CelValue::of(units)],
        }
    }

    fn summary(&self) -> String {
        let text = match self {
            Self::Values(values) => {
                let first: Vec<String> = values.iter().take(MOST_SHOWN).map(ToString::to_string).collect();
                let more = if values.len() > MOST_SHOWN { ", …" } else { "" };
                format!("result [{}{more}]", first.join(", "))
            }
            // A body may hold secrets.
            Self::Http { status, .. } => format!("status {status}"),
            Self::Units(units) => {
                let units = units.as_array().into_iter().flatten();
                let count = |unit: &Json, name: &str| unit[name].as_u64().unwrap_or_default();
                let (available, desired) = units.fold((0, 0), |(available, desired), unit| {
                    (available + count(unit, "available"), desired + count(unit, "desired"))
                });
                format!("{available}/{desired} available")
            }
        };
        short_line(&text, LONGEST_SHOWN)
    }
}

/// Parses the result of an instant query of the Prometheus API.
pub fn prometheus_values(body: &[u8]) -> Result<Vec<f64>, String> {
    let answer: Json = serde_json::from_slice(body).map_err(|_| "the answer is not JSON".to_owned())?;
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    if text("status") != "success" {
        let error = short_line(text("error"), LONGEST_SHOWN);
        return Err(match error.is_empty() {
            true => "the answer is not a Prometheus response".to_owned(),
            false => format!("the query failed: {error}"),
        });
    }
    let data = &answer["data"];
    let number = |sample: &Json| -> Result<f64, String> {
        let value = sample.as_array().and_then(|pair| pair.get(1)).and_then(Json::as_str);
        value
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| "a value of the result is not a number".to_owned())
    };
    match (data["resultType"].as_str(), &data["result"]) {
        (Some("vector"), Json::Array(series)) if series.len() > MOST_SERIES => {
            Err(format!("the result has {} series; {MOST_SERIES} are the most", series.len()))
        }
        (Some("vector"), Json::Array(series)) => series.iter().map(|it| number(&it["value"])).collect(),
        (Some("scalar"), sample) => Ok(vec![number(sample)?]),
        (Some(other), _) => {
            Err(format!("the result is a {}: a query gives a vector or a scalar", short_line(other, 20)))
        }
        (None, _) => Err("the answer is not a Prometheus response".to_owned()),
    }
}

/// After this many unclear measurements in a row a person must decide: one timeout is normal.
const MOST_UNCLEAR: u32 = 4;

/// Counts unclear measurements in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnclearCount(u32);

impl UnclearCount {
    pub fn add(&mut self, why: &str) -> MeasurementOutcome {
        self.0 = self.0.saturating_add(1);
        match self.0 < MOST_UNCLEAR {
            true => MeasurementOutcome::Pending(format!("{}/{MOST_UNCLEAR} unclear, {why}", self.0).into()),
            false => MeasurementOutcome::Inconclusive(why.into()),
        }
    }
}

/// Counts several measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasurementTally {
    good: u32,
    bad: u32,
    unclear: UnclearCount,
}

impl MeasurementTally {
    pub fn add(&mut self, spec: &AnalysisSpec, verdict: &MeasurementVerdict) -> MeasurementOutcome {
        let AnalysisSpec { count, failure_limit, .. } = spec;
        match verdict {
            MeasurementVerdict::Good(_) => self.good = self.good.saturating_add(1),
            MeasurementVerdict::Bad(_) => self.bad = self.bad.saturating_add(1),
            MeasurementVerdict::Unclear(why) => return self.unclear.add(why),
            MeasurementVerdict::NotAsked(why) => {
                return MeasurementOutcome::Inconclusive(why.as_str().into());
            }
        }
        self.unclear = UnclearCount::default();
        let told: Arc<str> = match verdict {
            MeasurementVerdict::Good(seen) if *count > 1 => format!("{}/{count} good, {seen}", self.good),
            MeasurementVerdict::Bad(seen) if *failure_limit > 0 => {
                format!("{} bad ({failure_limit} allowed), {seen}", self.bad)
            }
            MeasurementVerdict::Good(seen)
            | MeasurementVerdict::Bad(seen)
            | MeasurementVerdict::Unclear(seen)
            | MeasurementVerdict::NotAsked(seen) => seen.clone(),
        }
        .into();
        if self.bad > *failure_limit {
            MeasurementOutcome::Failure(told)
        } else if self.good >= *count {
            MeasurementOutcome::Success(told)
        } else {
            MeasurementOutcome::Pending(told)
        }
    }
}
