//! From a block to the records that claim it: by key in the btrees of its group, without reading the rest of them.

use super::{Answer, Spot, nobody};
use crate::error::Error;
use crate::format::agf::Agf;
use crate::format::dinode::Fork;
use crate::format::refcountbt::Shared;
use crate::format::rmapbt::{self, Key, Mapping, owner};
use crate::format::{bits, bnobt, refcountbt, rtrefcountbt, rtrmapbt};
use crate::units::{AgNumber, ByteOffset, Device, RgNumber};
use crate::walk::btree::{Blocks, Child, Root};
use crate::walk::fsmap::{self, Group, GroupFiles, Owner, Query, Range, Record, metadata};
use crate::walk::metadir::GroupFile;
use crate::walk::{Walk, group};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// What was found about a block.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Its group.
    pub(super) group: Group,
    /// The block within the group.
    block: u64,
    /// Records that hold it.
    pub(super) records: Vec<Record>,
    /// Extents near it that files share.
    shared: metadata::Extents,
    /// Could everything be read that would claim it?
    complete: bool,
    /// Is the answer from the reverse mapping btree (or needs none), so that no file has to be asked?
    pub(super) by_rmap: bool,
}

impl Found {
    /// The block, from the start of the section.
    pub(super) fn linear(&self) -> u64 {
        self.group.first.saturating_add(self.block)
    }

    pub(super) fn is_shared(&self, record: &Record) -> bool {
        record.is_shareable() && metadata::overlaps(&self.shared, record)
    }
}

