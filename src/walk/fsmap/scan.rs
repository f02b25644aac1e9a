//! From everything that claims blocks to ranges, where no reverse mapping btree tells, or it is not to be trusted.

use super::emit::{Emitter, Missing};
use super::{Group, GroupFiles, Query, Record, has_rmap, merge, metadata};
use crate::error::Error;
use crate::format::bmbt::{self, Extent};
use crate::format::dinode::{Fork, fork_format};
use crate::format::rmapbt::{Offset, owner};
use crate::format::{rtrefcountbt, rtrmapbt};
use crate::units::{AgNumber, Device, FsBlock, RgNumber, RtBlock};
use crate::volume::Volume;
use crate::walk::btree::{At, Blocks, Root};
use crate::walk::extents::{extents, locate, nowhere, on_realtime};
use crate::walk::{Inode, Walk, group, inodes};
use std::ops::ControlFlow;

/// Claims of files that are held at a time.
const LIMIT: usize = 1 << 21;
/// Claims of files that are kept where there are more.
const HALF: usize = 1 << 20;
/// Set in the places of realtime blocks, which so come behind those of the data section.
const REALTIME: u64 = 1 << 63;

/// Blocks that a file claims. The start counts from the beginning of the section, not of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// In the realtime section?
    pub(crate) realtime: bool,
    /// Start from the beginning of the section, and whose it is.
    pub(crate) record: Record,
}

impl Claim {
    fn place(&self) -> u64 {
        if self.realtime { self.record.start | REALTIME } else { self.record.start }
    }
}

/// What files claim, part by part of the device.
pub(crate) struct Scan<'v> {
    volume: &'v Volume,
    wants_data: bool,
    wants_realtime: bool,
    claims: Vec<Claim>,
    /// What begins before this place and behind where the last pass began is in `claims`.
    end: u64,
    passes: u32,
}

impl<'v> Scan<'v> {
    /// Nothing read so far.
    pub(crate) fn new(volume: &'v Volume, query: &Query) -> Self {
        let scanned = |device| query.wants(device) && !(query.rmap && has_rmap(volume.geometry(), device));
        let (wants_data, wants_realtime) = (scanned(Device::Data), scanned(Device::Rt));
        Self { volume, wants_data, wants_realtime, claims: Vec::new(), end: 0, passes: 0 }
    }

    /// The claims that begin from `from` on and before `to`, or before the place that comes with them, which is past
    /// `from` and from which to go on.
    fn next(&mut self, realtime: bool, (from, to): (u64, u64), report: &mut dyn FnMut(Error)) -> (Vec<Record>, u64) {
        let mark = if realtime { REALTIME } else { 0 };
        if self.end <= from | mark {
            self.pass(from | mark, report);
        }
        let end = self.end.min(to | mark);
        let first = self.claims.partition_point(|claim| claim.place() < from | mark);
        let last = self.claims.partition_point(|claim| claim.place() < end);
        let found = self.claims.get(first..last).unwrap_or_default();
        (found.iter().map(|claim| claim.record).collect(), end & !REALTIME)
    }

    /// Reads all inodes, and keeps what begins at `from` or behind it, as far as it can be held.
    fn pass(&mut self, from: u64, report: &mut dyn FnMut(Error)) {
        let (mut claims, mut end) = (std::mem::take(&mut self.claims), u64::MAX);
        claims.clear();
        let (data, realtime) = (self.wants_data, self.wants_realtime);
        let mut too_many = None;
        // What is wrong with inodes is said once.
        let first = self.passes == 0;
        self.passes = self.passes.saturating_add(1);
        let mut once = |error| {
            if first {
                report(error);
            }
        };
        each_claim(&Walk::new(self.volume), &mut once, &mut |claim| {
            let wanted = if claim.realtime { realtime } else { data };
            if wanted && (from..end).contains(&claim.place()) {
                claims.push(claim);
                if claims.len() >= LIMIT {
                    (end, too_many) = shrink(&mut claims, end, too_many);
                }
            }
        });
        if let Some(place) = too_many {
            report(Error::request(format!("more than {HALF} files claim block {place}: not all are told")));
        }
        claims.sort_unstable_by_key(Claim::place);
        (self.claims, self.end) = (claims, end);
    }
}

/// Keeps the claims of the first half, and tells where it ends.
fn shrink(claims: &mut Vec<Claim>, end: u64, too_many: Option<u64>) -> (u64, Option<u64>) {
    claims.sort_unstable_by_key(Claim::place);
    let middle = claims.get(HALF.min(claims.len().saturating_sub(1))).map_or(end, Claim::place);
    let mut keep = claims.partition_point(|claim| claim.place() < middle);
    if keep == 0 {
        keep = claims.partition_point(|claim| claim.place() <= middle);
    }
    match claims.get(keep).map(Claim::place) {
        Some(place) => {
            claims.truncate(keep);
            (place, too_many)
        }
        None => {
            // All of them begin at one block.
            claims.truncate(HALF);
            (end, Some(middle & !REALTIME))
        }
    }
}

