//! The bytes for each service, kind of message and language. `UPDATE_GOLDEN=1` rewrites the files.

use std::fs;
use std::path::Path;

use secrecy::ExposeSecret as _;

use super::super::{ServiceRequest, request};
use super::fixtures::{message, now, targets};
use super::strict;
use crate::model::{MessageLanguage, NotificationPhase};

const LANGUAGES: [(MessageLanguage, &str); 2] = [(MessageLanguage::En, "en"), (MessageLanguage::Zh, "zh")];

fn shown(request: &ServiceRequest) -> String {
    let mut text = format!("{} {}\n", request.method, request.url.expose_secret());
    for (name, value) in &request.headers {
        text.push_str(&format!("{name}: {}\n", value.to_str().expect("ASCII")));
    }
    text + "\n" + std::str::from_utf8(&request.body).expect("UTF-8") + "\n\n"
}

#[track_caller]
fn check(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/notifications").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
    }
    let expected = fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
    assert_eq!(text, expected, "{}", path.display());
}

#[test]
fn requests_equal_the_golden_files() {
    for (name, target) in targets() {
        for (language, suffix) in LANGUAGES {
            let mut text = String::new();
            for happened in NotificationPhase::ALL {
                let message = message(happened, language);
                let request = request(&target, &message, now(), None).expect("a request");
                strict::check(&target, &message, &request);
                text.push_str(&format!("== {}\n{}", happened.as_str(), shown(&request)));
            }
            check(&format!("{name}.{suffix}.txt"), &text);
        }
    }
}

#[test]
fn slack_update_equals_the_golden_file() {
    let targets = targets();
    let (_, bot) = targets.iter().find(|(name, _)| *name == "slack-bot").expect("a bot");
    let message = message(NotificationPhase::Failed, MessageLanguage::En);
    let request = request(bot, &message, now(), Some("C0123ABCD/1599360400.000200")).expect("a request");
    strict::check(bot, &message, &request);
    check("slack-bot-update.en.txt", &shown(&request));
}

#[cfg(feature = "mail")]
#[test]
fn mails_equal_the_golden_files() {
    for (language, suffix) in LANGUAGES {
        let mut text = String::new();
        for happened in NotificationPhase::ALL {
            let to = ["Ops <ops@example.com>".to_owned(), "li@example.com".to_owned()];
            let mail =
                super::super::email::mail("tutti <tutti@example.com>", &to, &message(happened, language));
            let bytes = mail.expect("a mail").formatted();
            strict::mail(&bytes);
            let lines = std::str::from_utf8(&bytes).expect("UTF-8").replace("\r\n", "\n");
            text.push_str(&format!("== {}\n{lines}\n", happened.as_str()));
        }
        check(&format!("email.{suffix}.txt"), &text);
    }
}
