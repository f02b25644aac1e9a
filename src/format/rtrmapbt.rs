//! Owners of realtime blocks: one btree per realtime group, rooted in the data fork of a metadata file
//! (`rtgroups/N.rmap`), with the records of the rmap btree of an AG and pointers of 8 bytes. A small one stands in the
//! inode. `struct xfs_rtrmap_root`, `struct xfs_rmap_rec`; `xfs_rtrmapbt_verify`, `xfs_iformat_rtrmap`.

use super::btree_block::{self, Shape};
use super::on_disk::{Null, on_disk};
use super::{Context, Node, Structure, Type, rmapbt};

on_disk! {
    /// Key of a node: lowest and highest value below a child (two `struct xfs_rmap_key`). The flag of unwritten
    /// extents is no part of a key.
    pub struct RtrmapKeys, size 40 {
        /// Lowest first block.
        0 startblock: u32 [.null(Null::Named)],
        /// Its owner.
        4 owner: i64,
        /// Its offset and flags.
        12 offset: u64 [.unnamed()] {
            /// Its offset within the file.
            offset: 10 + 54,
            /// Attribute fork.
            attrfork: 0 + 1,
            /// Block of an extent map btree.
            bmbtblock: 1 + 1,
        },
        /// Highest last block.
        20 startblock_hi: u32 [.null(Null::Named)],
        /// Its owner.
        24 owner_hi: i64,
        /// Its offset and flags.
        32 offset_hi: u64 [.unnamed()] {
            /// Its offset within the file.
            offset_hi: 10 + 54,
            /// Attribute fork.
            attrfork_hi: 0 + 1,
            /// Block of an extent map btree.
            bmbtblock_hi: 1 + 1,
        },
    }
}

/// The btree. Records are [`rmapbt::Mapping`]s, keys [`rmapbt::Key`]s.
pub const SHAPE: Shape =
    Shape { kind: Type::Rtrmapbt, magic: [0, 0x4d41_5052], long: true, key: RtrmapKeys::FIELDS, ..rmapbt::SHAPE };

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
