//! Btree blocks: one header in a short form (AG btrees) and a long one (rooted in inodes), records in leaves,
//! keys and pointers in nodes. `struct xfs_btree_block`; `xfs_btree_agblock_verify`, `xfs_btree_fsblock_verify`.

use super::node::table;
use super::on_disk::{Crc, Format, Null, Uuid, on_disk};
use super::{Context, Field, Node, Structure, Type, bits};
use crate::units::{AgBlock, AgNumber, FsBlock, Ino};

fn crc(context: &Context, _: &[u8]) -> bool {
    context.has_crc()
}

on_disk! {
    /// What every btree block begins with.
    pub struct BtreeHead, size 8 {
        /// Which btree.
        0 magic: u32 [.hex()],
        /// 0 for leaves.
        4 level: u16,
        /// Records, or keys.
        6 numrecs: u16,
    }

    /// The rest of the header within an AG (`struct xfs_btree_block_shdr`); V4 ends after the siblings.
    pub struct ShortHeader, size 48 {
        /// Left neighbour.
        0 leftsib: AgBlock,
        /// Right neighbour.
        4 rightsib: AgBlock,
        /// Address of this block in 512-byte units.
        8 blkno: u64 [.named("bno").null(Null::Named).when(crc)],
        /// Log sequence number of the last write.
        16 lsn: u64 [.hex().when(crc)],
        /// Identity of the file system.
        24 uuid: Uuid [.when(crc)],
        /// AG it belongs to.
        40 owner: AgNumber [.when(crc)],
        /// Checksum of the block.
        44 crc: Crc [.when(crc)],
    }

    /// The rest of the header of a btree rooted in an inode (`struct xfs_btree_block_lhdr`).
    pub struct LongHeader, size 64 {
        /// Left neighbour.
        0 leftsib: FsBlock,
        /// Right neighbour.
        8 rightsib: FsBlock,
        /// Address of this block in 512-byte units.
        16 blkno: u64 [.named("bno").null(Null::Named).when(crc)],
        /// Log sequence number of the last write.
        24 lsn: u64 [.hex().when(crc)],
        /// Identity of the file system.
        32 uuid: Uuid [.when(crc)],
        /// Inode it belongs to.
        48 owner: Ino [.when(crc)],
        /// Checksum of the block.
        56 crc: Crc [.when(crc)],
        /// Zeros.
        60 pad: u32 [.hex().hidden().when(crc)],
    }
}

/// What makes one btree differ from another: magic numbers, header, records and keys.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its row in the list of structures: what its pointers point to.
    pub kind: Type,
    /// Magic on V4 and on V5.
    pub magic: [u32; 2],
    /// Long pointers and header?
    pub long: bool,
    /// Columns of a record.
    pub record: &'static [Field],
    /// Bytes of a record.
    pub record_size: u32,
    /// Columns of a key.
    pub key: &'static [Field],
    /// Bytes of a key: a low and a high key where records may overlap (rmap btrees).
    pub key_size: u32,
}

impl Shape {
    /// Bytes of the header (`XFS_BTREE_SBLOCK_LEN` and its kin).
    pub fn header_size(&self, context: &Context) -> u32 {
        match (self.long, context.has_crc()) {
            (false, false) => 16,
            (false, true) => 56,
            (true, false) => 24,
            (true, true) => 72,
        }
    }

    /// Byte of the checksum on V5.
    pub fn crc_offset(&self) -> usize {
        if self.long { 64 } else { 52 }
    }

    /// Records that fit into a leaf.
    pub fn max_records(&self, context: &Context) -> u32 {
        let room = context.block_size.saturating_sub(self.header_size(context));
        room.checked_div(self.record_size).unwrap_or(0)
    }

    /// Keys that fit into a node.
    pub fn max_keys(&self, context: &Context) -> u32 {
        let room = context.block_size.saturating_sub(self.header_size(context));
        room.checked_div(self.key_size.saturating_add(self.pointer_size())).unwrap_or(0)
    }

    /// Bytes of a pointer.
    pub fn pointer_size(&self) -> u32 {
        if self.long { 8 } else { 4 }
    }

    /// The magic number that blocks of this btree carry; 0 where the btree does not exist (V4).
    pub fn magic_of(&self, context: &Context) -> u32 {
        let [v4, v5] = self.magic;
        if context.has_crc() { v5 } else { v4 }
    }

