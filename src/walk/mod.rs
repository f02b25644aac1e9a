//! How to follow pointers: from headers to btrees, from inodes to extents, from directories to names.
//!
//! Every walk ends, whatever lies on disk: a child's level is its parent's minus one, no block is entered twice, and
//! all walks of one run share a budget of steps ([`Walk`]). Nothing is allocated by a count that the disk gives.
//! An error speaks of one place; the walk goes on with what can still be reached, then ends. Records are read in
//! place, in blocks that lie in memory.
//!
//! | module | from | to |
//! |---|---|---|
//! | [`group`] | AG headers | the roots of its btrees |
//! | [`btree`] | a root | the blocks of a btree, leaves in order |
//! | [`extents`] | a fork | its extents |
//! | [`inodes`] | an AG | its inode chunks and inodes |
//! | [`mod@file`] | an inode | the content of a file |
//! | [`directory`] | an inode | entries, and paths down |
//! | [`attributes`], [`symlink`] | an inode | attributes; targets of links |
//! | [`da_tree`] | a fork | the blocks of its hash tree |
//! | [`tree`] | a directory | everything below it, with paths |
//! | [`paths`] | an inode | its paths |
//! | [`metadir`] | a name | files of the metadata directory |
//! | [`rt`] | the superblock | bitmap, summary, files and btrees of the realtime section |
//! | [`shared`] | an extent | which of its blocks are shared |
//! | [`free`] | an AG, the realtime section | free extents |
//! | [`frag`] | an AG | extents of its files, against the fewest possible |
//! | [`log`] | the journal | its state, head, tail, live records |
//! | [`fsmap`] | a device | its ranges with their owners |
//! | [`owner`] | a byte | who claims it, and what exactly lies there |
//! | [`quota`] | the quota files, an AG | limits and usage; usage counted anew |
//! | [`unlinked`] | an AG | inodes that are unlinked but still open |
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::as_conversions))]

pub mod attributes;
pub(crate) mod batch;
pub mod btree;
pub mod da_tree;
pub mod directory;
pub mod extents;
pub mod file;
pub mod frag;
pub mod free;
pub mod fsmap;
pub mod group;
mod inode;
pub mod inodes;
pub mod log;
pub mod metadir;
pub mod owner;
pub mod parallel;
pub mod paths;
pub mod quota;
pub mod rt;
pub mod shared;
pub mod symlink;
pub mod tree;
pub mod unlinked;

pub use inode::{Inode, InodeBlock};

use crate::error::{Error, Place, Result};
use crate::format::Context;
use crate::geometry::Geometry;
use crate::units::{Device, FsBlock, Ino};
use crate::volume::Volume;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One run of walks over a file system: its devices and geometry, and the steps that are left.
///
/// Shared between threads by reference.
#[derive(Debug)]
pub struct Walk<'v> {
    volume: &'v Volume,
    taken: AtomicU64,
    limit: u64,
    exhausted: AtomicBool,
}

/// Steps that every run may take, on top of what the size of the device allows.
const STEPS_ALWAYS: u64 = 1 << 20;
/// How often a run may look at each block of the device, on average.
const VISITS_PER_BLOCK: u64 = 16;

impl<'v> Walk<'v> {
    /// A run with the usual budget: 2^20 steps and 16 for every block that the data device has, or as many as the
    /// volume is limited to ([`Volume::limited`]).
    pub fn new(volume: &'v Volume) -> Self {
        if let Some(steps) = volume.most_steps() {
            return Self::with_budget(volume, steps);
        }
        let blocks = volume.devices().data.len().checked_div(volume.geometry().block_size()).unwrap_or(0);
        Self::with_budget(volume, blocks.saturating_mul(VISITS_PER_BLOCK).saturating_add(STEPS_ALWAYS))
    }

    /// A run that looks at no more than `steps` blocks.
    pub fn with_budget(volume: &'v Volume, steps: u64) -> Self {
        Self { volume, taken: AtomicU64::new(0), limit: steps, exhausted: AtomicBool::new(false) }
    }

    /// The file system.
    pub fn volume(&self) -> &'v Volume {
        self.volume
    }

    /// Its trusted numbers.
    pub fn geometry(&self) -> &'v Geometry {
        self.volume.geometry()
    }

    /// Sizes and features on which layouts depend.
    pub fn context(&self) -> &'v Context {
        self.volume.context()
    }

    /// Takes `n` steps.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when the budget is used up.
    pub fn step(&self, n: u64) -> Result<()> {
        let before = self.taken.fetch_add(n, Ordering::Relaxed);
        if before.saturating_add(n) > self.limit {
            // Keep the counter from wrapping, however long the caller goes on.
            self.taken.store(self.limit, Ordering::Relaxed);
            self.exhausted.store(true, Ordering::Relaxed);
            return Err(Error::Exhausted { steps: self.limit });
        }
        Ok(())
    }

    /// The budget, if a step was refused since it was used up.
    pub fn exhausted(&self) -> Option<u64> {
        self.exhausted.load(Ordering::Relaxed).then_some(self.limit)
    }

    /// Begins the budget anew, for the next question of a run that asks several.
    pub fn refill(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Reads an inode by number.
    ///
    /// # Errors
    /// [`Error::Request`] where the number lies outside the AGs, [`Error::Io`], and [`Error::Corrupt`] where the
    /// bytes are no inode, or another one.
    pub fn inode(&self, ino: Ino) -> Result<InodeBlock> {
        self.step(1)?;
        inode::read(self.volume, ino)
    }

    /// The place of a block of the data device.
    pub fn place(&self, block: FsBlock, structure: impl Into<String>) -> Place {
        let byte = self.geometry().block_byte(block).unwrap_or_default();
        Place::new(Device::Data, byte, self.geometry().block_size(), structure)
    }
}

/// What was entered before. Grows with what is really there: each number in it was read from disk.
#[derive(Clone, Debug, Default)]
pub struct Visited {
    seen: HashSet<u64>,
}

impl Visited {
    /// Notes `number`; false when it was there already.
    pub fn first_time(&mut self, number: u64) -> bool {
        self.seen.insert(number)
    }

    /// Is it there?
    pub fn contains(&self, number: u64) -> bool {
        self.seen.contains(&number)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// None so far?
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// An [`Error::Corrupt`] from whatever prints.
pub(crate) fn corrupt(
    place: Place,
    what: impl Into<String>,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Error {
    Error::Corrupt {
        place: Box::new(place),
        what: what.into(),
        found: found.to_string(),
        expected: expected.to_string(),
    }
}

/// An index from a number of 32 bits.
pub(crate) fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_tells_what_is_new() {
        let mut visited = Visited::default();
        assert!(visited.is_empty() && visited.first_time(7) && !visited.first_time(7));
        assert!(visited.contains(7) && visited.len() == 1);
    }
}
