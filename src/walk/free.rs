//! Free space: the free space btrees and the free list of an AG, the bitmap of the realtime section.
//! `xfs_alloc_query_all` (xfs_alloc.c), `xfs_agfl_walk`, `xfs_rtalloc_query_all` (xfs_rtbitmap.c).
//!
//! Memory: some blocks of a btree, or 1 MiB of the bitmap, whatever the size of the file system.

use super::btree::Blocks;
use super::extents::{ForkMap, locate};
use super::metadir::{GroupFile, group_file};
use super::{InodeBlock, Walk, corrupt, group};
use crate::error::{Error, Place, Result};
use crate::format::bnobt::{self, FreeExtent};
use crate::format::dinode::Fork;
use crate::format::rtbitmap::{self, ByteOrder};
use crate::format::{agfl, cntbt};
use crate::units::{AgBlock, AgNumber, ByteOffset, RgNumber};
use crate::volume::AgHeader;

/// Largest piece of a bitmap that is read at once.
const PIECE: u64 = 1 << 20;

/// Groups without a bitmap, one after the other, after which no more are looked for.
const MISSING_IN_A_ROW: u32 = 64;

/// In which order free extents come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By block.
    #[default]
    Block,
    /// By size, from the other btree.
    Size,
}

/// The free extents of an AG; those on the free list are left aside. What is wrong goes to `report`.
pub fn extents(
    walk: &Walk<'_>,
    ag: AgNumber,
    order: Order,
    report: &mut dyn FnMut(Error),
    mut each: impl FnMut(FreeExtent),
) {
    let agf = match group::agf(walk, ag, report) {
        Ok(agf) => agf,
        Err(error) => return report(error),
    };
    let (shape, root) = match order {
        Order::Block => (&bnobt::SHAPE, group::bnobt(ag, &agf)),
        Order::Size => (&cntbt::SHAPE, group::cntbt(ag, &agf)),
    };
    let mut blocks = Blocks::new(walk, shape, root);
    while let Some(block) = blocks.next_block() {
        match block {
            Ok(block) => block.records().filter_map(|bytes| FreeExtent::at(bytes, 0)).for_each(&mut each),
            Err(error) => report(error),
        }
    }
}

/// The blocks on the free list of an AG.
pub fn on_list(walk: &Walk<'_>, ag: AgNumber, report: &mut dyn FnMut(Error), mut each: impl FnMut(AgBlock)) {
    let header =
        group::agf(walk, ag, &mut |_| {}).and_then(|agf| Ok((agf, walk.volume().ag_header(ag, AgHeader::Agfl)?)));
    let (agf, block) = match header {
        Ok(header) => header,
        Err(error) => return report(error),
    };
    if agf.flcount == 0 {
        return;
    }
    let slots = agfl::slots(walk.context());
    if agf.flfirst >= slots || agf.fllast >= slots {
        let found = format!("flfirst {}, fllast {}", agf.flfirst, agf.fllast);
        return report(corrupt(block.place, "slots of the free list", found, format_args!("below {slots}")));
    }
    let mut slot = agf.flfirst;
    loop {
        if let Some(free) = agfl::slot(walk.context(), &block.bytes, slot) {
            each(free);
        }
        if slot == agf.fllast {
            return;
        }
        slot = slot.saturating_add(1);
        if slot == slots {
            slot = 0;
        }
    }
}

/// A run of free realtime extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtRun {
    /// The group; 0 without groups.
    pub group: RgNumber,
    /// First free extent, from the start of the group.
    pub start: u64,
    /// Extents.
    pub length: u64,
}

/// Puts runs of ones together across words.
struct Runs<'f> {
    group: RgNumber,
    at: u64,
    end: u64,
    start: Option<u64>,
    each: &'f mut dyn FnMut(RtRun),
}

impl Runs<'_> {
    fn flush(&mut self, at: u64) {
        if let Some(start) = self.start.take() {
            (self.each)(RtRun { group: self.group, start, length: at.saturating_sub(start) });
        }
    }

    /// The next 32 extents; false when the section has no more.
    fn word(&mut self, word: u32) -> bool {
        let left = self.end.saturating_sub(self.at);
        let bits = u32::try_from(left.min(32)).unwrap_or(32);
        if bits == 0 {
            return false;
        }
        match (word, self.start) {
            (0, None) => {}
            (u32::MAX, Some(_)) if bits == 32 => {}
            _ => {
                for i in 0..bits {
                    let at = self.at.saturating_add(u64::from(i));
                    match (word.checked_shr(i).unwrap_or(0) & 1 != 0, self.start) {
                        (true, None) => self.start = Some(at),
                        (false, Some(_)) => self.flush(at),
                        _ => {}
                    }
                }
            }
        }
        self.at = self.at.saturating_add(u64::from(bits));
        true
    }
}

