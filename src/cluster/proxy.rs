//! Opens connections to a server, directly or through a proxy. As in kubectl, `proxy-url` of a kubeconfig always
//! applies. Otherwise the environment decides, unless NO_PROXY names the server.

use std::net::IpAddr;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use crate::model::is_loopback;

/// Opens connections to a server, or to a proxy for it.
pub(super) type Dialer = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, ConnectError>;

/// The server or its proxy cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct ConnectError(BoxError);

/// The proxy variables of the environment.
#[derive(Debug, Default)]
struct ProxyEnvironment {
    https: String,
    http: String,
    no_proxy: String,
}

/// Read once: it does not change while the process runs.
static ENVIRONMENT: LazyLock<ProxyEnvironment> = LazyLock::new(|| {
    let first = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        found.unwrap_or_default()
    };
    ProxyEnvironment {
        https: first(["HTTPS_PROXY", "https_proxy"]),
        http: first(["HTTP_PROXY", "http_proxy"]),
        no_proxy: first(["NO_PROXY", "no_proxy"]),
    }
});

/// The proxy for a server. `named`: that of its kubeconfig.
pub(super) fn proxy_for(server: &Uri, named: Option<&str>) -> Result<Option<Proxy>, String> {
    ENVIRONMENT.to(server, named)
}

impl ProxyEnvironment {
    fn to(&self, server: &Uri, named: Option<&str>) -> Result<Option<Proxy>, String> {
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            return Proxy::parse(named).map(Some);
        }
        let is_plain = server.scheme() == Some(&Scheme::HTTP);
        let proxy = if is_plain { &self.http } else { &self.https };
        if proxy.is_empty() {
            return Ok(None);
        }
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
        let port = server.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        // Loopback addresses never use a proxy of the environment.
        if is_loopback(&host) || self.no_proxy.split(',').any(|part| covers(part, &host, port)) {
            return Ok(None);
        }
        Proxy::parse(proxy).map(Some)
    }
}

/// Whether a part of NO_PROXY names this host: `*`, an address, a network, a domain with its subdomains, or with a
/// leading dot its subdomains only. All but networks may have a port.
fn covers(part: &str, host: &str, port: u16) -> bool {
    let part = part.trim().to_lowercase();
    if part == "*" {
        return true;
    }
    let address: Option<IpAddr> = host.parse().ok();
    if let Some((network, length)) = part.split_once('/') {
        let (Ok(network), Ok(length), Some(address)) = (network.parse(), length.parse(), address) else {
            return false;
        };
        return is_in(address, network, length);
    }
    let (name, of_port) = with_port(&part);
    if name.is_empty() || of_port.is_some_and(|of_port| of_port != port) {
        return false;
    }
    match (name.parse::<IpAddr>(), address) {
        (Ok(named), Some(address)) => named == address,
        (Ok(_), None) | (Err(_), Some(_)) => false,
        (Err(_), None) => {
            let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
            let below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
            match name.strip_prefix('.') {
                Some(domain) => below(domain),
                None => host == name || below(name),
            }
        }
    }
}

/// A name or address with its port: `a:443`, `[::1]:443`, `::1`.
fn with_port(part: &str) -> (&str, Option<u16>) {
    let bare = |name: &str| name.parse::<IpAddr>().is_ok();
    match part.rsplit_once(':') {
        Some((name, port)) if !bare(part) => match port.parse() {
            Ok(port) => (name.trim_matches(['[', ']']), Some(port)),
            Err(_) => (part.trim_matches(['[', ']']), None),
        },
        _ => (part.trim_matches(['[', ']']), None),
    }
}

fn is_in(address: IpAddr, network: IpAddr, length: u32) -> bool {
    let (address, network, bits) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            (u128::from(address.to_bits()), u128::from(network.to_bits()), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    // A length of 0 compares nothing.
    length <= bits && (address ^ network).checked_shr(bits - length).unwrap_or_default() == 0
}

/// Its address may contain a password, so no error shows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    kind: ProxyKind,
    /// Without user and password.
    address: Uri,
    login: Option<(String, String)>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.address)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyKind {
    Http,
    Https,
    Socks,
}

