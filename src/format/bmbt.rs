//! Extent maps: the packed record, lists of them in an inode, the btree root in an inode, and btree blocks.
//! `struct xfs_bmbt_rec`, `xfs_bmbt_disk_get_all`; `xfs_bmbt_verify`, `xfs_bmap_validate_extent` (xfs_bmap*.c).

use super::btree_block::{self, Shape};
use super::on_disk::on_disk;
use super::{Context, Node, Structure, Type, bits};
use crate::units::{FileBlock, FsBlock};

on_disk! {
    /// Extent record: 1 + 54 + 52 + 21 bits (`struct xfs_bmbt_rec`).
    pub struct BmbtRec, size 16 {
        /// The packed record.
        0 packed: u128 [.unnamed()] {
            /// First block within the file.
            startoff: 1 + 54,
            /// First block on the device: data, or realtime for realtime files.
            startblock: 55 + 52 [.to(Type::Data)],
            /// Length in blocks.
            blockcount: 107 + 21,
            /// 1: allocated but unwritten, reads as zeros.
            extentflag: 0 + 1,
        },
    }

    /// Key of a node: first file block of the child (`struct xfs_bmbt_key`).
    pub struct BmbtKey, size 8 {
        /// First file block.
        0 startoff: FileBlock,
    }
}

/// An extent record, unpacked (`xfs_bmbt_disk_get_all`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block within the file.
    pub startoff: FileBlock,
    /// First block on the device. For realtime files the number is a realtime block, whatever its type says.
    pub startblock: FsBlock,
    /// Length in blocks, up to 2^21 - 1.
    pub blockcount: u32,
    /// Allocated but not written: reads as zeros.
    pub unwritten: bool,
}

impl Extent {
    /// Unpacks the record at byte `at`.
    pub fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let l0 = bits::be64(bytes, at)?;
        let l1 = bits::be64(bytes, at.checked_add(8)?)?;
        Some(Self {
            startoff: FileBlock((l0 & 0x7fff_ffff_ffff_ffff) >> 9),
            startblock: FsBlock(((l0 & 0x1ff) << 43) | (l1 >> 21)),
            blockcount: u32::try_from(l1 & 0x1f_ffff).unwrap_or(0),
            unwritten: l0 >> 63 != 0,
        })
    }
}

/// The btree of a data fork's extent map.
pub const SHAPE: Shape = Shape {
    kind: Type::Bmapbtd,
    magic: [0x424d_4150, 0x424d_4133],
    long: true,
    record: BmbtRec::FIELDS,
    record_size: 16,
    key: BmbtKey::FIELDS,
    key_size: 8,
};

/// The btree of an attribute fork's extent map: the same blocks.
pub const ATTR_SHAPE: Shape = Shape { kind: Type::Bmapbta, ..SHAPE };

/// The records of a fork in extents format; `None` when the core says there are none.
pub fn extents(inode: &[u8], bit: u64, count: u64) -> Option<Node> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let doc = "Extents of the fork, by file block.";
    (count > 0).then(|| Node::records("bmx", doc, bit, BmbtRec::FIELDS, (128, count, 0), inode))
}

/// The btree root in a fork (`struct xfs_bmdr_block`) as the node `bmbt`.
pub fn root(inode: &[u8], bit: u64, fork: Option<(usize, usize)>, shape: &Shape) -> Node {
    btree_block::root_node("bmbt", shape, inode, bit, fork)
}

/// The nodes of an extent map btree block of a data fork.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}

/// The nodes of an extent map btree block of an attribute fork.
pub fn attr_layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&ATTR_SHAPE, context, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacks_as_xfs_db_prints() {
        // Test image v5-rtgroups, inode 200052: xfs_db prints 5:[8388608,25011,1,0].
        let l0: u64 = 8_388_608 << 9;
        let l1: u64 = (25_011 << 21) | 1;
        let bytes = [l0.to_be_bytes(), l1.to_be_bytes()].concat();
        let extent = Extent::at(&bytes, 0).expect("16 bytes");
        assert_eq!(
            (extent.startoff.0, extent.startblock.0, extent.blockcount, extent.unwritten),
            (8_388_608, 25_011, 1, false)
        );
        assert_eq!(bits::bit_range(&bytes, 55, 52), Some(25_011));
        assert_eq!(Extent::at(&[0xff; 16], 0).map(|e| (e.startoff.0, e.unwritten)), Some(((1 << 54) - 1, true)));
        assert_eq!(Extent::at(&[0xff; 15], 0), None);
    }
}