    /// Left and right neighbour; `None` for "none". A short pointer is a block of the AG, a long one a block of the
    /// device.
    pub fn siblings(&self, bytes: &[u8]) -> (Option<u64>, Option<u64>) {
        if self.long {
            let at = |at| bits::be64(bytes, at).filter(|&block| block != u64::MAX);
            (at(8), at(16))
        } else {
            let at = |at| bits::be32(bytes, at).filter(|&block| block != u32::MAX).map(u64::from);
            (at(8), at(12))
        }
    }

    /// The records of a leaf, in place; none for a node. The count is cut to what a block can hold.
    pub fn records<'a>(&self, context: &Context, bytes: &'a [u8]) -> Parts<'a> {
        let count = head(bytes).filter(|head| head.level == 0).map_or(0, |head| u32::from(head.numrecs));
        Parts::new(bytes, self.header_size(context), self.record_size, count.min(self.max_records(context)))
    }

    /// The children of a node, in place; none for a leaf. The count is cut to what a block can hold.
    pub fn children<'a>(&self, context: &Context, bytes: &'a [u8]) -> Children<'a> {
        let count = head(bytes).filter(|head| head.level != 0).map_or(0, |head| u32::from(head.numrecs));
        let (first, most) = (self.header_size(context), self.max_keys(context));
        Children::new(bytes, first, most, (self.key_size, self.pointer_size()), count)
    }

    /// The root of this btree in a fork of an inode (`struct xfs_bmdr_block`, `struct xfs_rtrmap_root`):
    /// `None` for a fork of less than 4 bytes.
    pub fn root<'a>(&self, fork: &'a [u8]) -> Option<Root<'a>> {
        let room = u32::try_from(fork.len()).unwrap_or(u32::MAX).checked_sub(ROOT_HEADER)?;
        Some(Root {
            level: bits::be16(fork, 0)?,
            numrecs: bits::be16(fork, 2)?,
            max_records: room.checked_div(self.record_size)?,
            max_keys: room.checked_div(self.root_key_room().checked_add(8)?)?,
            sizes: (self.record_size, self.key_size),
            fork,
        })
    }

    /// Bytes that a key takes when the room of a root in an inode is divided up. The realtime refcount btree counts two
    /// keys for each pointer, as if it had high keys, and keeps one (`xfs_rtrefcountbt_droot_maxrecs`).
    const fn root_key_room(&self) -> u32 {
        match self.kind {
            Type::Rtrefcntbt => self.key_size.saturating_mul(2),
            _ => self.key_size,
        }
    }
}

/// Bytes of the header of a root in an inode: level and number of records.
const ROOT_HEADER: u32 = 4;

/// Magic, level and count of a btree block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which btree.
    pub magic: u32,
    /// 0 for leaves.
    pub level: u16,
    /// Records of a leaf, children of a node, as stored.
    pub numrecs: u16,
}

/// Magic, level and count of a btree block; `None` for less than 8 bytes.
pub fn head(bytes: &[u8]) -> Option<Head> {
    Some(Head { magic: bits::be32(bytes, 0)?, level: bits::be16(bytes, 4)?, numrecs: bits::be16(bytes, 6)? })
}

/// The root of a btree in an inode: no siblings, no checksum, pointers always of 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Root<'a> {
    /// Levels below; 0 where the records stand in the inode (realtime btrees only).
    pub level: u16,
    /// Children, or records at level 0, as stored.
    pub numrecs: u16,
    /// Records that the fork can hold.
    pub max_records: u32,
    /// Children that the fork can hold: their pointers stand behind room for so many keys.
    pub max_keys: u32,
    sizes: (u32, u32),
    fork: &'a [u8],
}

impl<'a> Root<'a> {
    /// Records in the root; none above level 0.
    pub fn records(&self) -> Parts<'a> {
        let count = if self.level == 0 { u32::from(self.numrecs).min(self.max_records) } else { 0 };
        Parts::new(self.fork, ROOT_HEADER, self.sizes.0, count)
    }

    /// Children of the root; none at level 0.
    pub fn children(&self) -> Children<'a> {
        let count = if self.level == 0 { 0 } else { u32::from(self.numrecs) };
        Children::new(self.fork, ROOT_HEADER, self.max_keys, (self.sizes.1, 8), count)
    }
}

/// Equal pieces of a block, in place: records, keys. Ends at the count, or where the block ends.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    bytes: std::slice::ChunksExact<'a, u8>,
}

impl<'a> Parts<'a> {
    /// `count` pieces of `size` bytes from byte `first` on, as far as `bytes` go.
    pub fn new(bytes: &'a [u8], first: u32, size: u32, count: u32) -> Self {
        let index = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let rest = bytes.get(index(first)..).unwrap_or_default();
        let end = index(size).saturating_mul(index(count)).min(rest.len());
        Self { bytes: rest.get(..end).unwrap_or_default().chunks_exact(index(size).max(1)) }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.bytes.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.bytes.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<&'a [u8]> {
        self.bytes.nth(n)
    }
}

