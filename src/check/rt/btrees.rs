//! Reverse mappings and shared extents of a group: their records by themselves, and against the files.

use super::group::Report;
use super::{Section, Sink, files::inode_place, rules};
use crate::error::Place;
use crate::format::dinode::Fork;
use crate::format::dinode_view::Kind;
use crate::format::refcountbt::Shared;
use crate::format::rmapbt::{Mapping, owner};
use crate::units::Ino;
use crate::walk::metadir::GroupFile;
use crate::walk::rt::Group;
use crate::walk::rt::btrees::{self, Found, Tree, as_owned, owner_inode};
use crate::walk::rt::files::Owned;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A btree of a group, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeReport {
    /// The inode that holds its root.
    pub ino: u64,
    /// Where that inode lies.
    pub place: Place,
    /// Levels: 1 where the records stand in the inode.
    pub levels: u32,
    /// Records.
    pub records: u64,
    /// Could all of it be read?
    pub complete: bool,
}

/// How full a zone is, as far as the disk tells: the write pointer of a zoned device is in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Blocks in use, as the inode of its reverse mappings counts them.
    pub used_stored: u64,
    /// Blocks in use, by the mappings.
    pub used: u64,
    /// The block behind the last in use: where writing goes on at the earliest.
    pub written: u64,
    /// Its blocks.
    pub blocks: u64,
}

impl Zone {
    /// `empty`, `open` or `full` (`xfs_init_zone`).
    pub const fn state(&self) -> &'static str {
        if self.written == 0 {
            "empty"
        } else if self.written >= self.blocks {
            "full"
        } else {
            "open"
        }
    }
}

fn tree(section: &Section<'_>, group: &Group, file: GroupFile, sink: &mut Sink<'_>) -> Option<Tree> {
    let mut errors = Vec::new();
    let tree = btrees::open(section.walk, group.number, file, &mut |error| errors.push(error));
    let found =
        tree.as_ref().err().is_none_or(|error| sink.not_found(rules::GROUP_FILE, rules::UNREADABLE, &errors, error));
    if !found {
        return None;
    }
    for error in &errors {
        sink.error(rules::GROUP_FILE, rules::UNREADABLE, error);
    }
    match tree {
        // What is wrong with the inode was said: it holds the root.
        Ok(tree) if sink.is_damaged(tree.inode().ino) => None,
        Ok(tree) => Some(tree),
        Err(error) => {
            let name = format!("rtgroup {} › {}", group.number, file.name());
            let place = match &error {
                crate::error::Error::Corrupt { place, .. } => (**place).clone(),
                _ => section.place(group.first_block(), 1, name),
            };
            sink.raise(rules::GROUP_FILE, place, error, "a file of the group");
            None
        }
    }
}

/// Why a mapping makes no sense (`xfs_rtrmap_check_irec`).
fn mapping_fault(section: &Section<'_>, group: &Group, m: &Mapping) -> Option<String> {
    let (start, len) = (m.startblock.get(), m.blockcount.get());
    let end = start.saturating_add(len);
    let blocks = group.blocks();
    let reserved = if section.has_superblock() && group.number.0 == 0 { group.extent_blocks } else { 0 };
    let fits = start >= reserved && end <= blocks;
    if len == 0 {
        return Some("1 block or more".into());
    }
    if m.offset.attr_fork() || m.offset.bmbt_block() || m.offset.unused() != 0 {
        return Some("no flags but unwritten".into());
    }
    match m.owner {
        owner::FS if start != 0 || len != group.extent_blocks || m.offset.0 != 0 || reserved == 0 => {
            Some(format!("the superblock at block 0, {} blocks, in group 0", group.extent_blocks))
        }
        owner::FS => None,
        owner::COW if !section.has_reflink() => Some("no staging extents without reflink".into()),
        owner::COW if m.offset.0 != 0 => Some("a staging extent without offset".into()),
        owner::COW => (!fits).then(|| format!("blocks {reserved} to {blocks}")),
        ino => match owner_inode(ino).and_then(|ino| section.walk.geometry().split_inode(ino)) {
            None => Some("an inode, the superblock or a staging extent as owner".into()),
            Some(_) if !fits => Some(format!("blocks {reserved} to {blocks}")),
            Some(_) if m.offset.blocks().saturating_add(len) >= 1 << 54 => Some("an offset below 2^54".into()),
            Some(_) => None,
        },
    }
}

