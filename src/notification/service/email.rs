//! Plain text mail over SMTP. Without the feature `mail` the binary has no SMTP client.

#[cfg(all(test, feature = "mail"))]
pub(super) use self::smtp::mail;
#[cfg(feature = "mail")]
pub(super) use self::smtp::{check, deliver};

#[cfg(not(feature = "mail"))]
const NO_MAIL: &str = "this build of tutti sends no mail: take one with the feature `mail` or `full`";

#[cfg(not(feature = "mail"))]
pub(super) fn check(
    _url: &secrecy::SecretString,
    _from: &str,
    _to: &[String],
    _message: &crate::notification::Message,
) -> Result<(), String> {
    Err(NO_MAIL.to_owned())
}

#[cfg(not(feature = "mail"))]
pub(super) async fn deliver(
    _url: &secrecy::SecretString,
    _from: &str,
    _to: &[String],
    _message: &crate::notification::Message,
) -> super::SendOutcome {
    super::SendOutcome::Refused(NO_MAIL.to_owned())
}

#[cfg(feature = "mail")]
mod smtp {
    use std::error::Error;
    use std::time::{Duration, SystemTime};

    use lettre::address::AddressError;
    use lettre::message::Mailbox;
    use lettre::message::header::{ContentType, MIME_VERSION_1_0};
    use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
    use reqwest::Url;
    use secrecy::SecretString;
    use sha2::{Digest as _, Sha256};

    use super::super::SendOutcome;
    use super::super::resolved_service::trimmed;
    use super::super::text::MessageLines;
    use crate::model::{is_loopback, short_line};
    use crate::notification::Message;

    /// For each step: a server that scans mails takes long for the last one.
    const PATIENCE: Duration = Duration::from_secs(30);
    const LONGEST_CONVERSATION: Duration = Duration::from_secs(90);
    /// Of an error, in characters.
    const LONGEST_ERROR: usize = 200;

    pub(in super::super) async fn deliver(
        url: &SecretString,
        from: &str,
        to: &[String],
        message: &Message,
    ) -> SendOutcome {
        let sent = async {
            let mail = mail(from, to, message)?;
            let transport = transport(url)?;
            Ok::<_, String>(tokio::time::timeout(LONGEST_CONVERSATION, transport.send(mail)).await)
        };
        let shown = |error: lettre::transport::smtp::Error| short_line(&chain(&error), LONGEST_ERROR);
        match sent.await {
            Err(why) => SendOutcome::Refused(why),
            Ok(Ok(Ok(_))) => SendOutcome::Sent(None),
            Ok(Ok(Err(error))) if error.is_permanent() => {
                SendOutcome::Refused(format!("the mail server refuses the mail: {}", shown(error)))
            }
            Ok(Ok(Err(error))) if error.is_transient() || is_unreached(&error) => SendOutcome::RetryLater {
                after: None,
                why: format!("the mail is not sent: {}", shown(error)),
            },
            Ok(Ok(Err(error))) => {
                SendOutcome::Unconfirmed(format!("the mail server does not answer: {}", shown(error)))
            }
            Ok(Err(_)) => {
                let seconds = LONGEST_CONVERSATION.as_secs();
                SendOutcome::Unconfirmed(format!(
                    "the mail server did not accept the mail within {seconds} s"
                ))
            }
        }
    }

    /// Checks that need no server.
    pub(in super::super) fn check(
        url: &SecretString,
        from: &str,
        to: &[String],
        message: &Message,
    ) -> Result<(), String> {
        mail(from, to, message)?;
        transport(url).map(drop)
    }

    /// Mails of one thread refer to the same mail, which was never sent: clients still group them.
    pub(in super::super) fn mail(
        from: &str,
        to: &[String],
        message: &Message,
    ) -> Result<lettre::Message, String> {
        let lines = MessageLines::of(message);
        let sender: Mailbox = mailbox("from", from)?;
        let name = |kind: &str, text: &str| {
            let digest = Sha256::digest(format!("{kind}/{text}"));
            format!("<{}@{}>", hex::encode(&digest[..16]), sender.email.domain())
        };
        let thread = name("thread", &message.thread);
        let mut mail = lettre::Message::builder()
            .from(sender.clone())
            .subject(lines.title.clone())
            .date(SystemTime::from(message.at))
            .message_id(Some(name("message", &message.id)))
            .in_reply_to(thread.clone())
            .references(thread);
        if to.is_empty() {
            return Err("`to` names nobody".to_owned());
        }
        for address in to {
            mail = mail.to(mailbox("to", address)?);
        }
        let links: Vec<String> =
            lines.links.iter().map(|link| format!("{}: {}", link.text, link.url)).collect();
        let parts = [format!("{}\n{}", lines.title, lines.place), lines.cause.join("\n"), links.join("\n")];
        let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        let body = parts.join("\n\n") + "\n";
        let mail = mail.header(MIME_VERSION_1_0).header(ContentType::TEXT_PLAIN).body(body);
        mail.map_err(|error| format!("the mail cannot be written: {error}"))
    }

    fn mailbox(field: &str, text: &str) -> Result<Mailbox, String> {
        text.parse().map_err(|error: AddressError| {
            format!("`{field}` has no address of a mailbox: `{}`: {error}", short_line(text, 100))
        })
    }

    /// `smtps://`, or `smtp://` with `?tls=required` for STARTTLS; without TLS only on this machine.
    fn transport(url: &SecretString) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
        let wrong = "the address of the mail server is not smtps://USER:PASSWORD@HOST (or \
                     smtp://…?tls=required); see the Secret that \
                     `url` names";
        let url = trimmed(url);
        let parsed = Url::parse(url).map_err(|_| wrong)?;
        let asks_for_tls = || parsed.query_pairs().any(|(name, value)| name == "tls" && value == "required");
        let is_safe = match parsed.scheme() {
            "smtps" => true,
            "smtp" => asks_for_tls() || parsed.host_str().is_some_and(is_loopback),
            _ => false,
        };
        if !is_safe {
            return Err(wrong.to_owned());
        }
        // The process installs a provider; otherwise it is ring.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| wrong)?;
        Ok(builder.timeout(Some(PATIENCE)).build())
    }

    /// The connection failed before the conversation.
    fn is_unreached(error: &lettre::transport::smtp::Error) -> bool {
        use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
        let mut kinds =
            causes(error).filter_map(|cause| Some(cause.downcast_ref::<std::io::Error>()?.kind()));
        let is_refused = |kind| matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable);
        error.is_tls() || kinds.any(is_refused)
    }

    fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
        std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
    }

    fn chain(error: &(dyn Error + 'static)) -> String {
        causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }
}
