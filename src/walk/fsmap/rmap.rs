//! From reverse mapping btrees to ranges. `xfs_getfsmap_datadev_rmapbt`, `xfs_getfsmap_rtdev_rmapbt` (xfs_fsmap.c).

use super::emit::{Emitter, Missing};
use super::{Group, GroupFiles, Record, metadata};
use crate::error::{Error, Place};
use crate::format::agf::Agf;
use crate::format::dinode::Fork;
use crate::format::rmapbt::{self, Mapping};
use crate::format::rtrmapbt;
use crate::units::{AgNumber, RgNumber};
use crate::walk::btree::{Blocks, Root};
use crate::walk::metadir::GroupFile;
use crate::walk::{Walk, corrupt, group};
use std::ops::ControlFlow;

/// The ranges of an AG.
pub(super) fn ag(
    walk: &Walk<'_>,
    number: AgNumber,
    group: &Group,
    report: &mut dyn FnMut(Error),
    out: &mut Emitter<'_, '_>,
) -> ControlFlow<()> {
    let agf = match group::agf(walk, number, report) {
        Ok(agf) => agf,
        Err(error) => {
            report(error);
            out.missing(Missing::Unknown, Some(group.byte))?;
            return out.missing(Missing::Free, Some(group.end_byte(walk.geometry())));
        }
    };
    let shared = metadata::shared(walk, number, &agf, report);
    let blocks = Blocks::new(walk, &rmapbt::SHAPE, group::rmapbt(number, &agf));
    ranges(walk, group, blocks, (&shared, Some((number, &agf))), report, out)
}

/// The ranges of a realtime group.
pub(super) fn realtime(
    walk: &Walk<'_>,
    number: RgNumber,
    group: &Group,
    files: &GroupFiles,
    report: &mut dyn FnMut(Error),
    out: &mut Emitter<'_, '_>,
) -> ControlFlow<()> {
    let Some(file) = files.open(walk, number, GroupFile::Rmap, report) else {
        out.missing(Missing::Unknown, Some(group.byte))?;
        return out.missing(Missing::Free, Some(group.end_byte(walk.geometry())));
    };
    let shared = metadata::realtime_shared(walk, number, files, report);
    let bytes = file.inode().fork(Fork::Data).unwrap_or_default();
    let blocks = Blocks::new(walk, &rtrmapbt::SHAPE, Root::Fork { ino: file.ino(), bytes });
    ranges(walk, group, blocks, (&shared, None), report, out)
}

fn ranges(
    walk: &Walk<'_>,
    group: &Group,
    mut blocks: Blocks<'_>,
    (shared, ag): (&metadata::Extents, Option<(AgNumber, &Agf)>),
    report: &mut dyn FnMut(Error),
    out: &mut Emitter<'_, '_>,
) -> ControlFlow<()> {
    let mut lost = false;
    while let Some(next) = blocks.advance() {
        let problem = match (next, blocks.current()) {
            (Err(error), _) => Some(error),
            (Ok(()), None) => None,
            (Ok(()), Some(block)) => {
                let mut problem = None;
                for mapping in block.records().filter_map(|bytes| Mapping::at(bytes, 0)) {
                    let record = Record::from(mapping);
                    if record.end() > group.blocks || record.length == 0 || record.owner().is_none() {
                        problem = Some(refused(blocks.place(block.at), &record, group));
                        continue;
                    }
                    out.record(group, &record, record.is_shareable() && metadata::overlaps(shared, &record))?;
                }
                problem
            }
        };
        if let Some(error) = problem {
            report(error);
            // From here on a gap can be what is lost, and only the free space btree tells.
            if !std::mem::replace(&mut lost, true) {
                let size = walk.geometry().block_size();
                let byte = |block: u64| group.byte.saturating_add(block.saturating_mul(size));
                let free = ag.map(|(number, agf)| metadata::free(walk, number, agf, report)).unwrap_or_default();
                let free = free.into_iter().map(|(start, end)| (byte(start), byte(end))).collect();
                out.missing(Missing::Listed(free), Some(group.byte))?;
            }
        }
    }
    out.missing(Missing::Free, Some(group.end_byte(walk.geometry())))
}

fn refused(place: Place, record: &Record, group: &Group) -> Error {
    if record.owner().is_none() {
        let owner = record.owner.cast_signed();
        return corrupt(place, "owner of a mapping", owner, "an inode, or -1 to -9");
    }
    let found = format!("{} (+{})", record.start, record.length);
    corrupt(place, "the mapping lies outside the group", found, format_args!("blocks below {}", group.blocks))
}