/// Why a record of shared extents makes no sense (`xfs_rtrefcount_check_irec`).
fn shared_fault(section: &Section<'_>, group: &Group, s: &Shared) -> Option<String> {
    let (start, len) = (s.startblock.get(), s.blockcount.get());
    let reserved = if section.has_superblock() && group.number.0 == 0 { group.extent_blocks } else { 0 };
    if len == 0 {
        return Some("1 block or more".into());
    }
    if start < reserved || start.saturating_add(len) > group.blocks() {
        return Some(format!("blocks {reserved} to {}", group.blocks()));
    }
    match (s.cow, s.refcount) {
        (true, 1) => None,
        (true, _) => Some("refcount 1 for a staging extent".into()),
        (false, 0 | 1) => Some("refcount 2 or more".into()),
        (false, _) => None,
    }
}

/// Most blocks of a record (`XFS_RMAP_LEN_MAX`, `XFS_REFC_LEN_MAX`).
const LONGEST: u64 = 0xffff_ffff;

/// Should two mappings that follow each other be one (`xchk_rtrmap_mergeable`)?
fn mappings_touch(a: &Mapping, b: &Mapping) -> bool {
    let (length, more) = (a.blockcount.get(), b.blockcount.get());
    let special = matches!(a.owner, owner::FS | owner::COW);
    let marks = |m: &Mapping| (m.offset.unwritten(), m.offset.attr_fork(), m.offset.bmbt_block());
    a.owner == b.owner
        && a.startblock.get().saturating_add(length) == b.startblock.get()
        && length.saturating_add(more) <= LONGEST
        && marks(a) == marks(b)
        && (special || a.offset.blocks().saturating_add(length) == b.offset.blocks())
}

/// Should two shared extents that follow each other be one (`xchk_rtrefcount_mergeable`)?
fn shared_touch(a: &Shared, b: &Shared) -> bool {
    let (length, more) = (a.blockcount.get(), b.blockcount.get());
    (a.cow, a.refcount) == (b.cow, b.refcount)
        && a.startblock.get().saturating_add(length) == b.startblock.get()
        && length.saturating_add(more) <= LONGEST
}

fn mapping_text(m: &Mapping) -> String {
    let flags = u8::from(m.offset.unwritten());
    let who = m.owner.cast_signed();
    format!("[{},{},{who},{},{flags}]", m.startblock, m.blockcount, m.offset.blocks())
}

fn shared_text(s: &Shared) -> String {
    format!("[{},{},{},{}]", s.startblock, s.blockcount, s.refcount, u8::from(s.cow))
}

fn levels(tree: &Tree) -> u32 {
    let root = tree.inode().fork(Fork::Data).and_then(|bytes| crate::format::bits::be16(bytes, 0));
    u32::from(root.unwrap_or(0)).saturating_add(1)
}

