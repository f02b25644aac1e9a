//! Bitmaps and summaries of the realtime section as their inodes map them: P1, P2, P3, RT-14, RT-26.

use super::{Reader, arithmetic, blocks};
use crate::check::rt::{Section, group as checks};
use crate::error::Place;
use crate::format::dinode::flags;
use crate::walk::InodeBlock;
use crate::walk::metadir::GroupFile;
use crate::walk::rt;
use crate::walk::rt::bitmap::{Pass, Run, scan};
use crate::walk::rt::meta::{MetaFile, Missing, Piece};

impl Reader<'_> {
    /// Bitmap and summary: of the section, or of each group.
    pub(super) fn realtime_inodes(&mut self) {
        let Some(section) = self.section.clone().filter(Section::has_bitmap) else { return };
        let mut absent = 0u32;
        for group in section.groups() {
            let mut found = false;
            for (file, blocks) in
                [(GroupFile::Bitmap, section.sizes.bitmap_blocks), (GroupFile::Summary, section.sizes.summary_blocks)]
            {
                match rt::inode(self.walk, group.number, file, &mut |_| {}) {
                    Ok(block) => {
                        found = true;
                        self.realtime_inode(&section, &group, (file, blocks), block);
                    }
                    Err(error) => self.unread(&error),
                }
            }
            absent = if found { 0 } else { absent.saturating_add(1) };
            if absent >= blocks::MOST_ABSENT {
                return;
            }
        }
    }

    fn realtime_inode(
        &mut self,
        section: &Section<'_>,
        group: &rt::Group,
        (file, blocks): (GroupFile, u64),
        block: InodeBlock,
    ) {
        let size = self.walk.geometry().block_size();
        let classic = section.rt.groups.is_none();
        let mut errors = Vec::new();
        let meta = MetaFile::new(self.walk, block, &mut |error| errors.push(error));
        errors.iter().for_each(|error| self.unread(error));
        let (inode, place) = (meta.inode(), meta.place().clone());
        let of = if classic { String::new() } else { format!(" of group {}", group.number) };
        let name = format!("realtime {} inode {}{of}", file.name(), inode.ino);
        let named = || Place { structure: name.clone(), ..place.clone() };
        let least = blocks.saturating_mul(size);
        let fits = u64::try_from(inode.size()).is_ok_and(|n| n >= least && n.checked_rem(size) == Some(0));
        if !fits {
            let text = || format!("core.size is {}, {blocks} blocks of {size} need {least}", inode.size());
            self.deep.rt_size.at(|| named().field("core.size"), text);
        }
        if file == GroupFile::Bitmap && inode.flags() & flags::NEWRTBM != 0 {
            let raw = crate::format::bits::be64(inode.bytes(), 32).unwrap_or(0);
            let text = || format!("newrtbm is set: atime holds the sequence number {raw}");
            self.deep.sequence.at(|| named().field("core.atime"), text);
        }
        for extent in meta.extents() {
            self.extent_within_ags(extent, &named, |deep| &mut deep.rt_outside);
        }
        if classic && file == GroupFile::Bitmap {
            self.tail(section, group, &meta);
        }
        let mut missing: Vec<(u64, u64, &'static str)> = Vec::new();
        let mut gaps = 0u64;
        meta.each(self.walk, 0, blocks, &mut |piece| {
            if file == GroupFile::Bitmap && checks::is_unreadable_bitmap(section, &meta, &piece) {
                gaps = gaps.saturating_add(1);
            }
            if let Piece::Missing { first, blocks, why } = &piece {
                match why {
                    Missing::Hole => missing.push((*first, *blocks, "no extent")),
                    Missing::Unwritten(_) => missing.push((*first, *blocks, "an unwritten extent")),
                    Missing::Outside(_) | Missing::Unreadable(_) => {}
                }
            }
            missing.len() < 1000
        });
        if file == GroupFile::Bitmap && gaps > 0 {
            self.deep.uncounted.at(
                || named().field("u3.bmx"),
                || format!("of {blocks} blocks of the bitmap, {gaps} or more cannot be read"),
            );
        }
        for (first, count, what) in missing {
            let volume = self.volume;
            let text = || {
                let lookup = if classic {
                    let hole = arithmetic(volume, u64::MAX - 1);
                    format!("; a hole is looked up as -2 on 3.2 and later: {hole}")
                } else {
                    String::new()
                };
                format!("{count} of {blocks} blocks from block {first} on have {what}{lookup}")
            };
            self.deep.rt_hole.at(|| named().field("u3.bmx"), text);
        }
    }

    /// P1: is the last extent free?
    fn tail(&mut self, section: &Section<'_>, whole: &rt::Group, file: &MetaFile) {
        let pass = Pass { group: whole, file, sizes: &section.sizes, order: section.order.order() };
        let mut last_unknown = 0u64;
        let mut each = |run: Run| {
            if let Run::Unknown { start, extents } = run {
                last_unknown = start.saturating_add(extents);
            }
        };
        let count = scan(self.walk, &pass, &mut each, &mut |_| true);
        self.deep.tail = (last_unknown < whole.extents).then_some(count.last_run);
    }
}
