//! Decides which hosts charts are fetched from: the host that the repository names, and hosts that the operator names.
//! Private addresses must be named. Charts are anonymous, so without this rule a repository could make tutti send requests
//! into the inner network.

use std::collections::BTreeSet;
use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::model::{ChartFailure, ChartFailureKind, Hosts, is_loopback, parse_ip, redacted_address};

/// The operator's settings for chart hosts.
#[derive(Clone, Debug, Default)]
pub struct ChartHosts {
    /// Allowed as redirect targets, and with private addresses.
    named: Hosts,
    /// Allowed without TLS.
    without_tls: Hosts,
}

impl ChartHosts {
    pub fn new(named: Hosts, plain: Hosts) -> Self {
        Self { named, without_tls: plain }
    }

    /// For commands without flags for hosts.
    pub fn from_environment() -> Self {
        let list = |variable: &str| {
            let value = env::var(variable).unwrap_or_default();
            Hosts::new(value.split(',').filter(|name| !name.is_empty()))
        };
        Self::new(list("TUTTI_CHART_HOST"), list("TUTTI_ALLOW_HTTP"))
    }

    /// Whether a URL may be requested for a chart of `site`.
    pub fn check_url(&self, url: &Url, site: &Url) -> Result<(), ChartFailure> {
        let refuse = |why: String| {
            let message = format!("failed to fetch {}: {why}", shown_url(url));
            let help = "commands without this flag take the variables TUTTI_CHART_HOST and TUTTI_ALLOW_HTTP";
            Err(ChartFailure::new(ChartFailureKind::Limit, message).help(help))
        };
        let Some(host) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")) else {
            return refuse("only http and https are followed".to_owned());
        };
        let with_port = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let is_named = self.named.has(host, url.port_or_known_default());
        let is_its_own = is_same_origin(url, site);
        if !is_its_own && !is_named {
            let from = site.host_str().unwrap_or_default();
            return refuse(format!("{from} leads to another host (help: --chart-host {with_port})"));
        }
        let is_home = is_its_own && is_loopback(host);
        if parse_ip(host).is_some_and(|address| !is_public(address)) && !is_named && !is_home {
            return refuse(format!("a private address (help: --chart-host {with_port})"));
        }
        if url.scheme() == "http" && !self.allows_plain_http(url) {
            return refuse(format!(
                "the request would be sent without TLS (help: https, or --allow-http {with_port})"
            ));
        }
        Ok(())
    }

    /// Whether plain http is allowed for a URL.
    pub fn allows_plain_http(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        url.host_str().is_some_and(|host| is_loopback(host) || self.without_tls.has(host, port))
    }

    /// Applies the rules of [`Self::check_url`] to resolved addresses.
    pub fn resolver(&self) -> PublicAddressResolver {
        PublicAddressResolver {
            named: self.named.clone(),
            allows_loopback: true,
            proxies: proxy_hosts(),
            flag: "--chart-host",
        }
    }
}

/// Compares scheme, host and port.
pub fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// For messages.
pub fn shown_url(url: &Url) -> String {
    redacted_address(url.as_str())
}

/// Resolves names to public addresses, and named hosts to all of theirs.
#[derive(Clone, Debug)]
pub struct PublicAddressResolver {
    named: Hosts,
    /// Allows `localhost`.
    allows_loopback: bool,
    /// Proxy hosts, which the operator set.
    proxies: BTreeSet<String>,
    /// The flag that names further hosts.
    flag: &'static str,
}

impl PublicAddressResolver {
    /// Without named hosts.
    pub fn without_named_hosts(flag: &'static str) -> Self {
        Self { named: Hosts::default(), allows_loopback: false, proxies: proxy_hosts(), flag }
    }

    fn allows(&self, host: &str, address: IpAddr) -> bool {
        let is_home = host == "localhost" && address.is_loopback();
        is_home && self.allows_loopback
            || self.named.has_any_port(host)
            || self.proxies.contains(host)
            || is_public(address)
    }
}

