//! What the headers and btrees of a group claim: their own blocks, the log, inode chunks, free and staged extents.

use super::{FreeRuns, Group, GroupFiles, Record, bitmap};
use crate::error::Error;
use crate::format::agf::Agf;
use crate::format::agfl;
use crate::format::btree_block::Shape;
use crate::format::dinode::Fork;
use crate::format::inobt::{self, Chunk, INODES_PER_CHUNK};
use crate::format::refcountbt::{self, Shared};
use crate::format::rmapbt::{self, owner};
use crate::format::{bnobt, cntbt, finobt, rtrefcountbt};
use crate::units::{AgBlock, AgNumber, FsBlock, RgNumber};
use crate::volume::AgHeader;
use crate::walk::btree::{At, Blocks, Root};
use crate::walk::metadir::GroupFile;
use crate::walk::{Walk, corrupt, group};

/// Start and end of extents, in blocks of the group and in order.
pub(crate) type Extents = Vec<(u64, u64)>;

/// Everything that an AG claims.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Whose is what.
    pub(crate) records: Vec<Record>,
    /// What files share.
    pub(crate) shared: Extents,
}

/// Does a record overlap one of these extents?
pub(crate) fn overlaps(extents: &Extents, record: &Record) -> bool {
    let before = extents.partition_point(|&(start, _)| start < record.end());
    before.checked_sub(1).and_then(|last| extents.get(last)).is_some_and(|&(_, end)| end > record.start)
}

/// Comes to the records of the leaves of a btree, and to the blocks of the btree.
fn each(
    walk: &Walk<'_>,
    shape: &'static Shape,
    root: Root<'_>,
    report: &mut dyn FnMut(Error),
    mut block_at: impl FnMut(FsBlock),
    mut record: impl FnMut(&[u8]),
) {
    let mut blocks = Blocks::new(walk, shape, root);
    while let Some(block) = blocks.next_block() {
        match block {
            Ok(block) => {
                if let At::Block(at) = block.at {
                    block_at(at);
                }
                block.records().for_each(&mut record);
            }
            Err(error) => report(error),
        }
    }
}

/// The extents that files share, from refcount records.
fn shared_of(walk: &Walk<'_>, shape: &'static Shape, root: Root<'_>, report: &mut dyn FnMut(Error)) -> Extents {
    let mut extents = Extents::new();
    each(
        walk,
        shape,
        root,
        report,
        |_| {},
        |bytes| {
            extents.extend(Shared::at(bytes, 0).filter(|shared| !shared.cow).map(|shared| span(&shared)));
        },
    );
    extents.sort_unstable();
    extents
}

fn span(shared: &Shared) -> (u64, u64) {
    (shared.startblock.get(), shared.startblock.get().saturating_add(shared.blockcount.get()))
}

/// The extents of an AG that files share; none without feature reflink.
pub(crate) fn shared(walk: &Walk<'_>, ag: AgNumber, agf: &Agf, report: &mut dyn FnMut(Error)) -> Extents {
    if !walk.context().features.has_reflink() {
        return Extents::new();
    }
    shared_of(walk, &refcountbt::SHAPE, group::refcountbt(ag, agf), report)
}

/// The extents of a realtime group that files share; none without feature reflink.
pub(crate) fn realtime_shared(
    walk: &Walk<'_>,
    number: RgNumber,
    files: &GroupFiles,
    report: &mut dyn FnMut(Error),
) -> Extents {
    realtime_refcounts(walk, number, files, report).shared
}

/// The free extents of an AG, from the btree by block.
pub(crate) fn free(walk: &Walk<'_>, ag: AgNumber, agf: &Agf, report: &mut dyn FnMut(Error)) -> Extents {
    let mut extents = Extents::new();
    each(
        walk,
        &bnobt::SHAPE,
        group::bnobt(ag, agf),
        report,
        |_| {},
        |bytes| {
            let free = bnobt::FreeExtent::at(bytes, 0);
            extents.extend(free.map(|f| (f.startblock.get(), f.startblock.get().saturating_add(f.blockcount.get()))));
        },
    );
    extents.sort_unstable();
    extents
}

