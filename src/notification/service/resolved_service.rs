//! A service with its credentials.

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use crate::model::{Digest, NotificationService};

/// A service with resolved credentials.
pub type ResolvedService = NotificationService<SecretString>;

impl ResolvedService {
    /// A digest of the destination, as the address is a credential. Routes to one address share its [`super::rate_limits`].
    pub fn address(&self) -> Digest {
        Digest::of(trimmed(self.credential()).as_bytes())
    }

    /// Some servers repeat the request, which contains a credential.
    pub(super) fn without_address(&self, text: String) -> String {
        const SHORTEST: usize = 6;
        let Ok(url) = Url::parse(trimmed(self.credential())) else { return text };
        let values = url.query_pairs().map(|(_, value)| value.into_owned());
        let raw = url.query().into_iter().flat_map(|query| query.split(['&', '='])).map(str::to_owned);
        let parts = url.path().split('/').map(str::to_owned).chain(values).chain(raw);
        let parts = parts.filter(|part| part.len() >= SHORTEST);
        parts.fold(text, |text, part| text.replace(&part, "…"))
    }

    fn credential(&self) -> &SecretString {
        let (Self::Feishu { url, .. }
        | Self::DingTalk { url, .. }
        | Self::WeCom { url }
        | Self::SlackWebhook { url }
        | Self::SlackBot { token: url, .. }
        | Self::Teams { url }
        | Self::Generic { url, .. }
        | Self::Email { url, .. }) = self;
        url
    }
}

/// For content of a Secret: files end with a line break.
pub(super) fn trimmed(secret: &SecretString) -> &str {
    secret.expose_secret().trim()
}
