//! The machine-readable part of a pull request description: a small YAML in an HTML comment.

use serde_json::{Value, json};

use crate::manifest::yaml::{self, YamlNode, YamlNodeKind};
use crate::model::{AppId, Digest};

/// The purpose of a pull request of this instance, from its description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescriptionBlock {
    /// `promotion`, `approval`, `revert`.
    pub kind: String,
    /// The ring, or the wave of an approval.
    pub ring: Option<String>,
    pub commit: Option<String>,
    /// Sorted.
    pub items: Vec<PullRequestApp>,
    /// A person requested it.
    pub is_requested: bool,
    /// tutti closed it because it is not needed any more: it does not block its version.
    pub is_withdrawn: bool,
}

/// One app of the pull request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PullRequestApp {
    pub app: AppId,
    pub from: Option<String>,
    /// A version; for an approval the digest; empty if a whole commit is reverted.
    pub to: String,
}

const OPENING: &str = "<!-- tutti\n";
const CLOSING: &str = "-->";
/// People edit descriptions too: only this part of one is read.
const MAX_BODY_BYTES: usize = 256 * 1024;
const MAX_ITEMS: usize = 1_000;

impl DescriptionBlock {
    /// Digest of the purpose: another purpose is another proposal.
    pub fn digest(&self) -> Digest {
        let items: Vec<Value> =
            self.items.iter().map(|it| json!([it.app.to_string(), it.from, it.to])).collect();
        Digest::of_json(&json!([self.kind, self.ring, self.commit, items]))
    }

    /// It contains every app of the other one, with the same version.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let has = |item: &PullRequestApp| self.items.iter().any(|it| it.app == item.app && it.to == item.to);
        self.kind == other.kind && !other.items.is_empty() && other.items.iter().all(has)
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{OPENING}kind: {}\n", quote_yaml(&self.kind));
        let fields = [("ring", &self.ring), ("commit", &self.commit)];
        for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            text.push_str(&format!("{name}: {}\n", quote_yaml(value)));
        }
        text.push_str("apps:\n");
        for PullRequestApp { app, from, to } in &self.items {
            let from = from.as_ref().map(|from| format!("from: {}, ", quote_yaml(from))).unwrap_or_default();
            text.push_str(&format!(
                "  - {{app: {}, {from}to: {}}}\n",
                quote_yaml(&app.to_string()),
                quote_yaml(to)
            ));
        }
        for (name, _) in
            [("requested", self.is_requested), ("withdrawn", self.is_withdrawn)].into_iter().filter(|it| it.1)
        {
            text.push_str(&format!("{name}: true\n"));
        }
        text.push_str(&format!("digest: {}\n{CLOSING}\n", self.digest()));
        text
    }
}

/// No text can end the comment, because `>` is escaped.
fn quote_yaml(text: &str) -> String {
    Value::from(text).to_string().replace('>', "\\u003e")
}

/// The block of a description; `None` if there is no readable one. Unknown fields are ignored.
pub fn parse_body(body: &str) -> Option<DescriptionBlock> {
    let body = body.get(..MAX_BODY_BYTES).unwrap_or(body).replace("\r\n", "\n");
    let (_, rest) = body.split_once(OPENING)?;
    let (text, _) = rest.split_once(CLOSING)?;
    let (documents, mistakes) = yaml::parse("", text);
    let root = &documents.first().filter(|_| mistakes.is_empty())?.root;
    let text_of =
        |node: &YamlNode, name: &str| node.get(name).and_then(YamlNode::scalar_text).map(str::to_owned);
    let is_set = |name: &str| matches!(root.get(name).map(|it| &it.kind), Some(YamlNodeKind::Bool(true, _)));
    let item = |node: &YamlNode| {
        let app = AppId::parse(&text_of(node, "app")?)?;
        Some(PullRequestApp { app, from: text_of(node, "from"), to: text_of(node, "to")? })
    };
    let apps = root.get("apps").and_then(YamlNode::as_seq).unwrap_or_default();
    let mut items: Vec<PullRequestApp> = apps.iter().take(MAX_ITEMS).filter_map(item).collect();
    items.sort();
    Some(DescriptionBlock {
        kind: text_of(root, "kind")?,
        ring: text_of(root, "ring"),
        commit: text_of(root, "commit"),
        items,
        is_requested: is_set("requested"),
        is_withdrawn: is_set("withdrawn"),
    })
}

/// The description of a pull request that tutti closes: it shows the reason, and blocks its version no more.
pub fn withdrawn_body(body: &str, why: &str) -> String {
    let Some(block) = parse_body(body) else { return body.to_owned() };
    let withdrawn = DescriptionBlock { is_withdrawn: true, ..block }.to_text();
    let replaced = body.replace("\r\n", "\n");
    let before = replaced.split_once(OPENING).map_or("", |(before, _)| before);
    let after =
        replaced.split_once(OPENING).and_then(|(_, rest)| rest.split_once(CLOSING)).map_or("", |it| it.1);
    format!("{before}{withdrawn}\nClosed by tutti: {why}.\n{}", after.trim_start_matches('\n'))
}
