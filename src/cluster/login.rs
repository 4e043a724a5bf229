//! Adds the credential: a header on each request, a certificate on each connection.
//!
//! The client library would run plug-ins in the path of every request and quote them in errors, so it gets no
//! credential.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::Read as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use jiff::Timestamp;
use kube::client::Body;
use kube::config::{AuthInfo, AuthProviderConfig};
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::Credential;
use super::authorization_header::{bearer_header, sensitive_header};
use super::credential::token_validity;
use super::identity::{ClientCertificate, ClientIdentity, READ_EVERY};
use super::plug_in_renewal::PlugInRenewal;
use super::server_state::is_node_request;

/// Bytes of a token file.
const LONGEST_TOKEN: u64 = 64 * 1024;

/// Of one connection; clones share it.
#[derive(Clone)]
pub(super) struct Login(Arc<LoginState>);

struct LoginState {
    user: String,
    bearer: AuthorizationSource,
    certificate: Option<ClientCertificate>,
    identity: Arc<ClientIdentity>,
}

/// The source of the header.
enum AuthorizationSource {
    Nothing,
    /// Constant for the life of the connection.
    Fixed(Option<HeaderValue>, Credential),
    File(TokenFile),
    PlugIn(PlugInRenewal),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({})", self.0.user)
    }
}

/// There is no credential. The text may be shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct LoginError(String);

impl Login {
    /// From a user of a kubeconfig. Reads its files; runs nothing yet.
    pub fn of(user: &str, info: &AuthInfo) -> Result<Self, String> {
        let identity = Arc::new(ClientIdentity::default());
        let certificate = ClientCertificate::of(info, &identity)
            .map_err(|error| format!("the client certificate of user {user} cannot be used: {error}"))?;
        let bearer = AuthorizationSource::of(user, info, &identity)?;
        Ok(Self(Arc::new(LoginState { user: user.to_owned(), bearer, certificate, identity })))
    }

    /// From the token file of the pod that tutti runs in.
    pub fn of_pod(file: &str) -> Result<Self, String> {
        let token = TokenFile::of("token of the pod's service account".to_owned(), file, None)?;
        Ok(Self::by("the pod", AuthorizationSource::File(token)))
    }

    /// For a connection inside this process.
    pub fn embedded() -> Self {
        let credential = Credential::new("connection to an embedded cluster");
        Self::by("nobody", AuthorizationSource::Fixed(None, credential))
    }

    fn by(user: &str, bearer: AuthorizationSource) -> Self {
        let identity = Arc::default();
        Self(Arc::new(LoginState { user: user.to_owned(), bearer, certificate: None, identity }))
    }

    /// Runs a plug-in for the first time.
    pub async fn run_plug_in_once(&self) -> Result<(), String> {
        match &self.0.bearer {
            AuthorizationSource::PlugIn(renewal) => renewal.first_run().await,
            AuthorizationSource::Nothing | AuthorizationSource::Fixed(..) | AuthorizationSource::File(_) => {
                Ok(())
            }
        }
    }

    /// Renews what is due, as the next request would.
    pub async fn renew_if_due(&self) {
        self.reread_certificate();
        match &self.0.bearer {
            AuthorizationSource::PlugIn(renewal) => renewal.renew_if_due().await,
            AuthorizationSource::File(file) => drop(file.header()),
            AuthorizationSource::Nothing | AuthorizationSource::Fixed(..) => {}
        }
    }

    /// The resolver of the certificate.
    pub fn identity(&self) -> Arc<ClientIdentity> {
        Arc::clone(&self.0.identity)
    }

    /// A certificate may be used now or later.
    pub fn may_have_certificate(&self) -> bool {
        self.0.certificate.is_some() || matches!(self.0.bearer, AuthorizationSource::PlugIn(_))
    }

    /// The current credential. If both a certificate and a header are sent: the one that ends first.
    pub fn credential(&self) -> Credential {
        let it = &self.0;
        let of_certificate = it.certificate.as_ref().map(|certificate| {
            let (issued, expires) = certificate.validity();
            let way = format!("client certificate of user {}", it.user);
            Credential { issued, expires, is_renewed: certificate.is_file(), ..Credential::new(way) }
        });
        let of_bearer = match &it.bearer {
            AuthorizationSource::Nothing => None,
            AuthorizationSource::Fixed(_, credential) => Some(credential.clone()),
            AuthorizationSource::File(file) => Some(file.credential()),
            AuthorizationSource::PlugIn(renewal) => Some(renewal.credential()),
        };
        let found = [of_certificate, of_bearer].into_iter().flatten();
        let first = found.min_by_key(|it| it.expires.unwrap_or(Timestamp::MAX));
        first.unwrap_or_else(|| Credential::new(format!("user {} without credentials", it.user)))
    }

