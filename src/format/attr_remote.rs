//! Values of extended attributes too large for a leaf, in blocks of their own. On V5 each block has a header, on V4
//! the bytes alone. `struct xfs_attr3_rmt_hdr`; `xfs_attr3_rmt_verify` (xfs_attr_remote.c).

use super::node::{fits, table};
use super::on_disk::{Crc, Null, Uuid, on_disk};
use super::{Context, Node, Structure, bits};
use crate::units::Ino;

/// `XARM`.
pub const MAGIC: u32 = 0x5841_524d;
/// Byte of the checksum (V5).
pub const CRC_OFFSET: usize = 12;

on_disk! {
    /// Header of a V5 block (`struct xfs_attr3_rmt_hdr`).
    pub struct AttrRemoteHeader, size 56 {
        /// `XARM` (0x5841524d).
        0 magic: u32 [.hex()],
        /// First byte within the value.
        4 offset: u32,
        /// Bytes of the value in this block.
        8 bytes: u32,
        /// Checksum of the block.
        12 crc: Crc,
        /// Identity of the file system.
        16 uuid: Uuid,
        /// Inode it belongs to.
        32 owner: Ino,
        /// Address of this block in 512-byte units.
        40 blkno: u64 [.named("bno").null(Null::Named)],
        /// Log sequence number of the last write: all ones, these blocks are not logged.
        48 lsn: u64 [.hex()],
    }
}

/// Bytes of a value that one block holds (`xfs_attr3_rmt_buf_space`).
pub fn capacity(context: &Context) -> u32 {
    let header = if context.has_crc() { 56 } else { 0 };
    context.block_size.saturating_sub(header)
}

/// The bytes of the value in one block: behind the header, as many as it says and the block holds; on V4 the whole
/// block. `None` where a V5 block is too short for its header.
pub fn payload<'a>(context: &Context, block: &'a [u8]) -> Option<&'a [u8]> {
    if !context.has_crc() {
        return Some(block);
    }
    let said = usize::try_from(bits::be32(block, 8)?).ok()?;
    let rest = block.get(AttrRemoteHeader::SIZE..)?;
    rest.get(..said.min(rest.len()))
}

/// The nodes of a V5 block.
pub(crate) fn nodes(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = vec![Node::group("hdr", 0, table(AttrRemoteHeader::FIELDS, context, bytes, 0))];
    let said = bits::be32(bytes, 8).unwrap_or(0).min(capacity(context));
    let len = said.min(fits(bytes, 56 * 8, 8));
    if len > 0 {
        nodes.push(Node::text("data", "Bytes of the value.", 56 * 8, len));
    }
    nodes
}
