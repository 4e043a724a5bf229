//! The charts that the values of a layer reach.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The charts that the values of a layer reach. An app's own layer always reaches its charts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LayerChartScope {
    /// The values are for Components and AppSets without a chart.
    #[default]
    None,
    All,
    /// By the name of the chart.
    Named(BTreeMap<String, LayerChartValues>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerChartValues {
    /// The values of the layer.
    Layer,
    /// Values below the chart's name, for this chart alone.
    Own(Map<String, Value>),
}

impl LayerChartScope {
    /// Whether the `values.yaml` of the layer reaches the chart.
    pub fn includes(&self, chart: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(charts) => charts.get(chart) == Some(&LayerChartValues::Layer),
        }
    }

    pub fn values_for(&self, chart: &str) -> Option<&Map<String, Value>> {
        match self {
            Self::Named(charts) => match charts.get(chart)? {
                LayerChartValues::Own(values) => Some(values),
                LayerChartValues::Layer => None,
            },
            Self::None | Self::All => None,
        }
    }

    pub fn charts_with_values(&self) -> impl Iterator<Item = &str> {
        let charts = match self {
            Self::Named(charts) => Some(charts),
            Self::None | Self::All => None,
        };
        let own = |(name, of): (_, &LayerChartValues)| matches!(of, LayerChartValues::Own(_)).then_some(name);
        charts.into_iter().flatten().filter_map(own).map(String::as_str)
    }
}