/// Comes to everything that files claim. What is wrong with inodes and extent maps goes to `report`.
pub(crate) fn each_claim(walk: &Walk<'_>, report: &mut dyn FnMut(Error), add: &mut dyn FnMut(Claim)) {
    for ag in group::numbers(walk) {
        let mut chunks = inodes::chunks(walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            match chunk {
                Ok(chunk) => {
                    let mut problems = Vec::new();
                    let mut more = Vec::new();
                    chunk.used(&mut |error| problems.push(error), |inode| {
                        inode_claims(walk, inode, &mut |error| more.push(error), add);
                    });
                    problems.into_iter().chain(more).for_each(&mut *report);
                }
                Err(error) => report(error),
            }
        }
    }
}

/// Comes to everything that a file claims: extents of both forks, and the blocks of their extent maps.
pub(crate) fn inode_claims(
    walk: &Walk<'_>,
    inode: Inode<'_>,
    report: &mut dyn FnMut(Error),
    add: &mut dyn FnMut(Claim),
) {
    for fork in [Fork::Data, Fork::Attr] {
        let Some(bytes) = inode.fork(fork) else { continue };
        let shape = match (inode.format(fork), fork, inode.metatype()) {
            (fork_format::BTREE, Fork::Data, _) => &bmbt::SHAPE,
            (fork_format::BTREE, Fork::Attr, _) => &bmbt::ATTR_SHAPE,
            (fork_format::META_BTREE, Fork::Data, Some(metatype::RTRMAP)) => &rtrmapbt::SHAPE,
            (fork_format::META_BTREE, Fork::Data, Some(metatype::RTREFCOUNT)) => &rtrefcountbt::SHAPE,
            _ => {
                for extent in extents(walk, inode, fork) {
                    match extent.and_then(|extent| extent_claim(walk, inode, fork, &extent)) {
                        Ok(claim) => add(claim),
                        Err(error) => report(error),
                    }
                }
                continue;
            }
        };
        let mut blocks = Blocks::new(walk, shape, Root::Fork { ino: inode.ino, bytes });
        while let Some(block) = blocks.next_block() {
            let block = match block {
                Ok(block) => block,
                Err(error) => {
                    report(error);
                    continue;
                }
            };
            if let At::Block(at) = block.at
                && let Some(start) = linear(walk, at)
            {
                let offset = flags(fork) | BMBT;
                let record = Record { start, length: 1, owner: inode.ino.0, offset: Offset(offset) };
                add(Claim { realtime: false, record });
            }
            if inode.format(fork) == fork_format::BTREE {
                for extent in block.records().filter_map(|bytes| Extent::at(bytes, 0)) {
                    match extent_claim(walk, inode, fork, &extent) {
                        Ok(claim) => add(claim),
                        Err(error) => report(error),
                    }
                }
            }
        }
    }
}

/// Kinds of metadata files with a btree in their data fork (`enum xfs_metafile_type`).
mod metatype {
    pub(super) const RTRMAP: u16 = 7;
    pub(super) const RTREFCOUNT: u16 = 8;
}

/// Flags of an offset as a reverse mapping has them (`XFS_RMAP_OFF_*`).
const BMBT: u64 = 1 << 62;
const UNWRITTEN: u64 = 1 << 61;

fn flags(fork: Fork) -> u64 {
    if fork == Fork::Attr { 1 << 63 } else { 0 }
}

/// Blocks from the start of the data section.
fn linear(walk: &Walk<'_>, block: FsBlock) -> Option<u64> {
    let (ag, within) = walk.geometry().split(block)?;
    u64::from(ag.0).checked_mul(u64::from(walk.geometry().ag_blocks))?.checked_add(within.get())
}

fn extent_claim(walk: &Walk<'_>, inode: Inode<'_>, fork: Fork, extent: &Extent) -> Result<Claim, Error> {
    let realtime = on_realtime(inode, fork);
    let geometry = walk.geometry();
    let start = locate(geometry, realtime, extent.startblock, extent.blockcount).and_then(|_| match realtime {
        true => geometry.realtime.as_ref()?.linear(RtBlock(extent.startblock.0)),
        false => linear(walk, extent.startblock),
    });
    let start = start.ok_or_else(|| nowhere(walk, inode, fork, extent))?;
    let state = if extent.unwritten { UNWRITTEN } else { 0 };
    let offset = Offset(flags(fork) | state | extent.startoff.0 & OFFSET);
    Ok(Claim { realtime, record: Record { start, length: u64::from(extent.blockcount), owner: inode.ino.0, offset } })
}

