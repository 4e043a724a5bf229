//! Messages of each kind in both languages, and one target for each service.

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::json;

use super::super::ResolvedService;
use crate::model::{MessageLanguage, NotificationPhase};
use crate::notification::{Message, MessageLink};

type Words = [&'static str; 3];

pub const WHSEC: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";

/// 2020-09-06 02:47:53 UTC.
pub fn now() -> Timestamp {
    Timestamp::from_second(1_599_360_473).expect("a time")
}

pub fn secret(text: &str) -> SecretString {
    text.to_owned().into()
}

/// One for each service, with the name of its golden files.
pub fn targets() -> Vec<(&'static str, ResolvedService)> {
    vec![
        (
            "feishu",
            ResolvedService::Feishu {
                url: secret("https://open.feishu.cn/open-apis/bot/v2/hook/abc"),
                secret: Some(secret("demo")),
            },
        ),
        (
            "dingtalk",
            ResolvedService::DingTalk {
                url: secret("https://oapi.dingtalk.com/robot/send?access_token=abc"),
                secret: Some(secret("SECdemo")),
            },
        ),
        (
            "wecom",
            ResolvedService::WeCom {
                url: secret("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=abc"),
            },
        ),
        (
            "slack-webhook",
            ResolvedService::SlackWebhook { url: secret("https://hooks.slack.com/services/T0/B0/abc\n") },
        ),
        ("slack-bot", ResolvedService::SlackBot { token: secret("xoxb-1"), channel: "#releases".to_owned() }),
        (
            "teams",
            ResolvedService::Teams {
                url: secret("https://x.logic.azure.com/workflows/1/triggers/2?sig=abc"),
            },
        ),
        (
            "generic",
            ResolvedService::Generic { url: secret("https://example.com/hook"), secret: Some(secret(WHSEC)) },
        ),
    ]
}

pub fn message(happened: NotificationPhase, language: MessageLanguage) -> Message {
    let [what, place, why] = words(happened, language);
    let is_rollout = place.starts_with("3f9c2d1");
    let thread = if is_rollout { "rollout/3f9c2d1/prod" } else { "other/1" };
    let texts = match language {
        MessageLanguage::En => ["Commit", "Page"],
        MessageLanguage::Zh => ["提交", "页面"],
    };
    let urls = ["https://git.example.com/platform/config/commit/3f9c2d1", "https://tutti.example.com/p/812"];
    let link = |(text, url): (&str, &str)| MessageLink { text: text.to_owned(), url: url.to_owned() };
    Message {
        id: format!("{thread}/{}", happened.as_str()),
        thread: thread.to_owned(),
        happened,
        language,
        at: now(),
        title: what.to_owned(),
        place: place.to_owned(),
        cause: why.to_owned(),
        links: texts.into_iter().zip(urls).map(link).collect(),
        data: json!({"instance": "prod", "phase": happened.as_str(), "revision": "3f9c2d1", "ring": "prod", "clusters": 6}),
    }
}

/// Title, place and cause of a message.
fn words(happened: NotificationPhase, language: MessageLanguage) -> Words {
    let (en, zh): (Words, Words) = match happened {
        NotificationPhase::Started => (
            ["↻ pay 1.8.0 → prod started", "3f9c2d1 bump pay to 1.8.0 · li · 6 clusters", ""],
            ["↻ pay 1.8.0 → prod 开始", "3f9c2d1 bump pay to 1.8.0 · li · 6 个集群", ""],
        ),
        NotificationPhase::Waiting => (
            [
                "⏸ pay 1.8.0 → prod waits for a person",
                "3f9c2d1 bump pay to 1.8.0 · li · wave 1 of 3",
                "Confirm with `tutti rollout confirm pay`.",
            ],
            [
                "⏸ pay 1.8.0 → prod 等待确认",
                "3f9c2d1 bump pay to 1.8.0 · li · 第 1 批，共 3 批",
                "用 `tutti rollout confirm pay` 确认。",
            ],
        ),
        NotificationPhase::Done => (
            ["✓ pay 1.8.0 → prod done (6/6 clusters)", "3f9c2d1 bump pay to 1.8.0 · li", ""],
            ["✓ pay 1.8.0 → prod 完成（6/6 集群）", "3f9c2d1 bump pay to 1.8.0 · li", ""],
        ),
        NotificationPhase::Failed => (
            [
                "✗ pay 1.8.0 → prod failed (5/6 clusters healthy)",
                "3f9c2d1 bump pay to 1.8.0 · li",
                "bj5 · Pod shop/pay-7c9f CrashLoopBackOff (exit 1): \"missing DB_URL\"\nbj6 · ImagePullBackOff: https://registry.example.com/v2/ <timeout>",
            ],
            [
                "✗ pay 1.8.0 → prod 失败（5/6 集群健康）",
                "3f9c2d1 bump pay to 1.8.0 · li",
                "bj5 · Pod shop/pay-7c9f CrashLoopBackOff（exit 1）：\"missing DB_URL\"",
            ],
        ),
        NotificationPhase::Degraded => (
            [
                "! pay in prod is degraded (bj5)",
                "3f9c2d1 bump pay to 1.8.0 · li",
                "Deployment shop/pay 3/5: OOMKilled",
            ],
            [
                "! pay 在 prod 不健康（bj5）",
                "3f9c2d1 bump pay to 1.8.0 · li",
                "Deployment shop/pay 3/5：OOMKilled",
            ],
        ),
        NotificationPhase::Recovered => (
            ["✓ pay in prod is healthy again (bj5)", "3f9c2d1 bump pay to 1.8.0 · li", "after 12 min"],
            ["✓ pay 在 prod 已恢复（bj5）", "3f9c2d1 bump pay to 1.8.0 · li", "历时 12 分钟"],
        ),
        NotificationPhase::Reverted => (
            [
                "↶ pay 1.8.0 → prod is reverted to 1.7.3",
                "3f9c2d1 bump pay to 1.8.0 · li",
                "by 77aa01c revert pay",
            ],
            ["↶ pay 1.8.0 → prod 已回滚到 1.7.3", "3f9c2d1 bump pay to 1.8.0 · li", "由 77aa01c revert pay"],
        ),
        NotificationPhase::Opened => (
            ["⇧ Promotion of pay 1.8.0 to prod is open", "pull request #42 · test → prod", ""],
            ["⇧ pay 1.8.0 到 prod 的晋级已打开", "合并请求 #42 · test → prod", ""],
        ),
        NotificationPhase::Held => (
            [
                "⏸ Promotion of pay 1.8.0 to prod is held",
                "pull request #42 · test → prod",
                "1 of 2 approvals; frozen until Monday & 09:00",
            ],
            [
                "⏸ pay 1.8.0 到 prod 的晋级被挂起",
                "合并请求 #42 · test → prod",
                "2 个批准中的 1 个；冻结至周一 & 09:00",
            ],
        ),
        NotificationPhase::Merged => (
            ["✓ Promotion of pay 1.8.0 to prod is merged", "pull request #42 · test → prod", ""],
            ["✓ pay 1.8.0 到 prod 的晋级已合并", "合并请求 #42 · test → prod", ""],
        ),
        NotificationPhase::Offline => (
            ["✗ Cluster bj5 is offline", "bj5 · 14 apps", "no answer for 60 s: connection refused"],
            ["✗ 集群 bj5 离线", "bj5 · 14 个应用", "60 秒无应答：connection refused"],
        ),
        NotificationPhase::Online => (
            ["✓ Cluster bj5 is back", "bj5 · 14 apps", "after 5 min"],
            ["✓ 集群 bj5 已恢复", "bj5 · 14 个应用", "历时 5 分钟"],
        ),
        NotificationPhase::DeleteWaits => (
            [
                "⏸ A delete waits for an approval",
                "bj5 · PersistentVolumeClaim shop/pay-data",
                "Approve with `tutti approve`.",
            ],
            ["⏸ 删除等待批准", "bj5 · PersistentVolumeClaim shop/pay-data", "用 `tutti approve` 批准。"],
        ),
        NotificationPhase::CredentialEnds => (
            ["! The credential of bj5 ends in 6 days", "bj5 · client certificate", "until 2020-09-12"],
            ["! bj5 的凭证 6 天后到期", "bj5 · 客户端证书", "至 2020-09-12"],
        ),
        NotificationPhase::ServerEnds => (
            [
                "! Server web-3 ends in 6 days",
                "web-3 · 192.0.2.7 · Hetzner · cluster bj5",
                "until 2020-09-12",
            ],
            ["! 服务器 web-3 6 天后到期", "web-3 · 192.0.2.7 · Hetzner · 集群 bj5", "至 2020-09-12"],
        ),
        NotificationPhase::Test => (
            ["✓ test of route shop", "prod", "sent by li"],
            ["✓ 通知路由 shop 的测试消息", "prod", "由 li 发送"],
        ),
    };
    match language {
        MessageLanguage::En => en,
        MessageLanguage::Zh => zh,
    }
}
