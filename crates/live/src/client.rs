//! A thin JSON client for one server.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Method};
use serde_json::Value;

use crate::Error;
use crate::certificates::Certificates;

/// Speaks to one server, as its administrator.
#[derive(Debug)]
pub(crate) struct JsonClient {
    server: String,
    http: Client,
}

impl JsonClient {
    pub(crate) fn with_certificates(server: &str, certificates: &Certificates) -> Result<Self, Error> {
        let failed = |source| Error::Client { server: server.to_owned(), source };
        let identity = format!("{}{}", certificates.admin_certificate, certificates.admin_key);
        let authority = Certificate::from_pem(certificates.authority.as_bytes()).map_err(failed)?;
        let identity = Identity::from_pem(identity.as_bytes()).map_err(failed)?;
        let http = builder().tls_certs_only([authority]).identity(identity).build().map_err(failed)?;
        Ok(Self { server: server.to_owned(), http })
    }

    /// `token` is sent in the way Gitea asks for: `Authorization: token …`. Without one, only open pages answer.
    pub(crate) fn with_token(server: &str, token: Option<&str>) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        if let Some(value) = token.and_then(|token| HeaderValue::from_str(&format!("token {token}")).ok()) {
            headers.insert(AUTHORIZATION, value);
        }
        let http = builder().default_headers(headers).build();
        Ok(Self {
            server: server.to_owned(),
            http: http.map_err(|source| Error::Client { server: server.to_owned(), source })?,
        })
    }

    /// The answer as JSON; as a JSON string when it is plain text; null when it is empty.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        let url = format!("{}{path}", self.server);
        let mut request = self.http.request(method.clone(), &url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let failed = |source| Error::Request { method: method.to_string(), url: url.clone(), source };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let text = response.text().await.map_err(failed)?;
        if !status.is_success() {
            return Err(Error::Refused {
                method: method.to_string(),
                url,
                status: status.as_u16(),
                body: text,
            });
        }
        Ok(match text.is_empty() {
            true => Value::Null,
            false => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.send(Method::POST, path, Some(body)).await
    }
}

/// Keeps no connection for later: each test has a runtime of its own, and a connection dies with the one that made it.
fn builder() -> ClientBuilder {
    // Fails when someone installed a provider before us, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(Duration::from_secs(30))
}
