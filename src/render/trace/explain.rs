//! Explains each field of an object: its writer, and the values that it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::input_files::{InputFile, InputFileRole, layer_name};
use super::leaves::Leaf;
use super::reach::{self, FieldDependency, ValueAlteration};
use super::trace_recorder::{TracedObject, TracedObjectKey};
use super::trace_session::TraceSession;
use crate::fleet::Target;
use crate::model::{Location, ObjectId, Snapshot};
use crate::render::FleetRenderer;

/// An object, field by field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedObject {
    pub id: ObjectId,
    pub fields: Vec<ExplainedField>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedField {
    /// `spec.template.spec.containers[0].image`.
    pub path: String,
    /// `None`: it is secret.
    pub value: Option<Value>,
    pub written: FieldWriter,
    /// The values that it equals or is computed from.
    pub from: Vec<ValueOrigin>,
    /// The values that decide whether it exists.
    pub because: Vec<ValueOrigin>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "by")]
pub enum FieldWriter {
    Template(LayerLine),
    File(LayerLine),
    Patch(LayerLine),
    Manifest(LayerLine),
    /// A label or annotation of ours, or a default namespace.
    Tutti,
}

impl FieldWriter {
    pub fn place(&self) -> Option<&LayerLine> {
        match self {
            Self::Template(place) | Self::File(place) | Self::Patch(place) | Self::Manifest(place) => {
                Some(place)
            }
            Self::Tutti => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerLine {
    /// `cluster zone`, `app`.
    pub layer: String,
    pub file: String,
    pub line: u32,
}

/// `apps/web/app.yaml:7 (app)`.
impl fmt::Display for LayerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.file, self.line, self.layer)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueOrigin {
    #[serde(flatten)]
    pub place: LayerLine,
    /// Within its document.
    pub path: String,
    pub value: Option<Value>,
    /// The overridden values of lower layers, highest first.
    pub overrides: Vec<Self>,
}

/// `None`: the target does not render.
pub fn explain(renderer: &FleetRenderer<'_>, target: &Target) -> Option<Vec<ExplainedObject>> {
    let stage = TraceSession::new(renderer, target)?;
    let made = stage.render_marked()?;
    let reached = ReachedFields::of(&stage, &made, &|_, _| true);
    let mut objects: BTreeMap<ObjectId, ExplainedObject> = BTreeMap::new();
    for one in &made {
        let id = one.object.id.clone();
        objects.entry(id.clone()).or_insert_with(|| {
            let body = one.object.body.fields();
            let field = |(path, value): (String, &Value)| reached.explain_field(&stage, one, path, value);
            ExplainedObject { id, fields: reach::leaves(&body).map(field).collect() }
        });
    }
    Some(objects.into_values().collect())
}

/// More values than this are not traced for [`locate_fields`]: each takes a render.
const MOST_VALUES: usize = 64;

/// The positions of fields: the value in a file, else the line of the template or file that writes the field or its parent.
pub fn locate_fields(
    renderer: &FleetRenderer<'_>,
    target: &Target,
    fields: &BTreeSet<(ObjectId, String)>,
) -> BTreeMap<(ObjectId, String), Location> {
    let traced = || {
        let stage = TraceSession::new(renderer, target)?;
        let made = stage.render_marked()?;
        let is_small = stage.inputs.iter().map(|input| input.leaves.len()).sum::<usize>() <= MOST_VALUES;
        let reached = ReachedFields::of(&stage, &made, &|_, _| is_small);
        let place = |(id, path): &(ObjectId, String)| {
            let of_object: Vec<&TracedObject> = made.iter().filter(|one| one.object.id == *id).collect();
            let value = of_object.iter().find_map(|one| {
                let reaching = reached.by_field.get(&(one.key.clone(), path.clone()))?.iter();
                let (_, (input, leaf)) =
                    reaching.filter(|(how, _)| *how != FieldDependency::Conditional).min()?;
                Some(stage.inputs.get(*input)?.leaves.get(*leaf)?.location.clone())
            });
            let within = std::iter::successors(Some(path.as_str()), |path| Some(path.rsplit_once('.')?.0));
            let written =
                || within.clone().find_map(|path| of_object.iter().find_map(|one| one.fields.get(path)));
            // A shipped file has no position in the repository.
            let is_there = |it: &Location| renderer.snapshot.text(&it.file).is_some();
            value.filter(is_there).or_else(|| written().cloned().filter(is_there))
        };
        Some(fields.iter().filter_map(|field| Some((field.clone(), place(field)?))).collect())
    };
    traced().unwrap_or_default()
}

/// More differing values than this are not traced: each takes a render.
const MOST_TRACED: usize = 16;

/// The positions of values that differ from another revision, for the fields that they reach. Empty if the target does not
/// render, or if too much differs.
pub fn locate_changed_values(
    renderer: &FleetRenderer<'_>,
    target: &Target,
    base: &Snapshot,
    fields: &BTreeSet<(ObjectId, String)>,
) -> BTreeMap<(ObjectId, String), LayerLine> {
    let traced = || {
        let stage = TraceSession::new(renderer, target)?;
        let known = stage.inputs.iter().map(|input| {
            // Shipped files are equal in every revision.
            let is_shipped = renderer.snapshot.text(&input.path).is_none();
            input.values_in(if is_shipped { &input.text } else { base.text(&input.path).unwrap_or_default() })
        });
        let known: Vec<BTreeSet<(String, String)>> = known.collect();
        let differs = |number: usize, leaf: &Leaf| {
            known
                .get(number)
                .is_some_and(|known| !known.contains(&(leaf.path.clone(), leaf.value.to_string())))
        };
        let all = stage.inputs.iter().enumerate();
        let differing =
            all.flat_map(|(number, input)| input.leaves.iter().filter(move |leaf| differs(number, leaf)));
        if !(1..=MOST_TRACED).contains(&differing.count()) {
            return None;
        }
        let made = stage.render_marked()?;
        let reached = ReachedFields::of(&stage, &made, &differs);
        let mut places = BTreeMap::new();
        for one in &made {
            for wanted in fields.iter().filter(|(id, _)| *id == one.object.id) {
                let best =
                    reached.by_field.get(&(one.key.clone(), wanted.1.clone())).into_iter().flatten().min();
                let place = best.and_then(|(_, (input, leaf))| {
                    let input = stage.inputs.get(*input)?;
                    Some(line_of(input, input.leaves.get(*leaf)?))
                });
                if let Some(place) = place {
                    places.entry(wanted.clone()).or_insert(place);
                }
            }
        }
        Some(places)
    };
    traced().unwrap_or_default()
}

/// The index of an input, and of a leaf in it.
type LeafNumber = (usize, usize);

/// Which values reach which fields.
struct ReachedFields {
    by_field: BTreeMap<(TracedObjectKey, String), Vec<(FieldDependency, LeafNumber)>>,
}

impl ReachedFields {
    /// `wanted` filters the traced values.
    fn of(stage: &TraceSession<'_>, made: &[TracedObject], wanted: &dyn Fn(usize, &Leaf) -> bool) -> Self {
        let mut by_field: BTreeMap<_, Vec<(FieldDependency, LeafNumber)>> = BTreeMap::new();
        for (number, input) in stage.inputs.iter().enumerate() {
            for (index, leaf) in input.leaves.iter().enumerate().filter(|(_, leaf)| wanted(number, leaf)) {
                let Some((other, after)) = stage.with_altered_leaf(input, leaf) else { continue };
                let altered = ValueAlteration {
                    old: &leaf.value,
                    new: &other,
                    selects_layers: selects_layers(input, leaf),
                };
                for (field, how) in reach::changed_fields(made, &after, altered) {
                    by_field.entry(field).or_default().push((how, (number, index)));
                }
            }
        }
        Self { by_field }
    }

    fn explain_field(
        &self,
        stage: &TraceSession<'_>,
        made: &TracedObject,
        path: String,
        value: &Value,
    ) -> ExplainedField {
        let secret = made.object.holds_secrets();
        let empty = Vec::new();
        let reached = self.by_field.get(&(made.key.clone(), path.clone())).unwrap_or(&empty);
        let leaf = |(input, leaf): LeafNumber| {
            let input = stage.inputs.get(input)?;
            Some((input, input.leaves.get(leaf)?))
        };
        // Highest layer first; within a file, equal values before computed ones.
        let mut by_rank: Vec<_> =
            reached.iter().filter_map(|(how, number)| Some((*how, leaf(*number)?))).collect();
        by_rank
            .sort_by_key(|(how, (input, leaf))| (*how, std::cmp::Reverse(input.role), leaf.location.clone()));
        let (switched, direct): (Vec<_>, Vec<_>) =
            by_rank.into_iter().partition(|(how, _)| *how == FieldDependency::Conditional);
        let written = field_writer(made, &path, &direct);
        let names = |(how, (input, leaf)): &(FieldDependency, (&InputFile, &Leaf))| {
            // The writer itself is not repeated as an origin.
            let told = matches!(&written, FieldWriter::Patch(place) | FieldWriter::Manifest(place)
                if *how == FieldDependency::Copied && *place == line_of(input, leaf));
            (!told).then(|| origin(stage, input, leaf, secret))
        };
        let from: Vec<ValueOrigin> = direct.iter().filter_map(names).collect();
        let because: Vec<ValueOrigin> = switched.iter().filter_map(names).collect();
        ExplainedField { path, value: (!secret).then(|| value.clone()), written, from, because }
    }
}

type ReachingValue<'i> = (FieldDependency, (&'i InputFile, &'i Leaf));

fn field_writer(made: &TracedObject, path: &str, direct: &[ReachingValue<'_>]) -> FieldWriter {
    let of_role = |role: InputFileRole| direct.iter().filter(move |(_, (input, _))| input.role == role);
    let patch = of_role(InputFileRole::Patch)
        .chain(of_role(InputFileRole::App).filter(|(_, (_, leaf))| is_patch(leaf)));
    if let Some((_, (input, leaf))) = patch.last() {
        return FieldWriter::Patch(line_of(input, leaf));
    }
    let mut of_app = of_role(InputFileRole::App).filter(|(how, _)| *how == FieldDependency::Copied);
    if let Some((_, (input, leaf))) = of_app.find(|(_, (_, leaf))| is_overlay(leaf)) {
        return FieldWriter::Manifest(line_of(input, leaf));
    }
    if let Some(location) = location_in_source(made, path) {
        let layer = layer_name(&location.file);
        let place = LayerLine { layer, file: location.file.clone(), line: location.start.line };
        return if place.file.ends_with(".j2") {
            FieldWriter::Template(place)
        } else {
            FieldWriter::File(place)
        };
    }
    match direct.first() {
        Some((_, (input, leaf))) if !path.contains("tutti.dev/") => {
            FieldWriter::Manifest(line_of(input, leaf))
        }
        _ => FieldWriter::Tutti,
    }
}

/// Whether layers are selected by this value.
fn selects_layers(input: &InputFile, leaf: &Leaf) -> bool {
    const OF_APP: [&str; 4] =
        ["spec.workloadType", "spec.developLanguage", "spec.runType", "spec.podSpec.deployType"];
    match input.role {
        InputFileRole::App => {
            OF_APP.contains(&leaf.path.as_str()) || leaf.path.starts_with("metadata.labels.tutti.dev/")
        }
        InputFileRole::Cluster => leaf.path.starts_with("metadata."),
        InputFileRole::Rings => true,
        InputFileRole::Values | InputFileRole::Patch | InputFileRole::Pin | InputFileRole::Instance => false,
    }
}

/// Whether the value is merged over template output.
fn is_overlay(leaf: &Leaf) -> bool {
    leaf.path.starts_with("spec.podSpec.template.") || leaf.path.starts_with("spec.labels.")
}

fn is_patch(leaf: &Leaf) -> bool {
    leaf.path.starts_with("spec.patches[")
}

fn location_in_source<'m>(made: &'m TracedObject, path: &str) -> Option<&'m Location> {
    made.fields.get(path).or_else(|| {
        // Canonical form moved stringData of a Secret to data.
        let key = path.strip_prefix("data.")?;
        made.fields.get(&format!("stringData.{key}"))
    })
}

fn line_of(input: &InputFile, leaf: &Leaf) -> LayerLine {
    LayerLine {
        layer: match (input.role, leaf.path.starts_with("spec.clusterTopology.")) {
            (InputFileRole::App, true) => "podSet".to_owned(),
            _ => input.layer.clone(),
        },
        file: leaf.location.file.clone(),
        line: leaf.location.start.line,
    }
}

fn origin(stage: &TraceSession<'_>, input: &InputFile, leaf: &Leaf, secret: bool) -> ValueOrigin {
    let one = |input: &InputFile, leaf: &Leaf| ValueOrigin {
        place: line_of(input, leaf),
        path: leaf.path.clone(),
        value: (!secret).then(|| leaf.value.clone()),
        overrides: Vec::new(),
    };
    let mut origin = one(input, leaf);
    if let Some(path) = value_path(input, leaf) {
        let below = stage.inputs.iter().filter(|lower| lower.role == InputFileRole::Values);
        let below: Vec<&InputFile> = match input.role {
            InputFileRole::Values => below.take_while(|lower| lower.path != input.path).collect(),
            _ => below.collect(),
        };
        for lower in below.into_iter().rev() {
            let same = lower.leaves.iter().filter(|lower| overlaps(&lower.path, &path));
            origin.overrides.extend(same.map(|leaf| one(lower, leaf)));
        }
    }
    origin
}

fn overlaps(one: &str, other: &str) -> bool {
    reach::contains_path(one, other) || reach::contains_path(other, one)
}

/// The path under `values` that a leaf sets.
fn value_path(input: &InputFile, leaf: &Leaf) -> Option<String> {
    match input.role {
        InputFileRole::Values => Some(leaf.path.clone()),
        InputFileRole::App if leaf.path.starts_with("spec.clusterTopology.") => {
            let name = leaf.path.rsplit('.').next()?;
            ["replicas", "image"].contains(&name).then(|| name.to_owned())
        }
        InputFileRole::App if leaf.path.starts_with("spec.podSpec.template.") => {
            let ends = [
                ("containers[0].image", "image"),
                ("ports[0].containerPort", "port"),
                ("containers[0].name", "container"),
            ];
            ends.into_iter().find(|(end, _)| leaf.path.ends_with(end)).map(|(_, value)| value.to_owned())
        }
        InputFileRole::App if leaf.path == "spec.updateStrategy.minReadySeconds" => {
            Some("minReadySeconds".to_owned())
        }
        InputFileRole::App => leaf.path.strip_prefix("spec.").map(str::to_owned),
        _ => None,
    }
}
