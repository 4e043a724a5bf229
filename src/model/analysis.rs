//! Kind Analysis: what is measured after a wave, before the next one opens.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CelExpression, Location, PayloadTemplate, SecretRef};

/// One manifest below `policies/`, which waves and rings name.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    pub name: String,
    /// `None`: its manifest has a mistake.
    pub spec: Option<AnalysisSpec>,
    pub location: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisSpec {
    pub probe: Probe,
    /// A measurement is good when it is true.
    pub success: CelExpression,
    /// A measurement is bad when it is true; `None`: when `success` is false.
    pub failure: Option<CelExpression>,
    /// From one measurement to the next.
    pub interval: Duration,
    /// So many measurements must be good.
    pub count: u32,
    /// So many measurements may be bad.
    pub failure_limit: u32,
    /// Of one measurement.
    pub timeout: Duration,
    /// Before the first one.
    pub initial_delay: Duration,
}

/// The source of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// An instant query of the API of Prometheus.
    Prometheus { url: PayloadTemplate, query: PayloadTemplate, credential: Option<ProbeCredential> },
    Http {
        url: PayloadTemplate,
        method: ProbeMethod,
        headers: BTreeMap<String, String>,
        credential: Option<ProbeCredential>,
    },
    /// The health of the wave, as tutti observes it.
    Health,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeCredential {
    Token(SecretRef),
    Basic { username: String, password: SecretRef },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeMethod {
    #[default]
    Get,
    Head,
    Post,
}

impl Probe {
    /// What its expressions can name.
    pub fn expression_roots(&self) -> &'static [&'static str] {
        match self {
            Self::Prometheus { .. } => &["result"],
            Self::Http { .. } => &["status", "body"],
            Self::Health => &["units"],
        }
    }

    /// As the field of the manifest says it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prometheus { .. } => "prometheus",
            Self::Http { .. } => "http",
            Self::Health => "health",
        }
    }

    /// What its templates can name: `app.name` and so on, with these values.
    pub fn template_values(app: (&str, &str, &str), wave: &str, ring: &str, clusters: &str) -> Value {
        let (namespace, name, version) = app;
        json!({
            "app": {"namespace": namespace, "name": name, "version": version},
            "wave": wave, "ring": ring, "clusters": clusters,
        })
    }

    /// The names of these values.
    pub const TEMPLATE_VALUE_NAMES: &str = "app.namespace, app.name, app.version, wave, ring, clusters";
}