/// Goes over the btrees of a group once: raises what is wrong with them, and counts.
pub(super) fn describe(section: &Section<'_>, group: &Group, report: &mut Report, sink: &mut Sink<'_>) {
    let walk = section.walk;
    if section.has_rmap()
        && let Some(tree) = tree(section, group, GroupFile::Rmap, sink)
    {
        group_rules(group, &tree, crate::format::dinode::metatype::RTRMAP, sink);
        let (mut errors, mut records, mut used, mut written) = (Vec::new(), 0u64, 0u64, 0u64);
        let mut before: Option<(u64, u64, u64)> = None;
        let mut touched: Option<Mapping> = None;
        let complete = btrees::mappings(walk, &tree, &mut |error| errors.push(error), &mut |found: Found<Mapping>| {
            let m = &found.record;
            records = records.saturating_add(1);
            used = used.saturating_add(m.blockcount.get());
            written = written.max(m.startblock.get().saturating_add(m.blockcount.get()));
            if let Some(right) = mapping_fault(section, group, m) {
                sink.raise(rules::RMAP_RECORD, tree.place(walk, &found), mapping_text(m), right);
            }
            let key = (m.startblock.get(), m.owner, m.offset.0 & !(1 << 61));
            if before.is_some_and(|before| before > key) {
                sink.raise(
                    rules::RMAP_ORDER,
                    tree.place(walk, &found),
                    mapping_text(m),
                    "a record behind the one before",
                );
            }
            before = Some(key);
            if let Some(last) = touched.as_ref().filter(|last| mappings_touch(last, m)) {
                let right = format!("one record with {}", mapping_text(last));
                sink.raise(rules::RMAP_TOUCH, tree.place(walk, &found), mapping_text(m), right);
            }
            touched = Some(*m);
        });
        errors.iter().for_each(|error| sink.error(rules::RMAP_BLOCK, rules::UNREADABLE, error));
        let inode = tree.inode();
        if walk.context().features.has_zoned() {
            let zone = Zone { used_stored: u64::from(inode.cowextsize()), used, written, blocks: group.blocks() };
            zone_rules(&zone, tree.inode_place(), complete, sink);
            report.zone = Some(zone);
        }
        let (ino, place) = (inode.ino.0, tree.inode_place().clone());
        report.rmap = Some(TreeReport { ino, place, levels: levels(&tree), records, complete });
    }
    if section.has_reflink()
        && let Some(tree) = tree(section, group, GroupFile::Refcount, sink)
    {
        group_rules(group, &tree, crate::format::dinode::metatype::RTREFCOUNT, sink);
        let (mut errors, mut records) = (Vec::new(), 0u64);
        let mut end = 0u64;
        let mut touched: Option<Shared> = None;
        let complete = btrees::shared(walk, &tree, &mut |error| errors.push(error), &mut |found: Found<Shared>| {
            let s = &found.record;
            records = records.saturating_add(1);
            if let Some(right) = shared_fault(section, group, s) {
                sink.raise(rules::REFC_RECORD, tree.place(walk, &found), shared_text(s), right);
            }
            let key = s.startblock.get() | u64::from(s.cow) << 31;
            if key < end {
                sink.raise(
                    rules::REFC_ORDER,
                    tree.place(walk, &found),
                    shared_text(s),
                    "a record behind the one before",
                );
            }
            end = key.saturating_add(s.blockcount.get());
            if let Some(last) = touched.as_ref().filter(|last| shared_touch(last, s)) {
                let right = format!("one record with {}", shared_text(last));
                sink.raise(rules::REFC_TOUCH, tree.place(walk, &found), shared_text(s), right);
            }
            touched = Some(*s);
        });
        errors.iter().for_each(|error| sink.error(rules::REFC_BLOCK, rules::UNREADABLE, error));
        let (ino, place) = (tree.inode().ino.0, tree.inode_place().clone());
        report.refcount = Some(TreeReport { ino, place, levels: levels(&tree), records, complete });
    }
}

fn group_rules(group: &Group, tree: &Tree, kind: u16, sink: &mut Sink<'_>) {
    let (inode, place) = (tree.inode(), tree.inode_place());
    if let crate::format::checksum::CrcState::Bad { computed } = inode.crc() {
        sink.raise(rules::GROUP_FILE, place.field("crc"), "checksum does not match", crate::format::Crc(computed));
    }
    if inode.kind() != Kind::Regular {
        let found = format!("mode {:#o}", inode.mode());
        sink.raise(rules::GROUP_FILE, place.field("core.mode"), found, "a regular file in use");
    }
    if inode.metatype() != Some(kind) {
        let found = inode.metatype().map_or("no metadata file".to_owned(), |n| n.to_string());
        sink.raise(rules::GROUP_TYPE, place.field("core.metatype"), found, kind);
    }
    if inode.projid() != group.number.0 {
        sink.raise(rules::GROUP_NUMBER, place.field("core.projid"), inode.projid(), group.number);
    }
}

fn zone_rules(zone: &Zone, place: &Place, complete: bool, sink: &mut Sink<'_>) {
    if zone.used_stored > zone.blocks {
        sink.raise(rules::ZONE_FULLER, place.clone(), zone.used_stored, format_args!("at most {}", zone.blocks));
    } else if complete && zone.used_stored != zone.used {
        sink.raise(rules::ZONE_USED, place.clone(), zone.used_stored, format_args!("{}, by its mappings", zone.used));
    }
}

