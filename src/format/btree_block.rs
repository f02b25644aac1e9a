//! Btree blocks: one header in a short form (AG btrees) and a long one (rooted in inodes), records in leaves,
//! keys and pointers in nodes. `struct xfs_btree_block`; `xfs_btree_agblock_verify`, `xfs_btree_fsblock_verify`.

use super::node::table;
use super::on_disk::{Crc, Format, Null, Uuid, on_disk};
use super::{Context, Field, Node, Structure, bits};
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
        8 blkno: u64 [.named("bno").when(crc)],
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
        16 blkno: u64 [.named("bno").when(crc)],
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
    /// Bytes of a key: two keys where the btree is overlapping.
    pub key_size: u32,
    /// What an all-ones pointer is.
    pub pointer_format: Null,
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
    nodes.push(pointers.null(shape.pointer_format));
    nodes
}
