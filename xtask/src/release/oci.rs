//! An image as files: the layout of the Open Container Initiative (image-spec 1.1), which needs no daemon.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::build_origin::BuildOrigin;
use super::file_tree::{self, FileTree, NONROOT};
use super::{LICENSE, REPOSITORY, VERSION, sha256};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// One part of the root file system.
pub struct ImageLayer {
    /// The description in the image's history.
    pub about: &'static str,
    pub tree: FileTree,
}

pub struct ImageLayout {
    pub files: FileTree,
    /// Of the manifest, which names all the rest.
    pub digest: String,
    /// Bytes that are pulled.
    pub compressed: u64,
}

impl ImageLayout {
    pub fn new(layers: &[ImageLayer], architecture: &str, origin: &BuildOrigin) -> anyhow::Result<Self> {
        let created = origin.timestamp()?;
        let mut files = FileTree::default();
        let mut descriptors = Vec::new();
        let mut digests = Vec::new();
        let mut history = Vec::new();
        for ImageLayer { about, tree } in layers {
            let tar = tree.tar(origin.time)?;
            digests.push(format!("sha256:{}", sha256(&tar)));
            history.push(json!({"created": created, "created_by": about}));
            let media_type = "application/vnd.oci.image.layer.v1.tar+gzip";
            descriptors.push(blob(&mut files, media_type, file_tree::gzip(&tar)?));
        }
        let annotations = annotations(origin, &created);
        let config = json!({
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": config(&annotations),
            "rootfs": {"type": "layers", "diff_ids": digests},
            "history": history,
        });
        let config = blob(&mut files, "application/vnd.oci.image.config.v1+json", text(&config)?);
        let compressed = descriptors.iter().filter_map(|layer| layer["size"].as_u64()).sum();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": descriptors,
            "annotations": annotations,
        });
        let mut manifest = blob(&mut files, MANIFEST, text(&manifest)?);
        let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();
        manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": VERSION});
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [manifest],
        });
        files.file("index.json", 0o644, text(&index)?);
        files.file("oci-layout", 0o644, text(&json!({"imageLayoutVersion": "1.0.0"}))?);
        Ok(Self { files, digest, compressed })
    }

    /// Writes the layout into an empty folder.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for path in self.files.paths() {
            match self.files.get(path) {
                Some(file_tree::FileContent::File(bytes)) => super::write(&folder.join(path), bytes)?,
                _ => std::fs::create_dir_all(folder.join(path))
                    .with_context(|| format!("failed to create {}", folder.join(path).display()))?,
            }
        }
        Ok(())
    }
}

fn blob(files: &mut FileTree, media_type: &str, bytes: Vec<u8>) -> Value {
    let (digest, size) = (sha256(&bytes), bytes.len());
    files.file(&format!("blobs/sha256/{digest}"), 0o644, bytes);
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

fn text(value: &Value) -> anyhow::Result<Vec<u8>> {
    serde_json::to_vec(value).context("failed to write JSON")
}

fn annotations(origin: &BuildOrigin, created: &str) -> Value {
    json!({
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.description": "A GitOps reconciler for many Kubernetes clusters",
        "org.opencontainers.image.licenses": LICENSE,
        "org.opencontainers.image.revision": origin.revision,
        "org.opencontainers.image.source": REPOSITORY,
        "org.opencontainers.image.title": "tutti",
        "org.opencontainers.image.version": VERSION,
    })
}

/// The default run configuration.
fn config(labels: &Value) -> Value {
    json!({
        "User": format!("{NONROOT}:{NONROOT}"),
        "ExposedPorts": {"8480/tcp": {}, "8481/tcp": {}},
        "Env": [
            "PATH=/usr/bin",
            // The root may be read-only: what tutti keeps is here, and may be lost.
            "TUTTI_STATE=/state",
            "TUTTI_CHART_CACHE=/state/charts",
            // Probes and webhooks come from outside of the pod.
            "TUTTI_LISTEN=0.0.0.0:8480",
            "TUTTI_HOOKS_LISTEN=0.0.0.0:8481",
            // Both TLS stacks read it: rustls, and the OpenSSL inside libgit2.
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
        ],
        "Entrypoint": ["/usr/bin/tutti"],
        "Cmd": ["run"],
        "WorkingDir": "/",
        "Labels": labels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(program: &str, time: u64) -> ImageLayout {
        let mut tree = FileTree::default();
        tree.file("usr/bin/tutti", 0o755, program);
        let origin = BuildOrigin { revision: "c0ffee".to_owned(), time };
        ImageLayout::new(&[ImageLayer { about: "programs", tree }], "amd64", &origin).unwrap()
    }

    /// A name that no command knows would do nothing.
    #[test]
    fn image_variables_match_the_commands() {
        let commands = include_str!("../../../docs/reference/cli.md");
        let config = config(&json!({}));
        let names =
            config["Env"].as_array().unwrap().iter().filter_map(|it| Some(it.as_str()?.split_once('=')?.0));
        // Not of a command, but of what fetches charts.
        let ours: Vec<&str> =
            names.filter(|name| name.starts_with("TUTTI_") && *name != "TUTTI_CHART_CACHE").collect();
        assert_eq!(ours.len(), 3);
        for name in ours {
            assert!(commands.contains(&format!("Variable: `{name}`.")), "{name}");
        }
    }

    #[test]
    fn same_inputs_have_the_same_digest() {
        assert_eq!(layout("one", 7).digest, layout("one", 7).digest);
        assert_ne!(layout("one", 7).digest, layout("two", 7).digest);
        assert_ne!(layout("one", 7).digest, layout("one", 8).digest);
    }

    /// From the index to the layers: every name is the hash of what it names.
    #[test]
    fn every_blob_has_name_digest_and_size() {
        let layout = layout("one", 7);
        let file = |path: &str| match layout.files.get(path) {
            Some(file_tree::FileContent::File(bytes)) => bytes.clone(),
            other => panic!("{path}: {other:?}"),
        };
        let json = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = file(&format!("blobs/sha256/{digest}"));
            assert_eq!(
                (sha256(&bytes).as_str(), bytes.len() as u64),
                (digest, descriptor["size"].as_u64().unwrap())
            );
            bytes
        };
        let index = json(&file("index.json"));
        let manifest = &index["manifests"][0];
        assert_eq!(manifest["digest"], layout.digest);
        let manifest = json(&blob(manifest));
        let config = json(&blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(manifest["layers"][0]["size"], layout.compressed);
        let mut tar = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(layer.as_slice()), &mut tar).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sha256(&tar)));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(manifest["annotations"]["org.opencontainers.image.revision"], "c0ffee");
        assert_eq!(layout.files.paths().filter(|path| path.starts_with("blobs/sha256/")).count(), 3);
    }
}
