//! How often realtime blocks are shared: one btree per realtime group, rooted in the data fork of a metadata file
//! (`rtgroups/N.refcount`), with the records of the refcount btree of an AG and pointers of 8 bytes. A small one
//! stands in the inode. `struct xfs_rtrefcount_root`, `struct xfs_refcount_rec`; `xfs_rtrefcountbt_verify`.

use super::btree_block::{self, Shape};
use super::{Context, Node, Type, refcountbt};

/// The btree. Records are [`refcountbt::Shared`].
pub const SHAPE: Shape = Shape { kind: Type::Rtrefcntbt, magic: [0, 0x5243_4e54], long: true, ..refcountbt::SHAPE };

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