/// Looks blocks up. Keeps what the groups claim for themselves, for groups that were asked about.
pub(super) struct Lookup<'a> {
    walk: &'a Walk<'a>,
    files: &'a GroupFiles,
    rmap: bool,
    /// And could all of it be read?
    claims: HashMap<(Device, u32), (metadata::Claims, bool)>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(walk: &'a Walk<'a>, files: &'a GroupFiles, rmap: bool) -> Self {
        Self { walk, files, rmap, claims: HashMap::new() }
    }

    /// Who claims the block of an answer, files aside where only the inodes tell.
    pub(super) fn claims(&mut self, answer: &Answer, report: &mut dyn FnMut(Error)) -> Found {
        let geometry = self.walk.geometry();
        let (group, block) = match answer.spot {
            Spot::Data { ag, ag_block, .. } => (fsmap::ag(geometry, ag), ag_block.get()),
            Spot::Realtime { group, group_block, .. } => {
                (fsmap::realtime_group(geometry, group.unwrap_or_default()), group_block)
            }
            Spot::Log { block } => {
                let group = Group { first: 0, blocks: u64::from(geometry.log_blocks), byte: 0 };
                let records = vec![Record::special(0, group.blocks, owner::LOG)];
                return Found { group, block, records, shared: Vec::new(), complete: true, by_rmap: true };
            }
        };
        let group = group.unwrap_or(Group { first: 0, blocks: 0, byte: 0 });
        let mut found = Found { group, block, records: Vec::new(), shared: Vec::new(), complete: true, by_rmap: true };
        if self.rmap && fsmap::has_rmap(geometry, answer.device) {
            let mut complete = true;
            let mut note = |error| {
                complete = false;
                report(error);
            };
            match answer.spot {
                Spot::Data { ag, .. } => self.in_ag(ag, &mut found, &mut note),
                Spot::Realtime { group: Some(number), .. } => self.in_realtime(number, &mut found, &mut note),
                _ => {}
            }
            if complete || !found.records.is_empty() {
                found.complete = complete;
                return found;
            }
            // The mapping may stand where the btree is damaged: ask everybody else.
        }
        found.by_rmap = false;
        self.by_group(answer.spot, &mut found, report);
        found
    }

    /// What the group claims for itself.
    fn by_group(&mut self, spot: Spot, found: &mut Found, report: &mut dyn FnMut(Error)) {
        let (walk, files, group) = (self.walk, self.files, found.group);
        let key = match spot {
            Spot::Data { ag, .. } => (Device::Data, ag.0),
            Spot::Realtime { group, .. } => (Device::Rt, group.unwrap_or_default().0),
            Spot::Log { .. } => return,
        };
        let (claims, complete) = self.claims.entry(key).or_insert_with(|| {
            let mut complete = true;
            let mut note = |error| {
                complete = false;
                report(error);
            };
            let mut claims = match spot {
                Spot::Data { ag, .. } => metadata::ag(walk, ag, &group, &mut note),
                _ => metadata::realtime(walk, RgNumber(key.1), files, &mut note),
            };
            fsmap::merge(&mut claims.records);
            (claims, complete)
        });
        let holds = |record: &&Record| record.start <= found.block && found.block < record.end();
        found.records.extend(claims.records.iter().filter(holds));
        found.shared.clone_from(&claims.shared);
        found.complete = *complete;
        if found.records.is_empty() && key.0 == Device::Rt {
            let mut complete = found.complete;
            let mut note = |error| {
                complete = false;
                report(error);
            };
            let run = self.free_run(RgNumber(key.1), &group, found.block, &mut note);
            found.records.extend(run);
            found.complete = complete;
        }
    }

    /// The free run of a realtime bitmap that holds a block.
    fn free_run(&self, number: RgNumber, group: &Group, block: u64, report: &mut dyn FnMut(Error)) -> Option<Record> {
        let size = u64::from(self.walk.geometry().realtime.as_ref()?.extent_blocks);
        for run in metadata::realtime_free(self.walk, number, group, self.files, report)? {
            match run {
                Ok((start, length)) => {
                    let run = Record::special(start.saturating_mul(size), length.saturating_mul(size), owner::NULL);
                    if run.start > block {
                        break;
                    }
                    if block < run.end() {
                        return Some(run);
                    }
                }
                Err(error) => report(error),
            }
        }
        None
    }

    fn in_ag(&self, ag: AgNumber, found: &mut Found, report: &mut dyn FnMut(Error)) {
        match group::agf(self.walk, ag, report) {
            Ok(agf) => {
                let root = group::rmapbt(ag, &agf);
                mappings(Blocks::only(self.walk, &rmapbt::SHAPE, root, reaches(found.block)), found, report);
                if let Some((from, to)) = found.shareable()
                    && self.walk.context().features.has_reflink()
                {
                    let root = group::refcountbt(ag, &agf);
                    let blocks = Blocks::only(self.walk, &refcountbt::SHAPE, root, between(from, to));
                    sharing(blocks, found, report);
                }
            }
            Err(error) => report(error),
        }
    }

    fn in_realtime(&self, number: RgNumber, found: &mut Found, report: &mut dyn FnMut(Error)) {
        let Some(file) = self.files.open(self.walk, number, GroupFile::Rmap, report) else { return };
        let bytes = file.inode().fork(Fork::Data).unwrap_or_default();
        let root = Root::Fork { ino: file.ino(), bytes };
        mappings(Blocks::only(self.walk, &rtrmapbt::SHAPE, root, reaches(found.block)), found, report);
        if !self.walk.context().features.has_reflink() {
            return;
        }
        if let Some((from, to)) = found.shareable()
            && let Some(file) = self.files.open(self.walk, number, GroupFile::Refcount, report)
        {
            let bytes = file.inode().fork(Fork::Data).unwrap_or_default();
            let root = Root::Fork { ino: file.ino(), bytes };
            let blocks = Blocks::only(self.walk, &rtrefcountbt::SHAPE, root, between(from, to));
            sharing(blocks, found, report);
        }
    }

    /// The range of a block that nobody claims: free, or unknown.
    pub(super) fn unclaimed(&self, answer: &Answer, found: &Found, report: &mut dyn FnMut(Error)) -> Range {
        let size = self.walk.geometry().block_size();
        let free = match answer.spot {
            Spot::Data { ag, .. } => self.free_extent(ag, found.block, report),
            Spot::Realtime { .. } => return self.gap(answer, found, report),
            Spot::Log { .. } => None,
        };
        let unknown = Record::special(found.block, 1, owner::UNKNOWN);
        if free.is_none() && found.complete {
            report(nobody(self.walk, answer));
        }
        let whole = super::range(self.walk.geometry(), answer, &found.group, &free.unwrap_or(unknown), false);
        whole.unwrap_or(Range {
            device: answer.device,
            start: ByteOffset(answer.byte.0.saturating_sub(answer.within)),
            length: size,
            group: None,
            owner: Owner::Unknown,
            shared: false,
        })
    }

    /// The free extent of an AG that holds a block.
    fn free_extent(&self, ag: AgNumber, block: u64, report: &mut dyn FnMut(Error)) -> Option<Record> {
        let agf: Agf = group::agf(self.walk, ag, &mut |_| {}).ok()?;
        let end = block.saturating_add(1);
        let mut blocks = Blocks::only(self.walk, &bnobt::SHAPE, group::bnobt(ag, &agf), between(block, end));
        let mut found = None;
        while let Some(leaf) = blocks.next_block() {
            match leaf {
                Ok(leaf) => {
                    let free = leaf.records().filter_map(|bytes| bnobt::FreeExtent::at(bytes, 0));
                    let mut free = free.map(|f| Record::special(f.startblock.get(), f.blockcount.get(), owner::NULL));
                    found = found.or(free.find(|f| f.start <= block && block < f.end()));
                }
                Err(error) => report(error),
            }
        }
        found
    }

    /// The gap between the mappings of a realtime group that holds a byte.
    fn gap(&self, answer: &Answer, found: &Found, report: &mut dyn FnMut(Error)) -> Range {
        let geometry = self.walk.geometry();
        let byte = answer.byte.0.saturating_sub(answer.within);
        let mut range = Range {
            device: answer.device,
            start: ByteOffset(byte),
            length: geometry.block_size(),
            group: None,
            owner: Owner::Unknown,
            shared: false,
        };
        if found.by_rmap && found.complete {
            let bytes = found.group.byte..found.group.end_byte(geometry);
            let query = Query { device: Some(Device::Rt), bytes, rmap: true };
            let _ = fsmap::for_each(self.walk.volume(), &query, report, &mut |item| {
                let holds = item.start.0 <= byte && byte < item.start.0.saturating_add(item.length);
                if holds {
                    range = *item;
                }
                if holds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        } else if let Some(tail) = self.tail(found) {
            // The section is no multiple of an extent: nothing can lie in the rest.
            range.start = ByteOffset(found.group.byte.saturating_add(tail.saturating_mul(geometry.block_size())));
            range.length = found.group.end_byte(geometry).saturating_sub(range.start.0);
        } else if found.complete && self.walk.context().features.has_zoned() {
            // Nothing keeps account of free space there: what no file claims is free, as far as anybody can tell.
            range.owner = Owner::Free;
        } else if found.complete {
            report(nobody(self.walk, answer));
        }
        range
    }
}

impl Lookup<'_> {
    /// First block behind the last whole extent of a section without groups, if the block lies there.
    fn tail(&self, found: &Found) -> Option<u64> {
        let rt = self.walk.geometry().realtime.as_ref().filter(|rt| rt.groups.is_none())?;
        let whole = rt.extents.checked_mul(u64::from(rt.extent_blocks))?;
        (found.block >= whole).then_some(whole)
    }
}

