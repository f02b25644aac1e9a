//! Which blocks are shared between files: from the refcount btrees, loaded per group when first asked for.
//! `xfs_reflink_trim_around_shared` (xfs_reflink.c).

use super::btree::{Blocks, Root};
use super::metadir::GroupFile;
use super::{Walk, group, metadir};
use crate::error::Error;
use crate::format::dinode::Fork;
use crate::format::{refcountbt, rtrefcountbt};
use crate::units::{AgNumber, FsBlock, RgNumber, RtBlock};
use std::collections::HashMap;

/// Start and length of each shared extent of a group, in order.
type Ranges = Vec<(u32, u32)>;

/// What is known of shared blocks. Holds the refcount records of the groups that were asked for.
#[derive(Debug)]
pub struct Shared<'a> {
    walk: &'a Walk<'a>,
    data: HashMap<AgNumber, Option<Ranges>>,
    realtime: HashMap<RgNumber, Option<Ranges>>,
}

impl<'a> Shared<'a> {
    /// Nothing loaded so far.
    pub fn new(walk: &'a Walk<'a>) -> Self {
        Self { walk, data: HashMap::new(), realtime: HashMap::new() }
    }

    /// Cuts `blocks` blocks from `start` on where sharing begins or ends: lengths in order, with shared or not, `None`
    /// where that is not known. What is wrong goes to `report`.
    pub fn pieces(
        &mut self,
        realtime: bool,
        start: FsBlock,
        blocks: u32,
        report: &mut dyn FnMut(Error),
    ) -> Vec<(u32, Option<bool>)> {
        let walk = self.walk;
        if !walk.context().features.has_reflink() {
            return vec![(blocks, Some(false))];
        }
        let (ranges, first) = if realtime {
            let split = walk.geometry().realtime.as_ref().and_then(|rt| rt.split(RtBlock(start.0)));
            let Some((group, within)) = split else { return vec![(blocks, None)] };
            let ranges = self.realtime.entry(group).or_insert_with(|| load_realtime(walk, group, report));
            (ranges, within)
        } else {
            let Some((ag, within)) = walk.geometry().split(start) else { return vec![(blocks, None)] };
            (self.data.entry(ag).or_insert_with(|| load(walk, ag, report)), within.get())
        };
        match ranges {
            Some(ranges) => cut(ranges, first, blocks),
            None => vec![(blocks, None)],
        }
    }
}

/// Cuts `first..first + blocks` at the ranges.
fn cut(ranges: &[(u32, u32)], first: u64, blocks: u32) -> Vec<(u32, Option<bool>)> {
    let end = first.saturating_add(u64::from(blocks));
    let mut at = first;
    let mut pieces: Vec<(u32, Option<bool>)> = Vec::new();
    let mut push = |from: &mut u64, to: u64, shared| {
        if let Some(length) = to.checked_sub(*from).filter(|&n| n > 0).and_then(|n| u32::try_from(n).ok()) {
            match pieces.last_mut() {
                Some((before, state)) if *state == Some(shared) => *before = before.saturating_add(length),
                _ => pieces.push((length, Some(shared))),
            }
            *from = to;
        }
    };
    let skip = ranges.partition_point(|&(start, length)| u64::from(start).saturating_add(u64::from(length)) <= first);
    for &(start, length) in ranges.iter().skip(skip) {
        let (start, stop) = (u64::from(start), u64::from(start).saturating_add(u64::from(length)));
        if start >= end {
            break;
        }
        push(&mut at, start.min(end), false);
        push(&mut at, stop.min(end), true);
    }
    push(&mut at, end, false);
    pieces
}

fn collect(mut blocks: Blocks<'_>, report: &mut dyn FnMut(Error)) -> Option<Ranges> {
    let mut ranges = Ranges::new();
    let mut complete = true;
    while let Some(block) = blocks.next_block() {
        match block {
            Ok(block) => {
                let records = block.records().filter_map(|record| refcountbt::Shared::at(record, 0));
                let shared = records.filter(|record| !record.cow && record.refcount > 1);
                ranges.extend(shared.map(|record| (record.startblock.0, record.blockcount.0)));
            }
            Err(error) => {
                report(error);
                complete = false;
            }
        }
    }
    ranges.sort_unstable();
    complete.then_some(ranges)
}

fn load(walk: &Walk<'_>, ag: AgNumber, report: &mut dyn FnMut(Error)) -> Option<Ranges> {
    match group::agf(walk, ag, report) {
        Ok(agf) => collect(Blocks::new(walk, &refcountbt::SHAPE, group::refcountbt(ag, &agf)), report),
        Err(error) => {
            report(error);
            None
        }
    }
}

fn load_realtime(walk: &Walk<'_>, rg: RgNumber, report: &mut dyn FnMut(Error)) -> Option<Ranges> {
    match metadir::group_file(walk, rg, GroupFile::Refcount, report) {
        Ok(block) => {
            let inode = block.inode();
            let bytes = inode.fork(Fork::Data).unwrap_or_default();
            collect(Blocks::new(walk, &rtrefcountbt::SHAPE, Root::Fork { ino: inode.ino, bytes }), report)
        }
        Err(error) => {
            report(error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_where_sharing_begins_and_ends() {
        let ranges = [(10, 5), (15, 5), (30, 10)];
        let all = |first, blocks| cut(&ranges, first, blocks);
        assert_eq!(all(0, 5), [(5, Some(false))]);
        assert_eq!(all(8, 4), [(2, Some(false)), (2, Some(true))]);
        assert_eq!(all(12, 30), [(8, Some(true)), (10, Some(false)), (10, Some(true)), (2, Some(false))]);
        assert_eq!(all(40, 0), []);
    }
}
