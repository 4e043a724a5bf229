//! The client certificate of a connection. It may be replaced meanwhile: new connections use the new one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::config::AuthInfo;
use parking_lot::Mutex;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use tokio::time::Instant;

use super::credential::certificate_validity;

/// How often files are read again.
pub(super) const READ_EVERY: Duration = Duration::from_secs(60);

/// The newest certificate, and its number.
#[derive(Default)]
pub(super) struct ClientIdentity(Mutex<(Option<Arc<CertifiedKey>>, u64)>);

impl ClientIdentity {
    /// Replaces the certificate.
    pub fn set(&self, certificate: Arc<CertifiedKey>) {
        let mut now = self.0.lock();
        let is_same = now.0.as_ref().is_some_and(|before| before.cert == certificate.cert);
        if !is_same {
            *now = (Some(certificate), now.1 + 1);
        }
    }

    /// If the number changed, existing connections use an older certificate.
    pub fn number(&self) -> u64 {
        self.0.lock().1
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientIdentity({})", self.number())
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.lock().0.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.lock().0.is_some()
    }
}

/// Parses a certificate chain and its key from PEM. Errors quote nothing.
pub(super) fn load_certified_key(certificate: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, &'static str> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or("it holds no certificate")?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| "its key cannot be read")?;
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
    certified.map(Arc::new).map_err(|_| "certificate and key cannot be used together")
}

/// A client certificate of a kubeconfig, as data or files.
pub(super) struct ClientCertificate {
    certificate: PemSource,
    key: PemSource,
    read: Mutex<CertificateRead>,
}

struct CertificateRead {
    at: Instant,
    /// The server refused it: there may be a new one.
    is_doubtful: bool,
    validity: ValidityPeriod,
}

type ValidityPeriod = (Option<Timestamp>, Option<Timestamp>);

enum PemSource {
    Data(SecretString),
    File(PathBuf),
}

impl PemSource {
    fn of(data: Option<SecretString>, file: Option<&String>) -> Option<Self> {
        data.map(Self::Data).or_else(|| file.map(|file| Self::File(PathBuf::from(file))))
    }

    fn read(&self) -> Result<SecretSlice<u8>, String> {
        let read = match self {
            Self::Data(data) => {
                let text: String = data.expose_secret().split_whitespace().collect();
                STANDARD.decode(text).map_err(|_| "its data is not base64".to_owned())
            }
            Self::File(path) => std::fs::read(path).map_err(|error| format!("{}: {error}", path.display())),
        };
        read.map(SecretSlice::from)
    }
}

impl ClientCertificate {
    /// The certificate of a user, if there is one; sets `identity`.
    pub fn of(login: &AuthInfo, identity: &ClientIdentity) -> Result<Option<Self>, String> {
        let data = login.client_certificate_data.clone().map(SecretString::from);
        let certificate = PemSource::of(data, login.client_certificate.as_ref());
        let key = PemSource::of(login.client_key_data.clone(), login.client_key.as_ref());
        let (certificate, key) = match (certificate, key) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err("it has no key (`client-key-data` or `client-key`)".to_owned()),
            (None, Some(_)) => {
                let lacks = "its key is set, but the certificate is not (`client-certificate-data` or \
                             `client-certificate`)";
                return Err(lacks.to_owned());
            }
        };
        let read =
            CertificateRead { at: Instant::now(), is_doubtful: false, validity: ValidityPeriod::default() };
        let it = Self { certificate, key, read: Mutex::new(read) };
        it.load(identity)?;
        Ok(Some(it))
    }

    /// Reads it; an invalid or incomplete file changes nothing.
    fn load(&self, identity: &ClientIdentity) -> Result<(), String> {
        let mut read = self.read.lock();
        (read.is_doubtful, read.at) = (false, Instant::now());
        let certificate = self.certificate.read()?;
        let key = self.key.read()?;
        identity.set(load_certified_key(certificate.expose_secret(), key.expose_secret())?);
        read.validity = certificate_validity(certificate.expose_secret());
        Ok(())
    }

    /// Somebody may replace its files.
    pub fn is_file(&self) -> bool {
        matches!(self.certificate, PemSource::File(_)) || matches!(self.key, PemSource::File(_))
    }

    /// Reads the files again if that is due or the server refused the certificate. If that fails, the old one stays.
    pub fn reread_if_due(&self, identity: &ClientIdentity) {
        let is_due = {
            let read = self.read.lock();
            self.is_file() && (read.is_doubtful || read.at.elapsed() >= READ_EVERY)
        };
        if !is_due {
            return;
        }
        if let Err(error) = self.load(identity) {
            tracing::debug!(%error, "a client certificate cannot be read again; the previous one is shown");
        }
    }

    /// The server refused it.
    pub fn mark_refused(&self) {
        self.read.lock().is_doubtful = true;
    }

    /// The validity of the current certificate.
    pub fn validity(&self) -> ValidityPeriod {
        self.read.lock().validity
    }
}
