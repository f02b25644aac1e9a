//! The AG free list: fourth sector of every AG, blocks kept so that the free space btrees can always grow.
//! `struct xfs_agfl`, `xfs_buf_to_agfl_bno`; `xfs_agfl_verify` (xfs_alloc.c). On V4 the slots fill the whole sector.

use super::node::fits;
use super::on_disk::{Crc, Format, Null, Uuid, on_disk};
use super::{Context, Node, Structure, Type, bits, node};
use crate::units::{AgBlock, AgNumber};

/// `XAFL`.
pub const MAGIC: u32 = 0x5841_464c;
/// Byte of the checksum.
pub const CRC_OFFSET: usize = 32;

on_disk! {
    /// Header of a V5 free list (`struct xfs_agfl`).
    pub struct Agfl, size 36 {
        /// `XAFL` (0x5841464c).
        0 magicnum: u32 [.hex()],
        /// Number of this AG.
        4 seqno: AgNumber,
        /// Identity of the file system.
        8 uuid: Uuid,
        /// Log sequence number of the last write.
        24 lsn: u64 [.hex()],
        /// Checksum of the sector.
        32 crc: Crc,
    }
}

/// Byte of the first slot: behind the header on V5, at the start on V4.
pub fn first_slot(context: &Context) -> usize {
    if context.has_crc() { Agfl::SIZE } else { 0 }
}

/// Slots of a free list (`xfs_agfl_size`).
pub fn slots(context: &Context) -> u32 {
    let header = if context.has_crc() { 36 } else { 0 };
    context.sector_size.saturating_sub(header) >> 2
}

/// Slot `index` of the free list in `bytes`.
pub fn slot(context: &Context, bytes: &[u8], index: u32) -> Option<AgBlock> {
    let at = usize::try_from(index).ok()?.checked_mul(4)?.checked_add(first_slot(context))?;
    bits::be32(bytes, at).map(AgBlock)
}

/// The nodes of an AGFL.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = if context.has_crc() { node::table(Agfl::FIELDS, context, bytes, 0) } else { Vec::new() };
    let first = if context.has_crc() { 36 * 8 } else { 0 };
    let doc = "Block on the free list; slots flfirst to fllast of the AGF are in use.";
    let count = slots(context).min(fits(bytes, first, 32));
    nodes.push(
        Node::array("bno", doc, first, (32, count, 0), Format::Dec, bytes).null(Null::NamedZeroSkipped).to(Type::Data),
    );
    nodes
}
