//! The credential of a connection, its lifetime, and the warning before it ends.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::time::Time;

/// With less time left, people are warned.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The same for a renewed credential without an issue time.
const SOON_OF_RENEWED: SignedDuration = SignedDuration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credential {
    /// As text: `client certificate of user admin`.
    pub description: String,
    pub expires: Option<Timestamp>,
    /// The start of its validity, if known.
    pub issued: Option<Timestamp>,
    /// Somebody renews its file, or a plug-in brings a new one.
    pub is_renewed: bool,
    /// Its end is unknown until the plug-in has run.
    pub is_from_plug_in: bool,
    /// Why the plug-in brings no new one.
    pub plug_in_error: Option<String>,
}

impl Credential {
    pub(super) fn new(way: impl Into<String>) -> Self {
        Self { description: way.into(), ..Self::default() }
    }

    /// The warning about its end; `None` while that is far away.
    pub fn warning(&self, now: Timestamp) -> Option<String> {
        let left = self.expires.map(|expires| (expires, expires.duration_since(now)));
        if let Some(trouble) = &self.plug_in_error {
            return Some(match left {
                Some((expires, left)) if left.is_positive() => {
                    format!(
                        "{trouble}; the {} is good for {} still, until {expires:.0}",
                        self.description,
                        days(left)
                    )
                }
                _ => trouble.clone(),
            });
        }
        let (expires, left) = left?;
        if !left.is_positive() {
            return Some(format!("the {} expired {} ago, at {expires:.0}", self.description, days(-left)));
        }
        // A plug-in may return the same credential until its last moment.
        let is_told = left < self.soon() && !self.is_from_plug_in;
        let tail = if self.is_renewed { ", and it was not renewed" } else { "" };
        is_told.then(|| format!("the {} expires in {}, at {expires:.0}{tail}", self.description, days(left)))
    }

    /// From when on it is read again, in case it was renewed.
    pub fn recheck_from(&self) -> Option<Timestamp> {
        self.expires?.checked_sub(self.soon()).ok()
    }

    /// With less time left, people are warned.
    fn soon(&self) -> SignedDuration {
        match (self.is_renewed, self.issued, self.expires) {
            // Renewals come long before the end.
            (true, Some(issued), Some(expires)) => (expires.duration_since(issued) / 10).min(SOON),
            (true, ..) => SOON_OF_RENEWED,
            (false, ..) => SOON,
        }
    }

