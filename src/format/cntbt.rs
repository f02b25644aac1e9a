//! Free space by size: one btree per AG, rooted in `agf.cntroot`, with the records of the one by block in the order
//! of length, then block. `struct xfs_alloc_rec`; `xfs_allocbt_verify` (xfs_alloc_btree.c).

use super::bnobt::AllocRec;
use super::btree_block::{self, Shape};
use super::on_disk::{Null, on_disk};
use super::{Context, Node, Structure, Type};

on_disk! {
    /// Key of a node: the record, length first in print (`struct xfs_alloc_rec`).
    pub struct CntKey, size 8 {
        /// Block and length.
        0 packed: u64 [.unnamed()] {
            /// Length in blocks.
            blockcount: 32 + 32,
            /// First free block.
            startblock: 0 + 32 [.null(Null::Named).to(Type::Data)],
        },
    }
}

/// The btree. Records are [`super::bnobt::FreeExtent`]s.
pub const SHAPE: Shape = Shape {
    kind: Type::Cntbt,
    magic: [0x4142_5443, 0x4142_3343],
    long: false,
    record: AllocRec::FIELDS,
    record_size: 8,
    key: CntKey::FIELDS,
    key_size: 8,
};

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
