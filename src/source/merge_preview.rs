//! Merges one commit into another in memory, as a pull request would. Nothing is written to the repository.
//!
//! Trees are merged by their ids, so that the cost follows the change. When both sides changed one file, or a name is a file on one
//! side and a folder on the other, libgit2 merges contents and renames, within limits that are counted before.

use std::collections::{BTreeMap, HashMap};

use git2::{ErrorCode, MergeOptions, ObjectType, Oid};

use super::bounds::{ListingBudget, ReadLimitExceeded};
use super::revision_reader::{ReadFailure, RevisionReader};
use super::{Error, git_errors, history};
use crate::model::{Revision, Snapshot};

/// Above the priority of the repository's object store, so that all writes go to memory.
const MEMORY_STORE_PRIORITY: i32 = 1000;
/// Bytes of differing contents that libgit2 may merge and compare for renames.
const MOST_MERGED: usize = 32 << 20;
/// Conflicting paths that an error lists.
const MOST_CONFLICTS: usize = 20;

/// The snapshot of a base with a head merged into it.
#[derive(Clone, Debug)]
pub struct MergePreview {
    pub base: Revision,
    pub head: Revision,
    /// Its revision is the head; "last change" names commits of the head for what the merge changes.
    pub snapshot: Snapshot,
    /// The paths that differ from the base, sorted; relative to the configured folder.
    pub changed: Vec<String>,
}

/// Of the merge base, the base and the head.
type MergeSides<T> = [Option<T>; 3];

/// An entry of a folder.
type GitTreeEntry = (Oid, i32);

impl RevisionReader {
    pub(super) fn preview_merge(mut self, base: &Revision, head: &Revision) -> Result<MergePreview, Error> {
        let side = |revision: &Revision| self.commit(revision).map(|commit| (commit.id(), commit.tree_id()));
        let ((ours, our_root), (theirs, their_root)) = (side(base)?, side(head)?);
        let merge_base = self.repository().merge_base(ours, theirs).map_err(|error| match error.code() {
            ErrorCode::NotFound => Error::NoCommonCommit { base: base.clone(), head: head.clone() },
            _ => self.git_error(&error),
        })?;
        let ancestor =
            self.repository().find_commit(merge_base).map_err(|error| self.git_error(&error))?.tree_id();
        let before = match self.last_read().filter(|last| last.snapshot.revision == *base) {
            Some(before) => before.snapshot.clone(),
            None => self.snapshot(base)?,
        };
        let root = self.merge_roots(ancestor, [our_root, their_root], (base, head))?;
        let mut read = self.read_root(head, root)?;
        self.mark_links(&mut read)?;
        let changed: Vec<String> =
            before.differing_paths(&read.snapshot).into_iter().map(ToOwned::to_owned).collect();
        let sides = (&*before.history, theirs);
        let files = &read.snapshot.files;
        let history =
            history::history_of_merge(self.repository(), &read.scope, sides, merge_base, files, &changed);
        read.snapshot.history = history.map_err(|error| self.git_error(&error))?.into();
        Ok(MergePreview { base: base.clone(), head: head.clone(), snapshot: read.snapshot, changed })
    }

    fn merge_roots(
        &self,
        ancestor: Oid,
        [ours, theirs]: [Oid; 2],
        (base, head): (&Revision, &Revision),
    ) -> Result<Oid, Error> {
        let failed = |unread: ReadFailure| self.read_error(head, unread);
        let odb = self.repository().odb().map_err(|error| self.git_error(&error))?;
        odb.add_new_mempack_backend(MEMORY_STORE_PRIORITY).map_err(|error| self.git_error(&error))?;
        let mut listing = ListingBudget::of(self.repository());
        let root = [ancestor, ours, theirs].map(|tree| Some((tree, FOLDER_MODE)));
        let decided = self.merge_by_id("", root, &mut listing).map_err(failed)?;
        listing.finish().map_err(|over| failed(over.into()))?;
        match decided {
            EntryMerge::Entry(Some((tree, _))) => Ok(tree),
            // Every file was removed: the result is an empty folder.
            EntryMerge::Entry(None) => {
                let empty = self.repository().treebuilder(None).and_then(|builder| builder.write());
                empty.map_err(|error| self.git_error(&error))
            }
            EntryMerge::ByContent => {
                self.count_contents([ancestor, ours, theirs]).map_err(failed)?;
                self.merge_by_content([ancestor, ours, theirs], base, head)
            }
        }
    }

