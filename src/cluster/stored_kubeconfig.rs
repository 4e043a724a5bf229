//! Kubeconfigs in the home cluster.
//!
//! Writing a Secret or ConfigMap there must not allow to start programs or read files on the machine of tutti. So
//! such a kubeconfig must contain everything as data, and one that names a program or file is refused.

use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::{ExposeSecret as _, SecretString};

use super::kubeconfig::KubeconfigContext;
use super::{HomeCluster, HomeError, KeyObjectKind};
use crate::model::DataKeyRef;

/// The place of a kubeconfig.
#[derive(Clone, Debug)]
pub struct StoredKubeconfig {
    pub home: HomeCluster,
    pub object_kind: KeyObjectKind,
    pub at: DataKeyRef,
    pub context: Option<String>,
}

impl StoredKubeconfig {
    /// `kubeconfig in Secret tutti/bj5, key kubeconfig`.
    pub fn describe(&self) -> String {
        let kind = match self.object_kind {
            KeyObjectKind::Secret => "Secret",
            KeyObjectKind::ConfigMap => "ConfigMap",
        };
        format!("kubeconfig in {kind} {}", self.at)
    }

    pub async fn text(&self) -> Result<SecretString, HomeError> {
        self.home.read(self.object_kind, &self.at).await
    }

    /// Errors do not quote its content.
    pub(super) fn parse(&self, text: &SecretString) -> Result<KubeconfigContext, String> {
        let config = Kubeconfig::from_yaml(text.expose_secret())
            .map_err(|_| "it cannot be read as a kubeconfig".to_owned())?;
        let chosen = KubeconfigContext::of(config, self.context.as_deref(), None)?;
        match of_user(&chosen.login).or_else(|| of_cluster(&chosen.cluster)) {
            Some(field) => Err(format!(
                "`{field}` names something on the machine of tutti, which is taken from files under --kubeconfigs alone; \
                 a kubeconfig that the home cluster keeps holds tokens and certificates as data"
            )),
            None => Ok(chosen),
        }
    }
}

/// The first field that names something outside of the kubeconfig.
fn of_user(user: &AuthInfo) -> Option<&'static str> {
    let fields = [
        ("exec", user.exec.is_some()),
        ("auth-provider", user.auth_provider.is_some()),
        ("tokenFile", user.token_file.is_some()),
        ("client-certificate", user.client_certificate.is_some()),
        ("client-key", user.client_key.is_some()),
    ];
    fields.into_iter().find(|(_, is_there)| *is_there).map(|(name, _)| name)
}

fn of_cluster(cluster: &Cluster) -> Option<&'static str> {
    cluster.certificate_authority.is_some().then_some("certificate-authority")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user: &str, cluster: &str, expected: Result<(), &str>) {
        let text = format!(
            "current-context: one\ncontexts: [{{name: one, context: {{cluster: one, user: admin}}}}]\n\
             clusters: [{{name: one, cluster: {{server: 'https://127.0.0.1:1'{cluster}}}}}]\n\
             users: [{{name: admin, user: {user}}}]\n"
        );
        let found = stored(None).parse(&SecretString::from(text)).map(|_| ());
        match (found, expected) {
            (Ok(()), Ok(())) => {}
            (Err(found), Err(expected)) => {
                assert!(found.starts_with(expected) && !found.contains("hunter2"), "{found}");
            }
            other => panic!("{user}: {other:?}"),
        }
    }

    fn stored(context: Option<&str>) -> StoredKubeconfig {
        let at = DataKeyRef { namespace: "tutti".into(), name: "bj5".into(), key: "kubeconfig".into() };
        StoredKubeconfig {
            home: HomeCluster::default(),
            object_kind: KeyObjectKind::Secret,
            at,
            context: context.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn kubeconfig_with_programs_or_files_is_refused() {
        check("{token: hunter2}", "", Ok(()));
        let empty = "{token: hunter2, tokenFile: '', client-certificate: '', client-key: ''}";
        check(empty, ", certificate-authority: ''", Ok(()));
        check(
            "{client-certificate-data: aGk=, client-key-data: aGk=}",
            ", certificate-authority-data: aGk=",
            Ok(()),
        );
        check("{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}", "", Err("`exec` names"));
        check("{tokenFile: /hunter2}", "", Err("`tokenFile` names"));
        check("{client-certificate: /hunter2}", "", Err("`client-certificate` names"));
        check("{client-key: /hunter2}", "", Err("`client-key` names"));
        check("{auth-provider: {name: oidc}}", "", Err("`auth-provider` names"));
        check("{token: hunter2}", ", certificate-authority: /ca.crt", Err("`certificate-authority` names"));
    }

    #[test]
    fn invalid_kubeconfig_is_not_quoted() {
        let parse = |text: &str, context| stored(context).parse(&SecretString::from(text)).expect_err("none");
        assert_eq!(parse("hunter2", None), "it cannot be read as a kubeconfig");
        assert_eq!(parse("clusters: hunter2", None), "it cannot be read as a kubeconfig");
        assert_eq!(parse("{}", None), "it has no current context, and none is named");
        assert_eq!(parse("{}", Some("hunter2")), "it has no such context");
    }
}
