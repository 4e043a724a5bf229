//! The exporter: OTLP over HTTP, in protobuf.

use std::fmt;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// Timeout of the last batch.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Error)]
#[error(
    "failed to prepare traces: {0} (help: see the variables OTEL_EXPORTER_OTLP_* in docs/reference/metrics.md)"
)]
pub struct ExporterError(#[from] ExporterBuildError);

pub struct Exporter(SdkTracerProvider);

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold a token.
        f.write_str("Exporter")
    }
}

impl Exporter {
    /// Configured by the variables; `endpoint` is for tests.
    pub fn new(endpoint: Option<&str>) -> Result<Self, ExporterError> {
        let exporter = SpanExporter::builder().with_http();
        let exporter = match endpoint {
            Some(endpoint) => exporter.with_endpoint(endpoint).build()?,
            None => exporter.build()?,
        };
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
        Ok(Self(provider))
    }

    /// Exports spans of this program only: those of libraries may quote content.
    pub fn layer<S: Subscriber + for<'s> LookupSpan<'s>>(&self) -> impl Layer<S> + use<S> {
        let tracer = self.0.tracer("tutti");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(filter_fn(is_ours))
    }

    /// Sends the remaining spans.
    pub fn end(self) {
        if let Err(error) = self.0.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().split("::").next() == Some(env!("CARGO_CRATE_NAME"))
}

/// From the variables; the default service name is `tutti`.
fn resource() -> Resource {
    let builder = || {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        Resource::builder().with_attribute(version)
    };
    let resource = builder().build();
    let name = resource.get(&Key::from_static_str("service.name"));
    match name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        true => builder().with_service_name("tutti").build(),
        false => resource,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// A collector that takes one request: its head, and its body.
    fn collector() -> (String, thread::JoinHandle<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
            loop {
                let read = stream.read(&mut chunk).expect("bytes");
                bytes.extend_from_slice(&chunk[..read]);
                let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
                let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
                let length = head.split_once("content-length: ").expect("a length").1;
                let length: usize = length.lines().next().expect("a length").parse().expect("a number");
                if bytes.len() >= at + 4 + length {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("an answer");
                    return (head, bytes.split_off(at + 4));
                }
            }
        });
        (format!("http://{address}/v1/traces"), received)
    }

    #[test]
    fn spans_of_this_program_reach_a_collector() {
        // One TLS provider, as in the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (endpoint, received) = collector();
        let exporter = Exporter::new(Some(&endpoint)).expect("an exporter");
        let subscriber = tracing_subscriber::registry().with(exporter.layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::trace_span!("reconcile", app = "shop/pay").in_scope(|| {
                tracing::error!("an event of a log is no trace");
                tracing::trace_span!(target: "hyper", "of_a_library").in_scope(|| {});
            });
        });
        exporter.end();
        let (head, body) = received.join().expect("a request");
        assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf"), "{head}");
        // Protobuf text: length, then bytes.
        let has = |text: &str| {
            let field = [&[text.len() as u8][..], text.as_bytes()].concat();
            body.windows(field.len()).any(|window| window == field)
        };
        for text in ["service.name", "tutti", "reconcile", "app", "shop/pay"] {
            assert!(has(text), "{text} is not in {:?}", String::from_utf8_lossy(&body));
        }
        let text = String::from_utf8_lossy(&body);
        assert!(!text.contains("of_a_library") && !text.contains("no trace"), "{text}");
    }
}
