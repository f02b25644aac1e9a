//! The directory tree from a directory down: every name with its path, each directory once.
//!
//! Memory: the names of the directories between the start and the one at hand, and the inodes of 4096 entries.

use super::{Inode, Visited, Walk, corrupt, directory, index, inodes};
use crate::error::Error;
use crate::format::dinode_view::Kind;
use crate::units::Ino;
use std::ops::ControlFlow;

/// Inodes that are held at a time.
const WINDOW: usize = 4096;
/// Longest path that is followed; deeper directories are an error. Sixteen times what a system call takes.
const PATH_MAX: usize = 64 << 10;

/// A name in the tree.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The directory it stands in; `None` for the start.
    pub parent: Option<Ino>,
    /// Path from the root of the file system without leading slash; empty for the root.
    pub path: &'a [u8],
    /// Last part of the path.
    pub name: &'a [u8],
    /// Inode, unchecked where `inode` is `None`.
    pub ino: Ino,
    /// What the directory entry says it is, where it says so.
    pub entry_kind: Option<Kind>,
    /// The inode, where inodes were asked for and this one can be read.
    pub inode: Option<Inode<'a>>,
}

/// What a walk through the tree comes to.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A directory whose entries follow.
    Enter(Item<'a>),
    /// A name; the start is one, too, and comes first.
    Name(Item<'a>),
}

/// How to walk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Read the inode of every name, not only of directories.
    pub inodes: bool,
    /// Names of a directory in byte order instead of disk order.
    pub sorted: bool,
    /// Only the entries of the start, not what is below them.
    pub shallow: bool,
}

/// A directory between the start and the one at hand: its subdirectories still to come.
struct Frame {
    dirs: std::vec::IntoIter<(Box<[u8]>, Ino)>,
    path_len: usize,
}

struct Names {
    arena: Vec<u8>,
    list: Vec<(usize, u8, Ino, Option<u8>)>,
}

impl Names {
    fn name(&self, at: usize, len: u8) -> &[u8] {
        self.arena.get(at..at.saturating_add(usize::from(len))).unwrap_or_default()
    }
}

/// Walks the tree from `start`, whose path is `path`. Whatever is wrong goes to `report`; the rest follows.
pub fn for_each(
    walk: &Walk<'_>,
    (start, path): (Ino, &[u8]),
    options: Options,
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut tree = Tree { walk, options, path: path.to_vec(), visited: Visited::default(), stack: Vec::new() };
    let block = match walk.inode(start) {
        Ok(block) => block,
        Err(error) => {
            report(error);
            return ControlFlow::Continue(());
        }
    };
    let inode = block.inode();
    inode.crc_error(walk.volume()).into_iter().for_each(&mut *report);
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    each(Event::Name(Item {
        parent: None,
        path,
        name,
        ino: start,
        entry_kind: Some(inode.kind()),
        inode: Some(inode),
    }))?;
    if inode.kind() == Kind::Directory {
        tree.directory(inode, report, each)?;
    }
    tree.rest(report, each)
}

struct Tree<'a> {
    walk: &'a Walk<'a>,
    options: Options,
    path: Vec<u8>,
    visited: Visited,
    stack: Vec<Frame>,
}