impl Proxy {
    /// The default scheme is `http://`.
    fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || "a proxy (`proxy-url`, HTTPS_PROXY) is http://, https:// or socks5://, with a host".to_owned();
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (kind, port) = match uri.scheme_str() {
            Some("http") => (ProxyKind::Http, 80),
            Some("https") => (ProxyKind::Https, 443),
            Some("socks5" | "socks5h") => (ProxyKind::Socks, 1080),
            _ => return Err(wrong()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let place: Authority =
            format!("{host}:{}", uri.port_u16().unwrap_or(port)).parse().map_err(|_| wrong())?;
        // The scheme selects TLS to the proxy itself.
        let scheme = if kind == ProxyKind::Https { Scheme::HTTPS } else { Scheme::HTTP };
        let address = Uri::builder().scheme(scheme).authority(place).path_and_query("/").build();
        let user = uri.authority().and_then(|it| it.as_str().rsplit_once('@')).map(|(user, _)| user);
        let login = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (decoded(name), decoded(password))
        });
        Ok(Self { kind, address: address.map_err(|_| wrong())?, login })
    }

    /// Connections through the proxy. Its certificate is verified like the cluster's.
    fn dial(&self, tcp: HttpConnector, tls: &rustls::ClientConfig) -> Result<Dialer, String> {
        let first = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let address = self.address.clone();
        if self.kind == ProxyKind::Socks {
            let mut socks = SocksV5::new(address, first);
            if let Some((name, password)) = self.login.clone() {
                socks = socks.with_auth(name, password);
            }
            return Ok(Dialer::new(
                socks.map_err(|error| ConnectError(error.to_string().into())).map_request(with_its_port),
            ));
        }
        let mut tunnel = Tunnel::new(address, first);
        if let Some((name, password)) = &self.login {
            let basic = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
            let header =
                HeaderValue::try_from(basic).map_err(|_| "the login of its proxy is not valid".to_owned())?;
            tunnel = tunnel.with_auth(header);
        }
        Ok(Dialer::new(tunnel.map_err(|error| ConnectError(error.into())).map_request(with_its_port)))
    }
}

/// Connections, directly or through a proxy.
pub(super) fn dial(
    proxy: Option<&Proxy>,
    tcp: HttpConnector,
    tls: &rustls::ClientConfig,
) -> Result<Dialer, String> {
    match proxy {
        Some(proxy) => proxy.dial(tcp, tls),
        None => Ok(Dialer::new(
            tcp.map_response(MaybeHttpsStream::Http).map_err(|error| ConnectError(error.into())),
        )),
    }
}

/// A proxy client takes an address without a port for TLS.
fn with_its_port(server: Uri) -> Uri {
    if server.port().is_some() || server.scheme() != Some(&Scheme::HTTP) {
        return server;
    }
    let mut parts = server.clone().into_parts();
    parts.authority = server.host().and_then(|host| format!("{host}:80").parse().ok());
    Uri::from_parts(parts).unwrap_or(server)
}

