//! Who owns which block: filled from every side while a check runs, an entry per extent, and looked through at the end,
//! AG by AG. Nothing is kept per block.
//!
//! Memory: 24 bytes for every extent that is in use or free. Realtime sections have a map of their own; their "AGs" are
//! realtime groups, or pieces of 2^31 blocks where there are none.

use crate::format::rmapbt::owner;
use crate::units::{AgBlock, AgNumber, Ino};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An owner of blocks: an inode, or one of the kinds below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

macro_rules! owners {
    ($( $(#[doc = $doc:literal])* $name:ident = $n:literal, $text:literal, $rmap:expr; )*) => {
        impl Owner {
            $( $(#[doc = $doc])* pub const $name: Self = Self(u64::MAX - $n); )*

            /// What the reverse mapping btree says of such blocks; `None` for blocks that it does not know.
            pub const fn rmap(self) -> Option<u64> {
                match self {
                    $( Self::$name => $rmap, )*
                    Self(ino) => Some(ino),
                }
            }
        }

        impl fmt::Display for Owner {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $( Self::$name => f.write_str($text), )*
                    Self(ino) => write!(f, "inode {ino}"),
                }
            }
        }
    };
}

owners! {
    /// Nobody: the block is free.
    FREE = 32, "free space", None;
    /// The free space btrees disagree about the block.
    DISPUTED = 33, "disputed free space", None;
    /// Superblock, AGF, AGI, AGFL.
    HEADERS = 34, "the AG headers", Some(owner::FS);
    /// The internal log.
    LOG = 35, "the log", Some(owner::LOG);
    /// The free list.
    FREE_LIST = 36, "the free list", Some(owner::AG);
    /// Free space btree by block.
    BNOBT = 37, "bnobt", Some(owner::AG);
    /// Free space btree by size.
    CNTBT = 38, "cntbt", Some(owner::AG);
    /// Reverse mapping btree.
    RMAPBT = 39, "rmapbt", Some(owner::AG);
    /// Inode btree.
    INOBT = 40, "inobt", Some(owner::INOBT);
    /// Free inode btree.
    FINOBT = 41, "finobt", Some(owner::INOBT);
    /// Inode chunks.
    INODES = 42, "inodes", Some(owner::INODES);
    /// Refcount btree.
    REFCNTBT = 43, "refcntbt", Some(owner::REFC);
    /// Staging extents of copies on write.
    COW = 44, "copy-on-write staging", Some(owner::COW);
}

impl Owner {
    /// The inode, if it is one.
    pub fn inode(self) -> Option<Ino> {
        (self.0 < u64::MAX - 64).then_some(Ino(self.0))
    }
}

/// Where in a file blocks lie: offset and flags, as `rm_offset` of the reverse mapping btree packs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Within(pub u64);

impl Within {
    /// Unwritten extent.
    pub const UNWRITTEN: u64 = 1 << 61;
    /// Block of a btree in a fork.
    pub const TREE: u64 = 1 << 62;
    /// Attribute fork.
    pub const ATTR: u64 = 1 << 63;

    /// Blocks of a fork from file block `offset` on.
    pub const fn fork(offset: u64, attr: bool, unwritten: bool) -> Self {
        let flags = if attr { Self::ATTR } else { 0 } | if unwritten { Self::UNWRITTEN } else { 0 };
        Self(offset & 0x3f_ffff_ffff_ffff | flags)
    }

    /// A block of the btree of a fork.
    pub const fn tree(attr: bool) -> Self {
        Self(Self::TREE | if attr { Self::ATTR } else { 0 })
    }

    /// First block within the file.
    pub const fn offset(self) -> u64 {
        self.0 & 0x3f_ffff_ffff_ffff
    }

    /// Content of a data fork: what may be shared.
    pub const fn is_data(self) -> bool {
        self.0 & (Self::TREE | Self::ATTR) == 0
    }

    /// The same place `blocks` further on; btree blocks have no place.
    #[must_use]
    pub const fn after(self, blocks: u32) -> Self {
        if self.0 & Self::TREE != 0 { self } else { Self(self.0.saturating_add(blocks as u64)) }
    }
}

/// An extent and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// First block.
    pub start: u32,
    /// Length in blocks, not 0.
    pub blocks: u32,
    /// Owner.
    pub owner: Owner,
    /// Where within the owner; 0 for owners that are no inodes.
    pub within: Within,
}

impl Entry {
    /// The block behind the last.
    pub fn end(&self) -> u64 {
        u64::from(self.start).saturating_add(u64::from(self.blocks))
    }

    /// The order of the reverse mapping btree.
    pub fn key(&self) -> (u32, u64, u64) {
        (self.start, self.owner.rmap().unwrap_or(self.owner.0), self.within.0 & !Within::UNWRITTEN)
    }

    /// Compares by that key: the block alone tells all apart but those that are shared.
    pub fn by_place(&self, other: &Self) -> Ordering {
        let rest = |entry: &Self| (entry.owner, entry.blocks, entry.within);
        self.start
            .cmp(&other.start)
            .then_with(|| self.key().cmp(&other.key()))
            .then_with(|| rest(self).cmp(&rest(other)))
    }

    /// Does `next` go on where this one ends, on disk and within its owner?
    pub fn joins(&self, next: &Self) -> bool {
        let place = self.end() == u64::from(next.start) && self.owner == next.owner;
        let within = match self.owner.inode() {
            Some(_) => self.within.after(self.blocks) == next.within,
            None => true,
        };
        place && within && self.blocks.checked_add(next.blocks).is_some()
    }
}

/// Parts of the map, so that threads seldom wait for each other.
const SHARDS: usize = 64;
/// Entries that a thread gathers before it hands them over.
const GATHERED: usize = 4096;

type Shard = Mutex<HashMap<AgNumber, Vec<Entry>>>;

/// The map: entries by AG. Fill it through [`OwnerMap::local`].
#[derive(Debug)]
pub struct OwnerMap {
    shards: Vec<Shard>,
}

impl Default for OwnerMap {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl OwnerMap {
    fn shard(&self, ag: AgNumber) -> Option<&Shard> {
        self.shards.get(usize::try_from(ag.0).ok()?.checked_rem(SHARDS)?)
    }

    /// A place to gather entries, for one thread. They reach the map when it is dropped, at the latest.
    pub fn local(&self) -> Local<'_> {
        Local { map: self, ag: AgNumber(0), entries: Vec::new() }
    }

    /// Takes the entries of an AG out of the map, in no order.
    pub fn take(&self, ag: AgNumber) -> Vec<Entry> {
        let shard = self.shard(ag).map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shard.and_then(|mut shard| shard.remove(&ag)).unwrap_or_default()
    }

    /// Entries of an AG so far.
    pub fn count(&self, ag: AgNumber) -> usize {
        let shard = self.shard(ag).map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shard.and_then(|shard| shard.get(&ag).map(Vec::len)).unwrap_or(0)
    }

    /// The AGs that have entries, in order.
    pub fn ags(&self) -> Vec<AgNumber> {
        let mut all: Vec<AgNumber> = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().unwrap_or_else(PoisonError::into_inner).keys());
        }
        all.sort_unstable();
        all
    }

    fn append(&self, ag: AgNumber, entries: &mut Vec<Entry>) {
        if let Some(shard) = self.shard(ag)
            && !entries.is_empty()
        {
            shard.lock().unwrap_or_else(PoisonError::into_inner).entry(ag).or_default().append(entries);
        }
    }
}

