//! The AG inode header: third sector of every AG. `struct xfs_agi`; `xfs_agi_verify` (xfs_ialloc.c).

use super::on_disk::{Crc, Null, Uuid, on_disk};
use super::{Context, Node, Structure, Type, node};
use crate::units::{AgBlock, AgIno, AgNumber};

/// `XAGI`.
pub const MAGIC: u32 = 0x5841_4749;
/// Byte of the checksum.
pub const CRC_OFFSET: usize = 312;

on_disk! {
    /// Inode header of an AG (`struct xfs_agi`).
    pub struct Agi, size 344 {
        /// `XAGI` (0x58414749).
        0 magicnum: u32 [.hex()],
        /// Always 1.
        4 versionnum: u32,
        /// Number of this AG.
        8 seqno: AgNumber,
        /// Blocks in this AG.
        12 length: AgBlock,
        /// Inodes allocated, free ones included.
        16 count: AgIno,
        /// Root of the inode btree.
        20 root: AgBlock [.to(Type::Inobt)],
        /// Levels of the inode btree.
        24 level: u32,
        /// Inodes allocated and free.
        28 freecount: AgIno,
        /// First inode of the chunk allocated last.
        32 newino: AgIno [.to(Type::Inode)],
        /// Unused.
        36 dirino: AgIno [.to(Type::Inode)],
        /// Heads of 64 lists of inodes that are unlinked but still open.
        40 unlinked: [AgIno; 64] [.null(Null::Skipped).to(Type::Inode)],
        /// Identity of the file system.
        296 uuid: Uuid,
        /// Checksum of the sector (V5).
        312 crc: Crc,
        /// Zeros.
        316 pad32: u32 [.hex().hidden()],
        /// Log sequence number of the last write.
        320 lsn: u64 [.hex()],
        /// Root of the free inode btree.
        328 free_root: AgBlock [.to(Type::Finobt)],
        /// Levels of the free inode btree.
        332 free_level: u32,
        /// Blocks of the inode btree (feature inobtcount).
        336 iblocks: u32 [.named("ino_blocks")],
        /// Blocks of the free inode btree (feature inobtcount).
        340 fblocks: u32 [.named("fino_blocks")],
    }
}

/// The nodes of an AGI.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    node::table(Agi::FIELDS, context, bytes, 0)
}
