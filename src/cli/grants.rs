//! Grants of the operator to the config repository: secrets, hosts, namespaces. From flags and the settings file.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::chart::ChartHosts;
use crate::controller::RepositoryGrants;
use crate::forge::ForgeHostRules;
use crate::model::{Hosts, is_loopback};
use crate::source::GitCredentials;

#[derive(Args, Clone, Debug, Default)]
pub struct GrantArgs {
    /// Environment variable that the config repository may reference by `{env: NAME}`; names that begin with
    /// TUTTI_SECRET_ are always allowed
    #[arg(long, env = "TUTTI_SECRET_ENV", value_delimiter = ',', value_name = "NAME")]
    pub secret_env: Vec<String>,
    /// Folder with files that the config repository may reference by `{file: PATH}`; without it, no file is allowed
    #[arg(long, env = "TUTTI_SECRETS", value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// Namespace of the home cluster whose Secrets the config repository may reference; default: that of the tutti
    /// pod or the home kubeconfig
    #[arg(long, env = "TUTTI_SECRET_NAMESPACE", value_delimiter = ',', value_name = "NAMESPACE")]
    pub secret_namespace: Vec<String>,
    /// Host of the forge, if it differs from the host of the config repository
    #[arg(long, env = "TUTTI_FORGE_HOST", value_delimiter = ',', value_name = "HOST[:PORT]")]
    pub forge_host: Vec<String>,
    /// Host that may receive tokens and Analysis requests, and serve charts (also `oci://`), without TLS, such as a
    /// Service in the cluster
    #[arg(long, env = "TUTTI_ALLOW_HTTP", value_delimiter = ',', value_name = "HOST[:PORT]")]
    pub allow_http: Vec<String>,
    /// Host that may serve charts even if it is named only by a redirect or another host, or has a private address
    #[arg(long, env = "TUTTI_CHART_HOST", value_delimiter = ',', value_name = "HOST[:PORT]")]
    pub chart_host: Vec<String>,
    /// Host that an Analysis may send credentials to, and may call although its address is private
    #[arg(long, env = "TUTTI_ANALYSIS_HOST", value_delimiter = ',', value_name = "HOST[:PORT]")]
    pub analysis_host: Vec<String>,
}

impl GrantArgs {
    /// Merged with the settings file; a list of flags wins.
    pub fn with_file_defaults(&self, file: Self) -> Self {
        let list = |flags: &[String], file: Vec<String>| if flags.is_empty() { file } else { flags.to_vec() };
        Self {
            secret_env: list(&self.secret_env, file.secret_env),
            secrets: self.secrets.clone().or(file.secrets),
            secret_namespace: list(&self.secret_namespace, file.secret_namespace),
            forge_host: list(&self.forge_host, file.forge_host),
            allow_http: list(&self.allow_http, file.allow_http),
            chart_host: list(&self.chart_host, file.chart_host),
            analysis_host: list(&self.analysis_host, file.analysis_host),
        }
    }

    pub fn chart_sites(&self) -> ChartHosts {
        ChartHosts::new(hosts(&self.chart_host), hosts(&self.allow_http))
    }

    /// `token`: the variable of the repository's token, which its forge may have too.
    pub fn grants(self, repository: &str, token: Option<&str>) -> RepositoryGrants {
        let forge = ForgeHostRules::new(repository, hosts(&self.forge_host), hosts(&self.allow_http));
        let (allow_http, analysis_hosts) = (hosts(&self.allow_http), hosts(&self.analysis_host));
        let variables = self.secret_env.into_iter().chain(token.map(ToOwned::to_owned)).collect();
        RepositoryGrants { variables, folder: self.secrets, forge, allow_http, analysis_hosts }
    }

    /// Refuses to send the repository's token without TLS.
    pub fn check_repository(&self, url: &str, credentials: &GitCredentials) -> anyhow::Result<()> {
        let Some(parsed) = reqwest::Url::parse(url).ok().filter(|url| url.scheme() == "http") else {
            return Ok(());
        };
        let is_in_address = parsed.password().is_some() || !parsed.username().is_empty();
        let is_secret = is_in_address || matches!(credentials, GitCredentials::Token(_));
        let allowed = hosts(&self.allow_http);
        let is_named =
            parsed.host_str().is_some_and(|host| allowed.has(host, parsed.port_or_known_default()));
        if is_secret && !parsed.host_str().is_some_and(is_loopback) && !is_named {
            let host = parsed.host_str().context("the address of the config repository has no host")?;
            bail!(
                "the token of the config repository would be sent to {host} without TLS: use https, or --allow-http {host}"
            );
        }
        Ok(())
    }
}

fn hosts(names: &[String]) -> Hosts {
    Hosts::new(names.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_of_the_repository_needs_tls() {
        let args = GrantArgs { allow_http: vec!["gitea.svc".to_owned()], ..GrantArgs::default() };
        let check = |url: &str, token: Option<&str>, expected: bool| {
            let credentials = token.map_or(GitCredentials::None, |token| GitCredentials::Token(token.into()));
            let found = args.check_repository(url, &credentials);
            assert_eq!(found.is_ok(), expected, "{url}: {found:?}");
        };
        for (url, expected) in [
            ("https://gitea.example.com/a/b", true),
            ("http://gitea.example.com/a/b", false),
            ("HTTP://gitea.example.com/a/b", false),
            ("http://gitea.svc:3000/a/b", true),
            ("http://127.0.0.1:3000/a/b", true),
            ("http://localhost/a/b", true),
            ("git@gitea.example.com:a/b", true),
            ("/srv/config", true),
        ] {
            check(url, Some("token"), expected);
            check(url, None, true);
        }
        check("http://li:s3cr3t@gitea.example.com/a/b", None, false);
        check("http://token@gitea.example.com/a/b", None, false);
    }
}
