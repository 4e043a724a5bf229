//! Decides which forge hosts may get the token, as `tutti.yaml` names the forge.

use reqwest::Url;

use super::Error;
use crate::model::{Hosts, is_loopback};

/// The settings of the operator.
#[derive(Clone, Debug, Default)]
pub struct ForgeHostRules {
    /// The host of the config repository, with its port if both use HTTP.
    repository_host: Option<Url>,
    allowed_hosts: Hosts,
    /// Hosts that may get a token without TLS.
    plain_http_hosts: Hosts,
}

impl ForgeHostRules {
    /// `repository` is the address of the config repository. A local path has no host.
    pub fn new(repository: &str, named: Hosts, plain: Hosts) -> Self {
        Self {
            repository_host: repository_host_url(repository),
            allowed_hosts: named,
            plain_http_hosts: plain,
        }
    }

    /// Whether a token may be sent to a forge at this address.
    pub fn check(&self, url: &Url, has_token: bool) -> Result<(), Error> {
        let shown = || host_and_port(url);
        if !self.is_home(url) && !is_listed(&self.allowed_hosts, url) {
            let home = self
                .repository_host
                .as_ref()
                .map_or_else(|| "on this machine".to_owned(), |home| format!("on {}", host_and_port(home)));
            return Err(Error::ForeignHost { host: shown(), home });
        }
        if has_token
            && url.scheme() != "https"
            && !url.host_str().is_some_and(is_loopback)
            && !is_listed(&self.plain_http_hosts, url)
        {
            return Err(Error::PlainHttp { host: shown() });
        }
        Ok(())
    }

    fn is_home(&self, url: &Url) -> bool {
        let Some(home) = &self.repository_host else { return false };
        let is_http = matches!(home.scheme(), "http" | "https");
        home.host_str() == url.host_str()
            && (!is_http || home.port_or_known_default() == url.port_or_known_default())
    }
}

/// `https://…`, `ssh://…`, or `user@host:path`.
fn repository_host_url(repository: &str) -> Option<Url> {
    if repository.contains("://") {
        let url = Url::parse(repository).ok()?;
        let host = url.host_str()?.to_ascii_lowercase();
        // Parsed again as https, to normalize hosts of other schemes.
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = if matches!(url.scheme(), "http" | "https") { url.scheme() } else { "ssh" };
        return Url::parse(&format!("{scheme}://{host}{port}/")).ok();
    }
    let (host, _) = repository.split_once(':').filter(|(host, _)| !host.contains('/'))?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    Url::parse(&format!("ssh://{host}/")).ok()
}

fn is_listed(hosts: &Hosts, url: &Url) -> bool {
    url.host_str().is_some_and(|host| hosts.has(host, url.port_or_known_default()))
}

fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forge_must_be_on_the_repository_host() {
        let check = |repository: &str, forge: &str, expected: Result<(), &str>| {
            let rules = ForgeHostRules::new(
                repository,
                Hosts::new(["Other.example.com", "ports.example.com:3000", "127.0.0.1"]),
                Hosts::new(["gitea.svc:3000"]),
            );
            let found = rules.check(&Url::parse(forge).expect("an address"), true);
            match (found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(found), Err(expected)) => {
                    assert!(found.to_string().contains(expected), "{repository} {forge}: {found}");
                }
                (found, _) => panic!("{repository} {forge}: {found:?}"),
            }
        };
        let (host, plain) = (Err("--forge-host"), Err("--allow-http"));
        let repository = "https://gitea.example.com/a/b.git";
        check(repository, "https://gitea.example.com", Ok(()));
        check(repository, "https://GITEA.example.com:443/sub", Ok(()));
        check(repository, "https://gitea.example.com:3000", host);
        check(repository, "http://gitea.example.com:443", plain);
        check(repository, "http://gitea.example.com", host);
        check(repository, "https://gitea.example.com.evil.com", host);
        check(repository, "https://evil.com/gitea.example.com", host);
        check(repository, "https://other.example.com", Ok(()));
        check(repository, "https://ports.example.com:3000", Ok(()));
        check(repository, "https://ports.example.com", host);
        check(repository, "http://other.example.com", plain);
        check("http://gitea.svc:3000/a/b", "http://gitea.svc:3000", Ok(()));
        check("http://other.svc/a/b", "http://other.svc", plain);
        check("http://127.0.0.1:3000/a/b", "http://127.0.0.1:3000", Ok(()));
        check("http://[::1]:3000/a/b", "http://[::1]:3000", Ok(()));
        check("http://localhost:3000/a/b", "http://localhost:3000", Ok(()));
        check("http://localhost.evil.com/a/b", "http://localhost.evil.com", plain);
        for repository in
            ["git@gitea.example.com:a/b", "ssh://git@Gitea.example.com:2222/a/b", "gitea.example.com:a/b"]
        {
            check(repository, "https://gitea.example.com", Ok(()));
            check(repository, "https://evil.com", host);
        }
        for repository in [".", "/srv/config", "file:///srv/config", "../odd:name"] {
            check(repository, "https://gitea.example.com", host);
            check(repository, "http://127.0.0.1:3000", Ok(()));
        }
    }
}