/// Compares the btrees of a group with the files, within `clip`, and adds what else owns blocks to `owned`: the
/// realtime superblock, staging extents. False where staging extents are not all known.
pub(super) fn check(
    section: &Section<'_>,
    group: &Group,
    clip: &Range<u64>,
    owned: &mut Vec<Owned>,
    files_complete: bool,
    sink: &mut Sink<'_>,
) -> bool {
    let walk = section.walk;
    let mut complete = true;
    let mut special: Vec<Owned> = Vec::new();
    if section.has_superblock() && group.number.0 == 0 {
        let start = group.first_block();
        special.push(Owned { start, blocks: group.extent_blocks, ino: owner::FS, offset: 0, unwritten: false });
    }
    let refcounts = section.has_reflink().then(|| btrees::open(walk, group.number, GroupFile::Refcount, &mut |_| {}));
    // Without it staging extents are not known.
    complete &= !matches!(refcounts, Some(Err(_)));
    if let Some(Ok(tree)) = refcounts {
        let witness = !sink.is_damaged(tree.inode().ino);
        let (mut shared, mut staging) = (Vec::new(), Vec::new());
        complete &= witness;
        complete &= btrees::shared(walk, &tree, &mut |_| {}, &mut |found: Found<Shared>| {
            let s = &found.record;
            let (start, blocks) = (group.first_block().saturating_add(s.startblock.get()), s.blockcount.get());
            if s.cow {
                staging.push(Owned { start, blocks, ino: owner::COW, offset: 0, unwritten: false });
            } else {
                shared.push((start, blocks, u64::from(s.refcount)));
            }
        });
        // How often blocks are shared is known only of all files.
        if complete && files_complete {
            compare_shared(section, owned, shared, clip, tree.inode_place(), sink);
        }
        special.extend(staging);
    }
    let clip_special = special.iter().filter_map(|one| one.within(clip).map(|part| Owned { offset: 0, ..part }));
    owned.extend(clip_special);
    owned.sort_unstable();
    if section.has_rmap()
        && let Ok(tree) = btrees::open(walk, group.number, GroupFile::Rmap, &mut |_| {})
        && !sink.is_damaged(tree.inode().ino)
    {
        let mut mapped: Vec<Owned> = Vec::new();
        let readable = btrees::mappings(walk, &tree, &mut |_| {}, &mut |found: Found<Mapping>| {
            let one = as_owned(group, &found.record);
            mapped.extend(
                one.within(clip).map(|part| if one.ino >= owner::COW { Owned { offset: 0, ..part } } else { part }),
            );
        });
        compare_mappings(
            section,
            group,
            (owned, mapped),
            (readable, files_complete && complete),
            tree.inode_place(),
            sink,
        );
    }
    complete
}

/// Merges neighbours that are one mapping, and sorts by owner.
fn canonical(list: &[Owned]) -> Vec<(u64, u64, u64, u64, bool)> {
    let key = |one: &Owned| {
        let delta = if one.ino >= owner::COW { 0 } else { one.delta() };
        (one.ino, delta, one.start, one.blocks, one.unwritten)
    };
    let mut all: Vec<_> = list.iter().map(key).collect();
    all.sort_unstable();
    let mut merged: Vec<(u64, u64, u64, u64, bool)> = Vec::with_capacity(all.len());
    for one in all {
        match merged.last_mut() {
            Some(last)
                if (last.0, last.1, last.4) == (one.0, one.1, one.4) && last.2.saturating_add(last.3) == one.2 =>
            {
                last.3 = last.3.saturating_add(one.3);
            }
            _ => merged.push(one),
        }
    }
    merged
}

/// What is in one sorted list and not in the other.
fn differences<T: Ord + Copy>(left: &[T], right: &[T], mut only_left: impl FnMut(T), mut only_right: impl FnMut(T)) {
    let (mut l, mut r) = (left.iter().peekable(), right.iter().peekable());
    loop {
        match (l.peek(), r.peek()) {
            (Some(a), Some(b)) if a == b => {
                l.next();
                r.next();
            }
            (Some(&&a), Some(&&b)) if a < b => {
                only_left(a);
                l.next();
            }
            (Some(&&a), None) => {
                only_left(a);
                l.next();
            }
            (_, Some(&&b)) => {
                only_right(b);
                r.next();
            }
            (None, None) => return,
        }
    }
}

fn compare_mappings(
    section: &Section<'_>,
    group: &Group,
    (owned, mapped): (&[Owned], Vec<Owned>),
    (tree_complete, owners_complete): (bool, bool),
    tree: &Place,
    sink: &mut Sink<'_>,
) {
    let (right, disk) = (canonical(owned), canonical(&mapped));
    let name = |ino: u64| match ino {
        owner::FS => "the realtime superblock".to_owned(),
        owner::COW => "a staging extent".to_owned(),
        ino => format!("inode {}", Ino(ino)),
    };
    let text = |(ino, delta, start, blocks, unwritten): (u64, u64, u64, u64, bool)| {
        let first = start.saturating_sub(group.first_block());
        let offset = if ino >= owner::COW { 0 } else { start.wrapping_sub(delta) };
        let state = if unwritten { ", unwritten" } else { "" };
        format!("blocks {first} (+{blocks}) of group {} for {} at file block {offset}{state}", group.number, name(ino))
    };
    let (mut lacks, mut extra) = (Vec::new(), Vec::new());
    differences(&right, &disk, |one| lacks.push(one), |one| extra.push(one));
    let sound = |sink: &Sink<'_>, ino: u64| ino >= owner::COW || !sink.is_damaged(Ino(ino));
    for one in lacks.into_iter().filter(|_| tree_complete) {
        if !sound(sink, one.0) {
            continue;
        }
        let place = if one.0 < owner::COW { inode_place(section, one.0) } else { tree.clone() };
        sink.raise(rules::RMAP_LACKS, place, format_args!("no mapping of {}", text(one)), "one");
    }
    for one in extra.into_iter().filter(|_| owners_complete) {
        if !sound(sink, one.0) {
            continue;
        }
        sink.raise(rules::RMAP_EXTRA, tree.clone(), text(one), "no such mapping");
    }
}

