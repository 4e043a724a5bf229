//! Computes one cell: columns that most kinds share, else the file of the kind's family.

use serde_json::{Value, json};

use super::columns::TableColumn;
use super::row_object::RowObject;
use super::{cluster, custom, network, pod, policy, storage, workload};
use crate::object;
use crate::registry::ResourceKind;

pub(super) fn cell_value(view: &RowObject<'_>, kind: &ResourceKind, column: &TableColumn) -> Value {
    if let Some(path) = &column.path {
        return custom::cell(view, path, &column.kind);
    }
    let name = column.name.as_str();
    let own = match kind.group.as_str() {
        "" if kind.plural == "pods" => pod::cell(view, name),
        "" => cluster::cell(view, &kind.plural, name)
            .or_else(|| network::cell(view, &kind.plural, name))
            .or_else(|| storage::cell(view, &kind.plural, name)),
        "apps" | "batch" | "autoscaling" => workload::cell(view, &kind.plural, name),
        "networking.k8s.io" | "discovery.k8s.io" => network::cell(view, &kind.plural, name),
        "storage.k8s.io" => storage::cell(view, &kind.plural, name),
        "events.k8s.io" => cluster::cell(view, "events", name),
        _ => policy::cell(view, &kind.plural, name),
    };
    own.unwrap_or_else(|| common_cell(view, name))
}

fn common_cell(view: &RowObject<'_>, column: &str) -> Value {
    match column {
        "Name" => json!(object::name(view.object)),
        "Age" => json!(view.age_since(view.text(&["metadata", "creationTimestamp"]))),
        "Created At" => view.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default(),
        _ => json!("<unknown>"),
    }
}
