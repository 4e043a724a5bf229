//! The meaning of each service's answers.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::{RateLimits, SendOutcome, outcome, rate_limits};
use super::fixtures::targets;

/// The expected outcome: `sent`, `sent NAME`, `later`, `later SECONDS`, `refused`; then, after a bar, words of the reason.
fn shown(outcome: &SendOutcome) -> (String, String) {
    match outcome {
        SendOutcome::Sent(None) => ("sent".to_owned(), String::new()),
        SendOutcome::Sent(Some(name)) => (format!("sent {name}"), String::new()),
        SendOutcome::RetryLater { after: None, why } => ("later".to_owned(), why.clone()),
        SendOutcome::RetryLater { after: Some(after), why } => {
            (format!("later {}", after.as_secs()), why.clone())
        }
        SendOutcome::Unconfirmed(why) => ("lost".to_owned(), why.clone()),
        SendOutcome::Refused(why) => ("refused".to_owned(), why.clone()),
    }
}

#[track_caller]
fn check(service: &str, status: u16, body: &str, expected: &str) {
    check_with(service, status, &HeaderMap::new(), body, expected);
}

#[track_caller]
fn check_with(service: &str, status: u16, headers: &HeaderMap, body: &str, expected: &str) {
    let (kind, words) = expected.split_once('|').unwrap_or((expected, ""));
    for (name, target) in targets() {
        if name.starts_with(service) {
            let status = StatusCode::from_u16(status).expect("a status");
            let found = shown(&outcome(&target, status, headers, body.as_bytes()));
            assert_eq!(found.0, kind, "{name} {status} {body}: {}", found.1);
            assert!(found.1.contains(words), "{name} {status} {body}: {}", found.1);
        }
    }
}

