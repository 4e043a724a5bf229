//! Finds the render of a target among those with equal inputs: of the earlier revision, or of another cluster.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::model::{ClusterName, Diagnostic, Digest};
use crate::render::cluster_facts::{QuestionSet, RenderFacts};
use crate::render::render_cache::{CachedAppRenders, CachedRender};
use crate::render::render_output::RenderOutput;
use crate::schedule::AssignedPodSet;

/// Bounds the comparison with earlier renders and question sets. Without it, an app that differs on each of 2,000 clusters
/// costs their square.
const MOST_COMPARED_RENDERS: usize = 16;

/// The renders of one app: those of an earlier revision while its inputs are equal, and those of this revision.
#[derive(Default)]
pub(super) struct AppRenderLookup {
    pub(super) earlier: Option<CachedAppRenders>,
    /// From the index in the earlier renders to the index in `current`.
    pub(super) reused: BTreeMap<usize, usize>,
    pub(super) current: Vec<Arc<CachedRender>>,
    /// Distinct question sets, and the renders by stack and answers.
    pub(super) question_sets: Vec<QuestionSet>,
    pub(super) by_answers: HashMap<(Digest, String), Vec<usize>>,
    pub(super) by_cluster: BTreeMap<ClusterName, usize>,
    pub(super) render_count: usize,
    /// Renders that ended their worker, with the last mistakes, by stack.
    pub(super) ended_workers: HashMap<Digest, (usize, Vec<Diagnostic>)>,
}

impl AppRenderLookup {
    pub(super) fn find(&mut self, cluster: &ClusterName, basis: &TargetInputs<'_>) -> Option<RenderOutput> {
        let number = self.find_earlier(cluster, basis).or_else(|| self.by_answers(basis))?;
        self.by_cluster.insert(cluster.clone(), number);
        self.current.get(number).map(|trace| trace.output.clone())
    }

    /// The earlier render of the cluster, else one of the first renders of other clusters.
    fn find_earlier(&mut self, cluster: &ClusterName, basis: &TargetInputs<'_>) -> Option<usize> {
        let earlier = self.earlier.as_ref()?;
        let own = earlier.by_cluster.get(cluster).copied();
        let mut candidates =
            own.into_iter().chain(0..earlier.cached_renders.len().min(MOST_COMPARED_RENDERS));
        let number = candidates
            .find(|number| earlier.cached_renders.get(*number).is_some_and(|it| basis.produced(it)))?;
        if let Some(known) = self.reused.get(&number) {
            return Some(*known);
        }
        let trace = Arc::clone(earlier.cached_renders.get(number)?);
        let place = self.insert(trace, basis);
        self.reused.insert(number, place);
        Some(place)
    }

    /// Keeps the earlier render, and the kinds that it defines, for a cluster that is skipped in this pass.
    pub(super) fn carry_over(&mut self, cluster: &ClusterName) {
        let Some(number) = self.earlier.as_ref().and_then(|it| it.by_cluster.get(cluster)).copied() else {
            return;
        };
        let Some(trace) = self.earlier.as_ref().and_then(|it| it.cached_renders.get(number)).map(Arc::clone)
        else {
            return;
        };
        let place = *self.reused.entry(number).or_insert_with(|| {
            self.current.push(trace);
            self.current.len() - 1
        });
        self.by_cluster.insert(cluster.clone(), place);
    }

    fn by_answers(&self, basis: &TargetInputs<'_>) -> Option<usize> {
        let answers = |asked: &QuestionSet| (basis.stack_digest, asked.answers_of(basis.facts));
        let known = |key: (Digest, String)| {
            self.by_answers.get(&key)?.iter().find(|number| self.is_from(**number, basis))
        };
        self.question_sets.iter().rev().take(MOST_COMPARED_RENDERS).map(answers).find_map(known).copied()
    }

    fn is_from(&self, number: usize, basis: &TargetInputs<'_>) -> bool {
        self.current.get(number).is_some_and(|trace| basis.produced(trace))
    }

    pub(super) fn insert(&mut self, trace: Arc<CachedRender>, basis: &TargetInputs<'_>) -> usize {
        let (asked, number) = (trace.answers.question_set(), self.current.len());
        self.by_answers.entry((basis.stack_digest, asked.answers_of(basis.facts))).or_default().push(number);
        if !self.question_sets.contains(&asked) {
            self.question_sets.push(asked);
        }
        self.current.push(trace);
        number
    }
}

/// The inputs of a render besides those of its app.
pub(super) struct TargetInputs<'a> {
    pub(super) stack_digest: Digest,
    pub(super) pod_sets: &'a [AssignedPodSet],
    pub(super) facts: &'a RenderFacts,
}

impl TargetInputs<'_> {
    pub(super) fn produced(&self, trace: &CachedRender) -> bool {
        trace.stack_digest == self.stack_digest
            && trace.pod_sets == self.pod_sets
            && trace.answers.hold_for(self.facts)
    }
}
