//! Directory blocks that hold entries: data blocks, and the single block of a small directory, which also holds
//! its hash index at the end. `struct xfs_dir2_data_hdr`, `struct xfs_dir3_data_hdr`, `struct xfs_dir2_block_tail`;
//! `xfs_dir3_block_verify`, `xfs_dir3_data_verify` (xfs_dir2_block.c, xfs_dir2_data.c).

use super::node::{Item, fits, table};
use super::on_disk::{Crc, Format, Null, Uuid, on_disk};
use super::{Context, Node, Structure, Type, bits};
use crate::units::Ino;

/// Magic numbers of directory blocks with entries.
pub mod magic {
    /// `XD2B`: single block, V4.
    pub const BLOCK_V4: u32 = 0x5844_3242;
    /// `XD2D`: data block, V4.
    pub const DATA_V4: u32 = 0x5844_3244;
    /// `XDB3`: single block, V5.
    pub const BLOCK_V5: u32 = 0x5844_4233;
    /// `XDD3`: data block, V5.
    pub const DATA_V5: u32 = 0x5844_4433;
}

/// Tag of unused space, where an entry would have the top bits of its inode number.
pub const FREE_TAG: u16 = 0xffff;

on_disk! {
    /// Header of V5 directory data, block, free and remote structures (`struct xfs_dir3_blk_hdr`).
    pub struct Dir3BlockHeader, size 48 {
        /// Which kind.
        0 magic: u32 [.hex()],
        /// Checksum of the directory block.
        4 crc: Crc,
        /// Address of this block in 512-byte units.
        8 blkno: u64 [.named("bno").null(Null::Named)],
        /// Log sequence number of the last write.
        16 lsn: u64 [.hex()],
        /// Identity of the file system.
        24 uuid: Uuid,
        /// Inode of the directory.
        40 owner: Ino,
    }

    /// Magic of a V4 block.
    pub struct Dir2Magic, size 4 {
        /// Which kind.
        0 magic: u32 [.hex()],
    }

    /// One of the three largest free spaces (`struct xfs_dir2_data_free`).
    pub struct DataFree, size 4 {
        /// Byte within the block.
        0 offset: u16 [.hex()],
        /// Bytes.
        2 length: u16 [.hex()],
    }

    /// Entry of the hash index (`struct xfs_dir2_leaf_entry`).
    pub struct LeafEntry, size 8 {
        /// Hash of the name.
        0 hashval: u32 [.hex()],
        /// Place of the entry in 8-byte units from the start of the directory; 0 when stale.
        4 address: u32 [.hex()],
    }

    /// End of a single-block directory (`struct xfs_dir2_block_tail`).
    pub struct BlockTail, size 8 {
        /// Entries of the hash index.
        0 count: u32,
        /// Stale ones among them.
        4 stale: u32,
    }
}

/// Bytes of the header before the first entry (`xfs_da_geometry.data_entry_offset`).
pub fn header_size(context: &Context) -> usize {
    if context.has_crc() { 64 } else { 16 }
}

/// Bytes that an entry with a name of `namelen` bytes takes (`xfs_dir2_data_entsize`).
pub fn entry_size(context: &Context, namelen: u8) -> usize {
    let fixed = if context.features.has_ftype() { 12 } else { 11 };
    usize::from(namelen).saturating_add(fixed).next_multiple_of(8)
}

/// Something in the entry area of a directory block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot<'a> {
    /// An entry.
    Entry {
        /// Byte within the block.
        offset: usize,
        /// Inode it names.
        ino: Ino,
        /// Name, any bytes.
        name: &'a [u8],
        /// File type (`XFS_DIR3_FT_*`) where the file system keeps one.
        ftype: Option<u8>,
        /// Its own offset, as stored behind the name.
        tag: u16,
    },
    /// Unused space.
    Unused {
        /// Byte within the block.
        offset: usize,
        /// Bytes, as stored.
        length: u16,
        /// Its own offset, as stored in its last two bytes.
        tag: u16,
    },
}

/// Iterates over the entry area; ends at `end`, or where the next step would not move on or would leave the block.
#[derive(Clone, Debug)]
pub struct Slots<'a> {
    bytes: &'a [u8],
    ftype: bool,
    crc_context: (usize, bool),
    at: usize,
    end: usize,
}