    /// Merges one name of three sides. A folder that both sides changed is entered.
    fn merge_by_id(
        &self,
        path: &str,
        sides: MergeSides<GitTreeEntry>,
        listing: &mut ListingBudget<'_>,
    ) -> Result<EntryMerge, ReadFailure> {
        let [ancestor, ours, theirs] = sides;
        if ours == theirs || ancestor == theirs {
            return Ok(EntryMerge::Entry(ours));
        }
        if ancestor == ours {
            return Ok(EntryMerge::Entry(theirs));
        }
        let is_tree = |side: &GitTreeEntry| side.1 == FOLDER_MODE;
        if !ours.as_ref().is_some_and(is_tree) || !theirs.as_ref().is_some_and(is_tree) {
            return Ok(EntryMerge::ByContent);
        }
        let trees = sides.map(|side| side.filter(is_tree).map(|(tree, _)| tree));
        if !listing.try_enter(path, trees.into_iter().flatten()) {
            return Ok(EntryMerge::ByContent);
        }
        let mut names: BTreeMap<Vec<u8>, MergeSides<GitTreeEntry>> = BTreeMap::new();
        for (side, tree) in trees.into_iter().enumerate() {
            let Some(tree) = tree else { continue };
            for entry in &self.repository().find_tree(tree)? {
                names.entry(entry.name_bytes().to_vec()).or_default()[side] =
                    Some((entry.id(), entry.filemode()));
            }
        }
        let own = trees[1].map(|tree| self.repository().find_tree(tree)).transpose()?;
        let mut builder = self.repository().treebuilder(own.as_ref())?;
        for (name, sides) in names {
            let below = format!("{path}{}/", String::from_utf8_lossy(&name));
            match self.merge_by_id(&below, sides, listing)? {
                EntryMerge::Entry(entry) if entry == sides[1] => {}
                EntryMerge::Entry(Some((id, mode))) => _ = builder.insert(name, id, mode)?,
                EntryMerge::Entry(None) => builder.remove(name)?,
                EntryMerge::ByContent => return Ok(EntryMerge::ByContent),
            }
        }
        if builder.is_empty() {
            return Ok(EntryMerge::Entry(None));
        }
        Ok(EntryMerge::Entry(Some((builder.write()?, FOLDER_MODE))))
    }

    /// Counts the folders and contents against the limits, before contents are merged.
    fn count_contents(&self, roots: [Oid; 3]) -> Result<(), ReadFailure> {
        let mut listing = ListingBudget::of(self.repository());
        let mut on_sides: HashMap<Oid, u8> = HashMap::new();
        for (side, root) in roots.into_iter().enumerate() {
            let mut folders = vec![(String::new(), root)];
            while let Some((path, tree)) = folders.pop() {
                if !listing.try_enter(&path, [tree]) {
                    break;
                }
                for entry in &self.repository().find_tree(tree)? {
                    match entry.kind() {
                        Some(ObjectType::Tree) => {
                            let name = String::from_utf8_lossy(entry.name_bytes());
                            folders.push((format!("{path}{name}/"), entry.id()));
                        }
                        Some(ObjectType::Blob) => *on_sides.entry(entry.id()).or_default() |= 1 << side,
                        _ => {}
                    }
                }
            }
        }
        listing.finish()?;
        let odb = self.repository().odb()?;
        let mut bytes: usize = 0;
        for (blob, _) in on_sides.into_iter().filter(|(_, sides)| *sides != 0b111) {
            bytes = bytes.saturating_add(odb.read_header(blob)?.0);
        }
        let what = "files of more than 32 MiB in which the sides of the merge differ";
        if bytes > MOST_MERGED {
            Err(ReadLimitExceeded { folder: String::new(), limit: what }.into())
        } else {
            Ok(())
        }
    }

    fn merge_by_content(&self, roots: [Oid; 3], base: &Revision, head: &Revision) -> Result<Oid, Error> {
        let merge = || {
            let [ancestor, ours, theirs] = roots.map(|root| self.repository().find_tree(root));
            let mut options = MergeOptions::new();
            options.find_renames(true);
            self.repository().merge_trees(&ancestor?, &ours?, &theirs?, Some(&options))
        };
        let mut index = merge().map_err(|error| self.git_error(&error))?;
        if index.has_conflicts() {
            let paths = conflicts(&index).map_err(|error| self.git_error(&error))?;
            let more = paths.len().saturating_sub(MOST_CONFLICTS);
            let paths = paths.into_iter().take(MOST_CONFLICTS).collect();
            return Err(Error::Conflict { base: base.clone(), head: head.clone(), paths, more });
        }
        index.write_tree_to(self.repository()).map_err(|error| self.git_error(&error))
    }
}

/// The mode of a folder.
const FOLDER_MODE: i32 = 0o040_000;

/// The merge result for one name.
enum EntryMerge {
    /// `None`: it is gone.
    Entry(Option<GitTreeEntry>),
    /// The ids do not decide it.
    ByContent,
}

/// The conflicting paths, cleaned for display.
fn conflicts(index: &git2::Index) -> Result<std::collections::BTreeSet<String>, git2::Error> {
    let mut paths = std::collections::BTreeSet::new();
    for conflict in index.conflicts()? {
        let conflict = conflict?;
        let sides = [conflict.our, conflict.their, conflict.ancestor];
        let path = sides.into_iter().flatten().next().map(|entry| entry.path);
        paths.extend(path.map(|path| git_errors::clean_line(&String::from_utf8_lossy(&path))));
    }
    Ok(paths)
}
