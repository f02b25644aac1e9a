//! Targets of symbolic links too long for the inode. On V5 each piece has a header, on V4 the bytes alone.
//! `struct xfs_dsymlink_hdr`; `xfs_symlink_verify` (xfs_symlink_remote.c). A piece may span several blocks.

use super::node::{fits, table};
use super::on_disk::{Crc, Null, Uuid, on_disk};
use super::{Context, Node, Structure, bits};
use crate::units::Ino;

/// `XSLM`.
pub const MAGIC: u32 = 0x5853_4c4d;
/// Byte of the checksum (V5).
pub const CRC_OFFSET: usize = 12;
/// Longest target in bytes (`XFS_SYMLINK_MAXLEN`).
pub const MAX_LENGTH: u32 = 1024;

on_disk! {
    /// Header of a V5 piece (`struct xfs_dsymlink_hdr`).
    pub struct SymlinkHeader, size 56 {
        /// `XSLM` (0x58534c4d).
        0 magic: u32 [.hex()],
        /// First byte within the target.
        4 offset: u32,
        /// Bytes of the target in this piece.
        8 bytes: u32,
        /// Checksum of the piece.
        12 crc: Crc,
        /// Identity of the file system.
        16 uuid: Uuid,
        /// Inode it belongs to.
        32 owner: Ino,
        /// Address of this block in 512-byte units.
        40 blkno: u64 [.named("bno").null(Null::Named)],
        /// Log sequence number of the last write.
        48 lsn: u64 [.hex()],
    }
}

/// The bytes of the target in one piece: behind the header, as many as it says and the piece holds; on V4 all of it.
/// `None` where a V5 piece is too short for its header.
pub fn payload<'a>(context: &Context, piece: &'a [u8]) -> Option<&'a [u8]> {
    if !context.has_crc() {
        return Some(piece);
    }
    let said = usize::try_from(bits::be32(piece, 8)?).ok()?;
    let rest = piece.get(SymlinkHeader::SIZE..)?;
    rest.get(..said.min(rest.len()))
}

/// The nodes of a piece of a target.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    if !context.has_crc() {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let len = u32::try_from(end).unwrap_or(u32::MAX);
        return vec![Node::text("data", "Target of the link, up to the first NUL.", 0, len)];
    }
    let mut nodes = table(SymlinkHeader::FIELDS, context, bytes, 0);
    let said = if bits::be32(bytes, 0) == Some(MAGIC) { bits::be32(bytes, 8).unwrap_or(0) } else { 0 };
    let len = said.min(fits(bytes, 56 * 8, 8));
    if len > 0 {
        nodes.push(Node::text("data", "Bytes of the target.", 56 * 8, len));
    }
    nodes
}