impl Found {
    /// First and last block of the records that can be shared.
    fn shareable(&self) -> Option<(u64, u64)> {
        let records = || self.records.iter().filter(|record| record.is_shareable());
        Some((records().map(|record| record.start).min()?, records().map(Record::end).max()?))
    }
}

/// Children of a reverse mapping btree that can hold mappings of a block.
fn reaches(block: u64) -> impl Fn(&Child<'_>) -> bool {
    move |child| {
        Key::pair(child.key).is_none_or(|(low, high)| low.startblock.get() <= block && block <= high.startblock.get())
    }
}

/// Children of a btree without overlaps that can hold something between two blocks. The first 32 bits of a key are the
/// block where its record begins.
fn between(from: u64, to: u64) -> impl Fn(&Child<'_>) -> bool {
    move |child| {
        let start = |key| bits::be32(key, 0).map(u64::from);
        start(child.key).is_none_or(|start| start < to) && child.next_key.and_then(start).is_none_or(|next| next > from)
    }
}

fn mappings(mut blocks: Blocks<'_>, found: &mut Found, report: &mut dyn FnMut(Error)) {
    let block = found.block;
    while let Some(next) = blocks.next_block() {
        match next {
            Ok(leaf) => {
                let all = leaf.records().filter_map(|bytes| Mapping::at(bytes, 0)).map(Record::from);
                found.records.extend(all.filter(|record| record.start <= block && block < record.end()));
            }
            Err(error) => report(error),
        }
    }
}

fn sharing(mut blocks: Blocks<'_>, found: &mut Found, report: &mut dyn FnMut(Error)) {
    while let Some(next) = blocks.next_block() {
        match next {
            Ok(leaf) => {
                let all = leaf.records().filter_map(|bytes| Shared::at(bytes, 0)).filter(|shared| !shared.cow);
                found
                    .shared
                    .extend(all.map(|s| (s.startblock.get(), s.startblock.get().saturating_add(s.blockcount.get()))));
            }
            Err(error) => report(error),
        }
    }
    found.shared.sort_unstable();
}
