//! How often blocks are shared: one btree per AG, rooted in `agf.refcntroot` (feature reflink). Blocks that stage a
//! copy on write have refcount 1 and the top bit of the start block set. `struct xfs_refcount_rec`;
//! `xfs_refcountbt_verify`, `xfs_refcount_check_irec` (xfs_refcount*.c).

use super::btree_block::{self, Shape};
use super::on_disk::{Null, on_disk};
use super::{Context, Node, Structure, Type, bits};
use crate::units::{AgBlock, ExtLen};

on_disk! {
    /// Shared or staged extent (`struct xfs_refcount_rec`).
    pub struct RefcountRec, size 12 {
        /// First block, and the flag of a staging extent.
        0 startblock: u32 [.unnamed()] {
            /// First block.
            startblock: 1 + 31 [.null(Null::Named).to(Type::Data)],
            /// 1: staging extent of a copy on write.
            cowflag: 0 + 1 [.after("refcount")],
        },
        /// Length in blocks.
        4 blockcount: ExtLen,
        /// Files that share it.
        8 refcount: u32,
    }

    /// Key of a node (`struct xfs_refcount_key`).
    pub struct RefcountKey, size 4 {
        /// First block, and the flag of a staging extent.
        0 startblock: u32 [.unnamed()] {
            /// First block.
            startblock: 1 + 31 [.null(Null::Named).to(Type::Data)],
            /// 1: staging extent of a copy on write.
            cowflag: 0 + 1,
        },
    }
}

/// A shared or staged extent, read in place. In the realtime btree blocks are those of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// First block.
    pub startblock: AgBlock,
    /// Length in blocks.
    pub blockcount: ExtLen,
    /// Files that share it, as stored.
    pub refcount: u32,
    /// Staging extent of a copy on write?
    pub cow: bool,
}

impl Shared {
    /// Reads the record at byte `at`.
    pub fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let start = bits::be32(bytes, at)?;
        Some(Self {
            startblock: AgBlock(start & 0x7fff_ffff),
            blockcount: ExtLen(bits::be32(bytes, at.checked_add(4)?)?),
            refcount: bits::be32(bytes, at.checked_add(8)?)?,
            cow: start >> 31 != 0,
        })
    }
}

/// The btree.
pub const SHAPE: Shape = Shape {
    kind: Type::Refcntbt,
    magic: [0, 0x5233_4643],
    long: false,
    record: RefcountRec::FIELDS,
    record_size: 12,
    key: RefcountKey::FIELDS,
    key_size: 4,
};

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}
