//! A chart repository and a registry.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tutti::chart::{ChartHosts, ChartRenderLimits, ChartRenderer, ChartService, RendererProgram};
use tutti::model::{ChartProvider as _, ChartSource};

use super::HostilePeer;
use super::package::package;
use super::server::{PeerAnswer, PeerRequest};

pub const PEER: HostilePeer =
    HostilePeer { name: "registry", answer, ask: |address, _: PathBuf| Box::pin(ask(address)) };

static CHART: LazyLock<Vec<u8>> = LazyLock::new(|| package("a: {{ .Values.a }}\n"));

fn answer(asked: &PeerRequest) -> PeerAnswer {
    let bytes = |body: Vec<u8>| PeerAnswer { status: 200, headers: Vec::new(), body };
    match asked.path.as_str() {
        "/charts/index.yaml" => bytes(
            b"apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}\n  \
              - {name: web, version: 0.9.0, urls: [web-0.9.0.tgz]}\n"
                .to_vec(),
        ),
        path if path.contains("/manifests/") => {
            let layer = json!({"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
                "digest": format!("sha256:{}", hex::encode(Sha256::digest(&*CHART))), "size": CHART.len()});
            let manifest = json!({"schemaVersion": 2, "config": layer, "layers": [layer]});
            let headers = vec!["content-type: application/vnd.oci.image.manifest.v1+json".to_owned()];
            PeerAnswer { headers, ..PeerAnswer::json(&manifest) }
        }
        _ => bytes(CHART.clone()),
    }
}

async fn ask(address: String) {
    let renderer = ChartRenderer::new(RendererProgram::Missing(None), ChartRenderLimits::default());
    let service = ChartService::with_hosts(ChartHosts::default(), renderer, None);
    let host = address.trim_start_matches("http://");
    let (chart, version) = ("web".to_owned(), "1.0.0".to_owned());
    let sources = BTreeSet::from([
        ChartSource::Repository { url: format!("{address}/charts"), chart, version: version.clone() },
        ChartSource::Registry { url: format!("oci://{host}/team/web"), version },
    ]);
    service.prefetch(&sources).await;
    for source in &sources {
        if let Err(failure) = service.chart(source) {
            let text = failure.to_string();
            assert!(text.len() < 4096 && !text.contains(char::is_control), "{text:?}");
        }
    }
}
