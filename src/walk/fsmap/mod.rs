//! Every range of every device with its owner, as the kernel's GETFSMAP tells it: from the reverse mapping btrees
//! where there are any ([`rmap`]), else from everything that claims blocks ([`scan`], [`metadata`]).
//!
//! Ranges of a device come in the order of their start. A block that files share comes once for each of them. Between
//! the records of a reverse mapping btree all is free; where blocks are counted together from what claims them, the
//! free space btrees say what is free, and what nobody claims is unknown. `xfs_getfsmap` (xfs_fsmap.c).
//!
//! Memory: the btrees of the group at hand, and at most 2^21 claims of files; where files claim more, the inodes are
//! read again for the next part of the device.

mod emit;
mod groups;
pub(crate) mod metadata;
mod record;
mod rmap;
mod rtfree;
pub(crate) mod scan;

pub use groups::{Group, ag, realtime_group};
pub(crate) use groups::{GroupFiles, realtime_numbers};
pub(crate) use record::merge;
pub use record::{Mapped, Owner, Record};
pub(crate) use rtfree::{FreeRuns, bitmap};

use super::Walk;
use super::group::numbers;
use crate::error::Error;
use crate::geometry::Geometry;
use crate::units::{ByteOffset, Device};
use crate::volume::Volume;
use emit::{Emitter, Missing};
use std::ops::ControlFlow;

/// A range of a device that belongs to one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The device; [`Device::Rt`] for an internal realtime section, too.
    pub device: Device,
    /// First byte. Bytes of an internal realtime section count from the start of the data device.
    pub start: ByteOffset,
    /// Length in bytes.
    pub length: u64,
    /// AG or realtime group, and the first byte within it; `None` on the log and where there are no groups.
    pub group: Option<(u32, u64)>,
    /// Whose it is.
    pub owner: Owner,
    /// Is any block of it shared between files? Only written data is looked up, as in the kernel.
    pub shared: bool,
}

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Only this device.
    pub device: Option<Device>,
    /// Only these bytes of each device. Records that reach over an end come whole, gaps are cut.
    pub bytes: std::ops::Range<u64>,
    /// Use the reverse mapping btrees where there are any? Otherwise all inodes are read.
    pub rmap: bool,
}

impl Default for Query {
    fn default() -> Self {
        Self { device: None, bytes: 0..u64::MAX, rmap: true }
    }
}

impl Query {
    fn wants(&self, device: Device) -> bool {
        self.device.is_none_or(|only| only == device)
    }

    fn wants_group(&self, geometry: &Geometry, group: &Group) -> bool {
        let end = group.byte.saturating_add(group.blocks.saturating_mul(geometry.block_size()));
        group.byte < self.bytes.end && self.bytes.start < end
    }
}

/// What comes to the ranges, one after the other.
pub type Each<'a> = dyn FnMut(&Range) -> ControlFlow<()> + 'a;

/// Comes to the ranges of the data device, the realtime section and an external log, in this order. What is wrong goes
/// to `report`; blocks whose owner is lost by it are unknown.
pub fn for_each(volume: &Volume, query: &Query, report: &mut dyn FnMut(Error), each: &mut Each<'_>) -> ControlFlow<()> {
    let geometry = volume.geometry();
    let mut scan = scan::Scan::new(volume, query);
    if query.wants(Device::Data) {
        data(volume, query, &mut scan, report, each)?;
    }
    if query.wants(Device::Rt) && geometry.realtime.is_some() {
        realtime(volume, query, &mut scan, report, each)?;
    }
    if query.wants(Device::Log) && geometry.log_start.is_none() {
        let length = u64::from(geometry.log_blocks).saturating_mul(geometry.block_size());
        let mut out = Emitter::new(geometry, Device::Log, query, each);
        out.fixed(0, length, Owner::Log)?;
    }
    ControlFlow::Continue(())
}

/// Do the reverse mapping btrees answer for this device?
pub(crate) fn has_rmap(geometry: &Geometry, device: Device) -> bool {
    let groups = geometry.realtime.as_ref().is_some_and(|rt| rt.groups.is_some());
    geometry.context.features.has_rmapbt() && (device == Device::Data || groups)
}

