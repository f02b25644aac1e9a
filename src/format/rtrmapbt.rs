//! Owners of realtime blocks: one btree per realtime group, rooted in the data fork of a metadata file
//! (`rtgroups/N.rmap`), with the records of the rmap btree of an AG and pointers of 8 bytes. A small one stands in the
//! inode. `struct xfs_rtrmap_root`, `struct xfs_rmap_rec`; `xfs_rtrmapbt_verify`, `xfs_iformat_rtrmap`.

use super::btree_block::{self, Shape};
use super::{Context, Node, Type, rmapbt};

/// The btree. Records are [`rmapbt::Mapping`]s, keys [`rmapbt::Key`]s.
pub const SHAPE: Shape = Shape { kind: Type::Rtrmapbt, magic: [0, 0x4d41_5052], long: true, ..rmapbt::SHAPE };

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
