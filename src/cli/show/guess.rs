//! The type of a block when none was given: magic number first, then its owner where two types share one.

use crate::format::bmbt::Extent;
use crate::format::dinode::{self, Fork, fork_format, fork_range, mode};
use crate::format::{Type, bits, guess};
use crate::units::FsBlock;
use crate::volume::{Block, Volume};

/// The type of a block; [`Type::Data`] where nothing is recognised.
pub(super) fn kind(volume: &Volume, block: &Block) -> Type {
    match guess::by_magic(&block.bytes) {
        [] => Type::Data,
        [only] => *only,
        [first, ..] => in_attribute_fork(volume, block, *first).unwrap_or(*first),
    }
}

/// Blocks of data and attribute fork share magic numbers: which of the two is it? The owner tells, as far as its
/// inode alone shows it; `None` where it does not.
fn in_attribute_fork(volume: &Volume, block: &Block, first: Type) -> Option<Type> {
    let owner = guess::owner(volume.context(), first, &block.bytes)?;
    let inode = volume.inode(owner).ok()?.bytes;
    if bits::be16(&inode, 0) != Some(dinode::MAGIC) {
        return None;
    }
    let (data, attr) = (inode.get(5).copied()?, inode.get(83).copied()?);
    let btree = |format| format == fork_format::BTREE;
    match first {
        Type::Bmapbtd => (btree(attr) && !btree(data)).then_some(Type::Bmapbta),
        Type::Dir3 if bits::be16(&inode, 2)? & mode::TYPE != mode::DIRECTORY => Some(Type::Attr3),
        Type::Dir3 if attr == fork_format::EXTENTS => {
            let (place, _) = volume.geometry().byte_block(block.place.byte)?;
            lists(&inode, place).then_some(Type::Attr3)
        }
        _ => None,
    }
}

/// Does the list of extents in the attribute fork hold that block?
fn lists(inode: &[u8], block: FsBlock) -> bool {
    let Some((at, length)) = fork_range(inode, Fork::Attr) else { return false };
    let count = usize::try_from(dinode::extent_count(inode, Fork::Attr)).unwrap_or(usize::MAX).min(length / 16);
    (0..count).filter_map(|i| Extent::at(inode, at.saturating_add(i.saturating_mul(16)))).any(|extent| {
        let end = extent.startblock.0.saturating_add(u64::from(extent.blockcount));
        (extent.startblock.0..end).contains(&block.0)
    })
}
