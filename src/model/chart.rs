//! Helm charts: sources, render requests, outputs and failures.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Digest, Location, RenderWait, TemplateWorkers, redacted_address};

/// A chart as a manifest names it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartRef {
    pub named: ChartName,
    #[serde(skip)]
    pub location: Location,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChartName {
    /// `chartUrl`: `alias/chart`, `charts/chart` or `oci://registry/path/chart`.
    Url { url: String, version: Option<String> },
    /// `rawChart`: the packaged chart itself.
    Raw(#[serde(skip)] Arc<[u8]>),
}

/// Where a chart is, once aliases are resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartSource {
    /// The folder `charts/<name>` of the config repository, and the version that it must have.
    Folder { name: String, version: Option<String> },
    /// Bytes in a manifest, by their digest.
    Raw { digest: Digest, archive: Arc<[u8]> },
    /// A chart repository: a server with an `index.yaml`.
    Repository { url: String, chart: String, version: String },
    /// A registry: `oci://host/path/chart`.
    Registry { url: String, version: String },
}

impl ChartSource {
    /// It must be fetched before anything can be rendered.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Repository { .. } | Self::Registry { .. })
    }
}

/// For people.
impl fmt::Display for ChartSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { name, .. } => write!(f, "charts/{name}"),
            Self::Raw { digest, .. } => write!(f, "rawChart {}", digest.short()),
            Self::Repository { url, chart, version } => {
                write!(f, "{chart} {version} of {}", redacted_address(url))
            }
            Self::Registry { url, version } => write!(f, "{} {version}", redacted_address(url)),
        }
    }
}

/// The files of one chart.
#[derive(Clone, PartialEq, Eq)]
pub struct Chart {
    /// What stands before its files in locations, with a final `/`: the folder in the config repository, or a word for
    /// what was fetched.
    pub origin: String,
    /// Over all files.
    pub digest: Digest,
    /// A folder of the repository, in which `.helmignore` counts; not a packaged chart.
    pub folder: bool,
    /// Names relative to the chart, sorted.
    pub files: Vec<(String, Arc<[u8]>)>,
}

impl Chart {
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, content)| &**content)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.file(name).and_then(|content| std::str::from_utf8(content).ok())
    }
}

impl fmt::Debug for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chart")
            .field("origin", &self.origin)
            .field("digest", &self.digest)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

/// The capabilities that a chart sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartCapabilities {
    /// `None`: Helm's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_version: Option<String>,
    /// `apps/v1`, `apps/v1/Deployment`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
    /// They are all there are; else they are more than Helm's defaults.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
}

/// One render of a chart: everything that the result depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartRequest {
    pub chart: Arc<Chart>,
    /// Over the values of the chart, lowest first; null deletes.
    pub values: Vec<Map<String, Value>>,
    pub release: String,
    pub namespace: String,
    pub capabilities: ChartCapabilities,
}

impl ChartRequest {
    /// The same key is the same result.
    pub fn key(&self) -> Digest {
        Digest::of_json(&json!([
            self.chart.digest.to_string(),
            self.chart.folder,
            self.values,
            self.release,
            self.namespace,
            self.capabilities,
        ]))
    }
}

/// What a chart makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartOutput {
    /// Definitions, then objects, then hooks. Objects of files in which no hook is come first, file by file by name; the
    /// others, and everything of `helm template`, in the order of Helm's installation. Who applies them has its own order.
    pub objects: Vec<ChartObject>,
    /// Empty when there are none, and where `helm template` is the renderer.
    pub notes: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChartObject {
    /// The template or file that made it, relative to the chart: `templates/service.yaml`.
    pub file: String,
    pub object: Value,
    /// From `crds/`, of which Helm changes and deletes nothing.
    pub definition: bool,
    pub hook: Option<ChartHook>,
}

/// An object that Helm applies apart from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartHook {
    /// `pre-install`, `post-upgrade`, `test`.
    pub events: Vec<String>,
    pub weight: i64,
    pub delete_policies: Vec<String>,
}

/// The kind of a failure; each has its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChartFailureKind {
    /// There is nothing here that renders charts.
    NoRenderer,
    /// The chart is not there, or could not be fetched.
    Missing,
    /// It is being fetched.
    Awaited,
    /// The archive or its files are not a chart that is taken.
    Malformed,
    /// The values do not fit the chart.
    Values,
    /// A template failed.
    Template,
    /// What a template made is not YAML.
    Output,
    /// It took too long, too much memory, or wrote too much.
    Limit,
    /// The renderer failed, which is no fault of the chart.
    Renderer,
}

/// Why a chart could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ChartFailure {
    pub fault: ChartFailureKind,
    /// Lower case, no full stop.
    pub message: String,
    /// Relative to the chart, with line and column as far as they are known.
    pub place: Option<(String, u32, u32)>,
    /// The expression or value that it is about: `.Values.image.tag`.
    pub value: Option<String>,
    pub help: Option<String>,
}

impl ChartFailure {
    pub fn new(fault: ChartFailureKind, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), place: None, value: None, help: None }
    }

    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u32, column: u32) -> Self {
        self.place = Some((file.into(), line, column));
        self
    }

    #[must_use]
    pub fn about(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ChartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(value) = &self.value {
            write!(f, " ({value})")?;
        }
        if let Some((file, line, column)) = &self.place {
            write!(f, " at {file}:{line}:{column}")?;
        }
        Ok(())
    }
}

/// Renders charts for a revision. Equal requests give equal results, so a render is a function of its inputs.
pub trait ChartProvider: Send + Sync + fmt::Debug {
    /// The chart of a source that is not in the config repository; remote ones were fetched before.
    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure>;

    fn render(&self, request: &ChartRequest, wait: RenderWait<'_>) -> Result<Arc<ChartOutput>, ChartFailure>;

    /// Who renders the templates of the repository; `None` where they are rendered in this process, without limits.
    fn template_workers(&self) -> Option<&dyn TemplateWorkers>;
}

/// Template workers without charts.
#[derive(Debug, Default)]
pub struct TemplatesOnly<W>(pub W);

impl<W: TemplateWorkers> ChartProvider for TemplatesOnly<W> {
    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        NoCharts.chart(source)
    }

    fn render(&self, request: &ChartRequest, wait: RenderWait<'_>) -> Result<Arc<ChartOutput>, ChartFailure> {
        NoCharts.render(request, wait)
    }

    fn template_workers(&self) -> Option<&dyn TemplateWorkers> {
        Some(&self.0)
    }
}

/// Refuses every chart.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCharts;

impl ChartProvider for NoCharts {
    fn chart(&self, source: &ChartSource) -> Result<Arc<Chart>, ChartFailure> {
        Err(ChartFailure::new(ChartFailureKind::NoRenderer, format!("this process cannot fetch {source}")))
    }

    fn render(&self, _: &ChartRequest, _: RenderWait<'_>) -> Result<Arc<ChartOutput>, ChartFailure> {
        Err(ChartFailure::new(ChartFailureKind::NoRenderer, "this process cannot render charts"))
    }

    fn template_workers(&self) -> Option<&dyn TemplateWorkers> {
        None
    }
}
