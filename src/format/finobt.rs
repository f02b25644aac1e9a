//! Inode chunks with free inodes: one btree per AG, rooted in `agi.free_root` (feature finobt); records as in the
//! inode btree. `struct xfs_inobt_rec`; `xfs_inobt_verify` (xfs_ialloc_btree.c).

use super::btree_block::{self, Shape};
use super::{Context, Node, Type, inobt};

/// The btree. Records are [`inobt::Chunk`]s.
pub const SHAPE: Shape = Shape { kind: Type::Finobt, magic: [0x4649_4254, 0x4649_4233], ..inobt::SHAPE };

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