impl DoubleEndedIterator for Parts<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.bytes.next_back()
    }
}

impl ExactSizeIterator for Parts<'_> {}

/// Key and pointer of each child of a node, in place.
#[derive(Clone, Debug)]
pub struct Children<'a> {
    keys: Parts<'a>,
    pointers: Parts<'a>,
}

impl<'a> Children<'a> {
    fn new(bytes: &'a [u8], first: u32, most: u32, (key, pointer): (u32, u32), count: u32) -> Self {
        let count = count.min(most);
        let behind = first.saturating_add(most.saturating_mul(key));
        Self { keys: Parts::new(bytes, first, key, count), pointers: Parts::new(bytes, behind, pointer, count) }
    }
}

impl<'a> Iterator for Children<'a> {
    /// The bytes of the key (or of both keys), and the pointer: a block of the AG or of the device, unchecked.
    type Item = (&'a [u8], u64);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.keys.next()?;
        let pointer = self.pointers.next()?;
        let pointer = bits::be64(pointer, 0).or_else(|| bits::be32(pointer, 0).map(u64::from))?;
        Some((key, pointer))
    }
}

/// The nodes of a btree block. Counts past the end of the block are cut.
pub fn layout(shape: &Shape, context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = table(BtreeHead::FIELDS, context, bytes, 0);
    let rest = if shape.long { LongHeader::FIELDS } else { ShortHeader::FIELDS };
    nodes.extend(table(rest, context, bytes, 64));
    let level = bits::be16(bytes, 4).unwrap_or(0);
    let numrecs = u32::from(bits::be16(bytes, 6).unwrap_or(0));
    let first = u64::from(shape.header_size(context)).saturating_mul(8);
    if numrecs == 0 {
        return nodes;
    }
    if level == 0 {
        let stride = shape.record_size.saturating_mul(8);
        nodes.push(Node::records("recs", "Records.", first, shape.record, (stride, numrecs, 1), bytes));
        return nodes;
    }
    let stride = shape.key_size.saturating_mul(8);
    let keys = shape.max_keys(context).saturating_mul(stride);
    let pointers = first.saturating_add(u64::from(keys));
    let width = shape.pointer_size().saturating_mul(8);
    nodes.push(Node::records("keys", "First record of each child.", first, shape.key, (stride, numrecs, 1), bytes));
    let pointers = Node::array("ptrs", "Block of each child.", pointers, (width, numrecs, 1), Format::Dec, bytes);
    nodes.push(pointers.to(shape.kind));
    nodes
}

/// The root of a btree in a fork of an inode: level, count, then records (level 0 of the realtime btrees), or keys
/// and pointers at their place behind the largest number of keys that the fork can hold.
pub(crate) fn root_node(
    name: &'static str,
    shape: &Shape,
    inode: &[u8],
    bit: u64,
    fork: Option<(usize, usize)>,
) -> Node {
    let bytes = fork.and_then(|(at, length)| inode.get(at..at.checked_add(length)?)).unwrap_or_default();
    let root = shape.root(bytes);
    let (level, numrecs) = root.map_or((0, 0), |root| (root.level, u32::from(root.numrecs)));
    let capacity = root.map_or(0, |root| root.max_keys);
    let first = bit.saturating_add(u64::from(ROOT_HEADER).saturating_mul(8));
    let mut nodes = vec![
        Node::value("level", "Levels above the leaves.", bit, 16, Format::Dec),
        Node::value("numrecs", "Keys in the root.", bit.saturating_add(16), 16, Format::Dec),
    ];
    if numrecs > 0 && level == 0 && shape.kind != Type::Bmapbtd && shape.kind != Type::Bmapbta {
        let stride = shape.record_size.saturating_mul(8);
        nodes.push(Node::records("recs", "Records.", first, shape.record, (stride, numrecs, 1), inode));
    } else if numrecs > 0 {
        let stride = shape.key_size.saturating_mul(8);
        let pointers = first.saturating_add(u64::from(capacity.saturating_mul(stride)));
        nodes.push(Node::records("keys", "First record of each child.", first, shape.key, (stride, numrecs, 1), inode));
        let doc = "Block of each child.";
        nodes.push(Node::array("ptrs", doc, pointers, (64, numrecs, 1), Format::Dec, inode).to(shape.kind));
    }
    Node::group(name, bit, nodes)
}