    /// The remaining time, as a table cell.
    pub fn time_left(expires: Timestamp, now: Timestamp) -> String {
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

/// The validity of the first certificate in a PEM text.
pub(super) fn certificate_validity(text: &[u8]) -> (Option<Timestamp>, Option<Timestamp>) {
    let certificate = CertificateDer::pem_slice_iter(text).flatten().next();
    let times = certificate.and_then(|certificate| validity(&certificate));
    times.map_or((None, None), |(from, until)| (Some(from), Some(until)))
}

/// The validity of an X.509 certificate in DER.
fn validity(der: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let validity = Certificate::from_der(der).ok()?.tbs_certificate.validity;
    let at = |time: Time| Timestamp::try_from(time.to_system_time()).ok();
    Some((at(validity.not_before)?, at(validity.not_after)?))
}

/// The validity of a token, if it is a JSON web token that says so.
pub(super) fn token_validity(token: &str) -> (Option<Timestamp>, Option<Timestamp>) {
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
    use base64::engine::general_purpose::STANDARD;
    use rcgen::{CertificateParams, KeyPair};

    use super::super::login::Login;
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    /// Of the user `admin` of a kubeconfig.
    fn read(user: &str) -> Credential {
        Login::of("admin", &serde_yaml::from_str(user).expect("a user")).expect("a login").credential()
    }

    fn token(claims: &str) -> String {
        format!("e30.{}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn token_expiry_is_read() {
        let expires = at("2026-12-01T00:00:00Z");
        let check = |claims: &str, expected: Option<Timestamp>| {
            let found = read(&format!("{{token: {}}}", token(claims)));
            assert_eq!(
                (found.description.as_str(), found.expires),
                ("token of user admin", expected),
                "{claims}"
            );
        };
        check(&format!(r#"{{"exp": {}}}"#, expires.as_second()), Some(expires));
        check(r#"{"sub": "me"}"#, None);
        check("not JSON", None);
        assert_eq!(read("{token: opaque}").expires, None);
    }

    /// Self-signed.
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
    fn certificate_expiry_is_read() {
        let (from, until) = (at("2026-11-22T01:45:21Z"), at("2036-11-19T01:45:21Z"));
        assert_eq!(certificate_validity(CERTIFICATE.as_bytes()), (Some(from), Some(until)));
    }

    #[test]
    fn earlier_expiry_of_certificate_and_token_counts() {
        let key = KeyPair::generate().expect("a key");
        let certificate =
            CertificateParams::new(Vec::new()).expect("a name").self_signed(&key).expect("signed");
        let (_, until) = certificate_validity(certificate.pem().as_bytes());
        let data = [certificate.pem(), key.serialize_pem()].map(|pem| STANDARD.encode(pem));
        let alone = format!("client-certificate-data: {}, client-key-data: {}", data[0], data[1]);
        let found = read(&format!("{{{alone}}}"));
        assert_eq!((found.description.as_str(), found.expires), ("client certificate of user admin", until));
        // Both are sent.
        let earlier = at("2030-01-01T00:00:00Z");
        let token = token(&format!(r#"{{"exp": {}}}"#, earlier.as_second()));
        assert_eq!(read(&format!("{{{alone}, token: {token}}}")).expires, Some(earlier));
    }

    #[test]
    fn invalid_certificate_has_no_expiry_and_no_panic() {
        let hostile =
            [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x80], &[0x30, 0xff, 1]];
        for bytes in hostile {
            assert_eq!(validity(bytes), None, "{bytes:?}");
        }
        let refused = |user: &str| Login::of("admin", &serde_yaml::from_str(user).expect("a user")).err();
        let check = |user: &str, expected: &str| {
            let expected = format!("the client certificate of user admin cannot be used: {expected}");
            assert_eq!(refused(user), Some(expected), "{user}");
        };
        check("{client-certificate-data: bm90aGluZw==, client-key-data: bm8=}", "it holds no certificate");
        check("{client-certificate-data: hunter2, client-key-data: bm8=}", "its data is not base64");
        check("{client-certificate-data: bm8=}", "it has no key (`client-key-data` or `client-key`)");
        let gone = "/no/such/file: No such file or directory (os error 2)";
        check("{client-certificate: /no/such/file, client-key: /no/such/file}", gone);
    }

    #[test]
    fn other_ways_are_named() {
        let check = |user: &str, way: &str| assert_eq!(read(user).description, way, "{user}");
        check(
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}",
            "token of the plug-in aws for user admin",
        );
        check("{username: me, password: secret}", "password of user admin");
        let provider = "{auth-provider: {name: oidc, config: {id-token: opaque}}}";
        check(provider, "token of the provider oidc for user admin");
        check("{}", "user admin without credentials");
    }

    #[test]
    fn a_warning_comes_in_time() {
        let now = at("2026-11-22T00:00:00Z");
        let check = |expires: &str, renewed: bool, expected: Option<&str>| {
            let issued = Some(at("2026-11-21T00:00:00Z"));
            let way = "token of user admin".to_owned();
            let credential = Credential {
                description: way,
                expires: Some(at(expires)),
                issued,
                is_renewed: renewed,
                ..Credential::default()
            };
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
            Some("the token of user admin expires in 60m, at 2026-11-22T01:00:00Z, and it was not renewed"),
        );
    }

    #[test]
    fn only_failing_plug_in_causes_early_warning() {
        let check = |now: &str, trouble: Option<&str>, expected: Option<&str>| {
            let mut credential = Credential {
                issued: Some(at("2026-11-22T00:00:00Z")),
                expires: Some(at("2026-11-22T00:15:00Z")),
                ..read("{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}")
            };
            assert_eq!(credential.recheck_from(), Some(at("2026-11-22T00:13:30Z")));
            credential.plug_in_error = trouble.map(ToOwned::to_owned);
            assert_eq!(credential.warning(at(now)).as_deref(), expected, "{now}");
        };
        check("2026-11-22T00:14:00Z", None, None);
        let trouble = Some("the plug-in aws failed: exit status: 1");
        let told = "the plug-in aws failed: exit status: 1; the token of the plug-in aws for user admin is good for 60s still, until 2026-11-22T00:15:00Z";
        check("2026-11-22T00:14:00Z", trouble, Some(told));
        check("2026-11-22T00:16:00Z", trouble, trouble);
        let told = "the token of the plug-in aws for user admin expired 60s ago, at 2026-11-22T00:15:00Z";
        check("2026-11-22T00:16:00Z", None, Some(told));
    }
}
