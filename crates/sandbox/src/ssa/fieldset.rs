//! A set of field paths, kept as a tree.

use std::cmp::Ordering;
use std::mem;

use super::path::PathElement;

/// Paths. A path may be a member, have members below it, or both; nothing else is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet<'a> {
    /// In order.
    nodes: Vec<FieldNode<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldNode<'a> {
    pub(super) step: PathElement<'a>,
    pub(super) is_member: bool,
    pub(super) below: FieldSet<'a>,
}

impl<'a> FieldNode<'a> {
    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl<'a> FieldSet<'a> {
    /// A set of nodes in any order.
    pub(super) fn from_nodes(mut nodes: Vec<FieldNode<'a>>) -> Self {
        if !nodes.is_sorted_by(|left, right| left.step < right.step) {
            nodes.sort_by(|left, right| left.step.cmp(&right.step));
            nodes.dedup_by(|next, first| {
                let is_same = next.step == first.step;
                if is_same {
                    first.is_member |= next.is_member;
                    if !next.below.is_empty() {
                        first.below = mem::take(&mut next.below);
                    }
                }
                is_same
            });
        }
        Self { nodes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn nodes(&self) -> &[FieldNode<'a>] {
        &self.nodes
    }

    pub(super) fn nodes_mut(&mut self) -> &mut [FieldNode<'a>] {
        &mut self.nodes
    }

    fn node_index(&self, step: &PathElement<'_>) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.step.cmp(step))
    }

    pub(super) fn node(&self, step: &PathElement<'_>) -> Option<&FieldNode<'a>> {
        self.node_index(step).ok().and_then(|place| self.nodes.get(place))
    }

    pub(crate) fn insert(&mut self, path: &[PathElement<'a>]) {
        let Some((step, rest)) = path.split_first() else { return };
        let place = self.node_index(step).unwrap_or_else(|place| {
            self.nodes
                .insert(place, FieldNode { step: step.clone(), is_member: false, below: Self::default() });
            place
        });
        if let Some(node) = self.nodes.get_mut(place) {
            node.is_member |= rest.is_empty();
            node.below.insert(rest);
        }
    }

    pub(crate) fn contains(&self, path: &[PathElement<'_>]) -> bool {
        match path.split_first() {
            None => false,
            Some((step, rest)) => self.node(step).is_some_and(|node| match rest {
                [] => node.is_member,
                rest => node.below.contains(rest),
            }),
        }
    }

    /// Is every path of this set in the other?
    pub(crate) fn is_subset_of(&self, other: &FieldSet<'_>) -> bool {
        let mut others = other.nodes.iter();
        self.nodes.iter().all(|node| {
            others.find(|one| one.step >= node.step).is_some_and(|one| {
                one.step == node.step
                    && one.is_member >= node.is_member
                    && node.below.is_subset_of(&one.below)
            })
        })
    }

    pub(crate) fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut mine = self.nodes.into_iter().peekable();
        let mut theirs = other.nodes.into_iter().peekable();
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (Some(left), Some(right)) => left.step.cmp(&right.step),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            match order {
                Ordering::Less => nodes.extend(mine.next()),
                Ordering::Greater => nodes.extend(theirs.next()),
                Ordering::Equal => {
                    if let (Some(left), Some(right)) = (mine.next(), theirs.next()) {
                        nodes.push(FieldNode {
                            step: left.step,
                            is_member: left.is_member || right.is_member,
                            below: left.below.union(right.below),
                        });
                    }
                }
            }
        }
        Self { nodes }
    }

    pub(crate) fn intersection(&self, other: &FieldSet<'_>) -> Self {
        let mut others = other.nodes.iter().peekable();
        let mut nodes = Vec::new();
        for node in &self.nodes {
            while others.next_if(|one| one.step < node.step).is_some() {}
            let Some(one) = others.next_if(|one| one.step == node.step) else { continue };
            let shared = FieldNode {
                step: node.step.clone(),
                is_member: node.is_member && one.is_member,
                below: node.below.intersection(&one.below),
            };
            if !shared.is_empty() {
                nodes.push(shared);
            }
        }
        Self { nodes }
    }

    /// Without the paths of `other`; what lies below a removed path stays.
    pub(crate) fn difference(self, other: &FieldSet<'_>) -> Self {
        self.without(other, |node, gone| {
            node.is_member &= !gone.is_member;
            node.below = mem::take(&mut node.below).difference(&gone.below);
        })
    }

    /// Without the paths of `other` and all that lies below them.
    pub(crate) fn without_subtrees(self, other: &FieldSet<'_>) -> Self {
        self.without(other, |node, gone| {
            if gone.is_member {
                node.is_member = false;
                node.below = Self::default();
            } else {
                node.below = mem::take(&mut node.below).without_subtrees(&gone.below);
            }
        })
    }

    fn without(mut self, other: &FieldSet<'_>, remove: impl Fn(&mut FieldNode<'a>, &FieldNode<'_>)) -> Self {
        if other.is_empty() {
            return self;
        }
        let mut others = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while others.next_if(|one| one.step < node.step).is_some() {}
            if let Some(gone) = others.peek().filter(|one| one.step == node.step) {
                remove(node, gone);
            }
            !node.is_empty()
        });
        self
    }

    /// Calls `each` with every path: those of one level first, then what lies below them.
    pub(crate) fn for_each_path(&self, each: &mut impl FnMut(&[PathElement<'a>])) {
        self.walk(&mut Vec::new(), each);
    }

    fn walk(&self, prefix: &mut Vec<PathElement<'a>>, each: &mut impl FnMut(&[PathElement<'a>])) {
        for node in self.nodes.iter().filter(|node| node.is_member) {
            prefix.push(node.step.clone());
            each(prefix);
            prefix.pop();
        }
        for node in &self.nodes {
            prefix.push(node.step.clone());
            node.below.walk(prefix, each);
            prefix.pop();
        }
    }
}
