//! What a cluster can do, for whoever asks: templates and charts. What was asked is kept with the render, so that a cluster
//! that changes in something else is not rendered again.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Serde};
use minijinja::{Error, ErrorKind, Value};
use parking_lot::Mutex;

use crate::model::{Capabilities, Questions};

/// The capabilities of one cluster, and what one render has asked of them.
#[derive(Debug)]
pub struct Facts {
    known: Arc<Capabilities>,
    asked: Mutex<Questions>,
}

impl Facts {
    pub fn new(known: Arc<Capabilities>) -> Arc<Self> {
        Arc::new(Self { known, asked: Mutex::default() })
    }

    pub fn questions(&self) -> Questions {
        self.asked.lock().clone()
    }

    pub fn has(&self, name: &str) -> bool {
        let answer = self.known.has(name);
        self.asked.lock().has.entry(name.to_owned()).or_insert(answer);
        answer
    }

    /// For whoever may look at any of it.
    pub fn all(&self) -> &Capabilities {
        self.asked.lock().all = Some(Arc::clone(&self.known));
        &self.known
    }

    fn version(&self) -> Value {
        self.asked.lock().version = Some(self.known.version.clone());
        Value::from(Serde(&self.known.version))
    }

    /// The variable `cluster`, with what the cluster can do.
    pub fn in_cluster(self: &Arc<Self>, plain: Value) -> Value {
        Value::from_object(InCluster { plain, facts: Arc::clone(self) })
    }
}

/// `cluster`.
#[derive(Debug)]
struct InCluster {
    plain: Value,
    facts: Arc<Facts>,
}

impl Object for InCluster {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "version" => Some(self.facts.version()),
            "capabilities" => Some(Value::from_object(InCapabilities(Arc::clone(&self.facts)))),
            _ => self.plain.get_item(key).ok().filter(|value| !value.is_undefined()),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let plain = self.plain.try_iter().into_iter().flatten();
        Enumerator::Values(plain.chain(["version", "capabilities"].map(Value::from)).collect())
    }
}

/// `cluster.capabilities`.
#[derive(Debug)]
struct InCapabilities(Arc<Facts>);

impl Object for InCapabilities {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "version" => Some(self.0.version()),
            "apiVersions" => Some(Value::from(Serde(&self.0.all().api_versions))),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["version", "apiVersions"])
    }
}

/// `cluster.capabilities is has("autoscaling/v2")`.
pub fn has(capabilities: &Value, name: &str) -> Result<bool, Error> {
    match capabilities.downcast_object_ref::<InCapabilities>() {
        Some(InCapabilities(facts)) => Ok(facts.has(name)),
        None => Err(Error::new(ErrorKind::InvalidOperation, "`has` asks cluster.capabilities")),
    }
}
