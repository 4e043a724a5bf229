//! A request to a service, and its headers.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use secrecy::SecretString;

/// A request. Its Debug output omits the address, which is a credential.
#[derive(Clone)]
pub struct ServiceRequest {
    pub method: Method,
    pub url: SecretString,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl std::fmt::Debug for ServiceRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

pub(super) fn header(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), String> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of the header {name} has characters that no header may have"))?;
    value.set_sensitive(name == AUTHORIZATION.as_str());
    headers.insert(name, value);
    Ok(())
}
