//! What a record of a reverse mapping btree says, whether it was read from one or put together from the claims of
//! inodes and headers.

use crate::format::dinode::Fork;
use crate::format::rmapbt::{Mapping, Offset, owner};
use crate::units::Ino;

/// Blocks with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// First block, from the start of the group.
    pub start: u64,
    /// Length in blocks.
    pub length: u64,
    /// Inode, or one of [`owner`].
    pub owner: u64,
    /// Offset within the owner, and flags.
    pub offset: Offset,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The file.
    pub ino: Ino,
    /// Its fork.
    pub fork: Fork,
    /// Is this a block of the fork's extent map, not of its content?
    pub bmbt: bool,
    /// First block within the fork; 0 for the extent map.
    pub offset: u64,
    /// Allocated but not written?
    pub unwritten: bool,
}

/// Whose a range is (`XFS_FMR_OWN_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's.
    Free,
    /// Not known.
    Unknown,
    /// Static metadata: superblocks and headers.
    Fs,
    /// The log.
    Log,
    /// Free space and reverse mapping btrees, free list.
    Ag,
    /// Inode and free inode btrees.
    Inobt,
    /// Inodes.
    Inodes,
    /// Refcount btree.
    Refcount,
    /// Staged for a copy on write.
    Cow,
    /// A file, a directory, or a metadata file.
    File(Mapped),
}

impl Owner {
    /// The name that JSON has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Unknown => "unknown",
            Self::Fs => "fs",
            Self::Log => "log",
            Self::Ag => "ag",
            Self::Inobt => "inobt",
            Self::Inodes => "inodes",
            Self::Refcount => "refcount",
            Self::Cow => "cow",
            Self::File(_) => "inode",
        }
    }
}

impl From<Mapping> for Record {
    fn from(mapping: Mapping) -> Self {
        Self {
            start: mapping.startblock.get(),
            length: mapping.blockcount.get(),
            owner: mapping.owner,
            offset: mapping.offset,
        }
    }
}

impl Record {
    /// Blocks of metadata, or free ones.
    pub const fn special(start: u64, length: u64, owner: u64) -> Self {
        Self { start, length, owner, offset: Offset(0) }
    }

    /// First block behind it.
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// Does a file own it? Inode numbers have the top bit clear (`XFS_RMAP_NON_INODE_OWNER`).
    pub const fn is_file(&self) -> bool {
        self.owner >> 63 == 0
    }

    /// Can files share it: written content of a data fork?
    pub fn is_shareable(&self) -> bool {
        self.is_file() && !self.offset.attr_fork() && !self.offset.bmbt_block() && !self.offset.unwritten()
    }

    /// Whose it is; `None` for a number that stands for nobody.
    pub fn owner(&self) -> Option<Owner> {
        if self.is_file() {
            let bmbt = self.offset.bmbt_block();
            return Some(Owner::File(Mapped {
                ino: Ino(self.owner),
                fork: if self.offset.attr_fork() { Fork::Attr } else { Fork::Data },
                bmbt,
                offset: if bmbt { 0 } else { self.offset.blocks() },
                unwritten: self.offset.unwritten(),
            }));
        }
        Some(match self.owner {
            owner::NULL => Owner::Free,
            owner::UNKNOWN => Owner::Unknown,
            owner::FS => Owner::Fs,
            owner::LOG => Owner::Log,
            owner::AG => Owner::Ag,
            owner::INOBT => Owner::Inobt,
            owner::INODES => Owner::Inodes,
            owner::REFC => Owner::Refcount,
            owner::COW => Owner::Cow,
            _ => return None,
        })
    }

    /// Do offsets within the owner mean something?
    fn has_offset(&self) -> bool {
        self.is_file() && !self.offset.bmbt_block()
    }

    /// Flags, then offset: what must fit for two records to be one.
    fn key(&self) -> (u64, u64) {
        const OFFSET: u64 = (1 << 54) - 1;
        (self.offset.0 & !OFFSET, if self.has_offset() { self.offset.blocks() } else { 0 })
    }

    /// Is `next` the continuation of this one, or a part of the same?
    fn continues(&self, next: &Self) -> bool {
        if self.owner != next.owner || self.key().0 != next.key().0 {
            return false;
        }
        match self.has_offset() {
            true => self.end() == next.start && self.key().1.checked_add(self.length) == Some(next.key().1),
            // Two chunks can lie in one block, which is no fault.
            false if self.owner == owner::INODES => next.start <= self.end(),
            false => self.end() == next.start,
        }
    }
}

/// Puts records together that a reverse mapping btree would hold as one, and sorts them as it does: by start, owner,
/// offset (`xfs_rmap_map`, `xfs_rmap_compare`).
pub(crate) fn merge(records: &mut Vec<Record>) {
    records.sort_unstable_by_key(|r| (r.owner, r.key().0, r.key().1, r.start));
    records.dedup_by(|next, kept| {
        if !kept.continues(next) {
            return false;
        }
        kept.length = next.end().max(kept.end()).saturating_sub(kept.start);
        true
    });
    // The unwritten flag takes no part in the order.
    records.sort_unstable_by_key(|r| (r.start, r.owner, r.offset.0 & !(1 << 61)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(start: u64, length: u64, ino: u64, offset: u64) -> Record {
        Record { start, length, owner: ino, offset: Offset(offset) }
    }

    #[test]
    fn merges_what_continues() {
        const ATTR: u64 = 1 << 63;
        const BMBT: u64 = 1 << 62;
        const UNWRITTEN: u64 = 1 << 61;
        let mut records = vec![
            file(110, 10, 131, 10),
            file(100, 10, 131, 0),
            // Another file shares a part.
            file(105, 2, 132, 7),
            // Written after unwritten, attribute after data: no continuation.
            file(120, 5, 131, UNWRITTEN | 20),
            file(125, 5, 131, ATTR | 25),
            // Extent map blocks have no offset.
            file(41, 1, 131, BMBT),
            file(40, 1, 131, BMBT),
            // Side by side on disk, not in the file.
            file(200, 1, 131, 50),
            file(201, 1, 131, 52),
            Record::special(8, 4, owner::INODES),
            Record::special(8, 4, owner::INODES),
            Record::special(12, 4, owner::INODES),
            Record::special(0, 1, owner::FS),
            Record::special(1, 1, owner::AG),
            Record::special(2, 1, owner::AG),
        ];
        merge(&mut records);
        let right = [
            Record::special(0, 1, owner::FS),
            Record::special(1, 2, owner::AG),
            Record::special(8, 8, owner::INODES),
            file(40, 2, 131, BMBT),
            file(100, 20, 131, 0),
            file(105, 2, 132, 7),
            file(120, 5, 131, UNWRITTEN | 20),
            file(125, 5, 131, ATTR | 25),
            file(200, 1, 131, 50),
            file(201, 1, 131, 52),
        ];
        assert_eq!(records, right);
    }

    #[test]
    fn owners() {
        assert_eq!(Record::special(0, 1, owner::REFC).owner(), Some(Owner::Refcount));
        assert_eq!(Record::special(0, 1, u64::MAX - 9).owner(), None);
        let record = file(0, 1, 131, 1 << 63 | 1 << 61 | 5);
        let mapped = Mapped { ino: Ino(131), fork: Fork::Attr, bmbt: false, offset: 5, unwritten: true };
        assert_eq!(record.owner(), Some(Owner::File(mapped)));
        assert!(!record.is_shareable() && file(0, 1, 131, 5).is_shareable());
    }
}
