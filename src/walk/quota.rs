//! Quotas: which kinds are kept, their records, and usage counted anew from the inodes.
//! `xfs_sb_quota_from_disk` (xfs_sb.c), `xfs_dquot_from_disk` (xfs_dquot.c), `xfs_qm_dqusage_adjust` (xfs_qm.c).

use super::extents::{extents, locate};
use super::inodes::chunks;
use super::{Inode, InodeBlock, Walk, corrupt, metadir};
use crate::error::{Error, Place};
use crate::format::bits;
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, flags2};
use crate::format::dquot::{self, DiskDquot};
use crate::format::superblock::Superblock;
use crate::units::{AgNumber, ByteOffset, Ino};
use std::collections::HashMap;

/// Whose usage is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Of each user.
    User,
    /// Of each group.
    Group,
    /// Of each project.
    Project,
}

impl Kind {
    /// All three.
    pub const ALL: [Self; 3] = [Self::User, Self::Group, Self::Project];

    /// `user`, `group`, `project`: also the name of the file in the metadata directory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
            Self::Project => "project",
        }
    }

    /// Bits of `qflags` for accounting, enforcing and checked.
    const fn flags(self) -> [u16; 3] {
        match self {
            Self::User => [0x1, 0x2, 0x4],
            Self::Group => [0x40, 0x80, 0x100],
            Self::Project => [0x8, 0x200, 0x400],
        }
    }

    /// Who of this kind an inode belongs to.
    pub fn id(self, inode: Inode<'_>) -> u32 {
        match self {
            Self::User => inode.uid(),
            Self::Group => inode.gid(),
            Self::Project => inode.projid(),
        }
    }
}

/// What the superblock says of a kind of quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The kind.
    pub kind: Kind,
    /// Is usage counted?
    pub accounting: bool,
    /// Are limits enforced?
    pub enforced: bool,
    /// Was usage counted from the inodes, so that the records hold?
    pub checked: bool,
    /// The file, where the superblock names one; with a metadata directory it is found by name.
    pub ino: Option<Ino>,
}

/// What the superblock says of quotas. Old file systems have one file for groups or projects, and flags for both.
pub fn states(sb: &Superblock) -> [State; 3] {
    let v5 = sb.features().is_v5();
    let (mut flags, mut group, mut project) = (sb.qflags, sb.gquotino, sb.pquotino);
    if !v5 {
        let of_projects = flags & 0x8 != 0;
        (group, project) = if of_projects { (Ino::NULL, group) } else { (group, Ino::NULL) };
        for (old, [_, enforced, checked]) in
            [(of_projects, Kind::Project.flags()), (!of_projects && flags & 0x40 != 0, Kind::Group.flags())]
        {
            if old {
                flags |= if flags & 0x10 != 0 { enforced } else { 0 };
                flags |= if flags & 0x20 != 0 { checked } else { 0 };
            }
        }
    }
    Kind::ALL.map(|kind| {
        let ino = match kind {
            Kind::User => sb.uquotino,
            Kind::Group => group,
            Kind::Project => project,
        };
        let [accounting, enforced, checked] = kind.flags().map(|bit| flags & bit != 0);
        State { kind, accounting, enforced, checked, ino: Some(ino).filter(|ino| !ino.is_null() && ino.0 != 0) }
    })
}

/// The file of a kind of quota; `None` where there is none. What keeps it from being read goes to `report`.
pub fn file(walk: &Walk<'_>, state: &State, report: &mut dyn FnMut(Error)) -> Option<InodeBlock> {
    let found = if metadir::root(walk).is_some() {
        match metadir::open(walk, &format!("quota/{}", state.kind.name()), report) {
            // No such file: this kind was never switched on.
            Err(Error::Request(_)) => return None,
            found => found,
        }
    } else {
        walk.inode(state.ino?)
    };
    found.map_err(report).ok()
}

/// Bytes of a record.
const SIZE: u64 = 136;
/// Most bytes of records that are read at once.
const PIECE: u64 = 1 << 20;

/// What stands in a place of a quota file.
#[derive(Clone, Debug)]
pub enum Record {
    /// A record.
    Good(DiskDquot),
    /// The records of these ids are lost: they cannot be read, or what stands there is none, or fails its checksum. What they
    /// said is not known.
    Lost {
        /// First id.
        first: u64,
        /// Last id.
        last: u64,
    },
}

