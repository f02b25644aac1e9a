//! Inner blocks of the hash trees of directories and attributes: the largest hash below each child, and its file
//! block. `struct xfs_da_intnode`, `struct xfs_da3_intnode`; `xfs_da3_node_verify` (xfs_da_btree.c).

use super::btree_block::Parts;
use super::da_block::{self, Info};
use super::node::table;
use super::on_disk::on_disk;
use super::{Context, Node, Structure, bits};

/// Magic numbers.
pub mod magic {
    /// V4.
    pub const V4: u16 = 0xfebe;
    /// V5.
    pub const V5: u16 = 0x3ebe;
}

on_disk! {
    /// What follows the neighbours (`struct xfs_da_node_hdr`).
    pub struct DaNodeHeader, size 4 {
        /// Children.
        0 count: u16,
        /// Levels above the leaves: 1 and more.
        2 level: u16,
    }

    /// A child (`struct xfs_da_node_entry`).
    pub struct DaNodeEntry, size 8 {
        /// Largest hash below it.
        0 hashval: u32 [.hex()],
        /// File block of the child.
        4 before: u32,
    }
}

/// Header of a node, read in place (`struct xfs_da3_icnode_hdr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Neighbours and magic.
    pub info: Info,
    /// Children, as stored.
    pub count: u16,
    /// Levels above the leaves, as stored.
    pub level: u16,
}

/// Bytes of the header.
pub fn header_size(context: &Context) -> u32 {
    if context.has_crc() { 64 } else { 16 }
}

/// The magic that nodes carry here.
pub fn magic_of(context: &Context) -> u16 {
    if context.has_crc() { magic::V5 } else { magic::V4 }
}

/// The header of a node; `None` where the block is too short.
pub fn header(context: &Context, bytes: &[u8]) -> Option<Header> {
    let at = da_block::size(context);
    let count = bits::be16(bytes, at)?;
    Some(Header { info: da_block::info(bytes)?, count, level: bits::be16(bytes, at.checked_add(2)?)? })
}

/// Hash and file block of each child, in place; the count is cut to the block.
pub fn entries<'a>(context: &Context, bytes: &'a [u8]) -> impl Iterator<Item = (u32, u32)> + 'a {
    let count = header(context, bytes).map_or(0, |header| u32::from(header.count));
    pairs(Parts::new(bytes, header_size(context), 8, count))
}

/// Pieces of 8 bytes as two numbers each.
pub(crate) fn pairs(parts: Parts<'_>) -> impl Iterator<Item = (u32, u32)> + '_ {
    parts.filter_map(|part| Some((bits::be32(part, 0)?, bits::be32(part, 4)?)))
}

/// The header group.
pub(crate) fn header_node(name: &'static str, context: &Context, bytes: &[u8]) -> Node {
    let at = u64::try_from(da_block::size(context)).unwrap_or(0).saturating_mul(8);
    let mut nodes = vec![da_block::node(context, bytes)];
    nodes.extend(table(DaNodeHeader::FIELDS, context, bytes, at));
    Node::group(name, 0, nodes)
}

/// The array of children.
pub(crate) fn entries_node(name: &'static str, context: &Context, bytes: &[u8]) -> Option<Node> {
    let count = header(context, bytes).map_or(0, |header| u32::from(header.count));
    let bit = u64::from(header_size(context)).saturating_mul(8);
    let doc = "Largest hash below each child, and its file block.";
    (count > 0).then(|| Node::records(name, doc, bit, DaNodeEntry::FIELDS, (64, count, 0), bytes))
}
