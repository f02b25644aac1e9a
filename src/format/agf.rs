//! The AG free space header: second sector of every AG. `struct xfs_agf`; `xfs_agf_verify` (xfs_alloc.c).

use super::on_disk::{Crc, Null, Uuid, on_disk};
use super::{Context, Node, Structure, Type, node};
use crate::units::{AgBlock, AgNumber, ExtLen};

/// `XAGF`.
pub const MAGIC: u32 = 0x5841_4746;
/// Byte of the checksum.
pub const CRC_OFFSET: usize = 216;

on_disk! {
    /// Free space header of an AG (`struct xfs_agf`).
    pub struct Agf, size 224 {
        /// `XAGF` (0x58414746).
        0 magicnum: u32 [.hex()],
        /// Always 1.
        4 versionnum: u32,
        /// Number of this AG.
        8 seqno: AgNumber,
        /// Blocks in this AG.
        12 length: AgBlock,
        /// Root of the free space btree by block.
        16 bno_root: AgBlock [.named("bnoroot").to(Type::Bnobt)],
        /// Root of the free space btree by size.
        20 cnt_root: AgBlock [.named("cntroot").to(Type::Cntbt)],
        /// Root of the reverse mapping btree.
        24 rmap_root: AgBlock [.named("rmaproot").to(Type::Rmapbt).null(Null::NamedZeroSkipped)],
        /// Levels of the btree by block.
        28 bno_level: u32 [.named("bnolevel")],
        /// Levels of the btree by size.
        32 cnt_level: u32 [.named("cntlevel")],
        /// Levels of the reverse mapping btree.
        36 rmap_level: u32 [.named("rmaplevel")],
        /// First active slot of the free list.
        40 flfirst: u32,
        /// Last active slot of the free list.
        44 fllast: u32,
        /// Blocks on the free list.
        48 flcount: u32,
        /// Free blocks in this AG, those on the free list left aside.
        52 freeblks: ExtLen,
        /// Longest free extent.
        56 longest: ExtLen,
        /// Blocks of the free space and reverse mapping btrees, their roots left aside.
        60 btreeblks: u32,
        /// Identity of the file system.
        64 uuid: Uuid,
        /// Blocks of the reverse mapping btree.
        80 rmap_blocks: u32 [.named("rmapblocks").after("rmaplevel")],
        /// Blocks of the refcount btree.
        84 refcount_blocks: u32 [.named("refcntblocks").after("rmapblocks")],
        /// Root of the refcount btree.
        88 refcount_root: AgBlock [.named("refcntroot").to(Type::Refcntbt).null(Null::NamedZeroSkipped).after("rmaproot")],
        /// Levels of the refcount btree.
        92 refcount_level: u32 [.named("refcntlevel").after("rmaplevel")],
        /// Reserved, zeros.
        96 spare64: [u64; 14] [.hex().hidden()],
        /// Log sequence number of the last write.
        208 lsn: u64 [.hex()],
        /// Checksum of the sector (V5).
        216 crc: Crc,
        /// Zeros.
        220 spare2: u32 [.hex().hidden()],
    }
}

/// The nodes of an AGF.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    node::table(Agf::FIELDS, context, bytes, 0)
}