/// The free extents of the realtime section, from its bitmap. Where a piece of the bitmap cannot be read, its extents
/// count as used, and `report` hears of it. A zoned section keeps no bitmap.
pub fn realtime(walk: &Walk<'_>, report: &mut dyn FnMut(Error), each: &mut dyn FnMut(RtRun)) {
    let Some(rt) = &walk.geometry().realtime else { return };
    if walk.context().features.has_zoned() {
        let sb = Place::new(crate::units::Device::Data, ByteOffset(0), 512, "sb 0");
        let what = "a zoned realtime section keeps no record of free extents but its reverse mappings".to_owned();
        return report(Error::Unsupported { place: Box::new(sb), what });
    }
    let Some(groups) = &rt.groups else {
        match walk.inode(walk.volume().superblock().rbmino) {
            Ok(inode) => bitmap(walk, &inode, RgNumber(0), rt.extents, report, each),
            Err(error) => report(error),
        }
        return;
    };
    let mut missing = 0u32;
    for group in (0..groups.count).map(RgNumber) {
        if let Err(error) = walk.step(1) {
            return report(error);
        }
        let blocks = rt.group_blocks(group).unwrap_or(0);
        let extents = blocks.checked_div(u64::from(rt.extent_blocks)).unwrap_or(0);
        match group_file(walk, group, GroupFile::Bitmap, report) {
            Ok(inode) => {
                missing = 0;
                bitmap(walk, &inode, group, extents, report, each);
            }
            Err(error) => {
                report(error);
                // A count of groups that is far too large need not be tried to its end.
                missing = missing.saturating_add(1);
                if missing >= MISSING_IN_A_ROW {
                    return;
                }
            }
        }
    }
}

fn bitmap(
    walk: &Walk<'_>,
    file: &InodeBlock,
    group: RgNumber,
    extents: u64,
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(RtRun),
) {
    let context = walk.context();
    let order = if rtbitmap::has_header(context) { ByteOrder::Big } else { ByteOrder::Little };
    let per_block = u64::from(rtbitmap::words_per_block(context)).saturating_mul(32);
    let map = ForkMap::read(walk, file.inode(), Fork::Data, report);
    let mut runs = Runs { group, at: 0, end: extents, start: None, each };
    let size = walk.geometry().block_size();
    let mut buffer = Vec::new();
    for extent in map.extents() {
        // Extents that no block stands for count as used.
        let first = extent.startoff.0.saturating_mul(per_block);
        if first > runs.at {
            runs.flush(runs.at);
            runs.at = first.min(extents);
        }
        let location = locate(walk.geometry(), false, extent.startblock, extent.blockcount);
        let Some(location) = location.filter(|_| first == runs.at || runs.at == extents) else {
            report(super::extents::nowhere(walk, file.inode(), Fork::Data, extent));
            continue;
        };
        let mut done = 0u64;
        while done < location.length && runs.at < extents {
            if let Err(error) = walk.step(1) {
                return report(error);
            }
            let length = PIECE.max(size).min(location.length.saturating_sub(done));
            buffer.resize(usize::try_from(length).unwrap_or(0), 0);
            let byte = ByteOffset(location.byte.0.saturating_add(done));
            let name = || format!("inode {} (realtime bitmap)", file.ino());
            let read: Result<()> = walk.volume().read_into(location.device, byte, &mut buffer, name);
            done = done.saturating_add(length);
            if let Err(error) = read {
                report(error);
                runs.flush(runs.at);
                let blocks = length.checked_div(size).unwrap_or(0);
                runs.at = runs.at.saturating_add(blocks.saturating_mul(per_block)).min(extents);
                continue;
            }
            for block in buffer.chunks(usize::try_from(size).unwrap_or(usize::MAX)) {
                for word in rtbitmap::words(context, block, order) {
                    if !runs.word(word) {
                        break;
                    }
                }
            }
        }
    }
    runs.flush(runs.at);
}