/// Entries of one thread on their way into the map.
#[derive(Debug)]
pub struct Local<'m> {
    map: &'m OwnerMap,
    ag: AgNumber,
    entries: Vec<Entry>,
}

impl Local<'_> {
    /// Adds an extent of an AG. Extents of a file that follow each other are joined.
    pub fn add(&mut self, ag: AgNumber, entry: Entry) {
        if entry.blocks == 0 {
            return;
        }
        if ag != self.ag || self.entries.len() >= GATHERED {
            self.flush();
            self.ag = ag;
        }
        if let Some(last) = self.entries.last_mut()
            && last.joins(&entry)
        {
            last.blocks = last.blocks.saturating_add(entry.blocks);
            return;
        }
        self.entries.push(entry);
    }

    /// Adds blocks of an AG that belong to no inode.
    pub fn blocks(&mut self, ag: AgNumber, start: AgBlock, blocks: u32, owner: Owner) {
        self.add(ag, Entry { start: start.0, blocks, owner, within: Within(0) });
    }

    /// Hands over what was gathered.
    pub fn flush(&mut self) {
        self.map.append(self.ag, &mut self.entries);
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_a_file_are_joined() {
        assert_eq!(std::mem::size_of::<Entry>(), 24);
        let map = OwnerMap::default();
        let mut local = map.local();
        let extent = |start, blocks, offset| Entry {
            start,
            blocks,
            owner: Owner(131),
            within: Within::fork(offset, false, false),
        };
        local.add(AgNumber(1), extent(10, 4, 0));
        local.add(AgNumber(1), extent(14, 2, 4));
        local.add(AgNumber(1), extent(16, 1, 7));
        local.add(AgNumber(2), extent(17, 1, 8));
        local.blocks(AgNumber(1), AgBlock(0), 1, Owner::HEADERS);
        drop(local);
        assert_eq!(map.ags(), [AgNumber(1), AgNumber(2)]);
        let one = map.take(AgNumber(1));
        assert_eq!(one.iter().map(|e| (e.start, e.blocks)).collect::<Vec<_>>(), [(10, 6), (16, 1), (0, 1)]);
        assert!(map.take(AgNumber(1)).is_empty());
    }

    #[test]
    fn owners_have_names() {
        assert_eq!(Owner(131).to_string(), "inode 131");
        assert_eq!(Owner::BNOBT.to_string(), "bnobt");
        assert_eq!((Owner::BNOBT.rmap(), Owner::FREE.rmap(), Owner(7).rmap()), (Some(owner::AG), None, Some(7)));
        assert!(Owner::COW.inode().is_none() && Owner(7).inode() == Some(Ino(7)));
    }
}
