//! Mails to a small SMTP server in the test.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::super::{SendOutcome, email};
use super::fixtures::{message, secret};
use crate::model::{MessageLanguage, NotificationPhase};

/// Its address, and the lines that it gets. It answers `reply` to the recipient; `None`: it stops answering.
async fn server(reply: Option<&'static str>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 mail.example.com\r\n").await.expect("written");
        let (mut line, mut is_data) = (String::new(), false);
        while stream.read_line(&mut line).await.is_ok_and(|length| length > 0) {
            let text = std::mem::take(&mut line).trim_end().to_owned();
            let command = text.get(..4).unwrap_or_default().to_uppercase();
            let answer = match command.as_str() {
                _ if is_data && text == "." => "250 taken",
                _ if is_data => "",
                "DATA" => "354 go on",
                "RCPT" => reply.unwrap_or_default(),
                _ => "250 mail.example.com",
            };
            is_data = is_data && text != "." || command == "DATA";
            kept.lock().push(text);
            if !answer.is_empty() {
                stream.write_all(format!("{answer}\r\n").as_bytes()).await.expect("written");
            }
        }
    });
    (format!("smtp://{address}"), heard)
}

async fn told(url: &str) -> SendOutcome {
    let to = ["Ops <ops@example.com>".to_owned()];
    let message = message(NotificationPhase::Failed, MessageLanguage::Zh);
    email::deliver(&secret(url), "tutti <tutti@example.com>", &to, &message).await
}

#[tokio::test]
async fn accepted_mail_is_sent() {
    let (url, heard) = server(Some("250 ok")).await;
    assert_eq!(told(&url).await, SendOutcome::Sent(None));
    let heard = heard.lock().clone();
    for line in
        ["MAIL FROM:<tutti@example.com>", "RCPT TO:<ops@example.com>", "From: tutti <tutti@example.com>"]
    {
        assert!(heard.iter().any(|heard| heard.starts_with(line)), "{line}: {heard:?}");
    }
}

#[tokio::test]
async fn answers_of_mail_servers_have_their_outcome() {
    let (url, _) = server(Some("550 5.1.1 no such user")).await;
    let SendOutcome::Refused(why) = told(&url).await else { panic!("not refused") };
    assert!(why.contains("no such user"), "{why}");
    let (url, _) = server(Some("451 4.7.1 try again")).await;
    let SendOutcome::RetryLater { why, .. } = told(&url).await else { panic!("not later") };
    assert!(why.contains("try again"), "{why}");
}

/// The paused clock skips the wait.
#[tokio::test(start_paused = true)]
async fn hanging_mail_server_times_out() {
    let (url, _) = server(None).await;
    assert!(matches!(told(&url).await, SendOutcome::Unconfirmed(_)));
}

#[tokio::test]
async fn unreachable_mail_server_means_not_sent() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let told = told(&format!("smtp://{nobody}")).await;
    assert!(matches!(told, SendOutcome::RetryLater { .. }), "{told:?}");
}

#[tokio::test]
async fn mail_servers_without_tls_are_refused() {
    for url in [
        "smtp://li:s3cr3t@mail.example.com",
        "smtp://li:s3cr3t@mail.example.com?tls=opportunistic",
        "https://s3cr3t",
        "s3cr3t",
    ] {
        let SendOutcome::Refused(why) = told(url).await else { panic!("{url}") };
        assert!(why.contains("smtps://") && !why.contains("s3cr3t"), "{why}");
    }
}
