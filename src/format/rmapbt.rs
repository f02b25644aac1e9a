//! Owners of blocks: one btree per AG, rooted in `agf.rmaproot` (feature rmapbt). Extents of a file may share blocks,
//! so records overlap and a node has a low and a high key for each child. `struct xfs_rmap_rec`,
//! `struct xfs_rmap_key`; `xfs_rmapbt_verify`, `xfs_rmap_check_irec` (xfs_rmap*.c).

use super::btree_block::{self, Shape};
use super::on_disk::{Null, on_disk};
use super::{Context, Node, Structure, Type, bits};
use crate::units::{AgBlock, ExtLen};

/// Owners that are no inodes (`XFS_RMAP_OWN_*`), as stored.
pub mod owner {
    /// No owner known.
    pub const NULL: u64 = u64::MAX;
    /// Not known.
    pub const UNKNOWN: u64 = u64::MAX - 1;
    /// Static metadata: superblock, AG headers.
    pub const FS: u64 = u64::MAX - 2;
    /// The log.
    pub const LOG: u64 = u64::MAX - 3;
    /// AG btrees other than those below, and the free list.
    pub const AG: u64 = u64::MAX - 4;
    /// Inode and free inode btrees.
    pub const INOBT: u64 = u64::MAX - 5;
    /// Inode chunks.
    pub const INODES: u64 = u64::MAX - 6;
    /// Refcount btree.
    pub const REFC: u64 = u64::MAX - 7;
    /// CoW staging extents.
    pub const COW: u64 = u64::MAX - 8;
}

on_disk! {
    /// Mapping from blocks to owner (`struct xfs_rmap_rec`).
    pub struct RmapRec, size 24 {
        /// First block.
        0 startblock: AgBlock [.to(Type::Data)],
        /// Length in blocks.
        4 blockcount: ExtLen,
        /// Inode, or one of the special owners (negative).
        8 owner: i64,
        /// Offset within the owner, and flags.
        16 offset: u64 [.unnamed()] {
            /// First block within the file.
            offset: 10 + 54,
            /// Unwritten extent.
            extentflag: 2 + 1,
            /// Attribute fork.
            attrfork: 0 + 1,
            /// Block of an extent map btree.
            bmbtblock: 1 + 1,
        },
    }

    /// Key of a node: lowest and highest value below a child (two `struct xfs_rmap_key`).
    pub struct RmapKeys, size 40 {
        /// Lowest first block.
        0 startblock: AgBlock [.to(Type::Data)],
        /// Its owner.
        4 owner: i64,
        /// Its offset and flags.
        12 offset: u64 [.unnamed()] {
            /// Its offset within the file.
            offset: 10 + 54,
            /// Unwritten extent.
            extentflag: 2 + 1,
            /// Attribute fork.
            attrfork: 0 + 1,
            /// Block of an extent map btree.
            bmbtblock: 1 + 1,
        },
        /// Highest last block.
        20 startblock_hi: u32 [.null(Null::Named).to(Type::Data)],
        /// Its owner.
        24 owner_hi: i64,
        /// Its offset and flags.
        32 offset_hi: u64 [.unnamed()] {
            /// Its offset within the file.
            offset_hi: 10 + 54,
            /// Unwritten extent.
            extentflag_hi: 2 + 1,
            /// Attribute fork.
            attrfork_hi: 0 + 1,
            /// Block of an extent map btree.
            bmbtblock_hi: 1 + 1,
        },
    }
}

/// What `rm_offset` packs: offset within the owner, and flags (`xfs_rmap_irec_offset_unpack`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(pub u64);

impl Offset {
    /// First block within the file; meaningless for extent map btree blocks and special owners.
    pub fn blocks(self) -> u64 {
        self.0 & 0x3f_ffff_ffff_ffff
    }
    /// Attribute fork?
    pub fn attr_fork(self) -> bool {
        self.0 >> 63 != 0
    }
    /// Block of an extent map btree?
    pub fn bmbt_block(self) -> bool {
        self.0 >> 62 & 1 != 0
    }
    /// Unwritten extent?
    pub fn unwritten(self) -> bool {
        self.0 >> 61 & 1 != 0
    }
    /// Bits that should be zero.
    pub fn unused(self) -> u64 {
        self.0 >> 54 & 0x7f
    }
}

/// A mapping, read in place. In the realtime btree blocks are those of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First block.
    pub startblock: AgBlock,
    /// Length in blocks.
    pub blockcount: ExtLen,
    /// Inode, or one of [`owner`].
    pub owner: u64,
    /// Offset within the owner, and flags.
    pub offset: Offset,
}

impl Mapping {
    /// Reads the record at byte `at`.
    pub fn at(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self {
            startblock: AgBlock(bits::be32(bytes, at)?),
            blockcount: ExtLen(bits::be32(bytes, at.checked_add(4)?)?),
            owner: bits::be64(bytes, at.checked_add(8)?)?,
            offset: Offset(bits::be64(bytes, at.checked_add(16)?)?),
        })
    }
}

/// One of the two keys of a child, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// First block of the lowest record, or last block of the highest.
    pub startblock: AgBlock,
    /// Its owner.
    pub owner: u64,
    /// Its offset and flags.
    pub offset: Offset,
}

impl Key {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self {
            startblock: AgBlock(bits::be32(bytes, at)?),
            owner: bits::be64(bytes, at.checked_add(4)?)?,
            offset: Offset(bits::be64(bytes, at.checked_add(12)?)?),
        })
    }

    /// The low and the high key of a child, from its 40 bytes.
    pub fn pair(key: &[u8]) -> Option<(Self, Self)> {
        Some((Self::at(key, 0)?, Self::at(key, 20)?))
    }
}

/// The btree.
pub const SHAPE: Shape = Shape {
    kind: Type::Rmapbt,
    magic: [0, 0x524d_4233],
    long: false,
    record: RmapRec::FIELDS,
    record_size: 24,
    key: RmapKeys::FIELDS,
    key_size: 40,
};

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_an_offset() {
        let offset = Offset(0xa000_0000_0000_0011);
        assert_eq!(
            (offset.blocks(), offset.attr_fork(), offset.bmbt_block(), offset.unwritten()),
            (17, true, false, true)
        );
        assert_eq!(Offset(u64::MAX).unused(), 0x7f);
        assert!(Mapping::at(&[0; 23], 0).is_none() && Key::pair(&[0; 39]).is_none());
    }
}
