//! AGs and realtime groups as stretches of their device, and the metadata files of realtime groups.

use crate::error::Error;
use crate::geometry::Geometry;
use crate::units::{AgNumber, ByteOffset, Device, Ino, RgBlock, RgNumber, RtBlock};
use crate::walk::metadir::{self, GroupFile};
use crate::walk::{InodeBlock, Walk, directory};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A stretch of a device with its own metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// First block, from the start of the section.
    pub first: u64,
    /// Length in blocks.
    pub blocks: u64,
    /// First byte on the device.
    pub byte: u64,
}

impl Group {
    /// First byte behind it.
    pub fn end_byte(&self, geometry: &Geometry) -> u64 {
        self.byte.saturating_add(self.blocks.saturating_mul(geometry.block_size()))
    }
}

/// An AG; `None` where there is none of that number.
pub fn ag(geometry: &Geometry, number: AgNumber) -> Option<Group> {
    let blocks = u64::from(geometry.ag_length(number)?);
    let first = u64::from(number.0).checked_mul(u64::from(geometry.ag_blocks))?;
    Some(Group { first, blocks, byte: geometry.ag_start(number)?.0 })
}

/// A realtime group, or all of a realtime section without groups; `None` where there is none of that number.
pub fn realtime_group(geometry: &Geometry, number: RgNumber) -> Option<Group> {
    let rt = geometry.realtime.as_ref()?;
    if rt.groups.is_none() {
        return (number.0 == 0).then_some(Group { first: 0, blocks: rt.blocks, byte: rt.start_bytes });
    }
    let block = rt.join(number, RgBlock(0))?;
    let (_, byte) = geometry.rt_block_byte(block)?;
    Some(Group { first: rt.linear(block)?, blocks: rt.group_blocks(number)?, byte: byte.0 })
}

/// Realtime groups that can be asked for: each has metadata files, so that a count that is too large costs nothing.
pub(crate) fn realtime_numbers(geometry: &Geometry, files: &GroupFiles) -> Numbers {
    let Some(rt) = &geometry.realtime else { return Numbers { next: 0, end: 0 } };
    let Some(groups) = &rt.groups else { return Numbers { next: 0, end: 1 } };
    Numbers { next: 0, end: groups.count.min(u32::try_from(files.files.len()).unwrap_or(u32::MAX)) }
}

/// Numbers of realtime groups.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    next: u32,
    /// First number that is not among them.
    pub(crate) end: u32,
}

impl Iterator for Numbers {
    type Item = RgNumber;

    fn next(&mut self) -> Option<RgNumber> {
        let number = self.next;
        self.next = number.checked_add(1)?;
        (number < self.end).then_some(RgNumber(number))
    }

    fn last(self) -> Option<RgNumber> {
        self.end.checked_sub(1).filter(|&last| last >= self.next).map(RgNumber)
    }
}

/// AG or realtime group of a byte, and the byte within it.
pub(super) fn group_of(geometry: &Geometry, device: Device, byte: ByteOffset) -> Option<(u32, u64)> {
    let (number, group) = match device {
        Device::Data => {
            let (block, _) = geometry.byte_block(byte)?;
            let (number, _) = geometry.split(block)?;
            (number.0, ag(geometry, number)?)
        }
        Device::Rt => {
            let rt = geometry.realtime.as_ref().filter(|rt| rt.groups.is_some())?;
            let (block, _) = geometry.byte_rt_block(byte)?;
            let (number, _) = rt.split(RtBlock(block.0))?;
            (number.0, realtime_group(geometry, number)?)
        }
        Device::Log => return None,
    };
    Some((number, byte.0.checked_sub(group.byte)?))
}

/// The metadata files of all realtime groups. Memory: a few numbers for each file.
#[derive(Debug, Default)]
pub(crate) struct GroupFiles {
    files: HashMap<(u32, &'static str), Ino>,
}

impl GroupFiles {
    /// Reads the directory of these files; empty where there are no groups.
    pub(crate) fn load(walk: &Walk<'_>, report: &mut dyn FnMut(Error)) -> Self {
        let mut all = Self::default();
        if walk.geometry().realtime.as_ref().is_none_or(|rt| rt.groups.is_none()) {
            return all;
        }
        let block = match metadir::open(walk, "rtgroups", report) {
            Ok(block) => block,
            Err(error) => {
                report(error);
                return all;
            }
        };
        let _ = directory::for_each(walk, block.inode(), report, |entry| {
            if let Some((number, kind)) = parse(entry.name) {
                all.files.insert((number, kind.name()), entry.ino);
            }
            ControlFlow::Continue(())
        });
        all
    }

    /// The inode of a file of a group. What keeps it from being read goes to `report`.
    pub(crate) fn open(
        &self,
        walk: &Walk<'_>,
        group: RgNumber,
        file: GroupFile,
        report: &mut dyn FnMut(Error),
    ) -> Option<InodeBlock> {
        let Some(&ino) = self.files.get(&(group.0, file.name())) else {
            report(Error::request(format!("rtgroups/{group}.{}: there is no such metadata file", file.name())));
            return None;
        };
        walk.inode(ino).map_err(report).ok()
    }
}

/// Group and kind of a file: `0.rmap`.
fn parse(name: &[u8]) -> Option<(u32, GroupFile)> {
    let (number, kind) = std::str::from_utf8(name).ok()?.split_once('.')?;
    let all = [GroupFile::Bitmap, GroupFile::Summary, GroupFile::Rmap, GroupFile::Refcount];
    let kind = all.into_iter().find(|file| file.name() == kind)?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok()).flatten().map(|number| (number, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_group_files() {
        assert_eq!(parse(b"12.rmap"), Some((12, GroupFile::Rmap)));
        assert_eq!(parse(b"0.bitmap"), Some((0, GroupFile::Bitmap)));
        for bad in [&b"rmap"[..], b"+1.rmap", b"1.other", b".rmap", b"99999999999.rmap", b"\xff.rmap"] {
            assert_eq!(parse(bad), None);
        }
    }

    #[test]
    fn numbers_end() {
        assert_eq!(Numbers { next: 0, end: 3 }.collect::<Vec<_>>(), [RgNumber(0), RgNumber(1), RgNumber(2)]);
        assert_eq!(Numbers { next: 0, end: 0 }.last(), None);
        assert_eq!(Numbers { next: 0, end: u32::MAX }.last(), Some(RgNumber(u32::MAX - 1)));
    }
}
