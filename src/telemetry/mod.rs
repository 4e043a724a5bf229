//! Sends traces by OTLP, if the standard variables of OpenTelemetry ask for them.
//!
//! Spans of this program (a load, a render, a reconciliation, a commit status) go to a collector from a thread of their own. Only
//! the end of the process waits for it. Needs the feature `otlp`; `cli::logging` starts it.

#[cfg(feature = "otlp")]
mod otlp;

#[cfg(feature = "otlp")]
pub use otlp::{Exporter, ExporterError};

/// The variables that name a collector.
const ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The variable that enables traces, unless another one disables them.
pub fn enabling_variable(variable: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is =
        |name: &str, value: &str| variable(name).is_some_and(|set| set.trim().eq_ignore_ascii_case(value));
    if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
        return None;
    }
    ENDPOINT_VARIABLES.into_iter().find(|name| variable(name).is_some_and(|value| !value.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_variables_ask_for_traces() {
        let (general, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let collector = "http://127.0.0.1:4318";
        let check = |set: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(enabling_variable(variable), expected, "{set:?}");
        };
        check(&[], None);
        check(&[(general, collector)], Some(general));
        check(&[(traces, collector), (general, collector)], Some(traces));
        check(&[(general, " ")], None);
        check(&[("OTEL_SERVICE_NAME", "tutti")], None);
        check(&[(general, collector), ("OTEL_SDK_DISABLED", "true")], None);
        check(&[(general, collector), ("OTEL_SDK_DISABLED", "false")], Some(general));
        check(&[(general, collector), ("OTEL_TRACES_EXPORTER", "none")], None);
    }
}
