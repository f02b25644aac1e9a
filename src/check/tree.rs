//! The tree of directories as a whole: every directory has one name, its `..` leads to where that name stands, all hang
//! on the root, and parent pointers say the same as the entries.
//!
//! `scrub/dirtree.c`, `scrub/parent.c`, `xchk_dir_parent_pointer` (scrub/dir.c); `xfs_repair`, phase 6 and phase 7,
//! `pptr.c`.

use super::context::Ctx;
use super::finding::Object;
use super::fork::inode_spot;
use super::names::{Pair, Target};
use super::raised;
use crate::error::Error;
use crate::units::Ino;
use crate::walk::{attributes, directory};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

raised! { RAISED, structure "dir";
    /// No entry names the directory: it, and all below it, cannot be reached. xfs_repair moves it to lost+found.
    DISCONNECTED: "dir-disconnected" xcorrupt "parent", "no entry names the directory",
        source "scrub/dirtree.c:xchk_dirtree; repair/phase6.c:check_for_orphaned_inodes", since "scrub";
    /// A directory has one name. Two lead to endless walks, and its `..` can only be right for one.
    TWO_PARENTS: "dir-two-names" xcorrupt "parent", "more than one entry names the directory",
        source "scrub/dirtree.c:xchk_dirtree_evaluate; repair/phase6.c:longform_dir2_entry_check_data", since "scrub";
    /// `..` leads elsewhere than to the directory with the entry.
    BAD_DOTDOT: "dir-bad-dotdot" xcorrupt "parent", "`..` is not the directory that names it",
        source "scrub/parent.c:xchk_parent_validate; repair/phase6.c:longform_dir2_entry_check_data", since "scrub";
    /// `..` of a root is itself.
    BAD_ROOT: "dir-bad-root-dotdot" corrupt "parent", "`..` of the root is not the root",
        source "scrub/dir.c:xchk_dir_actor; repair/dir2.c:process_sf_dir2", since "scrub";
    /// The names of these directories lead in a circle, away from the root.
    LOOP: "dir-loop" xcorrupt "parent", "directory lies within itself",
        source "scrub/dirtree.c:xchk_dirtree_evaluate; repair/phase6.c:check_for_orphaned_inodes", since "scrub";
    /// An entry names the file, and the file has no parent pointer that says so. xfs_repair adds it.
    NO_POINTER: "parent-missing-pointer" xcorrupt "parent_dir", "no parent pointer for an entry that names the file",
        source "scrub/dir.c:xchk_dir_parent_pointer; repair/pptr.c:crosscheck_file_parent_ptrs", since "scrub";
    /// The parent pointer speaks of an entry that is not there. xfs_repair removes it.
    NO_ENTRY: "parent-without-entry" xcorrupt "parent_dir", "parent pointer without an entry",
        source "scrub/parent.c:xchk_parent_pptr; repair/pptr.c:crosscheck_file_parent_ptrs", since "scrub";
    /// Parent pointer and entry differ: in the directory, its generation, or the name.
    OTHER_POINTER: "parent-mismatch" xcorrupt "parent_dir", "parent pointer is not that of the entry",
        source "scrub/parent.c:xchk_parent_pptr; repair/pptr.c:crosscheck_file_parent_ptrs", since "scrub";
}

/// Inodes whose parent pointers are compared one by one.
const COMPARED: usize = 1000;

/// Looks at the tree, after all directories were gone over.
pub fn check(ctx: &Ctx<'_>) {
    let (entries, dotdots) = ctx.names.take_pairs();
    if ctx.is_partial() {
        return;
    }
    let sb = ctx.volume().superblock();
    let metadir = ctx.context().features.has_metadir().then_some(sb.metadirino);
    let is_root = |ino: Ino| ino == sb.rootino || Some(ino) == metadir;
    let mut incomplete = ctx.names.incomplete();
    for &(ino, dotdot) in &dotdots {
        let spot = || inode_spot(ctx, ino);
        if is_root(ino) {
            if dotdot != ino {
                ctx.raise(BAD_ROOT, &spot(), dotdot, ino);
            }
        } else if matches!(ctx.names.target(ctx, ino), Target::Inode { unlinked: false, .. }) {
            match named_by(&entries, ino) {
                [] if is_unread(ctx, &incomplete, dotdot) => {}
                [] => {
                    let found = format_args!("`..` is {dotdot}");
                    ctx.raise_of(DISCONNECTED, &spot(), Object::Inode(dotdot), found, "an entry that names it");
                }
                [(_, parent)] if *parent != dotdot => ctx.raise(BAD_DOTDOT, &spot(), dotdot, parent),
                [_] => {}
                [first, .., last] => {
                    ctx.raise(TWO_PARENTS, &spot(), format_args!("entries in {} and {}", first.1, last.1), "one entry");
                }
            }
        }
    }
    loops(ctx, &entries, &is_root);
    pointers(ctx, &mut incomplete);
}

/// Are entries of this directory not known, or not all: was it damaged, or not to be read, or not even found?
fn is_unread(ctx: &Ctx<'_>, incomplete: &BTreeSet<Ino>, dir: Ino) -> bool {
    incomplete.contains(&dir) || matches!(ctx.names.target(ctx, dir), Target::Unknown | Target::Damaged)
}

