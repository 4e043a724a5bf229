//! `layer.yaml`: which clusters a cluster layer is for, and whether the values of a layer reach charts.

use std::collections::BTreeSet;

use super::{Job, codes, layers};
use crate::fleet::layers::TEMPLATES;
use crate::manifest::kinds::placement;
use crate::manifest::read::{Fields, Reading, Value as Field};
use crate::manifest::yaml::{self, NodeKind};
use crate::model::{Diagnostic, Location, Selector};

/// The charts that the values of a layer reach. Those of an app's own layer reach its charts in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForCharts {
    /// The values are for Components and AppSets without a chart.
    #[default]
    None,
    All,
    Named(BTreeSet<String>),
}

impl ForCharts {
    pub fn reach(&self, chart: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(chart),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerFile {
    /// Only of a cluster layer.
    pub clusters: Option<Selector>,
    pub charts: ForCharts,
}

/// The file of a layer; `None` where there is none. `of_clusters`: the layer must say for which clusters it is.
pub fn read(job: &Job<'_>, folder: &str, of_clusters: bool) -> Result<Option<LayerFile>, Vec<Diagnostic>> {
    let path = format!("{folder}layer.yaml");
    let Some(file) = job.snapshot.files.get(&path) else { return Ok(None) };
    let text = layers::text(job, &path, file).map_err(|mistake| vec![*mistake])?;
    let (documents, mut mistakes) = yaml::parse(&path, text);
    let mut reading = Reading::new(&path, job.scope());
    if let Some(second) = documents.get(1) {
        let place = second.root.location(&path);
        reading.mistake(codes::LAYER, "one document was expected, this is another", place, "");
    }
    let is_own = !folder.starts_with(TEMPLATES);
    let file = documents.first().and_then(|document| {
        let mut fields = Fields::of(&Field::root(&document.root), &mut reading)?;
        let clusters = if of_clusters { fields.required("clusters", &mut reading) } else { None };
        let charts = fields.narrowing("charts", &mut reading);
        fields.finish(&mut reading);
        let clusters = clusters.map(|clusters| placement::selector(&clusters, true, &mut reading));
        let charts = charts.map_or(Some(ForCharts::None), |charts| for_charts(&charts, is_own, &mut reading));
        Some(LayerFile { clusters: clusters.flatten(), charts: charts? })
    });
    mistakes.append(&mut reading.mistakes);
    for mistake in &mut mistakes {
        mistake.scope = job.scope();
    }
    match file {
        Some(file) if mistakes.is_empty() => Ok(Some(file)),
        _ if mistakes.is_empty() => {
            let message = format!("{path} is empty");
            Err(vec![job.error(codes::LAYER, message).at(Location::new(&path, 1, 1))])
        }
        _ => Err(mistakes),
    }
}

/// `true`, `"*"`, or names of charts. An app's own layer (`is_own`) reaches its charts, and can say nothing else.
fn for_charts(value: &Field<'_>, is_own: bool, reading: &mut Reading<'_>) -> Option<ForCharts> {
    match &value.node.kind {
        NodeKind::Bool(false, _) | NodeKind::Seq(_) if is_own => {
            let message = "the values of an app's own layer reach all charts of the app";
            let place = reading.location(value.node);
            let help = "remove `charts`, or move the values to a layer in templates/";
            reading.mistake(codes::LAYER, message, place, &value.path).help(help);
            None
        }
        NodeKind::Bool(true, _) => Some(ForCharts::All),
        NodeKind::Bool(false, _) => Some(ForCharts::None),
        NodeKind::String(text) if text == "*" => Some(ForCharts::All),
        NodeKind::Seq(_) => {
            let names = reading.texts(value)?;
            let all = names.iter().any(|name| name == "*");
            Some(if all { ForCharts::All } else { ForCharts::Named(names.into_iter().collect()) })
        }
        _ => {
            reading.wrong_type(value, "true, false, or a list of the names of charts");
            None
        }
    }
}
