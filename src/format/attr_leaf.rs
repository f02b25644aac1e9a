//! Leaf blocks of extended attributes: entries sorted by hash, names and values growing down from the end. A large
//! value lies in blocks of its own. `struct xfs_attr_leafblock`, `struct xfs_attr3_leafblock`;
//! `xfs_attr3_leaf_verify` (xfs_attr_leaf.c).

use super::attr_shortform::{flags, parent_record};
use super::btree_block::Parts;
use super::da_block::{self, Info};
use super::node::{Body, Item, fits, table};
use super::on_disk::{Format, on_disk};
use super::{Context, Node, Structure, bits};

/// Magic numbers.
pub mod magic {
    /// V4.
    pub const V4: u16 = 0xfbee;
    /// V5.
    pub const V5: u16 = 0x3bee;
}

on_disk! {
    /// What follows the neighbours (`struct xfs_attr_leaf_hdr`).
    pub struct AttrLeafHeader, size 8 {
        /// Entries.
        0 count: u16,
        /// Bytes of names and values.
        2 usedbytes: u16,
        /// First byte of names and values; 0 in a block of 64 KiB for its end.
        4 firstused: u16,
        /// 1: there is free space between names and values that the map does not tell of.
        6 holes: u8,
        /// Zeros.
        7 pad1: u8 [.hex().hidden()],
    }

    /// One of the three free spaces that are kept track of (`struct xfs_attr_leaf_map`).
    pub struct AttrLeafMap, size 4 {
        /// First byte.
        0 base: u16,
        /// Bytes.
        2 size: u16,
    }

    /// Entry (`struct xfs_attr_leaf_entry`).
    pub struct AttrLeafEntry, size 8 {
        /// Hash of the name.
        0 hashval: u32 [.hex()],
        /// Byte of name and value within the block.
        4 nameidx: u16,
        /// Flags.
        6 flags: u8 [.hex().hidden()] {
            /// Being changed: not visible.
            incomplete: 0 + 1,
            /// Namespace trusted.
            root: 6 + 1,
            /// Namespace security.
            secure: 5 + 1,
            /// The value lies in this block.
            local: 7 + 1,
            /// Parent pointer.
            parent: 4 + 1,
        },
        /// Zero.
        7 pad2: u8 [.hex().hidden()],
    }
}

/// Header of a leaf, read in place (`struct xfs_attr3_icleaf_hdr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Neighbours and magic.
    pub info: Info,
    /// Entries, as stored.
    pub count: u16,
    /// Bytes of names and values, as stored.
    pub usedbytes: u16,
    /// First byte of names and values; the 0 of a 64 KiB block is 65536 here.
    pub firstused: u32,
    /// Is there free space that the map does not tell of?
    pub holes: u8,
    /// Free spaces: first byte and length.
    pub freemap: [(u16, u16); 3],
}

/// Bytes of the header.
pub fn header_size(context: &Context) -> u32 {
    if context.has_crc() { 80 } else { 32 }
}

/// The magic that leaves carry here.
pub fn magic_of(context: &Context) -> u16 {
    if context.has_crc() { magic::V5 } else { magic::V4 }
}

/// The header of a leaf; `None` where the block is too short.
pub fn header(context: &Context, bytes: &[u8]) -> Option<Header> {
    let at = da_block::size(context);
    let word = |n: usize| bits::be16(bytes, at.checked_add(n)?);
    let firstused = match (word(4)?, context.block_size) {
        (0, 65536) => 65536,
        (firstused, _) => u32::from(firstused),
    };
    let map = |n: usize| Some((word(n)?, word(n.checked_add(2)?)?));
    Some(Header {
        info: da_block::info(bytes)?,
        count: word(0)?,
        usedbytes: word(2)?,
        firstused,
        holes: bytes.get(at.checked_add(6)?).copied()?,
        freemap: [map(8)?, map(12)?, map(16)?],
    })
}

/// Name and value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Both in the leaf.
    Local {
        /// Name, any bytes.
        name: &'a [u8],
        /// Value, any bytes.
        value: &'a [u8],
    },
    /// The value lies in blocks of its own.
    Remote {
        /// Name, any bytes.
        name: &'a [u8],
        /// First block of the value within the attribute fork.
        valueblk: u32,
        /// Bytes of the value, as stored.
        valuelen: u32,
    },
    /// Name or value do not fit into the block.
    Outside,
}

/// An attribute of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Hash of the name, as stored.
    pub hashval: u32,
    /// Byte of name and value within the block.
    pub nameidx: u16,
    /// Flags ([`flags`]).
    pub flags: u8,
    /// Name and value.
    pub content: Content<'a>,
}

impl<'a> Entry<'a> {
    /// The name; empty where it lies outside the block.
    pub fn name(&self) -> &'a [u8] {
        match self.content {
            Content::Local { name, .. } | Content::Remote { name, .. } => name,
            Content::Outside => &[],
        }
    }
}

/// The attributes of a leaf, in place; the count is cut to the block.
pub fn entries<'a>(context: &Context, bytes: &'a [u8]) -> impl Iterator<Item = Entry<'a>> + 'a {
    let count = header(context, bytes).map_or(0, |header| u32::from(header.count));
    Parts::new(bytes, header_size(context), 8, count).filter_map(|part| {
        let [_, _, _, _, i0, i1, flags, _] = bits::array(part, 0)?;
        let nameidx = u16::from_be_bytes([i0, i1]);
        let content = content(bytes, nameidx, flags).unwrap_or(Content::Outside);
        Some(Entry { hashval: bits::be32(part, 0)?, nameidx, flags, content })
    })
}