#[test]
fn feishu() {
    let check = |status, body: &str, expected| check("feishu", status, body, expected);
    check(200, r#"{"code":0,"msg":"success","data":{}}"#, "sent");
    check(200, r#"{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}"#, "sent");
    check(200, r#"{"code":11232,"msg":"frequency limited psm"}"#, "later 60|11232: frequency limited");
    check(200, r#"{"code":9499,"msg":"too many request","data":{}}"#, "later 60|9499");
    check(200, r#"{"code":9499,"msg":"Bad Request","data":{}}"#, "refused|9499");
    check(400, r#"{"code":9499,"msg":"Bad Request","data":{}}"#, "refused|9499");
    check(
        200,
        r#"{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}"#,
        "refused|create a new",
    );
    check(200, r#"{"code":19021,"msg":"sign match fail"}"#, "refused|clock");
    check(200, r#"{"code":19022,"msg":"Ip Not Allowed"}"#, "refused|address of this machine");
    check(200, r#"{"code":19024,"msg":"Key Words Not Found"}"#, "refused|keyword");
    check(200, r#"{"code":11310,"msg":"card table number over limit"}"#, "later|11310: card");
    check(200, "<html>login</html>", "later|without a code");
    check(200, r#"{"code":"0"}"#, "later|without a code");
    check(502, r#"{"code":0}"#, "later|502");
    check(404, "", "refused|404");
}

#[test]
fn dingtalk() {
    let check = |status, body: &str, expected| check("dingtalk", status, body, expected);
    check(200, r#"{"errcode":0,"errmsg":"ok"}"#, "sent");
    let fast = r#"{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}"#;
    check(200, fast, "later 600|130101: send too fast");
    check(200, r#"{"errcode":410100,"errmsg":"发送速度太快而限流"}"#, "later 600|发送速度太快");
    check(200, r#"{"errcode":310000,"errmsg":"sign not match"}"#, "refused|310000: sign not match; compare");
    check(200, r#"{"errcode":310000,"errmsg":"keywords not in content"}"#, "refused|keywords");
    check(200, r#"{"errcode":300005,"errmsg":"token is not exist"}"#, "refused|create a new");
    check(200, r#"{"errcode":400101,"errmsg":"access_token不存在"}"#, "refused|create a new");
    check(200, r#"{"errcode":400013,"errmsg":"群已被解散"}"#, "refused|group does not exist");
    check(200, r#"{"errcode":400102,"errmsg":"机器人已停用"}"#, "refused|switch it on");
    check(200, r#"{"errcode":460101,"errmsg":"body 大小不合法"}"#, "refused|460101");
    check(200, r#"{"errcode":430103,"errmsg":"含有不合适的图片"}"#, "refused|does not allow");
    check(200, r#"{"errcode":-1,"errmsg":"系统繁忙"}"#, "later|-1: 系统繁忙");
    check(200, r#"{"errcode":88,"errmsg":"ding talk error"}"#, "later|88: ding talk error");
    check(200, "null", "later|without a code");
    check(503, "busy", "later|503: busy");
}

#[test]
fn wecom() {
    let check = |status, body: &str, expected| check("wecom", status, body, expected);
    check(200, r#"{"errcode":0,"errmsg":"ok"}"#, "sent");
    check(200, r#"{"errcode":45009,"errmsg":"api freq out of limit"}"#, "later 60|45009: api freq");
    check(200, r#"{"errcode":93000,"errmsg":"invalid webhook url"}"#, "refused|create a new");
    check(200, r#"{"errcode":40058,"errmsg":"markdown.content exceed max length 4096"}"#, "refused|40058");
    check(200, r#"{"errcode":-1,"errmsg":"system busy"}"#, "later|-1");
    check(200, "", "later|without a code");
}

#[test]
fn slack_webhook() {
    let check = |status, body: &str, expected| check("slack-webhook", status, body, expected);
    check(200, "ok", "sent");
    check(400, "invalid_payload", "refused|400: invalid_payload");
    check(403, "action_prohibited", "refused|action_prohibited");
    check(404, "no_service", "refused|no_service");
    check(410, "channel_is_archived", "refused|410");
    check(500, "rollup_error", "later|rollup_error");
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("30"));
    check_with("slack-webhook", 429, &headers, "rate_limited", "later 30|429");
}

#[test]
fn slack_bot() {
    let check = |status, body: &str, expected| check("slack-bot", status, body, expected);
    let posted = r#"{"ok":true,"channel":"C0123","ts":"1599360400.000200","message":{}}"#;
    check(200, posted, "sent C0123/1599360400.000200");
    check(200, r#"{"ok":true}"#, "sent");
    check(200, r#"{"ok":true,"channel":"C/../1","ts":"1"}"#, "sent");
    check(200, r#"{"ok":false,"error":"invalid_auth"}"#, "refused|invalid_auth; put a valid token");
    check(200, r#"{"ok":false,"error":"not_in_channel"}"#, "refused|invite the bot");
    check(200, r#"{"ok":false,"error":"missing_scope"}"#, "refused|chat:write");
    check(200, r#"{"ok":false,"error":"invalid_blocks"}"#, "refused|not understood");
    check(200, r#"{"ok":false,"error":"message_not_found"}"#, "refused|cannot be changed");
    check(200, r#"{"ok":false,"error":"fatal_error"}"#, "later|fatal_error");
    check(200, r#"{"ok":false,"error":"something_new"}"#, "later|something_new");
    check(200, r#"{"ok":false}"#, "later|without an error");
    check(200, "[]", "later|without a code");
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("30"));
    check_with("slack-bot", 429, &headers, r#"{"ok":false,"error":"ratelimited"}"#, "later 30|429");
}

#[test]
fn teams_and_other_programs() {
    check("teams", 202, "", "sent");
    let hidden =
        "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429";
    check("teams", 200, hidden, "later|did not accept");
    check("teams", 413, "", "refused|413");
    for service in ["teams", "generic"] {
        check(service, 204, "", "sent");
        check(service, 400, "a\u{1b}[31m\nb", "refused|400: a b");
        check(service, 302, "", "later|302");
        check(service, 408, "", "later|408");
        check(service, 500, &"x".repeat(1_000), "later|xx…");
        let wait = |text: &'static str, expected| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", HeaderValue::from_static(text));
            check_with(service, 503, &headers, "", expected);
        };
        wait("7", "later 7");
        wait("999999", "later 3600");
        wait("-1", "later");
        wait("Fri, 31 Dec 1999 23:59:59 GMT", "later");
    }
}

#[test]
fn limits_are_below_those_of_services() {
    let allowed = [("feishu", 100), ("dingtalk", 20), ("wecom", 20), ("slack-bot", 60), ("teams", 240)];
    for (name, target) in targets() {
        let Some(RateLimits { per_minute, min_interval: apart }) = rate_limits(&target) else {
            assert_eq!(name, "generic");
            continue;
        };
        if let Some((_, allowed)) = allowed.iter().find(|(service, _)| *service == name) {
            assert!(per_minute < *allowed, "{name}");
        }
        assert!(apart < Duration::from_secs(2), "{name}");
    }
}
