//! Kubeconfig files: of a cluster's administrator, certificates embedded, and of an account.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Context, user and current context are called `admin`; the cluster has its own name. All three texts are PEM.
pub(crate) fn admin_kubeconfig(
    cluster: &str,
    server: &str,
    authority: &str,
    certificate: &str,
    key: &str,
) -> String {
    let (authority, certificate, key) =
        (STANDARD.encode(authority), STANDARD.encode(certificate), STANDARD.encode(key));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: admin
  context:
    cluster: {cluster}
    user: admin
current-context: admin
"
    )
}

/// The administrator's kubeconfig with this token as credential.
pub(crate) fn token_kubeconfig(text: &str, token: &str) -> String {
    let is_ours = |line: &&str| !line.trim_start().starts_with("client-");
    let line = |line: &str| match line {
        "  user:" => format!("  user:\n    token: {token}\n"),
        line => format!("{line}\n"),
    };
    text.lines().filter(is_ours).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yaml_reader_finds_every_part() {
        let text = admin_kubeconfig("eu-1", "https://127.0.0.1:12345", "authority", "certificate", "key");
        let config: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        let check = |pointer: &str, expected: &str| {
            assert_eq!(config.pointer(pointer).unwrap(), expected, "{pointer}")
        };
        check("/current-context", "admin");
        check("/contexts/0/context/cluster", "eu-1");
        check("/clusters/0/cluster/server", "https://127.0.0.1:12345");
        check("/clusters/0/cluster/certificate-authority-data", "YXV0aG9yaXR5");
        check("/users/0/user/client-certificate-data", "Y2VydGlmaWNhdGU=");
        check("/users/0/user/client-key-data", "a2V5");

        let config: serde_json::Value = serde_yaml::from_str(&token_kubeconfig(&text, "opaque")).unwrap();
        assert_eq!(config["users"][0]["user"], serde_json::json!({"token": "opaque"}));
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:12345");
    }
}
