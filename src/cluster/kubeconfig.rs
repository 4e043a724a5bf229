//! Reads one context of a kubeconfig: its cluster and its user. The rest of the file is ignored.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::error::innermost;
use super::login::Login;
use crate::model::Digest;

/// Its errors quote nothing secret.
#[derive(Clone)]
pub(super) struct KubeconfigContext {
    pub cluster: Cluster,
    pub user: String,
    pub login: AuthInfo,
}

impl fmt::Debug for KubeconfigContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KubeconfigContext({})", self.user)
    }
}

impl KubeconfigContext {
    /// `context`: its name; otherwise the current one. `folder`: the base of its paths, if reading made them
    /// absolute.
    pub fn of(config: Kubeconfig, context: Option<&str>, folder: Option<&Path>) -> Result<Self, String> {
        let Some(name) = context.or(config.current_context.as_deref()).filter(|name| !name.is_empty()) else {
            return Err("it has no current context, and none is named".to_owned());
        };
        let context = config.contexts.into_iter().find(|it| it.name == name).and_then(|it| it.context);
        let context = context.ok_or_else(|| "it has no such context".to_owned())?;
        let cluster = config.clusters.into_iter().find(|it| it.name == context.cluster);
        let cluster = cluster.and_then(|it| it.cluster);
        let mut cluster = cluster.ok_or_else(|| "its context names no cluster that it has".to_owned())?;
        // As kubectl: a user that is named and missing is anonymous.
        let user = context.user.filter(|user| !user.is_empty());
        let login = config.auth_infos.into_iter().find(|it| Some(&it.name) == user.as_ref());
        let mut login = login.and_then(|it| it.auth_info).unwrap_or_default();
        drop_empty_of_cluster(&mut cluster, folder);
        drop_empty_of_user(&mut login, folder);
        Ok(Self { cluster, user: user.unwrap_or_else(|| "anonymous".to_owned()), login })
    }

    /// A digest of its content. Files count by name alone: their renewal needs no new connection.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&json!([self.cluster, self.login]))
    }

    pub fn login(&self) -> Result<Login, String> {
        let mut login = self.login.clone();
        if let Some(exec) = login.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
            let told = ExecAuthCluster::try_from(&self.cluster);
            exec.cluster = Some(told.map_err(|error| innermost(&error))?);
        }
        Login::of(&self.user, &login)
    }

    /// The server part. Of the user it contains only the impersonation; `Login` adds the rest.
    pub fn config(&self) -> Result<kube::Config, String> {
        let server =
            self.cluster.server.as_deref().ok_or_else(|| "its cluster has no `server`".to_owned())?;
        let url = server.parse().map_err(|error| format!("its `server` is not an address: {error}"))?;
        let mut config = kube::Config::new(url);
        config.accept_invalid_certs = self.cluster.insecure_skip_tls_verify.unwrap_or(false);
        config.disable_compression = self.cluster.disable_compression.unwrap_or(false);
        config.tls_server_name = self.cluster.tls_server_name.clone();
        config.root_cert = self.authorities()?;
        // Read again each minute: an authority is replaced like a certificate.
        let is_file = self.cluster.certificate_authority_data.is_none() && config.root_cert.is_some();
        config.root_cert_file =
            self.cluster.certificate_authority.as_ref().filter(|_| is_file).map(PathBuf::from);
        config.auth_info = acting_as(&self.login);
        Ok(config)
    }

    /// The authorities as DER.
    fn authorities(&self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let data = self.cluster.certificate_authority_data.as_ref();
        let file = self.cluster.certificate_authority.as_ref();
        let pem = match (data, file) {
            (Some(data), _) => {
                let text: String = data.split_whitespace().collect();
                STANDARD
                    .decode(text)
                    .map_err(|_| "its certificate-authority-data is not base64".to_owned())?
            }
            (None, Some(file)) => {
                std::fs::read(file).map_err(|error| format!("its certificate-authority {file}: {error}"))?
            }
            (None, None) => return Ok(None),
        };
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        match found {
            Ok(found) if !found.is_empty() => Ok(Some(found.iter().map(|it| it.to_vec()).collect())),
            _ => Err("its certificate authority holds no certificate".to_owned()),
        }
    }
}

/// An empty field counts as missing, as in Go. An empty path that was made absolute equals the folder.
fn drop_empty(field: &mut Option<String>, folder: Option<&Path>) {
    let is_empty =
        |text: &str| text.is_empty() || folder.is_some_and(|folder| folder.join("").as_os_str() == text);
    *field = field.take().filter(|text| !is_empty(text));
}

fn drop_empty_of_cluster(cluster: &mut Cluster, folder: Option<&Path>) {
    drop_empty(&mut cluster.certificate_authority, folder);
    let texts = [
        &mut cluster.server,
        &mut cluster.certificate_authority_data,
        &mut cluster.proxy_url,
        &mut cluster.tls_server_name,
    ];
    texts.into_iter().for_each(|text| drop_empty(text, None));
}

