//! Chinese.

use super::Words;
use crate::model::Happened;
use crate::report::notices::{Facts, Thread};

pub(super) const WORDS: Words = Words {
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

fn title(happened: Happened, thread: &Thread, what: &str, facts: &Facts) -> String {
    let ring = match thread {
        Thread::Rollout { ring: Some(ring), .. } | Thread::Health { ring: Some(ring) } => {
            format!("（{ring}）")
        }
        _ => String::new(),
    };
    let cluster = facts.clusters.first().map(ToString::to_string).unwrap_or_default();
    let ends = facts.ends.as_deref().unwrap_or_default();
    match (happened, thread) {
        (Happened::Failed, Thread::Errors { commit }) => format!("✗ 提交 {} 有错误", commit.short()),
        (Happened::Started, _) => format!("▶ {what} 开始发布{ring}"),
        (Happened::Waiting, _) => format!("⏸ {what} 等待人工确认{ring}"),
        (Happened::Done, _) => format!("✓ {what} 发布完成{ring}"),
        (Happened::Failed, _) => format!("✗ {what} 发布失败{ring}"),
        (Happened::Degraded, _) => format!("✗ {what} 运行异常{ring}"),
        (Happened::Recovered, _) => format!("✓ {what} 已恢复{ring}"),
        (Happened::Reverted, _) => format!("↩ {what} 已回退{ring}"),
        (Happened::Opened, _) => format!("⬆ {what} 晋级合并请求已创建"),
        (Happened::Held, _) => format!("⏸ {what} 晋级已搁置"),
        (Happened::Merged, _) => format!("✓ {what} 晋级已合并"),
        (Happened::Offline, _) => format!("✗ 集群 {cluster} 失联"),
        (Happened::Online, _) => format!("✓ 集群 {cluster} 恢复连接"),
        (Happened::DeleteWaits, _) => format!("⏸ {} 个对象等待批准删除", facts.objects),
        (Happened::CredentialEnds, _) => format!("⚠ 集群 {cluster} 的凭据将于 {ends} 到期"),
        (Happened::ServerEnds, Thread::Server { name, .. }) => format!("⚠ 服务器 {name} 将于 {ends} 到期"),
        (Happened::Test, _) => format!("✓ {what}"),
        (Happened::ServerEnds, _) => format!("⚠ 服务器将于 {ends} 到期"),
    }
}