/// What an AG claims for itself.
pub(crate) fn ag(walk: &Walk<'_>, number: AgNumber, group: &Group, report: &mut dyn FnMut(Error)) -> Claims {
    let geometry = walk.geometry();
    let features = &walk.context().features;
    let mut claims = Claims::default();
    claims.records.push(Record::special(0, header_blocks(walk), owner::FS));
    if let Some((ag, start)) = geometry.log_start.and_then(|log| geometry.split(log))
        && ag == number
    {
        let room = group.blocks.saturating_sub(start.get());
        claims.records.push(Record::special(start.get(), u64::from(geometry.log_blocks).min(room), owner::LOG));
    }
    match group::agf(walk, number, report) {
        Ok(agf) => {
            let mut tree = |shape, root, whose, record: &mut dyn FnMut(&[u8]) -> Option<Record>| {
                own_tree(walk, &mut claims.records, (shape, root, whose), report, record);
            };
            tree(&bnobt::SHAPE, group::bnobt(number, &agf), owner::AG, &mut |bytes| {
                let free = bnobt::FreeExtent::at(bytes, 0)?;
                Some(Record::special(free.startblock.get(), free.blockcount.get(), owner::NULL))
            });
            tree(&cntbt::SHAPE, group::cntbt(number, &agf), owner::AG, &mut |_| None);
            if features.has_rmapbt() {
                tree(&rmapbt::SHAPE, group::rmapbt(number, &agf), owner::AG, &mut |_| None);
            }
            if features.has_reflink() {
                let shared = &mut claims.shared;
                let mut staged = |bytes: &[u8]| staged(shared, bytes);
                let root = group::refcountbt(number, &agf);
                let records = &mut claims.records;
                own_tree(walk, records, (&refcountbt::SHAPE, root, owner::REFC), report, &mut staged);
            }
            match free_list(walk, number, &agf) {
                Ok(blocks) => {
                    let blocks = blocks.into_iter().map(|(_, block)| Record::special(block.get(), 1, owner::AG));
                    claims.records.extend(blocks);
                }
                Err(error) => report(error),
            }
        }
        Err(error) => report(error),
    }
    match group::agi(walk, number, report) {
        Ok(agi) => {
            let context = walk.context();
            let mut chunks = Vec::new();
            own_tree(
                walk,
                &mut claims.records,
                (&inobt::SHAPE, group::inobt(number, &agi), owner::INOBT),
                report,
                &mut |bytes| {
                    let chunk = Chunk::at(context, bytes, 0)?;
                    chunk_blocks(&chunk, geometry.inodes_per_block_log, &mut |start, length| {
                        chunks.push(Record::special(start, length, owner::INODES));
                    });
                    None
                },
            );
            claims.records.append(&mut chunks);
            if features.has_finobt() {
                let tree = (&finobt::SHAPE, group::finobt(number, &agi), owner::INOBT);
                own_tree(walk, &mut claims.records, tree, report, &mut |_| None);
            }
        }
        Err(error) => report(error),
    }
    claims.shared.sort_unstable();
    keep_within(walk, number, group, &mut claims.records, report);
    claims
}

/// Blocks at the beginning of every AG that hold its four header sectors.
pub(crate) fn header_blocks(walk: &Walk<'_>) -> u64 {
    u64::from(walk.context().sector_size).saturating_mul(4).div_ceil(walk.geometry().block_size().max(1))
}

/// Takes note of a shared extent; gives the record of a staged one.
fn staged(shared: &mut Extents, bytes: &[u8]) -> Option<Record> {
    let extent = Shared::at(bytes, 0)?;
    if extent.cow {
        return Some(Record::special(extent.startblock.get(), extent.blockcount.get(), owner::COW));
    }
    shared.push(span(&extent));
    None
}

