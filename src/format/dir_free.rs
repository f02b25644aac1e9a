//! Free space index of node directories: the longest free space of each data block. `struct xfs_dir2_free`,
//! `struct xfs_dir3_free`; `xfs_dir3_free_verify` (xfs_dir2_node.c).

use super::btree_block::Parts;
use super::dir_data::{Dir2Magic, Dir3BlockHeader};
use super::node::table;
use super::on_disk::{Format, on_disk};
use super::{Context, Node, Null, Structure, bits};

/// Magic numbers.
pub mod magic {
    /// `XD2F`: V4.
    pub const V4: u32 = 0x5844_3246;
    /// `XDF3`: V5.
    pub const V5: u32 = 0x5844_4633;
}

on_disk! {
    /// What follows the magic, or the V5 block header (`struct xfs_dir2_free_hdr`, `struct xfs_dir3_free_hdr`).
    pub struct DirFreeHeader, size 12 {
        /// Data block that the first entry speaks of, counted in directory blocks.
        0 firstdb: u32 [.fmt(Format::Signed)],
        /// Entries.
        4 nvalid: u32 [.fmt(Format::Signed)],
        /// Entries that are not 0xffff (no such block).
        8 nused: u32 [.fmt(Format::Signed)],
    }
}

/// Header of a free block, read in place (`struct xfs_dir3_icfree_hdr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which kind.
    pub magic: u32,
    /// Data block that the first entry speaks of, counted in directory blocks.
    pub firstdb: u32,
    /// Entries, as stored.
    pub nvalid: u32,
    /// Entries in use, as stored.
    pub nused: u32,
}

/// Bytes of the header.
pub fn header_size(context: &Context) -> u32 {
    if context.has_crc() { 64 } else { 16 }
}

/// Byte of `firstdb`.
fn counts_at(context: &Context) -> usize {
    if context.has_crc() { 48 } else { 4 }
}

/// The header of a free block; `None` where the block is too short.
pub fn header(context: &Context, bytes: &[u8]) -> Option<Header> {
    let at = counts_at(context);
    Some(Header {
        magic: bits::be32(bytes, 0)?,
        firstdb: bits::be32(bytes, at)?,
        nvalid: bits::be32(bytes, at.checked_add(4)?)?,
        nused: bits::be32(bytes, at.checked_add(8)?)?,
    })
}

/// Longest free space of each data block, in bytes (0xffff: no such block), in place; the count is cut to the block.
pub fn bests<'a>(context: &Context, bytes: &'a [u8]) -> impl Iterator<Item = u16> + 'a {
    let count = header(context, bytes).map_or(0, |header| header.nvalid);
    Parts::new(bytes, header_size(context), 2, count).filter_map(|part| bits::be16(part, 0))
}

/// The nodes of a free block.
pub(crate) fn nodes(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut head = if context.has_crc() {
        vec![Node::group("hdr", 0, table(Dir3BlockHeader::FIELDS, context, bytes, 0))]
    } else {
        table(Dir2Magic::FIELDS, context, bytes, 0)
    };
    let at = u64::try_from(counts_at(context)).unwrap_or(0).saturating_mul(8);
    head.extend(table(DirFreeHeader::FIELDS, context, bytes, at));
    let mut nodes = vec![Node::group("fhdr", 0, head)];
    let count = header(context, bytes).map_or(0, |header| header.nvalid);
    if count > 0 {
        let bit = u64::from(header_size(context)).saturating_mul(8);
        let doc = "Longest free space of each data block, in bytes.";
        nodes.push(Node::array("fbests", doc, bit, (16, count, 0), Format::Hex, bytes).null(Null::ZeroSkipped));
    }
    nodes
}