/// Bits of an offset within a file.
const OFFSET: u64 = (1 << 54) - 1;

/// The ranges of an AG.
pub(super) fn ag(
    walk: &Walk<'_>,
    number: AgNumber,
    group: &Group,
    scan: &mut Scan<'_>,
    report: &mut dyn FnMut(Error),
    out: &mut Emitter<'_, '_>,
) -> ControlFlow<()> {
    let mut own = metadata::ag(walk, number, group, report);
    merge(&mut own.records);
    out.missing(Missing::Unknown, Some(group.byte))?;
    let mut records = own.records.into_iter().map(Ok);
    ranges(false, group, scan, (&mut records, &own.shared), report, out)
}

/// The ranges of a realtime group, or of all of a section without groups.
pub(super) fn realtime(
    walk: &Walk<'_>,
    number: RgNumber,
    group: &Group,
    (files, scan): (&GroupFiles, &mut Scan<'_>),
    report: &mut dyn FnMut(Error),
    out: &mut Emitter<'_, '_>,
) -> ControlFlow<()> {
    let Some(rt) = &walk.geometry().realtime else { return ControlFlow::Continue(()) };
    let mut own = metadata::realtime(walk, number, files, report);
    // Zoned devices keep no account of free space.
    let zoned = walk.context().features.has_zoned();
    out.missing(if zoned { Missing::Free } else { Missing::Unknown }, Some(group.byte))?;
    let size = u64::from(rt.extent_blocks);
    let free = metadata::realtime_free(walk, number, group, files, report).into_iter().flatten();
    let mut free = free.map(|run| {
        run.map(|(start, length)| Record::special(start.saturating_mul(size), length.saturating_mul(size), owner::NULL))
    });
    if rt.groups.is_none() {
        // One group as large as the device: its free runs are not held.
        return ranges(true, group, scan, (&mut free, &own.shared), report, out);
    }
    for run in free {
        match run {
            Ok(record) => own.records.push(record),
            Err(error) => report(error),
        }
    }
    merge(&mut own.records);
    own.records.retain(|record| record.end() <= group.blocks);
    let mut records = own.records.into_iter().map(Ok);
    ranges(true, group, scan, (&mut records, &own.shared), report, out)
}

/// Puts together what files and what the group itself claim.
fn ranges(
    realtime: bool,
    group: &Group,
    scan: &mut Scan<'_>,
    (own, shared): (&mut dyn Iterator<Item = Result<Record, Error>>, &metadata::Extents),
    report: &mut dyn FnMut(Error),
    out: &mut Emitter<'_, '_>,
) -> ControlFlow<()> {
    let mut own = own.peekable();
    // No device has blocks where the mark of the realtime section stands: a length that reaches there is damage.
    let (mut at, end) = (group.first, group.first.saturating_add(group.blocks).min(REALTIME.saturating_sub(1)));
    while at < end {
        let (mut files, until) = scan.next(realtime, (at, end), report);
        for record in &mut files {
            record.start = record.start.saturating_sub(group.first);
        }
        merge(&mut files);
        let mut before = |limit: u64, report: &mut dyn FnMut(Error), out: &mut Emitter<'_, '_>| {
            while let Some(next) = own.next_if(|next| next.as_ref().map_or(true, |next| next.start < limit)) {
                match next {
                    Ok(record) => out.record(group, &record, false)?,
                    Err(error) => report(error),
                }
            }
            ControlFlow::Continue(())
        };
        for record in &files {
            before(record.start, report, out)?;
            out.record(group, record, record.is_shareable() && metadata::overlaps(shared, record))?;
        }
        before(until.saturating_sub(group.first), report, out)?;
        at = until.max(at.saturating_add(1));
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(start: u64) -> Claim {
        let record = Record { start, length: 1, owner: 131, offset: Offset(0) };
        Claim { realtime: false, record }
    }

    #[test]
    fn halves() {
        let mut claims: Vec<Claim> = (0..LIMIT as u64).rev().map(claim).collect();
        assert_eq!(shrink(&mut claims, u64::MAX, None), (HALF as u64, None));
        assert_eq!(claims.len(), HALF);
        // Most of them at one block: that block stays whole.
        let mut claims: Vec<Claim> =
            (0..LIMIT as u64).map(|n| claim(if n + 5 < LIMIT as u64 { 7 } else { n })).collect();
        assert_eq!(shrink(&mut claims, u64::MAX, None), (LIMIT as u64 - 5, None));
        // All of them: not all can be kept.
        let mut claims = vec![claim(7); LIMIT];
        assert_eq!(shrink(&mut claims, 9, None), (9, Some(7)));
        assert_eq!(claims.len(), HALF);
    }
}