fn data(
    volume: &Volume,
    query: &Query,
    scan: &mut scan::Scan<'_>,
    report: &mut dyn FnMut(Error),
    each: &mut Each<'_>,
) -> ControlFlow<()> {
    let geometry = volume.geometry();
    let walk = Walk::new(volume);
    let by_rmap = query.rmap && has_rmap(geometry, Device::Data);
    let mut out = Emitter::new(geometry, Device::Data, query, each);
    for number in numbers(&walk) {
        let Some(group) = ag(geometry, number) else { break };
        if !query.wants_group(geometry, &group) {
            continue;
        }
        match by_rmap {
            true => rmap::ag(&walk, number, &group, report, &mut out)?,
            false => scan::ag(&walk, number, &group, scan, report, &mut out)?,
        }
    }
    // A device that is cut short: nothing tells what the rest was.
    let last = numbers(&walk).last();
    let complete = last.is_some_and(|last| last.0.checked_add(1) == Some(geometry.ag_count));
    if !complete {
        out.missing(Missing::Unknown, last.and_then(|last| ag(geometry, last)).map(|g| g.end_byte(geometry)))?;
    }
    out.gap(geometry.data_bytes().unwrap_or(u64::MAX))
}

fn realtime(
    volume: &Volume,
    query: &Query,
    scan: &mut scan::Scan<'_>,
    report: &mut dyn FnMut(Error),
    each: &mut Each<'_>,
) -> ControlFlow<()> {
    let geometry = volume.geometry();
    let Some(rt) = &geometry.realtime else { return ControlFlow::Continue(()) };
    let walk = Walk::new(volume);
    let by_rmap = query.rmap && has_rmap(geometry, Device::Rt);
    let files = GroupFiles::load(&walk, report);
    let mut out = Emitter::new(geometry, Device::Rt, query, each);
    if rt.start_bytes > 0 {
        // The kernel says so of the data section when it is asked for the realtime section behind it.
        out.fixed(0, rt.start_bytes, Owner::Fs)?;
    }
    let all = realtime_numbers(geometry, &files);
    for number in all.clone() {
        let Some(group) = realtime_group(geometry, number) else { break };
        if !query.wants_group(geometry, &group) {
            continue;
        }
        match by_rmap {
            true => rmap::realtime(&walk, number, &group, &files, report, &mut out)?,
            false => scan::realtime(&walk, number, &group, (&files, &mut *scan), report, &mut out)?,
        }
    }
    let last = all.clone().last().and_then(|last| realtime_group(geometry, last));
    let groups = rt.groups.as_ref().map_or(1, |groups| groups.count);
    if all.end < groups {
        let end = all.end;
        report(Error::request(format!(
            "realtime groups {end} to {}: without metadata files",
            groups.saturating_sub(1)
        )));
        out.missing(Missing::Unknown, Some(last.map_or(rt.start_bytes, |group| group.end_byte(geometry))))?;
    }
    let length = rt.blocks.saturating_mul(geometry.block_size());
    if rt.start_bytes > 0 {
        // GETFSMAP takes the length of an internal section for its end, and leaves out what is free behind it. It is
        // a range of its own here, so that those of the kernel stay what they are.
        out.gap(length)?;
    }
    let end = groups.checked_sub(1).and_then(|last| realtime_group(geometry, crate::units::RgNumber(last)));
    let end = match &rt.groups {
        Some(groups) if groups.gaps => end.map(|group| group.end_byte(geometry)),
        _ => rt.start_bytes.checked_add(length),
    };
    out.gap(end.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::format::Structure;
    use crate::format::superblock::Superblock;
    use crate::geometry::Geometry;
    use crate::units::{AgNumber, Blocks, RtExtent};

    /// Four AGs of 1000 blocks of 4 KiB.
    pub(super) fn geometry() -> Geometry {
        let mut sb = Superblock::decode(&[0; 288]).expect("288 bytes");
        (sb.versionnum, sb.blocksize, sb.blocklog, sb.sectsize, sb.sectlog) = (0xb4b5, 4096, 12, 512, 9);
        (sb.inodesize, sb.inodelog, sb.inopblog, sb.agblocks, sb.agblklog) = (512, 9, 3, 1000, 10);
        (sb.agcount, sb.dblocks, sb.rextsize) = (AgNumber(4), Blocks(4000), 1);
        sb.rextents = RtExtent(0);
        Geometry::new(&sb, (0, 0)).expect("sane")
    }
}