fn drop_empty_of_user(user: &mut AuthInfo, folder: Option<&Path>) {
    for path in [&mut user.token_file, &mut user.client_certificate, &mut user.client_key] {
        drop_empty(path, folder);
    }
    let texts = [
        &mut user.username,
        &mut user.client_certificate_data,
        &mut user.impersonate,
        &mut user.impersonate_uid,
    ];
    texts.into_iter().for_each(|text| drop_empty(text, None));
    let drop_secret = |secret: &mut Option<SecretString>| {
        *secret = secret.take().filter(|secret| !secret.expose_secret().is_empty());
    };
    drop_secret(&mut user.token);
    drop_secret(&mut user.client_key_data);
    // A password may be empty. It needs a user name.
    user.password = user.password.take().filter(|_| user.username.is_some());
}

/// The impersonation without the credential.
fn acting_as(login: &AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: login.impersonate.clone(),
        impersonate_uid: login.impersonate_uid.clone(),
        impersonate_groups: login.impersonate_groups.clone(),
        impersonate_user_extra: login.impersonate_user_extra.clone(),
        ..AuthInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str, context: Option<&str>) -> Result<KubeconfigContext, String> {
        KubeconfigContext::of(Kubeconfig::from_yaml(text).expect("a kubeconfig"), context, None)
    }

    const TWO: &str = "
current-context: one
contexts:
- {name: one, context: {cluster: a, user: me}}
- {name: two, context: {cluster: b, user: you}}
clusters:
- {name: a, cluster: {server: 'https://a'}}
- {name: b, cluster: {server: 'https://b'}}
users:
- {name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, env: [{name: A, value: x}]}}}
- {name: you, user: {token: hunter2}}
";

    #[test]
    fn other_contexts_do_not_change_the_digest() {
        let mark = |text: &str, context| chosen(text, context).expect("it is there").digest();
        let (one, two) = (mark(TWO, Some("one")), mark(TWO, Some("two")));
        assert_ne!(one, two);
        let more =
            TWO.replace("contexts:\n", "contexts:\n- {name: three, context: {cluster: b, user: me}}\n");
        let used = more.replace("current-context: one", "current-context: two");
        for _ in 0..20 {
            assert_eq!((mark(&used, Some("one")), mark(&used, None)), (one, two));
        }
        assert_eq!(mark(&TWO.replace("hunter2", "hunter3"), Some("one")), one);
        assert_ne!(mark(&TWO.replace("hunter2", "hunter3"), Some("two")), two);
        assert_ne!(mark(&TWO.replace("https://a", "https://c"), None), one);
        assert_ne!(mark(&TWO.replace("value: x", "value: y"), None), one);
    }

    #[test]
    fn missing_kubeconfig_parts_are_named() {
        let check = |text: &str, context, expected: &str| {
            assert_eq!(chosen(text, context).err().as_deref(), Some(expected), "{text}");
        };
        check("{}", None, "it has no current context, and none is named");
        check(TWO, Some("three"), "it has no such context");
        check(&TWO.replace("{name: a,", "{name: c,"), None, "its context names no cluster that it has");
        let nobody = chosen(&TWO.replace("{name: me,", "{name: them,"), None).expect("as kubectl");
        assert_eq!(nobody.login().expect("nothing").credential().description, "user me without credentials");
    }

    /// As in Go, where a missing text is empty.
    #[test]
    fn empty_fields_count_as_missing() {
        let of = |cluster: &str, user: &str| {
            let text = TWO.replace("server: 'https://b'", &format!("server: 'https://b'{cluster}"));
            chosen(&text.replace("token: hunter2", user), Some("two")).expect("it is there")
        };
        let told = |chosen: &KubeconfigContext| chosen.login().map(|login| login.credential().description);
        let check = |empty: &str, user: &str, expected: &str| {
            let (with, without) = (of("", &format!("{empty}, {user}")), of("", user));
            assert_eq!(with.digest(), without.digest(), "{empty}");
            let told = told(&with).unwrap_or_else(|error| error);
            assert!(told.contains(expected), "{empty}: {told}");
        };
        let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}";
        check("token: ''", exec, "token of the plug-in aws for user you");
        check("username: '', password: ''", "token: hunter2", "token of user you");
        check("tokenFile: '', as: '', as-uid: ''", "token: hunter2", "token of user you");
        check("username: '', password: hunter3", "token: hunter2", "token of user you");
        check("tokenFile: ''", "username: me, password: ''", "password of user you");
        let files = "client-certificate: /no/such.crt, client-key: /no/such.key";
        check("client-certificate-data: '', client-key-data: ''", files, "/no/such.crt: ");
        check("client-certificate: '', client-key: ''", "token: hunter2", "token of user you");

        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.crt");
        let authority = rcgen::generate_simple_self_signed(Vec::new()).expect("signed");
        std::fs::write(&file, authority.cert.pem()).expect("a file");
        let named = format!(", certificate-authority: {}", file.display());
        let empty = ", certificate-authority-data: '', proxy-url: '', tls-server-name: ''";
        let with = of(&format!("{named}{empty}"), "token: hunter2");
        assert_eq!(with.digest(), of(&named, "token: hunter2").digest());
        assert_eq!(with.config().expect("an authority").root_cert_file, Some(file));
    }
}
