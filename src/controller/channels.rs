//! The inputs and outputs of the controller.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::fleet::Fleet;
use crate::forge::WebhookHint;
use crate::model::{Instance, Snapshot};
use crate::render::DefinedKindsByCluster;
use crate::report::Overview;
use crate::rollout::AllMeasurementOutcomes;

/// The inputs of the controller.
#[derive(Debug)]
pub struct ControllerInputs {
    pub wakes: mpsc::Receiver<()>,
    pub hints: mpsc::Receiver<WebhookHint>,
    /// The results of measurements after waves.
    pub measurements: watch::Receiver<Arc<AllMeasurementOutcomes>>,
    /// This process was elected, if it was standby.
    pub elected: CancellationToken,
    pub stop: CancellationToken,
}

/// The outputs of the controller.
#[derive(Debug)]
pub struct ControllerOutputs {
    pub overview: watch::Sender<Arc<Overview>>,
    /// The instance at the last read: receivers and the poll interval follow it.
    pub instance: watch::Sender<Option<Arc<Instance>>>,
    pub head: watch::Sender<Option<Arc<ConfigHead>>>,
}

/// The config repository at the last read.
#[derive(Clone, Debug)]
pub struct ConfigHead {
    pub fleet: Arc<Fleet>,
    pub snapshot: Arc<Snapshot>,
    /// The kinds that its apps define, once all of them are rendered.
    pub defined: Option<DefinedKindsByCluster>,
}
