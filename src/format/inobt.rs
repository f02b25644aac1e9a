//! Inode chunks: one btree per AG, rooted in `agi.root`, a record for every 64 inode numbers that have space.
//! `struct xfs_inobt_rec`; `xfs_inobt_verify`, `xfs_inobt_check_irec` (xfs_ialloc*.c).

use super::btree_block::{self, Shape};
use super::on_disk::{Format, on_disk};
use super::{Context, Node, Structure, Type, bits};
use crate::units::AgIno;

/// Inodes of a chunk.
pub const INODES_PER_CHUNK: u32 = 64;
/// Inodes that one bit of the hole mask stands for.
pub const INODES_PER_HOLE: u32 = 4;

fn sparse(context: &Context, _: &[u8]) -> bool {
    context.features.has_sparse()
}
fn full(context: &Context, _: &[u8]) -> bool {
    !context.features.has_sparse()
}

on_disk! {
    /// A chunk of inodes: record of inode and free inode btree (`struct xfs_inobt_rec`).
    pub struct InobtRec, size 16 {
        /// First inode of the chunk.
        0 startino: AgIno [.to(Type::Inode)],
        /// Free inodes; with sparse chunks hole mask, inodes and free inodes.
        4 freecount: u32 [.unnamed()] {
            /// Free inodes.
            freecount: 0 + 32 [.fmt(Format::Signed).when(full)],
            /// A bit for every four inodes without space.
            holemask: 0 + 16 [.hex().when(sparse)],
            /// Inodes with space.
            count: 16 + 8 [.when(sparse)],
            /// Free inodes among them.
            freecount: 24 + 8 [.when(sparse)],
        },
        /// A bit for every inode: 1 for free (or without space).
        8 free: u64 [.hex()],
    }

    /// Key of a node (`struct xfs_inobt_key`).
    pub struct InobtKey, size 4 {
        /// First inode of the first chunk.
        0 startino: AgIno [.to(Type::Inode)],
    }
}

/// A chunk of inodes, read in place (`struct xfs_inobt_rec_incore`, `xfs_inobt_btrec_to_irec`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// First inode of the chunk.
    pub startino: AgIno,
    /// A bit for every four inodes without space; 0 for a full chunk.
    pub holemask: u16,
    /// Inodes with space: 64 without sparse chunks.
    pub count: u8,
    /// Free inodes, as stored.
    pub freecount: u32,
    /// A bit for every inode, the first in bit 0: 1 for free (or without space).
    pub free: u64,
}

impl Chunk {
    /// Reads the record at byte `at`.
    pub fn at(context: &Context, bytes: &[u8], at: usize) -> Option<Self> {
        let startino = AgIno(bits::be32(bytes, at)?);
        let counts = at.checked_add(4)?;
        let free = bits::be64(bytes, at.checked_add(8)?)?;
        if !context.features.has_sparse() {
            return Some(Self { startino, holemask: 0, count: 64, freecount: bits::be32(bytes, counts)?, free });
        }
        let [h0, h1, count, freecount] = bits::array(bytes, counts)?;
        let holemask = u16::from_be_bytes([h0, h1]);
        Some(Self { startino, holemask, count, freecount: u32::from(freecount), free })
    }

    /// Has inode `index` (0 to 63) of the chunk space on disk?
    pub fn has_space(&self, index: u32) -> bool {
        let bit = index.checked_div(INODES_PER_HOLE).unwrap_or(0);
        index < INODES_PER_CHUNK && self.holemask.checked_shr(bit).unwrap_or(0) & 1 == 0
    }

    /// Is inode `index` (0 to 63) of the chunk in use: with space, and not free?
    pub fn in_use(&self, index: u32) -> bool {
        self.has_space(index) && self.free.checked_shr(index).unwrap_or(0) & 1 == 0
    }
}

/// The btree.
pub const SHAPE: Shape = Shape {
    kind: Type::Inobt,
    magic: [0x4941_4254, 0x4941_4233],
    long: false,
    record: InobtRec::FIELDS,
    record_size: 16,
    key: InobtKey::FIELDS,
    key_size: 4,
};

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparse_chunk() {
        // Hole mask 0xff00: inodes 32 to 63 have no space.
        let bytes = [0, 0, 0, 128, 0xff, 0, 32, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2];
        let chunk = Chunk::at(&Context::assumed(true), &bytes, 0).expect("16 bytes");
        assert_eq!((chunk.startino, chunk.holemask, chunk.count, chunk.freecount), (AgIno(128), 0xff00, 32, 1));
        assert!(chunk.has_space(31) && !chunk.has_space(32) && !chunk.has_space(64));
        assert!(chunk.in_use(0) && !chunk.in_use(1) && !chunk.in_use(63));
        let chunk = Chunk::at(&Context::assumed(false), &bytes, 0).expect("16 bytes");
        assert_eq!((chunk.count, chunk.freecount), (64, 0xff00_2001));
    }
}
