//! A certificate authority for each cluster and its certificates. Keys are EC: fast to generate, and every component
//! reads them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::Error;

/// PEM texts that the cluster's own client needs; the rest is in files.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    pub(crate) admin_certificate: String,
    pub(crate) admin_key: String,
}

/// Writes `ca.{crt,key}`, `server.{crt,key}` and `sa.{key,pub}` (sign and check service account tokens) into `folder`.
pub(crate) fn write(folder: &Path) -> Result<Certificates, Error> {
    let authority = authority().map_err(certificate_error("the authority"))?;
    let (server_certificate, server_key) = server(&authority).map_err(certificate_error("the API server"))?;
    let (admin_certificate, admin_key) = admin(&authority).map_err(certificate_error("the administrator"))?;
    let service_accounts = KeyPair::generate().map_err(certificate_error("the service accounts"))?;
    for (name, text) in [
        ("ca.crt", authority.pem()),
        ("ca.key", authority.key().serialize_pem()),
        ("server.crt", server_certificate),
        ("server.key", server_key),
        ("sa.key", service_accounts.serialize_pem()),
        // The API server does not take the public half from a PKCS#8 private key.
        ("sa.pub", service_accounts.public_key_pem()),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::file("write", &path))?;
    }
    Ok(Certificates { authority: authority.pem(), admin_certificate, admin_key })
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = certificate_params("tutti live tier");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// The addresses and names by which processes and pods reach the API server.
fn server(authority: &CertifiedIssuer<'static, KeyPair>) -> Result<(String, String), rcgen::Error> {
    let mut params = certificate_params("kube-apiserver");
    params.subject_alt_names = vec![
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1))),
        SanType::DnsName("localhost".try_into()?),
        SanType::DnsName("kubernetes.default.svc".try_into()?),
    ];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    signed(&params, authority)
}

/// Members of the group `system:masters` may do everything, before any role exists.
fn admin(authority: &CertifiedIssuer<'static, KeyPair>) -> Result<(String, String), rcgen::Error> {
    let mut params = certificate_params("admin");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    signed(&params, authority)
}

fn certificate_params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

fn signed(
    params: &CertificateParams,
    authority: &CertifiedIssuer<'static, KeyPair>,
) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn certificate_error(subject: &str) -> impl FnOnce(rcgen::Error) -> Error {
    move |source| Error::Certificate { subject: subject.to_owned(), source }
}