/// Blocks that several extents own, and how many: neighbours with equal counts together.
fn multiplicity(owned: &[Owned]) -> Vec<(u64, u64, u64)> {
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut out: Vec<(u64, u64, u64)> = Vec::new();
    let mut push = |from: u64, to: u64, count: usize| {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count < 2 || to <= from {
            return;
        }
        match out.last_mut() {
            Some(last) if last.2 == count && last.0.saturating_add(last.1) == from => {
                last.1 = last.1.saturating_add(to.saturating_sub(from));
            }
            _ => out.push((from, to.saturating_sub(from), count)),
        }
    };
    let mut at = 0u64;
    let mut starts = owned.iter().peekable();
    loop {
        let start = starts.peek().map(|one| one.start);
        let end = ends.peek().map(|Reverse(end)| *end);
        match (start, end) {
            (Some(start), Some(end)) if end <= start => {
                push(at, end, ends.len());
                at = end;
                ends.pop();
            }
            (Some(start), _) => {
                push(at, start, ends.len());
                at = start;
                if let Some(one) = starts.next() {
                    ends.push(Reverse(one.end()));
                }
            }
            (None, Some(end)) => {
                push(at, end, ends.len());
                at = end;
                ends.pop();
            }
            (None, None) => return out,
        }
    }
}

fn compare_shared(
    section: &Section<'_>,
    owned: &[Owned],
    mut disk: Vec<(u64, u64, u64)>,
    clip: &Range<u64>,
    tree: &Place,
    sink: &mut Sink<'_>,
) {
    disk.sort_unstable();
    let mut merged: Vec<(u64, u64, u64)> = Vec::with_capacity(disk.len());
    for (start, blocks, count) in disk {
        let (from, to) = (start.max(clip.start), start.saturating_add(blocks).min(clip.end));
        if to <= from {
            continue;
        }
        match merged.last_mut() {
            Some(last) if last.2 == count && last.0.saturating_add(last.1) == from => {
                last.1 = last.1.saturating_add(to.saturating_sub(from));
            }
            _ => merged.push((from, to.saturating_sub(from), count)),
        }
    }
    let right = multiplicity(owned);
    let (mut lacks, mut extra) = (Vec::new(), Vec::new());
    differences(&right, &merged, |one| lacks.push(one), |one| extra.push(one));
    let text = |(start, blocks, count): (u64, u64, u64)| format!("blocks {start} (+{blocks}), {count} owners");
    for one in lacks {
        let place = section.place(one.0, one.1, "shared realtime blocks");
        sink.raise(rules::REFC_LACKS, place, format_args!("no record of {}", text(one)), "one");
    }
    for one in extra {
        sink.raise(rules::REFC_EXTRA, tree.clone(), text(one), "no such record");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(start: u64, blocks: u64, ino: u64, offset: u64) -> Owned {
        Owned { start, blocks, ino, offset, unwritten: false }
    }

    #[test]
    fn shared_blocks_are_counted() {
        // Case C64 in small: two files share 10..20, one of them once more 12..14.
        let owned = [one(0, 20, 1, 0), one(10, 10, 2, 0), one(12, 2, 2, 100)];
        assert_eq!(multiplicity(&owned), [(10, 2, 2), (12, 2, 3), (14, 6, 2)]);
        assert_eq!(multiplicity(&[one(0, 5, 1, 0), one(5, 5, 2, 0)]), []);
    }

    #[test]
    fn neighbours_are_one_mapping() {
        let split = [one(0, 5, 1, 0), one(5, 5, 1, 5), one(0, 5, 1, 50), one(5, 5, 1, 55)];
        let whole = [one(0, 10, 1, 0), one(0, 10, 1, 50)];
        assert_eq!(canonical(&split), canonical(&whole));
        assert_ne!(canonical(&split), canonical(&[one(0, 10, 1, 0)]));
    }
}