impl Tree<'_> {
    fn rest(
        &mut self,
        report: &mut dyn FnMut(Error),
        each: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while let Some(frame) = self.stack.last_mut() {
            self.path.truncate(frame.path_len);
            let Some((name, ino)) = frame.dirs.next() else {
                self.stack.pop();
                continue;
            };
            push_name(&mut self.path, &name);
            let block = match self.walk.inode(ino) {
                Ok(block) => block,
                // With inodes asked for, this was said when the name came.
                Err(error) => {
                    if !self.options.inodes {
                        report(error);
                    }
                    continue;
                }
            };
            let inode = block.inode();
            if inode.kind() != Kind::Directory {
                let place = block.place().field("core.mode");
                let found = inode.kind().name();
                report(corrupt(place, "the directory entry says that this is a directory", found, "directory"));
                continue;
            }
            if !self.options.inodes {
                inode.crc_error(self.walk.volume()).into_iter().for_each(&mut *report);
            }
            if self.path.len() > PATH_MAX {
                let found = format!("{} bytes", self.path.len());
                let error = corrupt(block.place().clone(), "the path is too long to be followed", found, PATH_MAX);
                report(error);
                continue;
            }
            self.directory(inode, report, each)?;
        }
        ControlFlow::Continue(())
    }

    /// Comes to the names of a directory, and puts its subdirectories on the stack.
    fn directory(
        &mut self,
        inode: Inode<'_>,
        report: &mut dyn FnMut(Error),
        each: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.visited.first_time(inode.ino.0) {
            let place = inode.place(self.walk.volume());
            report(corrupt(place, "the directory is reached twice", inode.ino, "each directory once"));
            return ControlFlow::Continue(());
        }
        let name = self.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let (path, ino) = (self.path.as_slice(), inode.ino);
        let kind = Some(Kind::Directory);
        each(Event::Enter(Item { parent: None, path, name, ino, entry_kind: kind, inode: Some(inode) }))?;
        let mut names = Names { arena: Vec::new(), list: Vec::new() };
        let _ = directory::for_each(self.walk, inode, report, |entry| {
            if !entry.is_dots() {
                let at = names.arena.len();
                names.arena.extend_from_slice(entry.name);
                names.list.push((at, u8::try_from(entry.name.len()).unwrap_or(u8::MAX), entry.ino, entry.ftype));
            }
            ControlFlow::Continue(())
        });
        let impossible = |name: &[u8]| name.is_empty() || name.iter().any(|&b| b == b'/' || b == 0);
        for &(at, len, ino, _) in names.list.iter().filter(|&&(at, len, ..)| impossible(names.name(at, len))) {
            let place = inode.place(self.walk.volume());
            let name = names.name(at, len).escape_ascii();
            let what = format!("the directory has a name that no file can have, for inode {ino}");
            report(corrupt(place, what, format_args!("\"{name}\""), "a name without slashes and NULs"));
        }
        if self.options.sorted {
            let mut list = std::mem::take(&mut names.list);
            list.sort_unstable_by(|a, b| names.name(a.0, a.1).cmp(names.name(b.0, b.1)));
            names.list = list;
        }
        let path_len = self.path.len();
        let mut dirs = Vec::new();
        for window in names.list.chunks(WINDOW) {
            let known = self.inodes_of(window, report);
            for &(at, len, ino, ftype) in window {
                let name = names.name(at, len);
                let entry_kind = ftype.and_then(Kind::of_ftype);
                let found = known.get(ino);
                let kind = found.map(|inode| inode.kind()).or(entry_kind);
                self.path.truncate(path_len);
                push_name(&mut self.path, name);
                let (parent, path) = (Some(inode.ino), self.path.as_slice());
                each(Event::Name(Item { parent, path, name, ino, entry_kind, inode: found }))?;
                if kind == Some(Kind::Directory) {
                    dirs.push((Box::from(name), ino));
                }
            }
        }
        self.path.truncate(path_len);
        if !self.options.shallow {
            self.stack.push(Frame { dirs: dirs.into_iter(), path_len });
        }
        ControlFlow::Continue(())
    }

    /// The inodes of some names: all where they were asked for, else those whose kind the directory does not tell.
    fn inodes_of(&self, window: &[(usize, u8, Ino, Option<u8>)], report: &mut dyn FnMut(Error)) -> Known {
        let unknown = |ftype: Option<u8>| ftype.and_then(Kind::of_ftype).is_none();
        let wanted = window.iter().filter(|(.., ftype)| self.options.inodes || unknown(*ftype));
        let mut wanted: Vec<Ino> = wanted.map(|&(_, _, ino, _)| ino).collect();
        let size = index(self.walk.context().inode_size);
        let mut known = Known { size, bytes: Vec::new(), list: Vec::new() };
        let mut errors = Vec::new();
        inodes::read_many(self.walk, &mut wanted, &mut |_, error| errors.push(error), &mut |inode| {
            known.list.push(inode.ino);
            known.bytes.extend_from_slice(inode.bytes());
        });
        for &ino in &known.list {
            let Some(inode) = known.bytes_of(ino).map(|bytes| Inode::new(ino, bytes)) else { continue };
            errors.extend(inode.crc_error(self.walk.volume()));
            if inode.mode() == 0 {
                let place = inode.place(self.walk.volume()).field("core.mode");
                errors.push(corrupt(place, "a name leads to a free inode", 0, "an inode in use"));
            }
        }
        errors.into_iter().for_each(report);
        known
    }
}

/// Inodes that were read, in ascending order.
struct Known {
    size: usize,
    bytes: Vec<u8>,
    list: Vec<Ino>,
}

impl Known {
    fn bytes_of(&self, ino: Ino) -> Option<&[u8]> {
        let start = self.list.binary_search(&ino).ok()?.checked_mul(self.size)?;
        self.bytes.get(start..start.checked_add(self.size)?)
    }

    /// The inode, where it is in use.
    fn get(&self, ino: Ino) -> Option<Inode<'_>> {
        let inode = Inode::new(ino, self.bytes_of(ino)?);
        (inode.mode() != 0).then_some(inode)
    }
}

fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