/// The records of a quota file, in the order of the file. What is wrong goes to `report`, records side by side that hold no
/// record at all once. Blocks that the file does not have hold nobody's records.
pub fn records(walk: &Walk<'_>, file: &InodeBlock, report: &mut dyn FnMut(Error), mut each: impl FnMut(Record)) {
    let size = walk.geometry().block_size();
    let per_block = size.checked_div(SIZE).unwrap_or(0).max(1);
    let mut buffer = Vec::new();
    for extent in extents(walk, file.inode(), Fork::Data) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => {
                // Whose records are missing is not known.
                each(Record::Lost { first: 0, last: u64::MAX });
                report(error);
                continue;
            }
        };
        let first = extent.startoff.0.saturating_mul(per_block);
        let ids = u64::from(extent.blockcount).saturating_mul(per_block);
        let lost = |first: u64, count: u64| Record::Lost { first, last: first.saturating_add(count).saturating_sub(1) };
        let Some(place) = locate(walk.geometry(), false, extent.startblock, extent.blockcount) else {
            each(lost(first, ids));
            report(super::extents::nowhere(walk, file.inode(), Fork::Data, &extent));
            continue;
        };
        let mut done = 0u64;
        let mut piece = PIECE.max(size);
        while done < place.length {
            if let Err(error) = walk.step(1) {
                let seen = done.checked_div(size).unwrap_or(0).saturating_mul(per_block);
                each(lost(first.saturating_add(seen), u64::MAX));
                return report(error);
            }
            let length = piece.min(place.length.saturating_sub(done));
            buffer.resize(usize::try_from(length).unwrap_or(0), 0);
            let byte = ByteOffset(place.byte.0.saturating_add(done));
            let name = || format!("inode {} (quota)", file.ino());
            if let Err(error) = walk.volume().read_into(place.device, byte, &mut buffer, name) {
                if length > size {
                    piece = size;
                    continue;
                }
                let seen = done.checked_div(size).unwrap_or(0).saturating_mul(per_block);
                each(lost(first.saturating_add(seen), per_block));
                report(error);
            } else {
                let start = extent.startoff.0.saturating_add(done.checked_div(size).unwrap_or(0));
                let at = Place::new(place.device, byte, SIZE, "");
                blocks(walk, file, (&buffer, at, start.saturating_mul(per_block)), report, &mut each);
            }
            done = done.saturating_add(length);
        }
    }
}

/// The records of blocks that were read; the id of the first.
fn blocks(
    walk: &Walk<'_>,
    file: &InodeBlock,
    (bytes, start, first): (&[u8], Place, u64),
    report: &mut dyn FnMut(Error),
    each: &mut dyn FnMut(Record),
) {
    let size = walk.geometry().block_size();
    let per_block = size.checked_div(SIZE).unwrap_or(0);
    // A run of places without a record: where it begins, and its ids.
    let mut none: Option<(Place, u64, u64)> = None;
    let end_run = |run: Option<(Place, u64, u64)>, report: &mut dyn FnMut(Error)| {
        if let Some((place, first, last)) = run {
            let found = format!("no record of ids {first} to {last}");
            report(corrupt(place.field("magic"), "quota records are lost", found, "records"));
        }
    };
    for (n, block) in (0u64..).zip(bytes.chunks(usize::try_from(size).unwrap_or(usize::MAX))) {
        let first = first.saturating_add(n.saturating_mul(per_block));
        for (i, (bytes, record)) in (0u64..).zip(dquot::records(block)) {
            let id = first.saturating_add(i);
            let at = start.byte.0.saturating_add(n.saturating_mul(size)).saturating_add(i.saturating_mul(SIZE));
            let place = || Place::new(start.device, ByteOffset(at), SIZE, format!("inode {} › dquot {id}", file.ino()));
            if record.magic != dquot::MAGIC {
                match &mut none {
                    Some((_, _, last)) => *last = id,
                    none => *none = Some((place(), id, id)),
                }
                each(Record::Lost { first: id, last: id });
                continue;
            }
            end_run(none.take(), report);
            match fault(walk, bytes, (id, &record), place) {
                Some(error) => {
                    report(error);
                    each(Record::Lost { first: id, last: id });
                }
                None => each(Record::Good(record)),
            }
        }
    }
    end_run(none, report);
}

