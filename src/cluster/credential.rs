//! With what tutti logs in to a cluster, and until when that is good.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::ExposeSecret as _;

/// Where the token of a pod's service account is.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// Less than this is left: somebody should know.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What shows who we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credential {
    /// In words: `client certificate of user admin`.
    pub way: String,
    pub expires: Option<Timestamp>,
    /// From when on it is good, as far as it says.
    pub issued: Option<Timestamp>,
    /// It is read again and again from a file that somebody else renews.
    pub renewed: bool,
}

impl Credential {
    pub(super) fn new(way: impl Into<String>) -> Self {
        Self { way: way.into(), ..Self::default() }
    }

    /// What is to be said of its end; nothing while that is far.
    pub fn warning(&self, now: Timestamp) -> Option<String> {
        let expires = self.expires?;
        let left = expires.duration_since(now);
        if !left.is_positive() {
            return Some(format!("the {} expired {} ago, at {expires:.0}", self.way, days(-left)));
        }
        let soon = match (self.renewed, self.issued) {
            // Who renews it does so long before its end.
            (true, Some(issued)) => expires.duration_since(issued) / 10,
            (true, None) => SignedDuration::ZERO,
            (false, _) => SOON,
        };
        (left < soon).then(|| format!("the {} expires in {}, at {expires:.0}", self.way, days(left)))
    }

    /// How long it is still good, as a cell of a table.
    pub fn left(expires: Timestamp, now: Timestamp) -> String {
        let left = expires.duration_since(now);
        if left.is_positive() { days(left) } else { "expired".to_owned() }
    }
}