fn content(bytes: &[u8], nameidx: u16, flag_bits: u8) -> Option<Content<'_>> {
    let at = usize::from(nameidx);
    let slice = |from: usize, len: usize| bytes.get(from..from.checked_add(len)?);
    if flag_bits & flags::LOCAL != 0 {
        let valuelen = usize::from(bits::be16(bytes, at)?);
        let namelen = usize::from(*bytes.get(at.checked_add(2)?)?);
        let name_at = at.checked_add(3)?;
        let value = slice(name_at.checked_add(namelen)?, valuelen)?;
        return Some(Content::Local { name: slice(name_at, namelen)?, value });
    }
    let namelen = usize::from(*bytes.get(at.checked_add(8)?)?);
    Some(Content::Remote {
        name: slice(at.checked_add(9)?, namelen)?,
        valueblk: bits::be32(bytes, at)?,
        valuelen: bits::be32(bytes, at.checked_add(4)?)?,
    })
}

/// Bytes that an attribute takes among names and values (`xfs_attr_leaf_entsize_local`, `_remote`).
pub fn size_of(content: &Content<'_>) -> Option<usize> {
    let bytes = match content {
        Content::Local { name, value } => name.len().checked_add(value.len())?.checked_add(3)?,
        Content::Remote { name, .. } => name.len().checked_add(11)?,
        Content::Outside => return None,
    };
    bytes.checked_next_multiple_of(4)
}

/// The nodes of a leaf: `hdr`, `entries`, `nvlist`.
pub(crate) fn nodes(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let at = u64::try_from(da_block::size(context)).unwrap_or(0).saturating_mul(8);
    let mut head = vec![da_block::node(context, bytes)];
    head.extend(table(AttrLeafHeader::FIELDS, context, bytes, at));
    let map = at.saturating_add(64);
    head.push(Node::records("freemap", "Free spaces.", map, AttrLeafMap::FIELDS, (32, 3, 0), bytes));
    let mut nodes = vec![Node::group("hdr", 0, head)];
    let count = header(context, bytes).map_or(0, |header| u32::from(header.count));
    if count > 0 {
        let bit = u64::from(header_size(context)).saturating_mul(8);
        nodes.push(Node::records("entries", "Entries by hash.", bit, AttrLeafEntry::FIELDS, (64, count, 0), bytes));
        let mut left = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_mul(2);
        let items: Vec<Item> = entries(context, bytes).map(|entry| item(bytes, &entry, &mut left)).collect();
        nodes.push(Node::list("nvlist", bit, 0, items));
    }
    nodes
}

/// Name and value of one entry. `left`: bytes that may still be shown. Names and values of a sound block fill it once;
/// where thousands of entries claim the same bytes, those behind twice its size are named and left out.
fn item(bytes: &[u8], entry: &Entry<'_>, left: &mut u32) -> Item {
    let bit = u64::from(entry.nameidx).saturating_mul(8);
    let value = |name, doc, byte: u64, width, format| {
        Node::value(name, doc, bit.saturating_add(byte.saturating_mul(8)), width, format)
    };
    let length_of = |byte: u64| {
        let at = u64::from(entry.nameidx).saturating_add(byte);
        usize::try_from(at).ok().and_then(|at| bytes.get(at)).copied().unwrap_or(0)
    };
    let mut nodes = Vec::new();
    let mut text = |nodes: &mut Vec<Node>, name, doc, byte: u64, len: u32| {
        let bit = bit.saturating_add(byte.saturating_mul(8));
        let len = len.min(fits(bytes, bit, 8));
        match left.checked_sub(len) {
            Some(rest) if len > 0 => {
                *left = rest;
                nodes.push(Node::text(name, doc, bit, len));
            }
            Some(_) => {}
            None => nodes.push(Node { body: Body::Empty, ..Node::group("left_out", bit, Vec::new()) }),
        }
    };
    let (value_doc, name_doc) = ("Length of the value in bytes.", "Length of the name in bytes.");
    if entry.flags & flags::LOCAL != 0 {
        let namelen = length_of(2);
        nodes.push(value("valuelen", value_doc, 0, 16, Format::Dec));
        nodes.push(value("namelen", name_doc, 2, 8, Format::Dec));
        text(&mut nodes, "name", "Name.", 3, u32::from(namelen));
        let behind = u64::from(namelen).saturating_add(3);
        if entry.flags & flags::NAMESPACES == flags::PARENT {
            nodes.push(parent_record(bit.saturating_add(behind.saturating_mul(8))));
        } else {
            let valuelen = bits::be16(bytes, usize::from(entry.nameidx)).unwrap_or(0);
            text(&mut nodes, "value", "Value.", behind, u32::from(valuelen));
        }
    } else {
        nodes.push(value("valueblk", "First block of the value within the attribute fork.", 0, 32, Format::Hex));
        nodes.push(value("valuelen", value_doc, 4, 32, Format::Dec));
        nodes.push(value("namelen", name_doc, 8, 8, Format::Dec));
        text(&mut nodes, "name", "Name.", 9, u32::from(length_of(8)));
    }
    Item { bit, nodes }
}