impl Resolve for PublicAddressResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, host) = (self.clone(), name.as_str().to_ascii_lowercase());
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.iter().filter(|address| rules.allows(&host, address.ip())).copied().collect();
            if allowed.is_empty() && !found.is_empty() {
                let flag = rules.flag;
                return Err(format!("{host} has a private address (help: {flag} {host})").into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Proxy hosts of the environment.
fn proxy_hosts() -> BTreeSet<String> {
    let variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let names = variables.iter().flat_map(|name| [(*name).to_owned(), name.to_ascii_lowercase()]);
    let host_of = |value: String| {
        let address = if value.contains("://") { value } else { format!("http://{value}") };
        Url::parse(&address).ok()?.host_str().map(str::to_ascii_lowercase)
    };
    names.filter_map(|name| env::var(name).ok()).filter_map(host_of).collect()
}

/// Whether an address is public (IANA's registries of special addresses).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = match first {
        // This network, loopback, reserved and broadcast; multicast.
        0 | 127 | 224..=255 => true,
        10 => true,
        // Carrier-grade NAT, where clouds serve metadata too.
        100 => (64..=127).contains(&second),
        169 => second == 254,
        172 => (16..=31).contains(&second),
        192 => second == 168 || second == 0 && matches!(third, 0 | 2) || second == 88 && third == 99,
        198 => matches!(second, 18 | 19) || second == 51 && third == 100,
        203 => second == 0 && third == 113,
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Embedded IPv4: mapped and compatible (with loopback and none), NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, documentation.
        [0x2001, 0 | 0xdb8, ..] => false,
        // Global unicast; not unique local, link-local, multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_recognized() {
        let check = |address: &str, expected: bool| {
            assert_eq!(is_public(address.parse().expect("an address")), expected, "{address}");
        };
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.3.1",
            "2606:4700::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            check(address, true);
        }
        for address in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a00:1::",
            "2001:db8::1",
        ] {
            check(address, false);
        }
    }

    #[test]
    fn chart_hosts_match_exactly() {
        let sites =
            ChartHosts::new(Hosts::new(["cdn.example.com", "10.0.0.1:5000"]), Hosts::new(["10.0.0.1"]));
        let check = |site: &str, url: &str, expected: Result<(), &str>| {
            let parse = |text: &str| Url::parse(text).expect("an address");
            match (sites.check_url(&parse(url), &parse(site)), expected) {
                (Ok(()), Ok(())) => {}
                (Err(found), Err(expected)) => {
                    assert!(found.message.contains(expected), "{url}: {}", found.message)
                }
                (found, _) => panic!("{site} {url}: {found:?}"),
            }
        };
        let site = "https://charts.example.com/v2/";
        check(site, "https://charts.example.com/x", Ok(()));
        check(site, "https://cdn.example.com/x?signature=1", Ok(()));
        check(site, "https://charts.example.com.evil.com/x", Err("--chart-host charts.example.com.evil.com"));
        check(site, "https://charts.example.com:8443/x", Err("--chart-host charts.example.com:8443"));
        check(
            site,
            "https://auth.example.com/token?secret=1",
            Err("auth.example.com/token?***: charts.example.com leads"),
        );
        check(site, "http://charts.example.com/x", Err("another host"));
        check(site, "file:///etc/passwd", Err("only http and https"));
        let plain = "http://charts.example.com/";
        check(plain, plain, Err("--allow-http charts.example.com"));
        for own in [
            "http://127.0.0.1:5000/",
            "http://[::1]:5000/",
            "http://localhost:5000/",
            "http://10.0.0.1:5000/",
        ] {
            check(own, own, Ok(()));
        }
        check("http://127.0.0.1:5000/", "http://127.0.0.1:5001/", Err("--chart-host 127.0.0.1:5001"));
        for private in [
            "https://169.254.169.254/",
            "https://10.0.0.1/",
            "https://[fd00::1]/",
            "https://0x7f.1.1:1/",
            "https://[::ffff:10.0.0.1]/",
        ] {
            let expected = if private.contains("0x7f") { Ok(()) } else { Err("a private address") };
            check(private, private, expected);
        }
        check("https://2852039166/", "https://2852039166/", Err("a private address"));
    }

    #[tokio::test]
    async fn names_of_private_addresses_are_not_resolved() {
        let names = |named: &str| PublicAddressResolver {
            named: Hosts::new([named]),
            allows_loopback: true,
            proxies: BTreeSet::new(),
            flag: "--chart-host",
        };
        let private: IpAddr = "10.0.0.1".parse().expect("an address");
        assert!(!names("other").allows("charts.example.com", private));
        assert!(names("charts.example.com:443").allows("charts.example.com", private));
        assert!(!names("other").allows("localhost", private));
        assert!(names("other").allows("localhost", "127.0.0.1".parse().expect("an address")));
        let alone = PublicAddressResolver::without_named_hosts("--analysis-host");
        assert!(!alone.allows("localhost", "127.0.0.1".parse().expect("an address")));
        let resolved = alone.resolve("localhost".parse().expect("a name")).await;
        let message = resolved.err().expect("it is refused").to_string();
        assert!(message.contains("--analysis-host localhost"), "{message}");
    }
}