/// What is wrong with a record: its id, or its checksum.
fn fault(
    walk: &Walk<'_>,
    bytes: &[u8],
    (id, record): (u64, &DiskDquot),
    place: impl FnOnce() -> Place,
) -> Option<Error> {
    if u64::from(record.id) != id {
        return Some(corrupt(place().field("id"), "the record is not of its place in the file", record.id, id));
    }
    if !walk.context().has_crc() {
        return None;
    }
    let CrcState::Bad { computed } = checksum::verify(bytes, dquot::CRC_OFFSET) else { return None };
    let stored = bits::array(bytes, dquot::CRC_OFFSET).map_or(0, u32::from_le_bytes);
    let (stored, computed) = (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
    Some(corrupt(place().field("crc"), "the checksum is wrong", stored, computed))
}

/// What somebody uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of the data section.
    pub blocks: u64,
    /// Inodes.
    pub inodes: u64,
    /// Blocks of the realtime section.
    pub rt_blocks: u64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.inodes = self.inodes.saturating_add(other.inodes);
        self.rt_blocks = self.rt_blocks.saturating_add(other.rt_blocks);
    }
}

/// Usage by kind and id. Memory: an entry for each owner that inodes really have.
#[derive(Clone, Debug, Default)]
pub struct Recount {
    usage: HashMap<(Kind, u32), Usage>,
}

impl Recount {
    /// Usage of one owner.
    pub fn of(&self, kind: Kind, id: u32) -> Usage {
        self.usage.get(&(kind, id)).copied().unwrap_or_default()
    }

    /// The owners of a kind, sorted.
    pub fn owners(&self, kind: Kind) -> Vec<u32> {
        let mut ids: Vec<u32> = self.usage.keys().filter(|(k, _)| *k == kind).map(|(_, id)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Takes the counts of another AG in.
    pub fn merge(&mut self, other: Self) {
        for (owner, usage) in other.usage {
            self.usage.entry(owner).or_default().add(usage);
        }
    }
}

/// Counts the usage of the inodes of an AG. Quota files and metadata files belong to nobody; a realtime file's data
/// counts as realtime blocks.
pub fn recount(walk: &Walk<'_>, ag: AgNumber, report: &mut dyn FnMut(Error)) -> Recount {
    let quota_files = states(walk.volume().superblock()).map(|state| state.ino);
    let mut result = Recount::default();
    let mut chunks = chunks(walk, ag);
    while let Some(chunk) = chunks.next_chunk() {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                report(error);
                continue;
            }
        };
        let mut errors = Vec::new();
        chunk.used(report, |inode| {
            if quota_files.contains(&Some(inode.ino)) || inode.flags2() & flags2::METADATA != 0 {
                return;
            }
            let rt_blocks =
                if inode.is_realtime() { data_blocks(walk, inode, &mut |error| errors.push(error)) } else { 0 };
            let blocks = inode.nblocks().0.saturating_sub(rt_blocks);
            for kind in Kind::ALL {
                let usage = result.usage.entry((kind, kind.id(inode))).or_default();
                usage.add(Usage { blocks, inodes: 1, rt_blocks });
            }
        });
        errors.into_iter().for_each(&mut *report);
    }
    result
}

/// Blocks of the extents of the data fork.
fn data_blocks(walk: &Walk<'_>, inode: Inode<'_>, report: &mut dyn FnMut(Error)) -> u64 {
    let mut blocks = 0u64;
    for extent in extents(walk, inode, Fork::Data) {
        match extent {
            Ok(extent) => blocks = blocks.saturating_add(u64::from(extent.blockcount)),
            Err(error) => report(error),
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Structure;

    #[test]
    fn old_file_systems_share_a_file() {
        let mut sb = Superblock::decode(&[0; 288]).expect("long enough");
        (sb.versionnum, sb.uquotino, sb.gquotino) = (0xb4b4, Ino(131), Ino(132));
        // Users counted and checked; projects counted, enforced (0x10) and checked (0x20) in the group file.
        sb.qflags = 0x1 | 0x4 | 0x8 | 0x10 | 0x20;
        let [user, group, project] = states(&sb);
        assert_eq!((user.accounting, user.enforced, user.checked, user.ino), (true, false, true, Some(Ino(131))));
        assert_eq!((group.accounting, group.enforced, group.ino), (false, false, None));
        assert_eq!(
            (project.accounting, project.enforced, project.checked, project.ino),
            (true, true, true, Some(Ino(132)))
        );
        // V5: case C43, qflags 0x608.
        (sb.versionnum, sb.pquotino, sb.qflags) = (0xb4b5, Ino(131), 0x608);
        let project = states(&sb)[2];
        assert_eq!(
            (project.accounting, project.enforced, project.checked, project.ino),
            (true, true, true, Some(Ino(131)))
        );
    }
}
