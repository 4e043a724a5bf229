//! Hostile names and error texts: each format stays valid, within its length, and mentions nobody.

use serde_json::json;

use super::super::text::truncate;
use super::super::{ServiceRequest, request};
use super::fixtures::{message, now, targets};
use super::strict;
use crate::model::{MessageLanguage, NotificationPhase};
use crate::notification::{Message, MessageLink};

/// Texts that break one format or another.
const PIECES: [&str; 44] = [
    "a",
    "pay",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "\u{7f}",
    "\"",
    "'",
    "\\",
    "\\\\",
    "`",
    "```\n",
    "*",
    "**",
    "_",
    "~~",
    "<",
    ">",
    "&",
    "&lt;",
    "&amp;lt;",
    "|",
    "#",
    "[x](http://evil.example)",
    "](https://evil.example)",
    "https://evil.example/a?b=c",
    "javascript:alert(1)",
    "@all",
    "<!channel>",
    "<@U012AB3CD>",
    "<at id=all></at>",
    "<at user_id=\"all\">x</at>",
    "<at>li</at>",
    "</font><font color=\"info\">",
    "{{",
    "日志错误",
    "🙂‍👩",
    "e\u{301}\u{301}\u{301}",
];

struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 8).expect("64 bits") % end
    }

    fn text(&mut self) -> String {
        let most = [0, 3, 12, 200, 3_000][self.below(5)];
        let text: String = (0..most).map(|_| PIECES[self.below(PIECES.len())]).collect();
        // One repeated character, the worst case for escapes.
        match self.below(40) {
            0 => PIECES[self.below(PIECES.len())].repeat(1_000_000 / 16),
            1 => PIECES[self.below(PIECES.len())].repeat(1_200),
            _ => text,
        }
    }

    fn link(&mut self) -> MessageLink {
        let starts = [
            "https://git.example.com/",
            "http://[::1]:3000/",
            "https://li:pw@example.com/",
            "javascript:",
            "//",
            "",
        ];
        let start = starts[self.below(starts.len())];
        let path = truncate(self.text(), [20, 900, 5_000][self.below(3)]);
        MessageLink { text: self.text(), url: format!("{start}{path}?a=b&c=|(d)") }
    }

    fn message(&mut self) -> Message {
        let happened = NotificationPhase::ALL[self.below(NotificationPhase::ALL.len())];
        let mut message = message(happened, MessageLanguage::En);
        (message.title, message.place, message.cause) = (self.text(), self.text(), self.text());
        message.links = (0..self.below(9)).map(|_| self.link()).collect();
        (message.id, message.thread) = (format!("1{}", self.text()), format!("t{}", self.text()));
        message.data = match self.below(4) {
            0 => json!(null),
            1 => json!([self.text()]),
            2 => json!({"what": self.text(), "instance": self.text(), "app": self.text(), "links": 1}),
            _ => json!({self.text(): {"a": [self.text()]}}),
        };
        message
    }
}

#[test]
fn hostile_texts_break_no_format() {
    let targets = targets();
    let mut draw = Draw(32);
    for _ in 0..400 {
        let message = draw.message();
        for (_, target) in &targets {
            let known = ["C1/1.2", "C1/<!channel>", "", "/"][draw.below(4)];
            let request = request(target, &message, now(), Some(known)).expect("a request");
            strict::check(target, &message, &request);
        }
    }
}

#[cfg(feature = "mail")]
#[test]
fn hostile_texts_break_no_mail() {
    let mut draw = Draw(33);
    for _ in 0..400 {
        let message = draw.message();
        let to = ["ops@example.com".to_owned()];
        let mail = super::super::email::mail("tutti@example.com", &to, &message).expect("a mail");
        strict::mail(&mail.formatted());
    }
    for from in ["", "ops", "a@b\r\nBcc: c@d", "a@b, c@d"] {
        let error = super::super::email::mail(from, &["ops@example.com".to_owned()], &draw.message());
        assert!(error.expect_err(from).contains("`from`"));
    }
}

fn text(request: &ServiceRequest) -> &str {
    std::str::from_utf8(&request.body).expect("UTF-8")
}

#[test]
fn long_texts_end_with_an_ellipsis() {
    let mut message = message(NotificationPhase::Failed, MessageLanguage::Zh);
    for text in [&mut message.title, &mut message.place, &mut message.cause] {
        *text = "错".repeat(300_000);
    }
    for (name, target) in targets() {
        let request = request(&target, &message, now(), None).expect("a request");
        strict::check(&target, &message, &request);
        assert!(text(&request).contains("错…"), "{name}");
    }
}

#[test]
fn cut_texts_end_at_a_character() {
    let check = |text: &str, most, expected: &str| assert_eq!(truncate(text.to_owned(), most), expected);
    check("abc", 3, "abc");
    check("abcd", 3, "…");
    check("abcdef", 5, "ab…");
    check("错错错", 9, "错错错");
    check("错错错", 8, "错…");
    check("abcd", 2, "");
}

/// The strict readers detect broken formats.
#[test]
fn broken_formats_are_detected() {
    let mut message = message(NotificationPhase::Failed, MessageLanguage::En);
    "PLACE".clone_into(&mut message.place);
    for (name, target) in targets() {
        let whole = request(&target, &message, now(), None).expect("a request");
        assert!(text(&whole).contains("PLACE"), "{name}");
        let is_found = |from: &str, to: &str| {
            let mut request = whole.clone();
            request.body = text(&whole).replacen(from, to, 1).into_bytes();
            assert_ne!(request.body, whole.body, "{name} has no {from}");
            std::panic::catch_unwind(|| strict::check(&target, &message, &request)).is_err()
        };
        assert!(is_found("PLACE", "\u{202e}"), "{name}");
        assert!(name == "generic" || is_found("PLACE", "https://evil.example"), "{name}");
        assert!(is_found("PLACE", &"x".repeat(100_000)), "{name}");
        assert!(is_found("https://tutti.example.com/p/812", "https://evil.example"), "{name}");
        assert!(is_found("{", "{\"extra\":1,"), "{name}");
        match name {
            "dingtalk" | "wecom" => {
                assert!(is_found("PLACE", "@all"), "{name}");
                assert!(is_found("PLACE", "[x](https://evil.example)"), "{name}");
                assert!(is_found("PLACE", "<@all>"), "{name}");
            }
            "slack-webhook" | "slack-bot" => {
                assert!(is_found("PLACE", "<!channel>"), "{name}");
                assert!(is_found("failed", "<!channel>"), "{name}");
            }
            "feishu" => assert!(is_found("plain_text", "lark_md"), "{name}"),
            "teams" => assert!(is_found("TextRun", "TextBlock"), "{name}"),
            _ => {}
        }
    }
}
