//! Runs the exec plug-in of a kubeconfig, which returns a token, a client certificate, or both.
//!
//! A plug-in is a foreign program: it may hang, fail or print secrets. Each run has a timeout and no terminal, few
//! run in parallel, and no error quotes its input or output.

use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use rustls::sign::CertifiedKey;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::credential::{certificate_validity, token_validity};
use super::identity::load_certified_key;

/// The timeout of a run.
const RUN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a run holds a slot: a hanging one blocks others no longer.
const SLOT_TIMEOUT: Duration = Duration::from_secs(3);
/// Slots: a thousand connecting clusters must not start a thousand programs.
static RUN_SLOTS: Semaphore = Semaphore::const_new(16);
/// The longest output that is read.
const LONGEST: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct PlugInCredential {
    pub token: Option<SecretString>,
    pub certificate: Option<Arc<CertifiedKey>>,
    pub issued: Option<Timestamp>,
    pub expires: Option<Timestamp>,
}

/// The command alone: arguments may be secrets.
pub fn name_of(exec: &ExecConfig) -> &str {
    exec.command.as_deref().unwrap_or("without a name")
}

/// No error contains its output.
pub async fn run_plug_in(exec: &ExecConfig) -> Result<PlugInCredential, String> {
    let name = exec.command.as_deref().ok_or_else(|| "the plug-in has no command".to_owned())?;
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(format!(
            "the plug-in {name} needs a terminal (`interactiveMode: Always`), and tutti has none"
        ));
    }
    // The semaphore is never closed.
    let place = RUN_SLOTS.acquire().await.map_err(|error| error.to_string())?;
    let mut output = pin!(output(name, exec));
    let mut printed = tokio::time::timeout(SLOT_TIMEOUT, &mut output).await;
    drop(place);
    if printed.is_err() {
        printed = tokio::time::timeout(RUN_TIMEOUT.saturating_sub(SLOT_TIMEOUT), output).await;
    }
    let printed =
        printed.map_err(|_| format!("the plug-in {name} did not end in {} s", RUN_TIMEOUT.as_secs()))??;
    // As kubectl: JSON or YAML.
    let brought: Value = serde_yaml::from_slice(&printed)
        .map_err(|_| format!("the plug-in {name} printed no ExecCredential"))?;
    read(&brought["status"]).map_err(|what| format!("the plug-in {name} {what}"))
}

/// Its output. The program is killed if the future is dropped.
async fn output(name: &str, exec: &ExecConfig) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("the plug-in {name} cannot be run: {error}");
    let mut command = Command::new(name);
    command.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    command.env("KUBERNETES_EXEC_INFO", info(exec).to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(cannot)?;
    let mut printed = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(LONGEST).read_to_end(&mut printed).await.map_err(cannot)?;
    }
    if printed.len() as u64 == LONGEST {
        return Err(format!("the plug-in {name} printed more than a credential has: 1 MiB"));
    }
    let status = child.wait().await.map_err(cannot)?;
    if status.success() { Ok(printed) } else { Err(format!("the plug-in {name} failed: {status}")) }
}

/// The input that kubectl gives a plug-in.
fn info(exec: &ExecConfig) -> Value {
    let mut spec = json!({"interactive": false});
    if let Some(cluster) = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info) {
        spec["cluster"] = json!(cluster);
    }
    json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec})
}

