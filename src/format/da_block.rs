//! What the index blocks of directories and attributes begin with: neighbours, magic, and on V5 what the block says
//! about itself. `struct xfs_da_blkinfo`, `struct xfs_da3_blkinfo`; `xfs_da3_blkinfo_verify` (xfs_da_btree.c).

use super::node::table;
use super::on_disk::{Crc, Null, Uuid, on_disk};
use super::{Context, Node, Structure, bits};
use crate::units::Ino;

/// Byte of the checksum (V5).
pub const CRC_OFFSET: usize = 12;

on_disk! {
    /// Neighbours and magic (`struct xfs_da_blkinfo`).
    pub struct DaBlockInfo, size 12 {
        /// Next block of this level, by file block; 0 for none.
        0 forw: u32,
        /// Block before.
        4 back: u32,
        /// Which kind.
        8 magic: u16 [.hex()],
        /// Zeros.
        10 pad: u16 [.hex().hidden()],
    }

    /// What V5 adds (`struct xfs_da3_blkinfo` from crc on).
    pub struct Da3BlockInfo, size 44 {
        /// Checksum of the block.
        0 crc: Crc,
        /// Address of this block in 512-byte units.
        4 blkno: u64 [.named("bno").null(Null::Named)],
        /// Log sequence number of the last write.
        12 lsn: u64 [.hex()],
        /// Identity of the file system.
        20 uuid: Uuid,
        /// Inode it belongs to.
        36 owner: Ino,
    }
}

/// Neighbours and magic, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Next block of this level, by file block; 0 for none.
    pub forw: u32,
    /// Block before; 0 for none.
    pub back: u32,
    /// Which kind.
    pub magic: u16,
}

/// Neighbours and magic of an index block; `None` for less than 10 bytes.
pub fn info(bytes: &[u8]) -> Option<Info> {
    Some(Info { forw: bits::be32(bytes, 0)?, back: bits::be32(bytes, 4)?, magic: bits::be16(bytes, 8)? })
}

/// Bytes of this header.
pub fn size(context: &Context) -> usize {
    if context.has_crc() { 56 } else { 12 }
}

/// The node `info` at the start of a block.
pub(crate) fn node(context: &Context, bytes: &[u8]) -> Node {
    let info = table(DaBlockInfo::FIELDS, context, bytes, 0);
    if !context.has_crc() {
        return Node::group("info", 0, info);
    }
    let mut nodes = vec![Node::group("hdr", 0, info)];
    nodes.extend(table(Da3BlockInfo::FIELDS, context, bytes, 96));
    Node::group("info", 0, nodes)
}
