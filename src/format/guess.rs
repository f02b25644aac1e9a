//! What a block seems to be, from what it says about itself: magic number and owner.

use super::{Context, Type, attr_leaf, attr_remote, bits, da_block, da_node, dir_data, dir_free, dir_leaf};
use super::{agf, agfl, agi, bmbt, bnobt, cntbt, dinode, dquot, finobt, inobt, refcountbt, rmapbt, rtbitmap};
use super::{rtrefcountbt, rtrmapbt, rtsb, rtsummary, superblock, symlink};
use crate::units::Ino;

/// The types whose magic number a block carries, the likeliest first: two for extent map btree blocks (data or
/// attribute fork) and for nodes of a hash tree (directory or attributes), none where nothing is recognised.
pub fn by_magic(bytes: &[u8]) -> &'static [Type] {
    let short = bits::be16(bytes, 0);
    if short == Some(dinode::MAGIC) {
        return &[Type::Inode];
    }
    let info = da_block::info(bytes).map(|info| info.magic);
    match info {
        Some(da_node::magic::V4 | da_node::magic::V5) => return &[Type::Dir3, Type::Attr3],
        Some(attr_leaf::magic::V4 | attr_leaf::magic::V5) => return &[Type::Attr3],
        Some(magic) if dir_leaf::is_leaf(magic) => return &[Type::Dir3],
        _ => {}
    }
    let Some(magic) = bits::be32(bytes, 0) else { return &[] };
    let trees = [
        (&bnobt::SHAPE, &[Type::Bnobt][..]),
        (&cntbt::SHAPE, &[Type::Cntbt][..]),
        (&inobt::SHAPE, &[Type::Inobt][..]),
        (&finobt::SHAPE, &[Type::Finobt][..]),
        (&rmapbt::SHAPE, &[Type::Rmapbt][..]),
        (&refcountbt::SHAPE, &[Type::Refcntbt][..]),
        (&rtrmapbt::SHAPE, &[Type::Rtrmapbt][..]),
        (&rtrefcountbt::SHAPE, &[Type::Rtrefcntbt][..]),
        (&bmbt::SHAPE, &[Type::Bmapbtd, Type::Bmapbta][..]),
    ];
    if let Some((_, kinds)) = trees.iter().find(|(shape, _)| magic != 0 && shape.magic.contains(&magic)) {
        return kinds;
    }
    match magic {
        superblock::MAGIC => &[Type::Sb],
        agf::MAGIC => &[Type::Agf],
        agi::MAGIC => &[Type::Agi],
        agfl::MAGIC => &[Type::Agfl],
        dir_data::magic::BLOCK_V4
        | dir_data::magic::BLOCK_V5
        | dir_data::magic::DATA_V4
        | dir_data::magic::DATA_V5
        | dir_free::magic::V4
        | dir_free::magic::V5 => &[Type::Dir3],
        attr_remote::MAGIC => &[Type::Attr3],
        symlink::MAGIC => &[Type::Symlink],
        rtsb::MAGIC => &[Type::Rtsb],
        rtbitmap::MAGIC => &[Type::Rgbitmap],
        rtsummary::MAGIC => &[Type::Rgsummary],
        // After four bytes: magic, version 1, and one type of the three.
        _ if short == Some(dquot::MAGIC) && bytes.get(2) == Some(&1) => &[Type::Dqblk],
        _ => &[],
    }
}

/// The inode that a block of this type says it belongs to; `None` where blocks of this type do not say (V4, AG
/// metadata).
pub fn owner(context: &Context, kind: Type, bytes: &[u8]) -> Option<Ino> {
    if !context.has_crc() {
        return None;
    }
    let at = match kind {
        Type::Bmapbtd | Type::Bmapbta | Type::Rtrmapbt | Type::Rtrefcntbt => 56,
        Type::Symlink => 32,
        Type::Rgbitmap | Type::Rgsummary => 8,
        Type::Attr3 if bits::be32(bytes, 0) == Some(attr_remote::MAGIC) => 32,
        Type::Dir3 if by_magic(bytes) == [Type::Dir3] && dir_leaf_magic(bytes).is_none() => 40,
        Type::Dir3 | Type::Attr3 => 48,
        _ => return None,
    };
    bits::be64(bytes, at).map(Ino)
}

fn dir_leaf_magic(bytes: &[u8]) -> Option<u16> {
    da_block::info(bytes).map(|info| info.magic).filter(|&magic| dir_leaf::is_leaf(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_numbers() {
        assert_eq!(by_magic(b"XFSB"), [Type::Sb]);
        assert_eq!(by_magic(b"IN\x81\xa4"), [Type::Inode]);
        assert_eq!(by_magic(b"BMA3"), [Type::Bmapbtd, Type::Bmapbta]);
        assert_eq!(by_magic(b"AB3C"), [Type::Cntbt]);
        assert_eq!(by_magic(b"\0\0\0\0\0\0\0\0\x3e\xbe"), [Type::Dir3, Type::Attr3]);
        assert_eq!(by_magic(b"DQ\x01\x01"), [Type::Dqblk]);
        assert_eq!(by_magic(&[0; 64]), []);
        assert_eq!(by_magic(b"X"), []);
    }
}