/// Parses the status of an ExecCredential. It ends at `expirationTimestamp` or at the end of the token or
/// certificate, whichever is first.
fn read(status: &Value) -> Result<PlugInCredential, &'static str> {
    let text = |key: &str| status[key].as_str().filter(|text| !text.is_empty());
    let own = match text("expirationTimestamp") {
        Some(at) => Some(at.parse().map_err(|_| "printed an expirationTimestamp that is not a time")?),
        None => None,
    };
    let token = text("token");
    let certificate = match (text("clientCertificateData"), text("clientKeyData")) {
        (Some(certificate), Some(key)) => {
            let certified = load_certified_key(certificate.as_bytes(), key.as_bytes());
            Some(certified.map_err(|_| "printed a client certificate that cannot be used")?)
        }
        (None, None) if token.is_none() => return Err("printed neither a token nor a client certificate"),
        (None, None) => None,
        _ => return Err("printed only one of a client certificate and its key"),
    };
    let of_token = token.map(token_validity).unwrap_or_default();
    let of_certificate = text("clientCertificateData").map(|pem| certificate_validity(pem.as_bytes()));
    let lives = [(of_token.0.or(Some(Timestamp::now())), own), of_token, of_certificate.unwrap_or_default()];
    let first =
        lives.into_iter().filter(|(_, expires)| expires.is_some()).min_by_key(|(_, expires)| *expires);
    let (issued, expires) = first.unwrap_or_default();
    Ok(PlugInCredential { token: token.map(SecretString::from), certificate, issued, expires })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn exec(script: &str) -> ExecConfig {
        let text = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "env": [{"name": "END", "value": "2030-01-01T00:00:00Z"}], "interactiveMode": "Never",
            "provideClusterInfo": true,
        });
        serde_json::from_value(text).expect("a plug-in")
    }

    #[tokio::test]
    async fn expiry_is_read_from_the_plug_in() {
        let cluster = kube::config::Cluster { server: Some("https://bj5".to_owned()), ..Default::default() };
        let script = r#"case "$KUBERNETES_EXEC_INFO" in *https://bj5*) ;; *) exit 3 ;; esac
            echo "{\"status\": {\"token\": \"hunter2\", \"expirationTimestamp\": \"$END\"}}""#;
        let told = ExecConfig { cluster: (&cluster).try_into().ok(), ..exec(script) };
        let brought = run_plug_in(&told).await.expect("it runs");
        assert_eq!(brought.expires, "2030-01-01T00:00:00Z".parse().ok());
        assert!(brought.issued.is_some(), "a tenth of its life is a time");
        assert!(!format!("{brought:?}").contains("hunter2"));
        let lasting = run_plug_in(&exec("printf 'status:\\n  token: opaque\\n'")).await.expect("it runs");
        assert_eq!((lasting.issued, lasting.expires), (None, None));
    }

    #[tokio::test]
    async fn a_plug_in_that_fails_is_not_quoted() {
        let check = async |script: &str, expected: &str| {
            let error = run_plug_in(&exec(script)).await.expect_err("it fails");
            assert_eq!(error, expected, "{script}");
        };
        check("echo hunter2; echo hunter2 >&2; exit 7", "the plug-in sh failed: exit status: 7").await;
        check("echo '{hunter2'", "the plug-in sh printed no ExecCredential").await;
        check("echo '{}'", "the plug-in sh printed neither a token nor a client certificate").await;
        let half = r#"echo '{"status": {"token": "hunter2", "clientKeyData": "hunter2"}}'"#;
        check(half, "the plug-in sh printed only one of a client certificate and its key").await;
        let wrong = r#"echo '{"status": {"clientCertificateData": "hunter2", "clientKeyData": "hunter2"}}'"#;
        check(wrong, "the plug-in sh printed a client certificate that cannot be used").await;
        let gone = ExecConfig { command: Some("/no/such/plug-in".to_owned()), ..exec("") };
        let error = run_plug_in(&gone).await.expect_err("it is not there");
        assert!(error.starts_with("the plug-in /no/such/plug-in cannot be run: "), "{error}");
        let asking = ExecConfig { interactive_mode: Some(ExecInteractiveMode::Always), ..exec("") };
        let error = run_plug_in(&asking).await.expect_err("nobody is there");
        assert!(error.contains("interactiveMode: Always"), "{error}");
    }

    /// On the real clock, as the plug-in runs by it.
    #[tokio::test]
    async fn hanging_plug_in_blocks_nobody_and_is_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        let hanging = exec(&format!("echo $$ > {}; exec sleep 600", file.display()));
        let start = Instant::now();
        let quick = exec("cat; echo '{\"status\": {\"token\": \"x\"}}'");
        let waiting = tokio::time::timeout(Duration::from_millis(500), run_plug_in(&hanging));
        let (ended, brought) = tokio::join!(waiting, run_plug_in(&quick));
        assert!(ended.is_err() && brought.is_ok(), "{brought:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let pid = std::fs::read_to_string(&file).expect("it has started");
        // Killed and reaped.
        for _ in 0..100 {
            if !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it runs still");
    }
}
