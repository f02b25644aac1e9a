//! From an inode number to its paths: up through parent pointers where the file system keeps them, up through `..`
//! for directories, else by one pass over the directories from the root down.

use super::tree::{self, Event, Options};
use super::{Inode, Visited, Walk, attributes, corrupt, directory, group, inodes};
use crate::error::{Error, Result};
use crate::format::dinode_view::Kind;
use crate::units::Ino;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Levels that are climbed at most.
const MAX_LEVELS: usize = 1 << 16;
/// Inodes for which climbing is tried before a pass over the directories is made.
const FEW: usize = 64;

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum From {
    /// The root directory.
    Root,
    /// The root of the metadata directory.
    Metadata,
    /// A directory that is not connected to the root.
    Lost(Ino),
}

/// A path of an inode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathOf {
    /// Where it begins.
    pub from: From,
    /// The path without leading slash; empty for the start itself.
    pub path: Vec<u8>,
}

/// The paths of an inode: one for every link. None where nothing names it.
pub fn of(walk: &Walk<'_>, ino: Ino, report: &mut dyn FnMut(Error)) -> Vec<PathOf> {
    of_many(walk, &[ino], report).remove(&ino).unwrap_or_default()
}

/// The paths of several inodes, with one pass over the directories at most.
pub fn of_many(walk: &Walk<'_>, inos: &[Ino], report: &mut dyn FnMut(Error)) -> HashMap<Ino, Vec<PathOf>> {
    let mut found: HashMap<Ino, Vec<PathOf>> = inos.iter().map(|&ino| (ino, Vec::new())).collect();
    let mut open = found.len();
    if open <= FEW {
        for (&ino, paths) in &mut found {
            *paths = climb(walk, ino).unwrap_or_default();
            open = open.saturating_sub(usize::from(!paths.is_empty()));
        }
    }
    complete(walk, found, open > 0, report)
}

/// The paths of several inodes that are damaged: by the entries that name them, whatever they say of their parents
/// themselves. One pass over the directories.
pub fn by_names(walk: &Walk<'_>, inos: &[Ino], report: &mut dyn FnMut(Error)) -> HashMap<Ino, Vec<PathOf>> {
    complete(walk, inos.iter().map(|&ino| (ino, Vec::new())).collect(), true, report)
}

fn complete(
    walk: &Walk<'_>,
    mut found: HashMap<Ino, Vec<PathOf>>,
    open: bool,
    report: &mut dyn FnMut(Error),
) -> HashMap<Ino, Vec<PathOf>> {
    if open {
        from_above(walk, &mut found, report);
    }
    if found.values().any(Vec::is_empty) {
        lost(walk, &mut found, report);
    }
    for paths in found.values_mut() {
        paths.sort();
        paths.dedup();
    }
    found
}

/// Is it one of the two roots?
fn anchor(walk: &Walk<'_>, ino: Ino) -> Option<From> {
    if ino == walk.volume().superblock().rootino {
        return Some(From::Root);
    }
    (super::metadir::root(walk) == Some(ino)).then_some(From::Metadata)
}

/// The paths of an inode from below; `None` where something on the way does not fit together.
fn climb(walk: &Walk<'_>, ino: Ino) -> Option<Vec<PathOf>> {
    if let Some(from) = anchor(walk, ino) {
        return Some(vec![PathOf { from, path: Vec::new() }]);
    }
    let block = walk.inode(ino).ok()?;
    let inode = block.inode();
    if walk.context().features.has_parent() {
        let links = parents(walk, inode)?;
        return links.into_iter().map(|(parent, name)| climb_from(walk, parent, name)).collect();
    }
    if inode.kind() != Kind::Directory {
        return None;
    }
    let (parent, name) = dotdot(walk, inode)?;
    Some(vec![climb_from(walk, parent, name)?])
}

/// The path of a name in a directory, by climbing to a root.
fn climb_from(walk: &Walk<'_>, mut dir: Ino, name: Vec<u8>) -> Option<PathOf> {
    let mut names = vec![name];
    let mut visited = Visited::default();
    loop {
        if let Some(from) = anchor(walk, dir) {
            names.reverse();
            return Some(PathOf { from, path: names.join(&b'/') });
        }
        if !visited.first_time(dir.0) || names.len() > MAX_LEVELS {
            return None;
        }
        let block = walk.inode(dir).ok()?;
        let inode = block.inode();
        if inode.kind() != Kind::Directory {
            return None;
        }
        let up = match walk.context().features.has_parent() {
            true => parents(walk, inode)?.into_iter().next()?,
            false => dotdot(walk, inode)?,
        };
        dir = up.0;
        names.push(up.1);
    }
}

