//! Chinese.

use super::language_texts::LanguageTexts;
use crate::model::NotificationPhase;
use crate::report::notices::{NoticeFacts, NotificationThread};

pub(super) const TEXTS: LanguageTexts = LanguageTexts {
    title,
    apps: |number| format!("{number} 个应用"),
    objects: |number| format!("删除 {number} 个对象"),
    and_more: |number| format!("，另有 {number} 个"),
    others: |number| format!("（另有 {number} 处）"),
    rest: |number| format!("另有 {number} 条"),
    healthy: |healthy, total| format!("{healthy}/{total} 健康"),
    by: |subject, author| format!("“{subject}”（{author}）"),
    confirm: |commands| format!("继续操作：{commands}"),
    mend: |commands| format!("处理方式：{commands}"),
    commit: "提交",
    page: "详情",
    pull: "合并请求",
    digest: |number| format!("{number} 条事件"),
    test: |route| format!("✓ 通知路由 {route} 的测试消息"),
    sent_by: |sender| format!("由 {sender} 通过 `tutti notify test` 发送"),
    cause: "（集群给出的原因）",
    comma: "、",
    or: " 或 ",
};

fn title(
    happened: NotificationPhase,
    thread: &NotificationThread,
    what: &str,
    facts: &NoticeFacts,
) -> String {
    let ring = match thread {
        NotificationThread::Rollout { ring: Some(ring), .. }
        | NotificationThread::Health { ring: Some(ring) } => {
            format!("（{ring}）")
        }
        _ => String::new(),
    };
    let cluster = facts.clusters.first().map(ToString::to_string).unwrap_or_default();
    let ends = facts.ends.as_deref().unwrap_or_default();
    match (happened, thread) {
        (NotificationPhase::Failed, NotificationThread::Errors { commit }) => {
            format!("✗ 提交 {} 有错误", commit.short())
        }
        (NotificationPhase::Started, _) => format!("▶ {what} 开始发布{ring}"),
        (NotificationPhase::Waiting, _) => format!("⏸ {what} 等待人工确认{ring}"),
        (NotificationPhase::Done, _) => format!("✓ {what} 发布完成{ring}"),
        (NotificationPhase::Failed, _) => format!("✗ {what} 发布失败{ring}"),
        (NotificationPhase::Degraded, _) => format!("✗ {what} 运行异常{ring}"),
        (NotificationPhase::Recovered, _) => format!("✓ {what} 已恢复{ring}"),
        (NotificationPhase::Reverted, _) => format!("↩ {what} 已回退{ring}"),
        (NotificationPhase::Opened, _) => format!("⬆ {what} 晋级合并请求已创建"),
        (NotificationPhase::Held, _) => format!("⏸ {what} 晋级已搁置"),
        (NotificationPhase::Merged, _) => format!("✓ {what} 晋级已合并"),
        (NotificationPhase::Offline, _) => format!("✗ 集群 {cluster} 失联"),
        (NotificationPhase::Online, _) => format!("✓ 集群 {cluster} 恢复连接"),
        (NotificationPhase::DeleteWaits, _) => format!("⏸ {} 个对象等待批准删除", facts.objects),
        (NotificationPhase::CredentialEnds, _) => format!("⚠ 集群 {cluster} 的凭据将于 {ends} 到期"),
        (NotificationPhase::ServerEnds, NotificationThread::Server { name, .. }) => {
            format!("⚠ 服务器 {name} 将于 {ends} 到期")
        }
        (NotificationPhase::Test, _) => format!("✓ {what}"),
        (NotificationPhase::ServerEnds, _) => format!("⚠ 服务器将于 {ends} 到期"),
    }
}
