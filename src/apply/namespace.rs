//! Creates the namespace of an app if the app asks for it.
//!
//! The namespace is created only after an object was refused because it is missing, so an existing one costs no
//! request. It carries no label of ours: it is never pruned, and any app may render it later.

use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::stopped;
use crate::cluster::{Catalog, Client, Error};
use crate::model::{Kind, ObjectId};

/// Of one app on one cluster, for one reconciliation. Its objects request it in parallel.
#[derive(Debug)]
pub struct OwnNamespace {
    name: String,
    /// Whether we created it. Somebody else may have.
    made: OnceCell<bool>,
}

impl OwnNamespace {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), made: OnceCell::new() }
    }

    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    fn id(&self) -> ObjectId {
        ObjectId::new("", "Namespace", None, &self.name)
    }

    /// The namespace, if this created it.
    pub fn made(&self) -> Option<ObjectId> {
        self.made.get().is_some_and(|made| *made).then(|| self.id())
    }

    /// Sends one request for all callers. A namespace that somebody else created is fine.
    pub async fn make(
        &self,
        client: &Client,
        catalog: &Catalog,
        manager: &str,
        cancelled: &CancellationToken,
    ) -> Result<(), Error> {
        let make = async {
            let id = self.id();
            let kind = Kind::new("", "v1", "Namespace");
            if let Some(error) = stopped(cancelled, &id) {
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
        self.made.get_or_try_init(|| make).await?;
        Ok(())
    }
}