    fn reread_certificate(&self) {
        if let Some(certificate) = &self.0.certificate {
            certificate.reread_if_due(&self.0.identity);
        }
    }

    /// The header of the next request, and the number of the credential.
    async fn header(&self) -> Result<(Option<HeaderValue>, u64), String> {
        self.reread_certificate();
        match &self.0.bearer {
            AuthorizationSource::Nothing => Ok((None, 0)),
            AuthorizationSource::Fixed(header, _) => Ok((header.clone(), 0)),
            AuthorizationSource::File(file) => Ok((Some(file.header()), 0)),
            AuthorizationSource::PlugIn(renewal) => renewal.header().await,
        }
    }

    fn note_answer(&self, number: u64, status: StatusCode) {
        let is_refused = status == StatusCode::UNAUTHORIZED;
        if let (true, Some(certificate)) = (is_refused, &self.0.certificate) {
            certificate.mark_refused();
        }
        match &self.0.bearer {
            AuthorizationSource::PlugIn(renewal) => renewal.note_answer(number, is_refused),
            AuthorizationSource::File(file) if is_refused => file.read.lock().is_doubtful = true,
            AuthorizationSource::File(_) | AuthorizationSource::Nothing | AuthorizationSource::Fixed(..) => {}
        }
    }
}

impl AuthorizationSource {
    /// The first of these that the user has.
    fn of(user: &str, info: &AuthInfo, identity: &Arc<ClientIdentity>) -> Result<Self, String> {
        let wrong = |error: String| format!("the login of user {user}: {error}");
        let fixed = |token: &SecretString, way: String| {
            let (issued, expires) = token_validity(token.expose_secret().trim());
            let credential = Credential { issued, expires, ..Credential::new(way) };
            Ok(Self::Fixed(Some(bearer_header(token).map_err(wrong)?), credential))
        };
        if let Some(provider) = &info.auth_provider {
            let token = token_of(provider).map_err(wrong)?;
            return fixed(&token, format!("token of the provider {} for user {user}", provider.name));
        }
        if let (Some(name), Some(password)) = (&info.username, &info.password) {
            let text = STANDARD.encode(format!("{name}:{}", password.expose_secret()));
            let header = sensitive_header(&format!("Basic {text}")).map_err(wrong)?;
            return Ok(Self::Fixed(Some(header), Credential::new(format!("password of user {user}"))));
        }
        if let Some(file) = &info.token_file {
            let way = format!("token of user {user} in {file}");
            return TokenFile::of(way, file, info.token.as_ref()).map(Self::File).map_err(wrong);
        }
        if let Some(token) = &info.token {
            return fixed(token, format!("token of user {user}"));
        }
        Ok(match &info.exec {
            Some(exec) => Self::PlugIn(PlugInRenewal::new(exec.clone(), user, Arc::clone(identity))),
            None => Self::Nothing,
        })
    }
}

/// The token of an auth provider, which Kubernetes has removed. Only `oidc` is read, and nothing renews it.
fn token_of(provider: &AuthProviderConfig) -> Result<SecretString, String> {
    if provider.name != "oidc" {
        let name = &provider.name;
        return Err(format!(
            "the auth-provider {name} was removed in Kubernetes 1.26: use an exec plug-in instead"
        ));
    }
    let token = provider.config.get("id-token").filter(|token| !token.is_empty());
    token
        .map(|token| SecretString::from(token.as_str()))
        .ok_or_else(|| "its auth-provider has no id-token".to_owned())
}

/// A token that somebody else renews.
struct TokenFile {
    description: String,
    path: PathBuf,
    read: Mutex<TokenRead>,
}

struct TokenRead {
    header: HeaderValue,
    validity: (Option<Timestamp>, Option<Timestamp>),
    at: Instant,
    /// The server refused it: there may be a new one.
    is_doubtful: bool,
}

impl TokenRead {
    fn of(path: &PathBuf) -> Result<Self, String> {
        let mut text = String::new();
        let file = File::open(path).map(|file| file.take(LONGEST_TOKEN));
        file.and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        if text.len() as u64 == LONGEST_TOKEN {
            return Err(format!("{} is longer than a token: 64 KiB", path.display()));
        }
        let token = SecretString::from(text);
        if token.expose_secret().trim().is_empty() {
            return Err(format!("{} is empty", path.display()));
        }
        Self::new(&token)
    }

    fn new(token: &SecretString) -> Result<Self, String> {
        let life = token_validity(token.expose_secret().trim());
        Ok(Self { header: bearer_header(token)?, validity: life, at: Instant::now(), is_doubtful: false })
    }
}

