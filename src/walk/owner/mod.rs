//! Who owns a byte: the section and group it lies in, everybody who claims its block, and what exactly lies there.
//!
//! Where there is a reverse mapping btree, a few blocks of it answer. Where there is none, or what would answer is
//! damaged, the headers and btrees of the group do, and, if none of them claims the block, all inodes, once for all that
//! is asked. A record is then what its claimant has, not what a reverse mapping btree would have put together.

mod detail;
mod lookup;

pub use detail::{Detail, FilePart, Role};

use super::fsmap::{self, Owner, Range, Record, scan};
use super::{Walk, corrupt};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber, ByteOffset, Device, FsBlock, RgNumber, RtBlock, RtExtent};
use std::cell::Cell;

/// Where a byte lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// In an AG.
    Data {
        /// The AG.
        ag: AgNumber,
        /// Its block.
        ag_block: AgBlock,
        /// The block of the data device.
        block: FsBlock,
    },
    /// In the realtime section.
    Realtime {
        /// The group; `None` where there are none.
        group: Option<RgNumber>,
        /// Block of the group, or of the section.
        group_block: u64,
        /// The block as files map it.
        block: RtBlock,
        /// The realtime extent, counted over all groups.
        extent: RtExtent,
    },
    /// In an external log.
    Log {
        /// Its block.
        block: u64,
    },
}

/// A byte and who claims it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The device: [`Device::Rt`] for an internal realtime section, too.
    pub device: Device,
    /// The byte. Bytes of an internal realtime section count from the start of the data device.
    pub byte: ByteOffset,
    /// Where that is.
    pub spot: Spot,
    /// Byte within the block.
    pub within: u64,
    /// Everybody who claims the block, with what exactly lies at the byte. Nobody: one range, free or unknown.
    pub owners: Vec<(Range, Detail)>,
}

/// Where a byte of a device lies; `None` outside the file system.
pub fn spot(geometry: &Geometry, device: Device, byte: ByteOffset) -> Option<(Device, Spot, u64)> {
    let size = geometry.block_size();
    if device == Device::Log {
        let block = byte.0.checked_div(size)?;
        let there = geometry.log_start.is_none() && block < u64::from(geometry.log_blocks);
        return there.then_some((Device::Log, Spot::Log { block }, byte.0.checked_rem(size)?));
    }
    if device == Device::Data
        && let Some((block, within)) = geometry.byte_block(byte)
    {
        let (ag, ag_block) = geometry.split(block)?;
        return Some((Device::Data, Spot::Data { ag, ag_block, block }, u64::from(within)));
    }
    // An internal realtime section lies behind the data section on the same device.
    let rt = geometry.realtime.as_ref().filter(|rt| device == Device::Rt || rt.device == device)?;
    let (block, within) = geometry.byte_rt_block(byte)?;
    let (group, group_block) = rt.split(block)?;
    let extent = rt.extent_of(block)?;
    let group = rt.groups.is_some().then_some(group);
    Some((Device::Rt, Spot::Realtime { group, group_block, block, extent }, u64::from(within)))
}

/// What to ask.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Believe the reverse mapping btrees where there are any? Otherwise all inodes are read, and everybody who claims a
    /// block is told, also where that is a fault.
    pub rmap: bool,
}

