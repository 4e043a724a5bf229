//! The columns of each kind.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::registry::ResourceKind;

const TEXT: &str = include_str!("columns.txt");

/// The columns of the built-in kinds, by resource.
static BUILT_IN: LazyLock<HashMap<&str, Vec<TableColumn>>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Vec<TableColumn>> = HashMap::new();
    let mut resource = "";
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('\t') {
            None => resource = line,
            Some(rest) => all.entry(resource).or_default().extend(column(rest)),
        }
    }
    all
});

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: String,
    format: String,
    description: String,
    priority: i64,
    /// Where the values of a custom kind's column are.
    pub(super) path: Option<String>,
}

impl TableColumn {
    /// As the table describes it.
    pub(super) fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority})
    }
}

fn column(line: &str) -> Option<TableColumn> {
    let mut fields = line.split('\t').map(str::to_owned);
    Some(TableColumn {
        name: fields.next()?,
        kind: fields.next()?,
        format: fields.next()?,
        priority: fields.next()?.parse().ok()?,
        description: fields.next()?.replace("\\n", "\n"),
        path: None,
    })
}

/// The columns of a kind; the same for all versions of a built-in one.
pub(super) fn kind_columns(kind: &ResourceKind) -> Vec<TableColumn> {
    match &kind.definition {
        Some(declared) => custom_columns(&declared.columns),
        None => BUILT_IN.get(kind.resource().as_str()).cloned().unwrap_or_default(),
    }
}

fn custom_columns(declared: &[crate::custom::PrinterColumn]) -> Vec<TableColumn> {
    let mut columns: Vec<TableColumn> =
        BUILT_IN.get("configmaps").into_iter().flatten().take(1).cloned().collect();
    if declared.is_empty() {
        columns.push(TableColumn {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: AGE.to_owned(),
            priority: 0,
            path: Some(".metadata.creationTimestamp".to_owned()),
        });
    }
    columns.extend(declared.iter().map(|one| TableColumn {
        name: one.name.clone(),
        kind: one.kind.clone(),
        format: one.format.clone(),
        description: one.description.clone(),
        priority: one.priority,
        path: Some(one.path.clone()),
    }));
    columns
}

const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::KindRegistry;

    #[test]
    fn every_listed_kind_has_columns() {
        let registry = KindRegistry::built_in();
        let without: Vec<String> = registry
            .all()
            .filter(|kind| kind.verbs.contains(&"list") && kind_columns(kind).is_empty())
            .map(|kind| kind.resource())
            .collect();
        assert_eq!(without, Vec::<String>::new());
    }
}