/// `p%40ss` becomes `p@ss`. Invalid sequences stay.
fn decoded(text: &str) -> String {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, tail @ ..] = rest {
        let sign = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| hex::decode(digits).ok());
        rest = if sign.is_some() { &tail[2..] } else { tail };
        bytes.push(sign.map_or(*first, |sign| sign[0]));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy_of(environment: &ProxyEnvironment, server: &str, named: Option<&str>) -> Option<String> {
        let server = server.parse().expect("an address");
        environment.to(&server, named).expect("a proxy").map(|proxy| proxy.address.to_string())
    }

    #[test]
    fn no_proxy_names_clusters_and_not_proxies() {
        let check = |no_proxy: &str, server: &str, is_covered: bool| {
            let https = "http://10.9.9.9:3128".to_owned();
            let environment =
                ProxyEnvironment { https, no_proxy: no_proxy.to_owned(), ..ProxyEnvironment::default() };
            assert_eq!(proxy_of(&environment, server, None).is_none(), is_covered, "{no_proxy}: {server}");
        };
        for (no_proxy, server, is_covered) in [
            ("", "https://bj1.corp", false),
            ("10.9.9.9", "https://bj1.corp", false),
            ("*", "https://bj1.corp", true),
            ("a, * ,b", "https://bj1.corp", true),
            ("corp", "https://bj1.corp:6443", true),
            ("CORP", "https://BJ1.corp", true),
            ("corp", "https://corp", true),
            ("corp", "https://bj1corp", false),
            (".corp", "https://bj1.corp", true),
            (".corp", "https://corp", false),
            ("*.corp", "https://bj1.corp", true),
            ("*.corp", "https://corp", false),
            ("1.corp", "https://bj1.corp", false),
            (",,bj1.corp,", "https://bj1.corp", true),
            ("bj1.corp:6443", "https://bj1.corp:6443", true),
            ("bj1.corp:6443", "https://bj1.corp", false),
            ("bj1.corp:443", "https://bj1.corp", true),
            ("10.0.0.0/8", "https://10.1.2.3:6443", true),
            ("10.0.0.0/8", "https://11.1.2.3", false),
            ("0.0.0.0/0", "https://11.1.2.3", true),
            ("10.0.0.0/33", "https://10.1.2.3", false),
            ("10.0.0.0/8", "https://bj1.corp", false),
            ("10.1.2.3", "https://10.1.2.3:6443", true),
            ("10.1.2.3:6443", "https://10.1.2.3:6443", true),
            ("10.1.2.3:443", "https://10.1.2.3:6443", false),
            ("2.3", "https://10.1.2.3", false),
            ("fd00::/8", "https://[fd00::1]:6443", true),
            ("fd00::1", "https://[fd00::1]:6443", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", true),
            ("[fd00::1]", "https://[fd00::2]:6443", false),
            // Always.
            ("", "https://localhost:6443", true),
            ("", "https://127.0.0.2", true),
            ("", "https://[::1]:6443", true),
        ] {
            check(no_proxy, server, is_covered);
        }
    }

    #[test]
    fn the_proxy_of_a_kubeconfig_holds_always() {
        let environment = ProxyEnvironment {
            https: "secure:1".to_owned(),
            http: "http://me:hunter2@plain".to_owned(),
            no_proxy: "*".to_owned(),
        };
        let named = Some("socks5://named");
        assert_eq!(
            proxy_of(&environment, "https://127.0.0.1:6443", named).as_deref(),
            Some("http://named:1080/")
        );
        assert_eq!(proxy_of(&environment, "https://a", Some("")), None);
        let environment = ProxyEnvironment { no_proxy: String::new(), ..environment };
        assert_eq!(proxy_of(&environment, "https://a", None).as_deref(), Some("http://secure:1/"));
        assert_eq!(proxy_of(&environment, "http://a", None).as_deref(), Some("http://plain:80/"));
        assert_eq!(proxy_of(&ProxyEnvironment::default(), "https://a", None), None);
    }

    #[test]
    fn proxy_password_is_only_in_the_login() {
        let proxy = Proxy::parse("https://me:hun%40ter2%@proxy.corp").expect("a proxy");
        assert_eq!(proxy.login, Some(("me".to_owned(), "hun@ter2%".to_owned())));
        assert_eq!(
            (proxy.kind, proxy.address.to_string()),
            (ProxyKind::Https, "https://proxy.corp:443/".to_owned())
        );
        assert!(!format!("{proxy:?}").contains("hun"));
        for wrong in ["ftp://me:hunter2@proxy", "http://", "http://me:hun ter2@proxy", "socks4://hunter2"] {
            let error = Proxy::parse(wrong).expect_err("none");
            assert!(error.contains("socks5://") && !error.contains("ter2"), "{error}");
        }
    }

    #[test]
    fn plain_server_gets_an_explicit_port() {
        let check = |server: &'static str, expected: &str| {
            assert_eq!(with_its_port(Uri::from_static(server)).to_string(), expected);
        };
        check("http://a/b", "http://a:80/b");
        check("http://a:8080/b", "http://a:8080/b");
        check("https://a/b", "https://a/b");
    }
}
