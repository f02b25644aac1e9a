//! Hash index blocks of directories: the only one of a leaf directory (leaf1, with the free space of each data block
//! at its end), and the leaves of a node directory (leafn). `struct xfs_dir2_leaf`, `struct xfs_dir3_leaf`,
//! `struct xfs_dir2_leaf_tail`; `xfs_dir3_leaf1_verify`, `xfs_dir3_leafn_verify` (xfs_dir2_leaf.c).

use super::btree_block::Parts;
use super::da_block::{self, Info};
use super::da_node::pairs;
use super::dir_data::LeafEntry;
use super::node::{Item, fits, table};
use super::on_disk::{Format, on_disk};
use super::{Context, Node, Structure, bits};

/// Magic numbers.
pub mod magic {
    /// Single leaf, V4.
    pub const LEAF1_V4: u16 = 0xd2f1;
    /// Leaf of a node directory, V4.
    pub const LEAFN_V4: u16 = 0xd2ff;
    /// Single leaf, V5.
    pub const LEAF1_V5: u16 = 0x3df1;
    /// Leaf of a node directory, V5.
    pub const LEAFN_V5: u16 = 0x3dff;
}

on_disk! {
    /// What follows the neighbours (`struct xfs_dir2_leaf_hdr`).
    pub struct DirLeafHeader, size 4 {
        /// Entries.
        0 count: u16,
        /// Stale ones among them.
        2 stale: u16,
    }

    /// End of a single leaf (`struct xfs_dir2_leaf_tail`).
    pub struct LeafTail, size 4 {
        /// Data blocks whose free space is listed before it.
        0 bestcount: u32,
    }
}

/// Header of a leaf, read in place (`struct xfs_dir3_icleaf_hdr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Neighbours and magic.
    pub info: Info,
    /// Entries, as stored.
    pub count: u16,
    /// Stale ones among them, as stored.
    pub stale: u16,
}

/// Bytes of the header.
pub fn header_size(context: &Context) -> u32 {
    if context.has_crc() { 64 } else { 16 }
}

/// Is this the magic of a single leaf?
pub fn is_leaf1(magic: u16) -> bool {
    matches!(magic, magic::LEAF1_V4 | magic::LEAF1_V5)
}

/// Is this the magic of a leaf of either kind?
pub fn is_leaf(magic: u16) -> bool {
    is_leaf1(magic) || matches!(magic, magic::LEAFN_V4 | magic::LEAFN_V5)
}

/// The header of a leaf; `None` where the block is too short.
pub fn header(context: &Context, bytes: &[u8]) -> Option<Header> {
    let at = da_block::size(context);
    let count = bits::be16(bytes, at)?;
    Some(Header { info: da_block::info(bytes)?, count, stale: bits::be16(bytes, at.checked_add(2)?)? })
}

/// Hash and address of each entry, in place. The address counts 8-byte units from the start of the directory and is
/// 0 for a stale entry.
pub fn entries<'a>(context: &Context, bytes: &'a [u8]) -> impl Iterator<Item = (u32, u32)> + 'a {
    let count = header(context, bytes).map_or(0, |header| u32::from(header.count));
    pairs(Parts::new(bytes, header_size(context), 8, count))
}

/// Byte of the list of free space in a single leaf, and its entries as stored; `None` for other blocks and where the
/// list does not fit.
pub fn bests_place(bytes: &[u8]) -> Option<(usize, u32)> {
    da_block::info(bytes).filter(|info| is_leaf1(info.magic))?;
    let tail = bytes.len().checked_sub(4)?;
    let count = bits::be32(bytes, tail)?;
    Some((tail.checked_sub(usize::try_from(count).ok()?.checked_mul(2)?)?, count))
}

/// Longest free space of each data block, in bytes (0xffff: no such block), in place; none where it is no single leaf.
pub fn bests(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let (at, count) = bests_place(bytes).unwrap_or((0, 0));
    Parts::new(bytes, u32::try_from(at).unwrap_or(u32::MAX), 2, count).filter_map(|part| bits::be16(part, 0))
}

/// The nodes of a leaf.
pub(crate) fn nodes(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let at = u64::try_from(da_block::size(context)).unwrap_or(0).saturating_mul(8);
    let mut head = vec![da_block::node(context, bytes)];
    head.extend(table(DirLeafHeader::FIELDS, context, bytes, at));
    let mut nodes = vec![Node::group("lhdr", 0, head)];
    if let Some((at, count)) = bests_place(bytes).filter(|&(_, count)| count > 0) {
        let bit = u64::try_from(at).unwrap_or(0).saturating_mul(8);
        let doc = "Longest free space of each data block, in bytes.";
        nodes.push(Node::array("lbests", doc, bit, (16, count, 0), Format::Hex, bytes));
    }
    let count = header(context, bytes).map_or(0, |header| u32::from(header.count));
    if count > 0 {
        let bit = u64::from(header_size(context)).saturating_mul(8);
        let items = (0..u64::from(count.min(fits(bytes, bit, 64))))
            .map(|i| bit.saturating_add(i.saturating_mul(64)))
            .map(|bit| Item { bit, nodes: table(LeafEntry::FIELDS, context, bytes, bit) })
            .collect();
        nodes.push(Node::list("lents", bit, 0, items));
    }
    if da_block::info(bytes).is_some_and(|info| is_leaf1(info.magic)) {
        let bit = u64::try_from(bytes.len().saturating_sub(4)).unwrap_or(0).saturating_mul(8);
        nodes.push(Node::group("ltail", bit, table(LeafTail::FIELDS, context, bytes, bit)));
    }
    nodes
}
