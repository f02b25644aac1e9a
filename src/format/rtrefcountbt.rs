//! How often realtime blocks are shared: one btree per realtime group, rooted in the data fork of a metadata file
//! (`rtgroups/N.refcount`), with the records of the refcount btree of an AG and pointers of 8 bytes. A small one
//! stands in the inode. `struct xfs_rtrefcount_root`, `struct xfs_refcount_rec`; `xfs_rtrefcountbt_verify`.

use super::btree_block::{self, Shape};
use super::{Context, Node, Type, refcountbt};

/// The btree. Records are [`refcountbt::Shared`].
pub const SHAPE: Shape = Shape { kind: Type::Rtrefcntbt, magic: [0, 0x5243_4e54], long: true, ..refcountbt::SHAPE };

/// The nodes of a block.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    btree_block::layout(&SHAPE, context, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root of level 1 as kernel 7.2 wrote it in a fork of 192 bytes; xfs_db prints `keys[1] = [startblock,cowflag]
    /// 1:[11,0]` and `ptrs[1] = 19480`.
    #[test]
    fn pointers_of_a_root_stand_behind_room_for_eleven_keys() {
        let mut fork = [0u8; 192];
        fork[1] = 1;
        fork[3] = 1;
        fork[7] = 11;
        fork[54] = 0x4c;
        fork[55] = 0x18;
        let root = SHAPE.root(&fork).expect("a root");
        assert_eq!((root.level, root.numrecs, root.max_records, root.max_keys), (1, 1, 15, 11));
        let children: Vec<u64> = root.children().map(|(_, pointer)| pointer).collect();
        assert_eq!(children, [19_480]);
    }
}
