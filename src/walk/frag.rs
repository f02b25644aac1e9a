//! Fragmentation: extents that forks have, against the fewest that their holes allow. As xfs_db's `frag` counts it:
//! directories, regular files, symbolic links and attribute forks.

use super::extents::extents;
use super::inodes::chunks;
use super::{Inode, Walk};
use crate::error::Error;
use crate::format::bmbt::Extent;
use crate::format::dinode::Fork;
use crate::format::dinode_view::Kind;
use crate::units::{AgNumber, Ino};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Extents of a fork, an inode or a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Extents that there are.
    pub actual: u64,
    /// Runs of file blocks without a hole: one extent each would do.
    pub ideal: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.actual = self.actual.saturating_add(other.actual);
        self.ideal = self.ideal.saturating_add(other.ideal);
    }

    /// Extents that there are too many.
    pub fn excess(&self) -> u64 {
        self.actual.saturating_sub(self.ideal)
    }
}

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// Attribute forks.
    pub attributes: bool,
    /// Directories.
    pub directories: bool,
    /// Regular files.
    pub files: bool,
    /// Symbolic links.
    pub symlinks: bool,
}

impl What {
    /// Everything.
    pub const ALL: Self = Self { attributes: true, directories: true, files: true, symlinks: true };
}

/// Fragmentation of an AG or a file system.
#[derive(Clone, Debug, Default)]
pub struct Fragmentation {
    /// All forks together.
    pub total: Count,
    /// Inodes that were looked at.
    pub inodes: u64,
    /// The inodes with the most extents too many, as many as were asked for.
    worst: BinaryHeap<Reverse<(u64, Reverse<Ino>, u64)>>,
}

impl Fragmentation {
    /// Takes the result of another AG in; `keep` inodes are named.
    pub fn merge(&mut self, other: Self, keep: usize) {
        self.total.add(other.total);
        self.inodes = self.inodes.saturating_add(other.inodes);
        self.worst.extend(other.worst);
        self.cut(keep);
    }

    fn cut(&mut self, keep: usize) {
        while self.worst.len() > keep {
            self.worst.pop();
        }
    }

    fn note(&mut self, ino: Ino, count: Count, keep: usize) {
        if keep > 0 && count.excess() > 0 {
            self.worst.push(Reverse((count.excess(), Reverse(ino), count.actual)));
            self.cut(keep);
        }
    }

    /// The worst inodes, worst first.
    pub fn worst(&self) -> Vec<(Ino, Count)> {
        let mut list: Vec<_> = self.worst.iter().map(|Reverse(item)| *item).collect();
        list.sort_unstable_by(|a, b| b.cmp(a));
        list.into_iter()
            .map(|(excess, Reverse(ino), actual)| (ino, Count { actual, ideal: actual.saturating_sub(excess) }))
            .collect()
    }
}

/// Extents of a fork. What is wrong goes to `report`.
pub fn fork(walk: &Walk<'_>, inode: Inode<'_>, fork: Fork, report: &mut dyn FnMut(Error)) -> Count {
    let mut count = Count::default();
    if inode.extents(fork) == 0 {
        return count;
    }
    let mut next = None;
    for extent in extents(walk, inode, fork) {
        match extent {
            Ok(Extent { startoff, blockcount, .. }) => {
                count.actual = count.actual.saturating_add(1);
                if next != Some(startoff.0) {
                    count.ideal = count.ideal.saturating_add(1);
                }
                next = startoff.0.checked_add(u64::from(blockcount));
            }
            Err(error) => report(error),
        }
    }
    count
}

/// Fragmentation of the inodes of an AG; the `keep` worst are remembered.
pub fn of_ag(walk: &Walk<'_>, ag: AgNumber, what: What, keep: usize, report: &mut dyn FnMut(Error)) -> Fragmentation {
    let mut result = Fragmentation::default();
    let mut chunks = chunks(walk, ag);
    while let Some(chunk) = chunks.next_chunk() {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                report(error);
                continue;
            }
        };
        for inode in chunk.inodes().filter(|slot| slot.in_use).map(|slot| slot.inode) {
            result.inodes = result.inodes.saturating_add(1);
            let data = match inode.kind() {
                Kind::Directory => what.directories,
                Kind::Regular => what.files,
                Kind::Symlink => what.symlinks,
                _ => false,
            };
            let mut count = Count::default();
            if data {
                count.add(fork(walk, inode, Fork::Data, report));
            }
            if what.attributes && inode.forkoff() != 0 {
                count.add(fork(walk, inode, Fork::Attr, report));
            }
            result.total.add(count);
            result.note(inode.ino, count, keep);
        }
    }
    result
}
