//! Runs the plug-in of a kubeconfig to learn until when what it brings is good.
//!
//! The client runs it too, for itself, and tells nobody what came. So this is one more run for each life of a token: at the
//! connection, and when the end comes near, where it also shows that the plug-in brings nothing new.

use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{Cluster, ExecConfig, ExecInteractiveMode};
use serde_json::{Value, json};
use tokio::process::Command;

use super::credential::{life_of_certificate, life_of_token};

/// The longest that a plug-in is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The life of what a plug-in brought, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    pub issued: Option<Timestamp>,
    pub expires: Option<Timestamp>,
}

/// What it brings is in no error, nor what it prints beside.
pub async fn run(exec: &ExecConfig, cluster: Option<&Cluster>) -> Result<Brought, String> {
    let name = exec.command.as_deref().ok_or_else(|| "the plug-in has no command".to_owned())?;
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Ok(Brought::default());
    }
    let mut command = Command::new(name);
    command.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    command.env("KUBERNETES_EXEC_INFO", info(exec, cluster).to_string());
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let ended = match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => return Err(format!("the plug-in {name} cannot be run: {error}")),
        Err(_) => return Err(format!("the plug-in {name} did not end in {} s", PATIENCE.as_secs())),
    };
    if !ended.status.success() {
        return Err(format!("the plug-in {name} failed: {}", ended.status));
    }
    let brought: Value = serde_json::from_slice(&ended.stdout)
        .map_err(|_| format!("the plug-in {name} printed no ExecCredential"))?;
    Ok(life_of(&brought["status"]))
}

/// What kubectl tells a plug-in.
fn info(exec: &ExecConfig, cluster: Option<&Cluster>) -> Value {
    let mut spec = json!({"interactive": false});
    if let Some(cluster) = cluster.filter(|_| exec.provide_cluster_info) {
        let mut told = json!({"server": cluster.server});
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                told[key] = value;
            }
        };
        add("certificate-authority-data", cluster.certificate_authority_data.clone().map(Value::from));
        add("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify.map(Value::from));
        add("tls-server-name", cluster.tls_server_name.clone().map(Value::from));
        add("proxy-url", cluster.proxy_url.clone().map(Value::from));
        spec["cluster"] = told;
    }
    json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec})
}

/// `expirationTimestamp`, or what the token or certificate says of itself; that which ends first.
fn life_of(status: &Value) -> Brought {
    let text = |key: &str| status[key].as_str();
    let own = text("expirationTimestamp").and_then(|at| at.parse().ok());
    let of_token = text("token").map(life_of_token).unwrap_or_default();
    let of_certificate =
        text("clientCertificateData").map(|pem| life_of_certificate(pem.as_bytes())).unwrap_or_default();
    let lives = [(of_token.0.or(Some(Timestamp::now())), own), of_token, of_certificate];
    let first =
        lives.into_iter().filter(|(_, expires)| expires.is_some()).min_by_key(|(_, expires)| *expires);
    first.map_or_else(Brought::default, |(issued, expires)| Brought { issued, expires })
}

#[cfg(test)]
mod tests {
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
    async fn the_end_is_what_the_plug_in_says() {
        let cluster = Cluster { server: Some("https://bj5".to_owned()), ..Cluster::default() };
        let script = r#"case "$KUBERNETES_EXEC_INFO" in *https://bj5*) ;; *) exit 3 ;; esac
            echo "{\"status\": {\"token\": \"hunter2\", \"expirationTimestamp\": \"$END\"}}""#;
        let brought = run(&exec(script), Some(&cluster)).await.expect("it runs");
        assert_eq!(brought.expires, "2030-01-01T00:00:00Z".parse().ok());
        assert!(brought.issued.is_some(), "a tenth of its life is a time");
        assert_eq!(
            run(&exec(r#"echo '{"status": {"token": "opaque"}}'"#), None).await,
            Ok(Brought::default())
        );
    }

    #[tokio::test]
    async fn a_plug_in_that_fails_is_not_quoted() {
        let check = async |script: &str, expected: &str| {
            assert_eq!(run(&exec(script), None).await, Err(expected.to_owned()));
        };
        check("echo hunter2; exit 7", "the plug-in sh failed: exit status: 7").await;
        check("echo hunter2", "the plug-in sh printed no ExecCredential").await;
        let gone = ExecConfig { command: Some("/no/such/plug-in".to_owned()), ..exec("") };
        let error = run(&gone, None).await.expect_err("it is not there");
        assert!(error.starts_with("the plug-in /no/such/plug-in cannot be run: "), "{error}");
    }
}