/// The parent pointers of an inode; `None` where one is damaged, or leads to what is not the parent it means.
fn parents(walk: &Walk<'_>, inode: Inode<'_>) -> Option<Vec<(Ino, Vec<u8>)>> {
    let mut links = Vec::new();
    let (mut sound, mut readable) = (true, true);
    let _ = attributes::for_each(walk, inode, &mut |_| readable = false, |attribute| {
        if attribute.is_parent() && !attribute.is_incomplete() {
            match attribute.parent() {
                Some((parent, generation)) => links.push((parent, generation, attribute.name.to_vec())),
                None => sound = false,
            }
        }
        ControlFlow::Continue(())
    });
    sound &= readable;
    for &(parent, generation, _) in &links {
        let right = walk.inode(parent).is_ok_and(|block| block.inode().generation() == generation);
        sound &= right;
    }
    (sound && !links.is_empty()).then(|| links.into_iter().map(|(parent, _, name)| (parent, name)).collect())
}

/// Parent of a directory, and its name there.
fn dotdot(walk: &Walk<'_>, inode: Inode<'_>) -> Option<(Ino, Vec<u8>)> {
    let parent = directory::lookup(walk, inode, b"..", &mut |_| {})?;
    let block = walk.inode(parent).ok()?;
    let mut name = None;
    let _ = directory::for_each(walk, block.inode(), &mut |_| {}, |entry| {
        if entry.ino == inode.ino && !entry.is_dots() {
            name = Some(entry.name.to_vec());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    Some((parent, name?))
}

/// One pass from the roots down. Only directories are read, where entries tell what they name.
fn from_above(walk: &Walk<'_>, found: &mut HashMap<Ino, Vec<PathOf>>, report: &mut dyn FnMut(Error)) {
    found.values_mut().for_each(Vec::clear);
    let roots = [(From::Root, Some(walk.volume().superblock().rootino)), (From::Metadata, super::metadir::root(walk))];
    for (from, root) in roots {
        let Some(root) = root else { continue };
        let _ = tree::for_each(walk, (root, b""), Options::default(), report, &mut |event| {
            if let Event::Name(item) = event
                && let Some(paths) = found.get_mut(&item.ino)
            {
                paths.push(PathOf { from, path: item.path.to_vec() });
            }
            ControlFlow::Continue(())
        });
    }
}

/// Looks for names in directories that are not connected: one pass over all inodes.
fn lost(walk: &Walk<'_>, found: &mut HashMap<Ino, Vec<PathOf>>, report: &mut dyn FnMut(Error)) {
    for ag in group::numbers(walk) {
        let mut chunks = inodes::chunks(walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    report(error);
                    continue;
                }
            };
            // Damage of inodes that are not looked for is not the question here.
            chunk.used(&mut |_| {}, |inode| {
                if inode.kind() != Kind::Directory {
                    return;
                }
                let _ = directory::for_each(walk, inode, &mut |_| {}, |entry| {
                    if !entry.is_dots()
                        && let Some(paths) = found.get_mut(&entry.ino)
                        && !paths.iter().any(|path| matches!(path.from, From::Root | From::Metadata))
                    {
                        paths.push(PathOf { from: From::Lost(inode.ino), path: entry.name.to_vec() });
                    }
                    ControlFlow::Continue(())
                });
            });
        }
    }
}

/// The path of an inode that must have one.
///
/// # Errors
/// [`Error::Corrupt`] where nothing names it, and it is not unlinked.
pub fn require(walk: &Walk<'_>, ino: Ino, report: &mut dyn FnMut(Error)) -> Result<Vec<PathOf>> {
    let paths = of(walk, ino, report);
    if paths.is_empty() {
        let block = walk.inode(ino)?;
        let nlink = block.inode().nlink();
        return Err(corrupt(
            block.place().clone(),
            "no directory names the inode",
            "no name",
            format!("{nlink} links"),
        ));
    }
    Ok(paths)
}