/// The blocks of a btree, and what its records claim.
fn own_tree(
    walk: &Walk<'_>,
    records: &mut Vec<Record>,
    (shape, root, whose): (&'static Shape, Root<'_>, u64),
    report: &mut dyn FnMut(Error),
    record: &mut dyn FnMut(&[u8]) -> Option<Record>,
) {
    let mut blocks = Vec::new();
    let at = |block| {
        let within = walk.geometry().split(block).map(|(_, within)| within);
        blocks.extend(within.map(|within| Record::special(within.get(), 1, whose)));
    };
    each(walk, shape, root, report, at, |bytes| records.extend(record(bytes)));
    records.append(&mut blocks);
}

/// Slot and block of the free list of an AG: slots `flfirst` to `fllast`, round the end of the sector.
///
/// # Errors
/// [`Error::Io`], [`Error::Corrupt`] where the header counts slots that do not exist.
pub(crate) fn free_list(walk: &Walk<'_>, ag: AgNumber, agf: &Agf) -> Result<Vec<(u32, AgBlock)>, Error> {
    let block = walk.volume().ag_header(ag, AgHeader::Agfl)?;
    let slots = agfl::slots(walk.context());
    if agf.flcount == 0 {
        return Ok(Vec::new());
    }
    if agf.flfirst >= slots || agf.flcount > slots {
        let byte = walk.geometry().ag_header(ag, 1).unwrap_or_default();
        let length = u64::from(walk.context().sector_size);
        let place = crate::error::Place::new(crate::units::Device::Data, byte, length, format!("agf {ag}"));
        let found = format!("flfirst {}, flcount {}", agf.flfirst, agf.flcount);
        return Err(corrupt(place, "slots of the free list", found, format_args!("at most {slots} slots")));
    }
    let slot = |n: u32| {
        let index = agf.flfirst.saturating_add(n).checked_rem(slots)?;
        Some((index, agfl::slot(walk.context(), &block.bytes, index)?))
    };
    Ok((0..agf.flcount).filter_map(slot).filter(|(_, block)| !block.is_null()).collect())
}

/// Blocks of an inode chunk: first block and length of each stretch that has space.
pub(crate) fn chunk_blocks(chunk: &Chunk, inodes_per_block_log: u32, each: &mut dyn FnMut(u64, u64)) {
    let block = |index: u32| chunk.startino.get().saturating_add(u64::from(index)) >> inodes_per_block_log.min(63);
    let mut from = None;
    for index in 0..=INODES_PER_CHUNK {
        match (from, chunk.has_space(index)) {
            (None, true) => from = Some(index),
            (Some(first), false) => {
                let (first, last) = (block(first), block(index.saturating_sub(1)));
                each(first, last.saturating_sub(first).saturating_add(1));
                from = None;
            }
            _ => {}
        }
    }
}

/// Drops claims that reach over the end of the group, and says so.
fn keep_within(
    walk: &Walk<'_>,
    number: AgNumber,
    group: &Group,
    records: &mut Vec<Record>,
    report: &mut dyn FnMut(Error),
) {
    records.retain(|record| {
        let fits = record.end() <= group.blocks && record.length > 0;
        if !fits {
            let place =
                walk.place(walk.geometry().join(number, AgBlock(0)).unwrap_or_default(), format!("AG {number}"));
            let whose = record.owner().map_or("unknown", |owner| owner.name());
            let found = format!("{} (+{}), {whose}", record.start, record.length);
            report(corrupt(place, "a claim lies outside the AG", found, format_args!("blocks below {}", group.blocks)));
        }
        fits
    });
}

