//! Creates the namespace of an app if the app asks for it.
//!
//! The namespace is created only after an object was refused because it is missing, so an existing one costs no
//! request. It carries no label of ours: it is never pruned, and any app may render it later.

use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::step_errors::superseded_error;
use crate::cluster::{Catalog, Client, Error};
use crate::model::{GroupVersionKind, ObjectId};

/// Of one app on one cluster, for one reconciliation. Its objects request it in parallel.
#[derive(Debug)]
pub struct OwnNamespace {
    name: String,
    /// Whether we created it. Somebody else may have.
    created_id: OnceCell<bool>,
}

impl OwnNamespace {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), created_id: OnceCell::new() }
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    fn id(&self) -> ObjectId {
        ObjectId::new("", "Namespace", None, &self.name)
    }

    /// The namespace, if this created it.
    pub fn created_id(&self) -> Option<ObjectId> {
        self.created_id.get().is_some_and(|made| *made).then(|| self.id())
    }

    /// Sends one request for all callers. A namespace that somebody else created is fine.
    pub async fn ensure(
        &self,
        client: &Client,
        catalog: &Catalog,
        manager: &str,
        cancelled: &CancellationToken,
    ) -> Result<(), Error> {
        let make = async {
            let id = self.id();
            let kind = GroupVersionKind::new("", "v1", "Namespace");
            if let Some(error) = superseded_error(cancelled, &id) {
                return Err(error);
            }
            let Some(resource) = catalog.get(&kind) else {
                return Err(Error::NotServed { cluster: client.name().clone(), kind: kind.to_string() });
            };
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}});
            match client.create(resource, &id, &body, manager, false).await {
                Ok(_) => Ok(true),
                Err(Error::Rejected { code: 409, .. }) => Ok(false),
                Err(error) => Err(error),
            }
        };
        self.created_id.get_or_try_init(|| make).await?;
        Ok(())
    }
}