impl TokenFile {
    /// `token`: used until the file can be read.
    fn of(way: String, path: &str, token: Option<&SecretString>) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let read = match (TokenRead::of(&path), token) {
            (Err(_), Some(token)) => TokenRead::new(token)?,
            (read, _) => read?,
        };
        Ok(Self { description: way, path, read: Mutex::new(read) })
    }

    /// Reads the file again if that is due or the server refused the token. If that fails, the old one stays.
    fn header(&self) -> HeaderValue {
        let mut read = self.read.lock();
        if read.is_doubtful || read.at.elapsed() >= READ_EVERY {
            (read.is_doubtful, read.at) = (false, Instant::now());
            match TokenRead::of(&self.path) {
                Ok(now) => *read = now,
                Err(error) => {
                    tracing::debug!(%error, "a token cannot be read again; the previous one is shown")
                }
            }
        }
        read.header.clone()
    }

    fn credential(&self) -> Credential {
        let (issued, expires) = self.read.lock().validity;
        Credential { issued, expires, is_renewed: true, ..Credential::new(self.description.clone()) }
    }
}

impl<S> Layer<S> for Login {
    type Service = LoginService<S>;

    fn layer(&self, service: S) -> LoginService<S> {
        LoginService { service, login: self.clone() }
    }
}

/// Adds the credential to requests.
#[derive(Clone, Debug)]
pub(super) struct LoginService<S> {
    service: S,
    login: Login,
}

impl<S, B> Service<Request<Body>> for LoginService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (service, login) = (self.service.clone(), self.login.clone());
        Box::pin(async move {
            let (header, number) = login.header().await.map_err(LoginError)?;
            if let Some(header) = header {
                request.headers_mut().insert(AUTHORIZATION, header);
            }
            let is_of_server = !is_node_request(request.uri());
            let answer = service.oneshot(request).await.map_err(Into::into)?;
            if is_of_server {
                login.note_answer(number, answer.status());
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fs;

    use super::*;

    /// The credential that the server received; `says` is its answer.
    async fn asked(login: &Login, says: u16) -> String {
        asked_for(login, "/api/v1/pods", says).await
    }

    async fn asked_for(login: &Login, path: &str, says: u16) -> String {
        let server = tower::service_fn(move |request: Request<Body>| async move {
            let shown = request.headers().get(AUTHORIZATION).expect("a header").clone();
            assert!(shown.is_sensitive());
            let mut answer = Response::new(shown.to_str().expect("text").to_owned());
            *answer.status_mut() = StatusCode::from_u16(says).expect("a code");
            Ok::<_, Infallible>(answer)
        });
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        login.layer(server).oneshot(request).await.expect("an answer").into_body()
    }

    #[tokio::test(start_paused = true)]
    async fn token_file_is_reread_when_due_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let text = serde_json::json!({"tokenFile": file, "token": "hunter2"});
        let login = || Login::of("admin", &serde_json::from_value(text.clone()).expect("a user"));
        let without = login().expect("a token");
        assert_eq!(asked(&without, 200).await, "Bearer hunter2", "there is no file yet");
        fs::write(&file, "one\n").expect("a file");
        let login = login().expect("a token");
        assert_eq!(asked(&login, 200).await, "Bearer one");
        fs::write(&file, "two").expect("a file");
        assert_eq!(asked(&login, 200).await, "Bearer one");
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(asked(&login, 200).await, "Bearer two");
        fs::write(&file, "three").expect("a file");
        let log = "/api/v1/namespaces/shop/pods/web-1/log";
        assert_eq!(asked_for(&login, log, 401).await, "Bearer two");
        assert_eq!(asked(&login, 401).await, "Bearer two");
        assert_eq!(asked(&login, 200).await, "Bearer three");
        fs::write(&file, "a".repeat(70_000)).expect("a file");
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(asked(&login, 200).await, "Bearer three", "what is too long is no token");
        fs::remove_file(&file).expect("removed");
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(asked(&login, 200).await, "Bearer three", "what was read is shown");
    }

    #[tokio::test]
    async fn invalid_login_is_not_quoted() {
        let check = |user: &str, expected: &str| {
            let info = serde_yaml::from_str(user).expect("a user");
            let error = Login::of("admin", &info).expect_err("nothing can be shown");
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        };
        check(r#"{token: "hunter2\n\u0001"}"#, "has characters that no token may have");
        check("{tokenFile: /no/such/file}", "/no/such/file: No such file");
        check(
            "{auth-provider: {name: gcp, config: {access-token: hunter2}}}",
            "auth-provider gcp was removed",
        );
        check("{auth-provider: {name: oidc, config: {refresh-token: hunter2}}}", "no id-token");
        let named = serde_yaml::from_str("{username: me, password: hunter2}").expect("a user");
        let login = Login::of("admin", &named).expect("a password");
        assert_eq!(asked(&login, 200).await, "Basic bWU6aHVudGVyMg==");
        assert!(!format!("{login:?}").contains("hunter2"));
    }
}
