//! Signatures from the services' documentation or their own code.

use http::HeaderMap;
use jiff::Timestamp;
use reqwest::Url;

use super::super::{ResolvedService, dingtalk, feishu, generic, request};
use super::fixtures::{WHSEC, message, now, secret};
use crate::model::{MessageLanguage, NotificationPhase};

#[test]
fn feishu_signs_the_body() {
    let message = message(NotificationPhase::Done, MessageLanguage::En);
    let body = feishu::body(&message, now(), Some("demo")).expect("a body");
    assert_eq!(body["timestamp"], "1599360473");
    assert_eq!(body["sign"], "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8=");
    let unsigned = feishu::body(&message, now(), None).expect("a body");
    assert!(unsigned.get("sign").is_none() && unsigned.get("timestamp").is_none());
}

#[test]
fn dingtalk_signs_the_address() {
    let mut url = Url::parse("https://oapi.dingtalk.com/robot/send?access_token=a").expect("an address");
    let at = Timestamp::from_millisecond(1_577_808_000_000).expect("a time");
    dingtalk::sign(&mut url, at, "SECdemo").expect("signed");
    assert_eq!(
        url.query(),
        Some(
            "access_token=a&timestamp=1577808000000&sign=SFqI8mtuQw6r87NiZIWLBWL38%2B%2BgElAGVS%2FzEomx%2Bfw%3D"
        )
    );
}

#[test]
fn standard_webhooks_sign_id_time_and_body() {
    let mut headers = HeaderMap::new();
    let mut message = message(NotificationPhase::Done, MessageLanguage::En);
    "msg_1".clone_into(&mut message.id);
    let at = Timestamp::from_second(1_600_000_000).expect("a time");
    generic::sign(&mut headers, &message, at, WHSEC, br#"{"a":1}"#).expect("signed");
    assert_eq!(headers["webhook-id"], "msg_1");
    assert_eq!(headers["webhook-timestamp"], "1600000000");
    assert_eq!(headers["webhook-signature"], "v1,po45o/q3kOO5DINIefjO8a7tiJoJNgPTVhlGFU1rWLE=");
}

#[test]
fn invalid_keys_are_refused() {
    for key in ["whsec_", "", "whsec_no key"] {
        let target =
            ResolvedService::Generic { url: secret("https://example.com"), secret: Some(secret(key)) };
        let error = request(&target, &message(NotificationPhase::Done, MessageLanguage::En), now(), None)
            .expect_err("no key");
        assert!(error.contains("openssl rand -base64 32"), "{error}");
    }
}

#[test]
fn nothing_is_signed_without_a_secret() {
    let target = ResolvedService::Generic { url: secret("https://example.com"), secret: None };
    let request = request(&target, &message(NotificationPhase::Done, MessageLanguage::En), now(), None)
        .expect("a request");
    assert_eq!(request.headers.keys().collect::<Vec<_>>(), ["content-type"]);
}

#[test]
fn addresses_without_tls_are_refused() {
    let refused = [
        "http://example.com/s3cr3t",
        "http://localhost.example.com/s3cr3t",
        "ftp://example.com/s3cr3t",
        "s3cr3t",
        "https:",
        "",
    ];
    let of = |url: &str| {
        let target = ResolvedService::WeCom { url: secret(url) };
        request(&target, &message(NotificationPhase::Done, MessageLanguage::En), now(), None)
    };
    for url in refused {
        let error = of(url).expect_err(url);
        assert!(!error.contains("s3cr3t") && error.contains("https://"), "{error}");
    }
    for url in
        ["https://example.com/a", "http://127.0.0.1:80/a", "http://[::1]:80/a", " http://localhost/a\n"]
    {
        assert!(of(url).is_ok(), "{url}");
    }
}