/// The slots of a directory data or single block.
pub fn slots<'a>(context: &Context, bytes: &'a [u8]) -> Slots<'a> {
    let end = entries_end(context, bytes);
    let ftype = context.features.has_ftype();
    Slots { bytes, ftype, crc_context: (if ftype { 12 } else { 11 }, ftype), at: header_size(context), end }
}

/// Where the entry area ends: before the hash index of a single block, at the end of a data block.
pub fn entries_end(context: &Context, bytes: &[u8]) -> usize {
    let whole = bytes.len();
    match bits::be32(bytes, 0) {
        Some(magic::BLOCK_V4 | magic::BLOCK_V5) => leaf_start(bytes).unwrap_or(header_size(context)),
        _ => whole,
    }
}

/// Byte of the hash index of a single block; `None` when its count does not fit.
pub fn leaf_start(bytes: &[u8]) -> Option<usize> {
    let tail = bytes.len().checked_sub(8)?;
    let count = usize::try_from(bits::be32(bytes, tail)?).ok()?;
    tail.checked_sub(count.checked_mul(8)?)
}

impl<'a> Iterator for Slots<'a> {
    type Item = Slot<'a>;

    fn next(&mut self) -> Option<Slot<'a>> {
        if self.at >= self.end {
            return None;
        }
        let offset = self.at;
        let (fixed, _) = self.crc_context;
        if bits::be16(self.bytes, offset)? == FREE_TAG {
            let length = bits::be16(self.bytes, offset.checked_add(2)?)?;
            let next = offset.checked_add(usize::from(length))?;
            let tag = bits::be16(self.bytes, next.checked_sub(2)?).unwrap_or(0);
            // A length of zero would stay here forever: report the slot, then end.
            self.at = if length < 8 { self.end } else { next };
            return Some(Slot::Unused { offset, length, tag });
        }
        let ino = Ino(bits::be64(self.bytes, offset)?);
        let namelen = usize::from(*self.bytes.get(offset.checked_add(8)?)?);
        let name_at = offset.checked_add(9)?;
        let name = self.bytes.get(name_at..name_at.checked_add(namelen)?);
        let Some(name) = name else {
            self.at = self.end;
            return None;
        };
        let ftype_at = name_at.checked_add(namelen)?;
        let ftype = if self.ftype { self.bytes.get(ftype_at).copied() } else { None };
        let next = offset.checked_add(namelen.checked_add(fixed)?.next_multiple_of(8))?;
        let tag = bits::be16(self.bytes, next.checked_sub(2)?).unwrap_or(0);
        self.at = next;
        Some(Slot::Entry { offset, ino, name, ftype, tag })
    }
}

fn to_bits(byte: usize) -> u64 {
    u64::try_from(byte).unwrap_or(0).saturating_mul(8)
}

/// `bestfree[0-2]`, expanded.
fn best_free(context: &Context, bytes: &[u8], bit: u64) -> Node {
    let items = (0..3u64)
        .map(|i| bit.saturating_add(i.saturating_mul(32)))
        .filter(|&at| fits(bytes, at, 32) > 0)
        .map(|at| Item { bit: at, nodes: table(DataFree::FIELDS, context, bytes, at) })
        .collect();
    Node::list("bestfree", bit, 0, items)
}

/// The header group: `bhdr` or `dhdr`.
fn header(name: &'static str, context: &Context, bytes: &[u8], v5: bool) -> Node {
    let nodes = if v5 {
        let hdr = Node::group("hdr", 0, table(Dir3BlockHeader::FIELDS, context, bytes, 0));
        vec![hdr, best_free(context, bytes, 48 * 8)]
    } else {
        let mut nodes = table(Dir2Magic::FIELDS, context, bytes, 0);
        nodes.push(best_free(context, bytes, 32));
        nodes
    };
    Node::group(name, 0, nodes)
}

/// The entry area: `bu` or `du`.
fn union(name: &'static str, context: &Context, bytes: &[u8]) -> Option<Node> {
    let mut stop = header_size(context);
    let mut items = Vec::new();
    for slot in slots(context, bytes) {
        stop = match slot {
            Slot::Unused { offset, length, .. } => offset.saturating_add(usize::from(length)),
            Slot::Entry { offset, name, .. } => {
                offset.saturating_add(entry_size(context, u8::try_from(name.len()).unwrap_or(u8::MAX)))
            }
        };
        items.push(slot_item(context, bytes, slot));
    }
    items.extend(cut_entry(context, bytes, stop));
    let first = to_bits(header_size(context));
    (!items.is_empty()).then(|| Node::list(name, first, 0, items))
}