fn named_by(entries: &[Pair], ino: Ino) -> &[Pair] {
    let from = entries.partition_point(|entry| entry.0 < ino);
    let to = entries.partition_point(|entry| entry.0 <= ino);
    entries.get(from..to).unwrap_or_default()
}

/// Directories that lie within themselves.
fn loops(ctx: &Ctx<'_>, entries: &[Pair], is_root: &dyn Fn(Ino) -> bool) {
    // 0: not looked at; else the number of the walk up that came by first.
    let mut walked = vec![0usize; entries.len()];
    let place = |ino: Ino| {
        Some(entries.partition_point(|entry| entry.0 < ino)).filter(|&i| entries.get(i).is_some_and(|e| e.0 == ino))
    };
    for start in 0..entries.len() {
        let mark = start.saturating_add(1);
        let mut at = Some(start);
        while let Some((i, slot)) = at.and_then(|i| Some((i, walked.get_mut(i)?))) {
            if *slot == mark {
                if let Some(&(ino, parent)) = entries.get(i) {
                    ctx.raise(
                        LOOP,
                        &inode_spot(ctx, ino),
                        format_args!("lies in {parent}, and that in it"),
                        "a way to the root",
                    );
                }
                break;
            }
            if *slot != 0 {
                break;
            }
            *slot = mark;
            at = entries.get(i).map(|entry| entry.1).filter(|&parent| !is_root(parent)).and_then(place);
        }
    }
}

/// Where a file has a name: directory, its generation, name.
type Name = (Ino, u32, Vec<u8>);

fn text((parent, generation, name): &Name) -> String {
    format!("{} in {parent} (generation {generation})", super::dir::shown(name))
}

/// Parent pointers that are not the entries. Directories that cannot be read once more go to `incomplete`.
fn pointers(ctx: &Ctx<'_>, incomplete: &mut BTreeSet<Ino>) {
    let off: BTreeSet<Ino> = ctx.names.unbalanced(ctx).into_iter().take(COMPARED).collect();
    if off.is_empty() {
        return;
    }
    let mut entries: BTreeMap<Ino, Vec<Name>> = BTreeMap::new();
    for dir in ctx.names.directories(ctx) {
        let mut doubt = |error: &Error| {
            // What is wrong with its blocks was said when they were gone over.
            if !matches!(error, Error::Corrupt { .. }) {
                ctx.unreadable(error, Object::Inode(dir));
            }
            incomplete.insert(dir);
        };
        let inode = match ctx.walk.inode(dir) {
            Ok(inode) => inode,
            Err(error) => {
                doubt(&error);
                continue;
            }
        };
        let generation = inode.inode().generation();
        let mut blocks = directory::blocks(ctx.walk, inode.inode());
        while let Some(block) = blocks.next_block() {
            let block = match block {
                Ok(block) => block,
                Err(error) => {
                    doubt(&error);
                    continue;
                }
            };
            let _ = block.entries(|entry| {
                if !entry.is_dots() && off.contains(&entry.ino) {
                    entries.entry(entry.ino).or_default().push((dir, generation, entry.name.to_vec()));
                }
                ControlFlow::Continue(())
            });
        }
    }
    for ino in off {
        let mut read = true;
        let mut left = Vec::new();
        let inode = ctx.walk.inode(ino).inspect_err(|error| ctx.unreadable(error, Object::Inode(ino)));
        let Ok(inode) = inode else { continue };
        let mut unread = |error: Error| {
            if !matches!(error, Error::Corrupt { .. }) {
                ctx.unreadable(&error, Object::Inode(ino));
                read = false;
            }
        };
        let _ = attributes::for_each(ctx.walk, inode.inode(), &mut unread, |attribute| {
            if let Some((parent, generation)) = attribute.parent() {
                left.push((parent, generation, attribute.name.to_vec()));
            }
            ControlFlow::Continue(())
        });
        if !read {
            continue;
        }
        compare(ctx, ino, (left, entries.remove(&ino).unwrap_or_default()), incomplete);
    }
}

fn compare(ctx: &Ctx<'_>, ino: Ino, (mut pointers, mut names): (Vec<Name>, Vec<Name>), incomplete: &BTreeSet<Ino>) {
    pointers.sort_unstable();
    names.sort_unstable();
    let all = names.clone();
    for pointer in &pointers {
        if let Ok(at) = names.binary_search(pointer) {
            names.remove(at);
        }
    }
    let mut rest = pointers;
    for name in all {
        if let Ok(at) = rest.binary_search(&name) {
            rest.remove(at);
        }
    }
    let spot = inode_spot(ctx, ino);
    for pointer in rest {
        // The nearest entry is the one that was meant.
        let same = names.iter().position(|name| name.0 == pointer.0 || name.2 == pointer.2);
        match same.map(|at| names.remove(at)) {
            Some(name) => {
                // A wrong generation of the directory makes one of every pointer to it.
                ctx.raise_of(OTHER_POINTER, &spot, Object::Inode(name.0), text(&pointer), text(&name));
            }
            None if is_unread(ctx, incomplete, pointer.0) => {}
            None => {
                ctx.raise_of(NO_ENTRY, &spot, Object::Inode(pointer.0), text(&pointer), "an entry of that name");
            }
        }
    }
    for name in names {
        ctx.raise_of(NO_POINTER, &spot, Object::Inode(name.0), "none", text(&name));
    }
}
