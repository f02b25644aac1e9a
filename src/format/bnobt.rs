//! Free space by block: one btree per AG, rooted in `agf.bnoroot`. `struct xfs_alloc_rec`, in the order of blocks;
//! `xfs_allocbt_verify`, `xfs_alloc_check_irec` (xfs_alloc*.c).

use super::btree_block::{self, Shape};
use super::on_disk::on_disk;
use super::{Context, Node, Structure, Type, bits};
use crate::units::{AgBlock, ExtLen};

on_disk! {
    /// Free extent: record and key of both free space btrees (`struct xfs_alloc_rec`).
    pub struct AllocRec, size 8 {
        /// First free block.
        0 startblock: AgBlock [.to(Type::Data)],
        /// Length in blocks.
        4 blockcount: ExtLen,
    }
}

/// A free extent, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreeExtent {
    /// First free block.
    pub startblock: AgBlock,
    /// Length in blocks.
    pub blockcount: ExtLen,
}

impl FreeExtent {
    /// Reads the record or key at byte `at`.
    pub fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let blockcount = ExtLen(bits::be32(bytes, at.checked_add(4)?)?);
        Some(Self { startblock: AgBlock(bits::be32(bytes, at)?), blockcount })
    }
}

/// The btree.
pub const SHAPE: Shape = Shape {
    kind: Type::Bnobt,
    magic: [0x4142_5442, 0x4142_3342],
    long: false,
    record: AllocRec::FIELDS,
    record_size: 8,
    key: AllocRec::FIELDS,
    key_size: 8,
};

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
