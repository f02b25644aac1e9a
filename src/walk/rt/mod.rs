//! The realtime section: its groups, the files that say what is free, and who owns what.
//!
//! Without realtime groups the section is one group here, whose bitmap and summary are the inodes that the superblock
//! names. With groups each has its files in the metadata directory. `xfs_rtginode_load` (xfs_rtgroup.c).
//!
//! | module | from | to |
//! |---|---|---|
//! | [`meta`] | an inode | blocks of a metadata file, many per read, what is missing named |
//! | [`bitmap`] | a bitmap | free runs and counts |
//! | [`summary`] | free runs | what the summary must say, compared with what it says |
//! | [`files`] | the inodes | extents of realtime files, by place, in windows of bounded size |
//! | [`btrees`] | a group | its reverse mappings and shared extents |

pub mod bitmap;
pub mod btrees;
pub mod files;
pub mod meta;
pub mod summary;

use super::metadir::{GroupFile, group_file};
use super::{InodeBlock, Walk};
use crate::error::{Error, Result};
use crate::format::rtbitmap;
use crate::geometry::Realtime;
use crate::units::{Ino, RgNumber};

/// A group of the realtime section; the whole section where there are no groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number; 0 where there are no groups.
    pub number: RgNumber,
    /// Realtime extents before it.
    pub before: u64,
    /// Its realtime extents.
    pub extents: u64,
    /// Blocks of a realtime extent, not 0.
    pub extent_blocks: u64,
    /// Shift of the group number in a realtime block number; `None` where there are no groups.
    pub shift: Option<u32>,
}

impl Group {
    /// Realtime block number of block 0 of the group (`xfs_rtblock_t`).
    pub fn first_block(&self) -> u64 {
        self.shift.and_then(|shift| u64::from(self.number.0).checked_shl(shift)).unwrap_or(0)
    }

    /// Its blocks, as far as they make whole realtime extents.
    pub fn blocks(&self) -> u64 {
        self.extents.saturating_mul(self.extent_blocks)
    }

    /// The realtime block numbers that belong to it, used or not.
    pub fn range(&self) -> std::ops::Range<u64> {
        let first = self.first_block();
        let length = match self.shift {
            Some(shift) => 1u64.checked_shl(shift).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        first..first.saturating_add(length)
    }
}

/// Number of groups: 1 where there are none.
pub fn count(rt: &Realtime) -> u32 {
    rt.groups.as_ref().map_or(1, |groups| groups.count)
}

/// A group by number; `None` where there is no such group.
pub fn group(rt: &Realtime, number: RgNumber) -> Option<Group> {
    let extent_blocks = u64::from(rt.extent_blocks);
    let whole = Group { number, before: 0, extents: rt.extents, extent_blocks, shift: None };
    let Some(groups) = &rt.groups else { return (number.0 == 0).then_some(whole) };
    if number.0 >= groups.count {
        return None;
    }
    let before = u64::from(number.0).checked_mul(u64::from(groups.extents))?;
    let extents = rt.extents.saturating_sub(before).min(u64::from(groups.extents));
    Some(Group { before, extents, shift: Some(u32::from(groups.block_log)), ..whole })
}

/// Sizes of bitmap and summary as they must be (`xfs_rtbitmap_blockcount`, `xfs_rtsummary_blockcount`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bits, or summary words, that one block holds: the first is 32 times the second.
    pub words_per_block: u64,
    /// Blocks of the bitmap: of the section, or of each group.
    pub bitmap_blocks: u64,
    /// Levels of the summary: powers of two from 2^0 on.
    pub levels: u32,
    /// Blocks of the summary: of the section, or of each group.
    pub summary_blocks: u64,
}

impl Sizes {
    /// Extents that one block of the bitmap tells of.
    pub fn extents_per_block(&self) -> u64 {
        self.words_per_block.saturating_mul(32)
    }
}

/// The sizes for this section. Zoned sections have neither bitmap nor summary: all zeros.
pub fn sizes(walk: &Walk<'_>, rt: &Realtime) -> Sizes {
    let words = u64::from(rtbitmap::words_per_block(walk.context())).max(1);
    if walk.context().features.has_zoned() {
        return Sizes { words_per_block: words, bitmap_blocks: 0, levels: 0, summary_blocks: 0 };
    }
    sizes_of(words, rt.groups.as_ref().map_or(rt.extents, |groups| u64::from(groups.extents)))
}

/// The sizes for `extents` extents in one bitmap, with so many words to a block.
pub fn sizes_of(words_per_block: u64, extents: u64) -> Sizes {
    let words = words_per_block.max(1);
    let bitmap_blocks = extents.div_ceil(words.saturating_mul(32));
    let levels = extents.checked_ilog2().unwrap_or(0).saturating_add(1);
    let summary_blocks = bitmap_blocks.saturating_mul(u64::from(levels)).div_ceil(words);
    Sizes { words_per_block: words, bitmap_blocks, levels, summary_blocks }
}

/// The inode of a file of a group: of the whole section where there are no groups.
///
/// # Errors
/// Whatever keeps it from being found or read; [`Error::Request`] where no such file is needed.
pub fn inode(walk: &Walk<'_>, group: RgNumber, file: GroupFile, report: &mut dyn FnMut(Error)) -> Result<InodeBlock> {
    if walk.context().features.has_metadir() {
        return group_file(walk, group, file, report);
    }
    let sb = walk.volume().superblock();
    let ino: Ino = match file {
        GroupFile::Bitmap => sb.rbmino,
        GroupFile::Summary => sb.rsumino,
        GroupFile::Rmap | GroupFile::Refcount => {
            return Err(Error::request(format!("there is no realtime {} without realtime groups", file.name())));
        }
    };
    walk.inode(ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures come from mkfs.xfs -N for a device of 390703446 blocks (1.6 TB), and from case C32.
    #[test]
    fn sizes_of_the_field() {
        let s = sizes_of(1024, 390_703_446);
        assert_eq!((s.bitmap_blocks, s.levels, s.summary_blocks), (11_924, 29, 338));
        assert_eq!(sizes_of(1024, 390_703_446 / 16).bitmap_blocks, 746);
        let s = sizes_of(1024, 4_294_967_312);
        assert_eq!((s.bitmap_blocks, s.levels), (131_073, 33));
        let s = sizes_of(1024, 0);
        assert_eq!((s.bitmap_blocks, s.levels, s.summary_blocks), (0, 1, 0));
        assert_eq!(sizes_of(0, u64::MAX).levels, 64);
    }

    #[test]
    fn the_last_group_is_what_is_left() {
        use crate::geometry::Groups;
        use crate::units::Device;
        // Case C64: 102400 extents, groups of 16384.
        let rt = Realtime {
            blocks: 102_400,
            extents: 102_400,
            extent_blocks: 1,
            groups: Some(Groups { count: 7, extents: 16_384, block_log: 14, gaps: false }),
            start_bytes: 0,
            device: Device::Rt,
        };
        let last = group(&rt, RgNumber(6)).expect("there are 7");
        assert_eq!((last.extents, last.before, last.first_block()), (4096, 98_304, 6 << 14));
        assert_eq!(group(&rt, RgNumber(7)), None);
        assert_eq!(last.range(), 6 << 14..7 << 14);
    }
}