/// What can be shown of an entry whose name would leave the block.
fn cut_entry(context: &Context, bytes: &[u8], offset: usize) -> Option<Item> {
    let namelen = *bytes.get(offset.checked_add(8)?)?;
    let end = offset.checked_add(9)?.checked_add(usize::from(namelen))?;
    let is_entry = bits::be16(bytes, offset) != Some(FREE_TAG);
    if offset >= entries_end(context, bytes) || end <= bytes.len() || !is_entry {
        return None;
    }
    let bit = to_bits(offset);
    let number = Node::value("inumber", "Inode of the entry.", bit, 64, Format::Dec);
    let length = Node::value("namelen", "Length of the name in bytes.", bit.saturating_add(64), 8, Format::Dec);
    Some(Item { bit, nodes: vec![number.to(Type::Inode).null(Null::Named), length] })
}

fn slot_item(context: &Context, bytes: &[u8], slot: Slot<'_>) -> Item {
    let value = |name, doc, byte: usize, width, format| Node::value(name, doc, to_bits(byte), width, format);
    let within = |node: Node| {
        let Node { bit, .. } = node;
        (fits(bytes, bit, 16) > 0).then_some(node)
    };
    match slot {
        Slot::Unused { offset, length, .. } => {
            let tag = offset.saturating_add(usize::from(length)).saturating_sub(2);
            let mut nodes = vec![
                value("freetag", "0xffff: unused space.", offset, 16, Format::Hex),
                value("length", "Bytes of it.", offset.saturating_add(2), 16, Format::Hex),
            ];
            nodes.extend(within(value("tag", "Its own offset.", tag, 16, Format::Hex)));
            Item { bit: to_bits(offset), nodes }
        }
        Slot::Entry { offset, name, ftype, .. } => {
            let namelen = u8::try_from(name.len()).unwrap_or(u8::MAX);
            let name_at = offset.saturating_add(9);
            let after = name_at.saturating_add(name.len());
            let tag = offset.saturating_add(entry_size(context, namelen)).saturating_sub(2);
            let mut nodes = vec![
                value("inumber", "Inode of the entry.", offset, 64, Format::Dec).to(Type::Inode).null(Null::Named),
                value("namelen", "Length of the name in bytes.", offset.saturating_add(8), 8, Format::Dec),
            ];
            if namelen > 0 {
                nodes.push(Node::text("name", "Name.", to_bits(name_at), u32::from(namelen)));
            }
            if ftype.is_some() {
                nodes.push(value("filetype", "File type (XFS_DIR3_FT_*).", after, 8, Format::Dec));
            }
            nodes.extend(within(value("tag", "Its own offset.", tag, 16, Format::Hex)));
            Item { bit: to_bits(offset), nodes }
        }
    }
}

/// The hash index and tail of a single block.
fn index(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = Vec::new();
    let tail = bytes.len().saturating_sub(8);
    if let Some(start) = leaf_start(bytes).filter(|&start| start < tail) {
        let items = (start..tail)
            .step_by(8)
            .map(to_bits)
            .map(|bit| Item { bit, nodes: table(LeafEntry::FIELDS, context, bytes, bit) })
            .collect();
        nodes.push(Node::list("bleaf", to_bits(start), 0, items));
    }
    nodes.push(Node::group("btail", to_bits(tail), table(BlockTail::FIELDS, context, bytes, to_bits(tail))));
    nodes
}

/// The nodes of a data or single block, by its magic; none for any other.
pub(crate) fn nodes(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let magic = bits::be32(bytes, 0);
    match magic {
        Some(magic::BLOCK_V4 | magic::BLOCK_V5) => {
            let mut nodes = vec![header("bhdr", context, bytes, magic == Some(magic::BLOCK_V5))];
            nodes.extend(union("bu", context, bytes));
            nodes.extend(index(context, bytes));
            nodes
        }
        Some(magic::DATA_V4 | magic::DATA_V5) => {
            let mut nodes = vec![header("dhdr", context, bytes, magic == Some(magic::DATA_V5))];
            nodes.extend(union("du", context, bytes));
            nodes
        }
        _ => Vec::new(),
    }
}
