//! The realtime superblock: first block of the realtime section where there are realtime groups (and it has its own
//! device). It only tells that the device belongs to the file system. `struct xfs_rtsb`; `xfs_rtsb_verify` (xfs_sb.c).

use super::on_disk::{Crc, Uuid, on_disk};
use super::{Context, Node, Structure, node};

/// `Frog`.
pub const MAGIC: u32 = 0x4672_6f67;
/// Byte of the checksum, which covers the whole block.
pub const CRC_OFFSET: usize = 4;

on_disk! {
    /// Realtime superblock (`struct xfs_rtsb`).
    pub struct RtSuperblock, size 56 {
        /// `Frog` (0x46726f67).
        0 magicnum: u32 [.hex()],
        /// Checksum of the block.
        4 crc: Crc,
        /// Zeros.
        8 pad: u32 [.hex()],
        /// Label, as in the superblock.
        12 fname: [u8; 12] [.text()],
        /// Identity, as in the superblock.
        24 uuid: Uuid,
        /// Identity that metadata carries, as in the superblock.
        40 meta_uuid: Uuid,
    }
}

/// The nodes of a realtime superblock.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    node::table(RtSuperblock::FIELDS, context, bytes, 0)
}