/// `29d`, `30h`, `5m`.
fn days(duration: SignedDuration) -> String {
    match duration.as_secs() {
        0..120 => format!("{}s", duration.as_secs()),
        120..7200 => format!("{}m", duration.as_secs() / 60),
        7200..172_800 => format!("{}h", duration.as_secs() / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

impl Credential {
    /// Of the pod that tutti runs in.
    pub(super) fn of_pod() -> Result<Self, String> {
        let mut credential = Self::new("token of the pod's service account");
        credential.renewed = true;
        let token = fs::read_to_string(SERVICE_ACCOUNT_TOKEN).map_err(|error| error.to_string())?;
        (credential.issued, credential.expires) = life_of_token(token.trim());
        Ok(credential)
    }

    /// Of a context of a kubeconfig; reads the files that it names. Several may be used at once: that which ends first.
    pub(super) fn of(config: &Kubeconfig, context: Option<&str>) -> Result<Self, String> {
        let (user, login) =
            login_of(config, context).ok_or_else(|| "its context names no user that it has".to_owned())?;
        Ok(credential_of(&user, &login))
    }
}

/// The user of a context, and how it logs in.
fn login_of(config: &Kubeconfig, context: Option<&str>) -> Option<(String, AuthInfo)> {
    let context = context.or(config.current_context.as_deref())?;
    let context = config.contexts.iter().find(|it| it.name == context)?.context.as_ref()?;
    let Some(user) = context.user.clone() else { return Some(("anonymous".to_owned(), AuthInfo::default())) };
    let login = config.auth_infos.iter().find(|it| it.name == user)?.auth_info.clone();
    Some((user, login.unwrap_or_default()))
}

/// As the client takes them: a certificate and one of the others may be sent together.
fn credential_of(user: &str, login: &AuthInfo) -> Credential {
    let mut found: Vec<Credential> = Vec::new();
    if let Some(text) = certificate_of(login) {
        let mut credential = Credential::new(format!("client certificate of user {user}"));
        (credential.issued, credential.expires) =
            text.as_deref().map(life_of_certificate).unwrap_or_default();
        found.push(credential);
    }
    if let Some(exec) = &login.exec {
        let command = exec.command.as_deref().unwrap_or("without a name");
        let mut credential = Credential::new(format!("token of the plug-in {command} for user {user}"));
        credential.renewed = true;
        found.push(credential);
    } else if let Some(token) = &login.token {
        let mut credential = Credential::new(format!("token of user {user}"));
        (credential.issued, credential.expires) = life_of_token(token.expose_secret().trim());
        found.push(credential);
    } else if let Some(file) = &login.token_file {
        let mut credential = Credential::new(format!("token of user {user} in {file}"));
        credential.renewed = true;
        let token = fs::read_to_string(file).unwrap_or_default();
        (credential.issued, credential.expires) = life_of_token(token.trim());
        found.push(credential);
    } else if let Some(provider) = &login.auth_provider {
        let mut credential =
            Credential::new(format!("token of the provider {} for user {user}", provider.name));
        credential.renewed = true;
        found.push(credential);
    } else if login.username.is_some() {
        found.push(Credential::new(format!("password of user {user}")));
    }
    let first = found.iter().min_by_key(|it| it.expires.unwrap_or(Timestamp::MAX)).cloned();
    first.unwrap_or_else(|| Credential::new(format!("user {user}, who shows nothing")))
}

/// The certificate as PEM; `Some(None)` when there is one that cannot be read.
fn certificate_of(login: &AuthInfo) -> Option<Option<Vec<u8>>> {
    match (&login.client_certificate_data, &login.client_certificate) {
        (Some(data), _) => Some(STANDARD.decode(data.trim()).ok()),
        (None, Some(file)) => Some(fs::read(file).ok()),
        (None, None) => None,
    }
}

/// From when and until when the first certificate of a PEM text is good.
fn life_of_certificate(text: &[u8]) -> (Option<Timestamp>, Option<Timestamp>) {
    let certificate = CertificateDer::pem_slice_iter(text).flatten().next();
    let times = certificate.and_then(|certificate| validity(&certificate));
    times.map_or((None, None), |(from, until)| (Some(from), Some(until)))
}

/// The two times of an X.509 certificate in DER.
fn validity(der: &[u8]) -> Option<(Timestamp, Timestamp)> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let inside = |(tag, content, _): (u8, _, _)| (tag == SEQUENCE).then_some(content);
    let mut rest = inside(element(inside(element(der)?)?)?)?;
    // The version may be left out; then serial number, algorithm and issuer.
    if let (VERSION, _, after) = element(rest)? {
        rest = after;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let times = inside(element(rest)?)?;
    let (tag, from, rest) = element(times)?;
    let (until_tag, until, _) = element(rest)?;
    Some((time(tag, from)?, time(until_tag, until)?))
}

/// Tag and content of the first element, and what comes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(it, _)| it.len() <= 4)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn time(tag: u8, digits: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(digits).ok()?;
    let text = match tag {
        0x17 if text.get(..2)? < "50" => format!("20{text}"),
        0x17 => format!("19{text}"),
        0x18 => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let [year, month, day] = [part(0, 4)?, part(4, 6)?, part(6, 8)?];
    let [hour, minute, second] = [part(8, 10)?, part(10, 12)?, part(12, 14)?];
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

/// From when and until when a token is good, as far as it is a JSON web token that says so.
fn life_of_token(token: &str) -> (Option<Timestamp>, Option<Timestamp>) {
    let claims = || {
        let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        serde_json::from_slice::<serde_json::Value>(&payload).ok()
    };
    let claims = claims().unwrap_or_default();
    let at = |claim: &str| {
        let seconds = claims.get(claim).and_then(serde_json::Value::as_f64)?;
        Timestamp::from_second(seconds as i64).ok()
    };
    (at("iat"), at("exp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    /// A kubeconfig with one user.
    fn read(user: &str) -> Credential {
        let text = format!(
            "current-context: one\ncontexts: [{{name: one, context: {{cluster: one, user: admin}}}}]\n\
             clusters: [{{name: one, cluster: {{server: 'https://127.0.0.1:1'}}}}]\nusers: [{{name: admin, user: {user}}}]\n"
        );
        let config = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
        Credential::of(&config, None).expect("a credential")
    }

    fn token(claims: &str) -> String {
        format!("e30.{}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_says_until_when_it_is_good() {
        let expires = at("2026-12-01T00:00:00Z");
        let check = |claims: &str, expected: Option<Timestamp>| {
            let found = read(&format!("{{token: {}}}", token(claims)));
            assert_eq!((found.way.as_str(), found.expires), ("token of user admin", expected), "{claims}");
        };
        check(&format!(r#"{{"exp": {}}}"#, expires.as_second()), Some(expires));
        check(r#"{"sub": "me"}"#, None);
        check("not JSON", None);
        assert_eq!(read("{token: opaque}").expires, None);
    }

    /// Of nobody, signed by itself.
    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBbTCCAROgAwIBAgIURPdYLCqGlKGSAMDsJqIDSd+3lBUwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAeFw0yNjExMjIwMTQ1MjFaFw0zNjExMTkwMTQ1MjFaMAwx
CjAIBgNVBAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ2HLbshOkwYsWV
vtP6FxUtibiOksvAQvxl0r1ZDM7f1PDhEpXVr1THKxIn12axGrleU2C9oiW1YPCt
C5kF4Qufo1MwUTAdBgNVHQ4EFgQUcBYec/opT/jXa8E9h4kYuJadNAswHwYDVR0j
BBgwFoAUcBYec/opT/jXa8E9h4kYuJadNAswDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNIADBFAiA2ENfNrq8B9mGPKpmoIrb0gJAOFv3p7/XJuISgiP1QrwIh
AJ9a6jjepjKI+sPu9JEN84X09Ajcbx3snTgGKh+OizDI
-----END CERTIFICATE-----
";

    #[test]
    fn a_certificate_says_until_when_it_is_good() {
        let (from, until) = (at("2026-11-22T01:45:21Z"), at("2036-11-19T01:45:21Z"));
        assert_eq!(life_of_certificate(CERTIFICATE.as_bytes()), (Some(from), Some(until)));
        let found = read(&format!("{{client-certificate-data: {}}}", STANDARD.encode(CERTIFICATE)));
        assert_eq!((found.way.as_str(), found.expires), ("client certificate of user admin", Some(until)));
        // Both are sent: what ends first ends it.
        let earlier = at("2030-01-01T00:00:00Z");
        let token = token(&format!(r#"{{"exp": {}}}"#, earlier.as_second()));
        let both = format!("{{client-certificate-data: {}, token: {token}}}", STANDARD.encode(CERTIFICATE));
        assert_eq!(read(&both).expires, Some(earlier));
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let check = |tag: u8, text: &str, expected: Option<&str>| {
            assert_eq!(time(tag, text.as_bytes()), expected.map(at), "{text}");
        };
        check(0x17, "261122011312Z", Some("2026-11-22T01:13:12Z"));
        check(0x17, "991122011312Z", Some("1999-11-22T01:13:12Z"));
        check(0x18, "20561122011312Z", Some("2056-11-22T01:13:12Z"));
        check(0x18, "2056", None);
        check(0x02, "261122011312Z", None);
    }

    #[test]
    fn what_is_no_certificate_has_no_end_and_no_panic() {
        let hostile =
            [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x80], &[0x30, 0xff, 1]];
        for bytes in hostile {
            assert_eq!(validity(bytes), None, "{bytes:?}");
        }
        let found = read("{client-certificate-data: bm90aGluZw==}");
        assert_eq!((found.way.as_str(), found.expires), ("client certificate of user admin", None));
    }

    #[test]
    fn other_ways_are_named() {
        let check = |user: &str, way: &str| assert_eq!(read(user).way, way, "{user}");
        check(
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}",
            "token of the plug-in aws for user admin",
        );
        check("{username: me, password: secret}", "password of user admin");
        check("{}", "user admin, who shows nothing");
    }

    #[test]
    fn a_warning_comes_in_time() {
        let now = at("2026-11-22T00:00:00Z");
        let check = |expires: &str, renewed: bool, expected: Option<&str>| {
            let issued = Some(at("2026-11-21T00:00:00Z"));
            let way = "token of user admin".to_owned();
            let credential = Credential { way, expires: Some(at(expires)), issued, renewed };
            assert_eq!(credential.warning(now).as_deref(), expected, "{expires}");
        };
        check("2026-12-23T00:00:00Z", false, None);
        check(
            "2026-12-20T00:00:00Z",
            false,
            Some("the token of user admin expires in 28d, at 2026-12-20T00:00:00Z"),
        );
        check(
            "2026-11-21T22:00:00Z",
            false,
            Some("the token of user admin expired 2h ago, at 2026-11-21T22:00:00Z"),
        );
        check("2026-11-22T12:00:00Z", true, None);
        check(
            "2026-11-22T01:00:00Z",
            true,
            Some("the token of user admin expires in 60m, at 2026-11-22T01:00:00Z"),
        );
    }
}