/// What the refcount btree of a realtime group tells: staged extents, and shared ones.
pub(crate) fn realtime_refcounts(
    walk: &Walk<'_>,
    number: RgNumber,
    files: &GroupFiles,
    report: &mut dyn FnMut(Error),
) -> Claims {
    let mut claims = Claims::default();
    if !walk.context().features.has_reflink() || walk.geometry().realtime.as_ref().is_none_or(|rt| rt.groups.is_none())
    {
        return claims;
    }
    if let Some(file) = files.open(walk, number, GroupFile::Refcount, report) {
        let bytes = file.inode().fork(Fork::Data).unwrap_or_default();
        let root = Root::Fork { ino: file.ino(), bytes };
        each(
            walk,
            &rtrefcountbt::SHAPE,
            root,
            report,
            |_| {},
            |bytes| {
                claims.records.extend(staged(&mut claims.shared, bytes));
            },
        );
    }
    claims.shared.sort_unstable();
    claims
}

/// What a realtime group claims for itself, without free space, which [`realtime_free`] tells.
pub(crate) fn realtime(walk: &Walk<'_>, number: RgNumber, files: &GroupFiles, report: &mut dyn FnMut(Error)) -> Claims {
    let mut claims = realtime_refcounts(walk, number, files, report);
    if has_superblock(walk, number)
        && let Some(rt) = &walk.geometry().realtime
    {
        claims.records.push(Record::special(0, u64::from(rt.extent_blocks), owner::FS));
    }
    claims
}

/// Does this realtime group begin with the realtime superblock (`xfs_has_rtsb`)?
pub(crate) fn has_superblock(walk: &Walk<'_>, number: RgNumber) -> bool {
    let features = &walk.context().features;
    number.0 == 0 && features.has_metadir() && !features.has_zoned()
}

/// The free runs of a realtime group, or of all of a section without groups. None on zoned devices, which keep no
/// bitmap.
pub(crate) fn realtime_free<'a>(
    walk: &'a Walk<'a>,
    number: RgNumber,
    group: &Group,
    files: &GroupFiles,
    report: &mut dyn FnMut(Error),
) -> Option<FreeRuns<'a>> {
    let rt = walk.geometry().realtime.as_ref()?;
    let file = match rt.groups {
        _ if walk.context().features.has_zoned() => return None,
        Some(_) => files.open(walk, number, GroupFile::Bitmap, report)?,
        None => walk.inode(walk.volume().superblock().rbmino).map_err(&mut *report).ok()?,
    };
    let extents = group.blocks.checked_div(u64::from(rt.extent_blocks)).unwrap_or(0);
    let extents = if rt.groups.is_some() { extents } else { extents.min(rt.extents) };
    Some(bitmap(walk, file, extents, report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::AgIno;

    fn blocks(startino: u32, holemask: u16, log: u32) -> Vec<(u64, u64)> {
        let chunk = Chunk { startino: AgIno(startino), holemask, count: 64, freecount: 0, free: 0 };
        let mut found = Vec::new();
        chunk_blocks(&chunk, log, &mut |start, length| found.push((start, length)));
        found
    }

    #[test]
    fn blocks_of_chunks() {
        // 8 inodes in a block: 8 blocks; with holes in the upper half: 4.
        assert_eq!(blocks(128, 0, 3), [(16, 8)]);
        assert_eq!(blocks(128, 0xff00, 3), [(16, 4)]);
        assert_eq!(blocks(128, 0x00ff, 3), [(20, 4)]);
        // 128 inodes in a block: the chunk lies in half of it.
        assert_eq!(blocks(192, 0, 7), [(1, 1)]);
        // 2 inodes in a block.
        assert_eq!(blocks(64, 0xfffe, 1), [(32, 2)]);
        assert_eq!(blocks(64, 0xffff, 1), []);
    }

    #[test]
    fn overlap() {
        let extents = vec![(10, 20), (30, 40)];
        let at = |start, length| overlaps(&extents, &Record::special(start, length, 131));
        assert!(at(19, 1) && at(0, 11) && at(15, 20) && at(39, 100));
        assert!(!at(20, 10) && !at(0, 10) && !at(40, 1));
    }
}