/// Who owns each of these bytes. Bytes outside the file system are left out; what is wrong goes to `report`.
pub fn of(
    walk: &Walk<'_>,
    bytes: &[(Device, ByteOffset)],
    options: Options,
    report: &mut dyn FnMut(Error),
) -> Vec<Answer> {
    let geometry = walk.geometry();
    let spots = bytes.iter().filter_map(|&(device, byte)| {
        let (device, spot, within) = spot(geometry, device, byte)?;
        Some(Answer { device, byte, spot, within, owners: Vec::new() })
    });
    let mut answers: Vec<Answer> = spots.collect();
    // Was something missing of what says who owns blocks?
    let partly = Cell::new(false);
    let mut report = |error: Error| match &error {
        Error::Corrupt { what, place, .. } if what == NOBODY && partly.get() => {
            let text =
                format!("{place}: no owner was found, but not everything could be looked at: who owns it is not known");
            report(Error::request(text));
        }
        _ => {
            partly.set(partly.get() || !matches!(&error, Error::Corrupt { what, .. } if what == NOBODY));
            report(error);
        }
    };
    let report: &mut dyn FnMut(Error) = &mut report;
    let files = fsmap::GroupFiles::load(walk, report);
    let mut lookup = lookup::Lookup::new(walk, &files, options.rmap);
    let mut records: Vec<lookup::Found> = Vec::new();
    for answer in &answers {
        records.push(lookup.claims(answer, report));
    }
    scan_files(walk, &answers, &mut records, options, report);
    for (answer, found) in answers.iter_mut().zip(records) {
        let mut owners: Vec<Range> = Vec::new();
        for record in &found.records {
            owners.extend(range(geometry, answer, &found.group, record, found.is_shared(record)));
        }
        if owners.is_empty() {
            owners.push(lookup.unclaimed(answer, &found, report));
        }
        for owner in owners {
            let detail = detail::of(walk, answer, &owner, report);
            answer.owners.push((owner, detail));
        }
    }
    answers
}

/// Looks for files that claim the blocks for which nobody was found by other means.
fn scan_files(
    walk: &Walk<'_>,
    answers: &[Answer],
    records: &mut [lookup::Found],
    options: Options,
    report: &mut dyn FnMut(Error),
) {
    // Section, block from its start, and which answer it is.
    let mut open: Vec<(bool, u64, usize)> = Vec::new();
    for (i, (answer, found)) in answers.iter().zip(records.iter()).enumerate() {
        if !found.by_rmap && (found.records.is_empty() || !options.rmap) {
            open.push((answer.device == Device::Rt, found.linear(), i));
        }
    }
    if open.is_empty() {
        return;
    }
    scan::each_claim(walk, report, &mut |claim| {
        for &(realtime, block, i) in &open {
            if claim.realtime == realtime
                && claim.record.start <= block
                && block < claim.record.end()
                && let Some(found) = records.get_mut(i)
            {
                let start = claim.record.start.saturating_sub(found.group.first);
                // A free range that a file claims, too, is no answer, but a fault.
                found.records.push(Record { start, ..claim.record });
            }
        }
    });
    for &(_, _, i) in &open {
        if let Some(found) = records.get_mut(i) {
            fsmap::merge(&mut found.records);
        }
    }
}

/// A record as a range of the device.
fn range(geometry: &Geometry, answer: &Answer, group: &fsmap::Group, record: &Record, shared: bool) -> Option<Range> {
    let size = geometry.block_size();
    let start = ByteOffset(group.byte.checked_add(record.start.checked_mul(size)?)?);
    let length = record.length.checked_mul(size)?;
    let within = record.start.checked_mul(size)?;
    let number = match answer.spot {
        Spot::Data { ag, .. } => Some(ag.0),
        Spot::Realtime { group, .. } => group.map(|group| group.0),
        Spot::Log { .. } => None,
    };
    let group = number.map(|number| (number, within));
    Some(Range { device: answer.device, start, length, group, owner: record.owner()?, shared })
}

const NOBODY: &str = "the block has no owner";

/// The error for a block that is neither owned nor free.
fn nobody(walk: &Walk<'_>, answer: &Answer) -> Error {
    let length = walk.geometry().block_size();
    let byte = ByteOffset(answer.byte.0.saturating_sub(answer.within));
    let place = crate::error::Place::new(answer.device, byte, length, "a block");
    corrupt(place, NOBODY, "neither a mapping nor a free extent", "one of them")
}

/// Is this the range of somebody?
pub fn is_owned(range: &Range) -> bool {
    !matches!(range.owner, Owner::Free | Owner::Unknown)
}
