//! Space of an AG: every block is owned exactly once, or free, or shared as the refcount btree says; and the reverse
//! mapping btree says the same. What was collected of owners is sorted and swept once, AG by AG.
//!
//! Memory: the entries of one AG and the records of its reverse mapping btree, 24 bytes each.

use super::btree::Scanned;
use super::context::{Ctx, Spot};
use super::finding::Object;
use super::group::Group;
use super::owners::{Entry, Owner, Within};
use super::{agf, raised, rmapbt};
use crate::error::Place;
use crate::units::{AgBlock, AgNumber, Device};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

raised! { RAISED, structure "space";
    /// The free space btrees call blocks free that something owns. They will be given away, and two owners will write to
    /// them. Do not write to this file system before it is repaired.
    FREE_IN_USE: "space-free-block-in-use" xcorrupt "owner", "blocks in use are called free",
        source "scrub/common.c:xchk_xref_is_used_space; repair/phase4.c", since "scrub";
    /// Two owners claim the same blocks, and they are not content of files that may share them. One of the two is wrong;
    /// content that was written through the one is lost for the other.
    TWICE: "space-block-owned-twice" xcorrupt "owner", "blocks have two owners",
        source "scrub/rmap.c:xchk_xref_is_only_owned_by, xchk_rmapbt_check_overlapping; repair/phase4.c:process_inodes (duplicate extents)",
        since "scrub";
    /// Blocks that nobody owns and no btree calls free: they are lost until xfs_repair frees them. Harmless but for the
    /// space.
    LOST: "space-lost-blocks" xcorrupt "owner", "blocks belong to nobody and are not free",
        source "scrub/common.c:xchk_xref_has_no_owner; repair/phase5.c (rebuilds free space)", since "scrub";
    /// Files share blocks more or less often than the refcount btree says: too low, and a write changes all of them; too
    /// high, and the blocks are never freed.
    REFCOUNT: "space-refcount-mismatch" xcorrupt "refcount", "refcount btree differs from what files share",
        source "scrub/refcount.c:xchk_refcountbt_xref_rmap; repair/rmap.c:check_refcounts", since "scrub";
}

/// A range of blocks that so many files share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    start: u64,
    end: u64,
    count: u64,
}

/// What a sweep over the owners of an AG gives.
#[derive(Debug, Default)]
struct Sweep {
    lost: Vec<(u64, u64)>,
    shares: Vec<Share>,
    conflicts: Vec<(Entry, Entry)>,
}

/// Conflicts that are reported one by one.
const SHOWN: usize = 100;

/// Written content of files alone is shared (`xchk_rmapbt_is_shareable`).
fn may_share(entry: &Entry, reflink: bool) -> bool {
    let written = entry.within.0 & Within::UNWRITTEN == 0;
    reflink && written && entry.owner.inode().is_some() && entry.within.is_data()
}

/// Sweeps over the owners of an AG of `length` blocks, sorted by start.
fn sweep(entries: &[Entry], length: u32, reflink: bool) -> Sweep {
    let mut found = Sweep::default();
    let mut covered = 0u64;
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let start = u64::from(first.start);
        if start > covered {
            found.lost.push((covered, start));
        }
        let mut end = first.end();
        let mut count = 1usize;
        for entry in rest.iter().skip(1) {
            if u64::from(entry.start) >= end {
                break;
            }
            end = end.max(entry.end());
            count = count.saturating_add(1);
        }
        let (cluster, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        if count > 1 {
            conflicts(cluster, reflink, &mut found.conflicts);
            shares(cluster, reflink, &mut found.shares);
        }
        covered = covered.max(end);
        rest = later;
    }
    if covered < u64::from(length) {
        found.lost.push((covered, u64::from(length)));
    }
    found
}

/// Pairs of a run of overlapping entries that may not overlap: each entry against the one that reaches furthest.
fn conflicts(cluster: &[Entry], reflink: bool, found: &mut Vec<(Entry, Entry)>) {
    let (mut any, mut alone): (Option<Entry>, Option<Entry>) = (None, None);
    let reaches = |last: &Option<Entry>, entry: &Entry| last.filter(|last| u64::from(entry.start) < last.end());
    for entry in cluster {
        let sharing = may_share(entry, reflink);
        let other = if sharing { reaches(&alone, entry) } else { reaches(&any, entry) };
        if let Some(other) = other
            && other.owner != Owner::DISPUTED
            && entry.owner != Owner::DISPUTED
        {
            found.push((other, *entry));
        }
        let further = |last: Option<Entry>| last.is_none_or(|last| last.end() < entry.end());
        if further(any) {
            any = Some(*entry);
        }
        if !sharing && further(alone) {
            alone = Some(*entry);
        }
    }
}

/// How often the blocks of a run of overlapping entries are shared, where it is more than once.
fn shares(cluster: &[Entry], reflink: bool, found: &mut Vec<Share>) {
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut at = 0u64;
    let mut emit = |start: u64, end: u64, count: usize| {
        if count < 2 || start >= end {
            return;
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        match found.last_mut() {
            Some(last) if last.end == start && last.count == count => last.end = end,
            _ => found.push(Share { start, end, count }),
        }
    };
    let mut leave = |ends: &mut BinaryHeap<Reverse<u64>>, at: &mut u64, until: u64| {
        while let Some(&Reverse(end)) = ends.peek() {
            if end > until {
                break;
            }
            emit(*at, end, ends.len());
            *at = end;
            ends.pop();
        }
        if until != u64::MAX {
            emit(*at, until, ends.len());
            *at = until;
        }
    };
    for entry in cluster.iter().filter(|entry| may_share(entry, reflink)) {
        leave(&mut ends, &mut at, u64::from(entry.start));
        ends.push(Reverse(entry.end()));
    }
    leave(&mut ends, &mut at, u64::MAX);
}

/// Blocks of an AG as a spot.
fn blocks(ctx: &Ctx<'_>, ag: AgNumber, start: u64, end: u64) -> Spot {
    let block = AgBlock(u32::try_from(start).unwrap_or(u32::MAX));
    let byte = ctx.geometry().ag_block_byte(ag, block).unwrap_or_default();
    let length = end.saturating_sub(start).saturating_mul(ctx.geometry().block_size());
    let place = Place::new(Device::Data, byte, length, format!("AG {ag} › {}", range(start, end)));
    Spot { place, object: Object::Space(ag) }
}

fn range(start: u64, end: u64) -> String {
    let last = end.saturating_sub(1);
    if last <= start { format!("block {start}") } else { format!("blocks {start} to {last}") }
}

/// An owner with the place in its file.
fn holder(entry: &Entry) -> String {
    let within = entry.within;
    match entry.owner.inode() {
        None => entry.owner.to_string(),
        Some(ino) if within.0 & Within::TREE != 0 => format!("the extent map of inode {ino}"),
        Some(ino) if within.0 & Within::ATTR != 0 => format!("inode {ino}, attribute block {}", within.offset()),
        // Unwritten blocks are never shared.
        Some(ino) if within.0 & Within::UNWRITTEN != 0 => {
            format!("inode {ino}, file block {} (unwritten)", within.offset())
        }
        Some(ino) => format!("inode {ino}, file block {}", within.offset()),
    }
}

/// The space of an AG, and its reverse mapping btree.
pub fn check(ctx: &Ctx<'_>, group: &Group) {
    let features = &ctx.context().features;
    let mut mappings = Vec::new();
    let mut scanned = Scanned::default();
    if features.has_rmapbt()
        && let Some(agf) = &group.agf
    {
        (scanned, mappings) = rmapbt::check(ctx, group, agf, &mut ctx.owners.local());
        // OK: the AG is looked at once.
        let _ = group.rmapbt_blocks.set(scanned.all_blocks());
    }
    agf::against_btrees(ctx, group, scanned);
    let mut entries = ctx.owners.take(group.ag);
    if ctx.is_cancelled() {
        return;
    }
    // Extents of a file mostly lie in order: long runs, which a stable sort takes as they are.
    entries.sort_by(Entry::by_place);
    let found = sweep(&entries, group.length, features.has_reflink());
    let mut contested = report_conflicts(ctx, group.ag, &found.conflicts);
    if ctx.is_partial() {
        return;
    }
    let space_known = group.space_known(features) && (!features.has_rmapbt() || scanned.complete);
    report_lost(ctx, group, &found.lost, space_known && contested.is_empty());
    if features.has_reflink() {
        report_shares(ctx, group, &found.shares, &mut contested);
    }
    if features.has_rmapbt() && scanned.is_witness() {
        compare_mappings(ctx, group, entries, mappings, &contested);
    }
}

fn report_conflicts(ctx: &Ctx<'_>, ag: AgNumber, conflicts: &[(Entry, Entry)]) -> HashSet<Owner> {
    let mut contested = HashSet::new();
    let mut times: HashMap<Owner, u64> = HashMap::new();
    let mut extents: HashMap<Entry, u64> = HashMap::new();
    for (a, b) in conflicts {
        contested.extend([a.owner, b.owner]);
        for entry in [a, b] {
            let of_owner = times.entry(entry.owner).or_default();
            *of_owner = of_owner.saturating_add(1);
            let of_extent = extents.entry(*entry).or_default();
            *of_extent = of_extent.saturating_add(1);
        }
    }
    // Whose fault it is: an inode in which more is wrong, or the one that is in most of them.
    let blame = |entry: &Entry| {
        let ino = entry.owner.inode()?;
        Some((ctx.is_damaged(ino), times.get(&entry.owner).copied().unwrap_or(0), ino))
    };
    for Clash { pair: (a, b), more, others } in clashes(conflicts, &extents) {
        let (start, end) = (u64::from(a.start.max(b.start)), a.end().min(b.end()));
        let mut spot = blocks(ctx, ag, start, end);
        let free = [a, b].into_iter().any(|entry| entry.owner == Owner::FREE);
        let user = if a.owner == Owner::FREE { b } else { a };
        if let Some((_, _, ino)) = blame(&a).max(blame(&b)) {
            spot.object = Object::Inode(ino);
        }
        let more = match (more, others.as_slice()) {
            (0, _) => String::new(),
            (n, others) => {
                let ranges = if n == 1 { "range" } else { "ranges" };
                let also = if others.is_empty() { String::new() } else { format!(", also with {}", others.join(", ")) };
                format!(", and {n} more {ranges}{also}")
            }
        };
        if free {
            ctx.raise(FREE_IN_USE, &spot, format_args!("{}{more}", holder(&user)), "free space");
        } else {
            ctx.raise(TWICE, &spot, format_args!("{} and {}{more}", holder(&a), holder(&b)), "one owner");
        }
    }
    contested
}

/// Conflicts that most likely are one: of the same extent, or between the same owners.
struct Clash {
    pair: (Entry, Entry),
    more: u64,
    /// Other owners in them, the first few.
    others: Vec<String>,
}

/// Other owners that are named.
const OTHERS: usize = 4;

/// Joins conflicts of one extent, and those between the same owners.
fn clashes(conflicts: &[(Entry, Entry)], extents: &HashMap<Entry, u64>) -> Vec<Clash> {
    let mut list: Vec<Clash> = Vec::new();
    let mut by_extent: HashMap<Entry, usize> = HashMap::new();
    let mut by_owners: HashMap<(Owner, Owner), usize> = HashMap::new();
    let times = |entry: &Entry| extents.get(entry).copied().unwrap_or(0);
    for &(a, b) in conflicts {
        // The extent in more of them is the one that is too long, or in the wrong place.
        let extent = if times(&b) > times(&a) { b } else { a };
        let owners = (a.owner.min(b.owner), a.owner.max(b.owner));
        let known = by_extent.get(&extent).or_else(|| by_owners.get(&owners)).copied();
        let next = list.len();
        let at = match known.and_then(|at| Some((at, list.get_mut(at)?))) {
            Some((at, clash)) => {
                clash.more = clash.more.saturating_add(1);
                for entry in [a, b] {
                    let text =
                        entry.owner.inode().map_or_else(|| entry.owner.to_string(), |ino| format!("inode {ino}"));
                    let first = [clash.pair.0.owner, clash.pair.1.owner].contains(&entry.owner);
                    if !first && clash.others.len() < OTHERS && !clash.others.contains(&text) {
                        clash.others.push(text);
                    }
                }
                at
            }
            None if next < SHOWN => {
                list.push(Clash { pair: (a, b), more: 0, others: Vec::new() });
                next
            }
            None => continue,
        };
        by_extent.entry(extent).or_insert(at);
        by_owners.entry(owners).or_insert(at);
    }
    list
}

fn report_lost(ctx: &Ctx<'_>, group: &Group, lost: &[(u64, u64)], known: bool) {
    let Some(&(start, end)) = lost.first() else { return };
    if !ctx.owners_known() {
        ctx.lost_unjudged();
        return;
    }
    if !known {
        ctx.not_compared(
            group.ag,
            "an owner of blocks, or the free space of this AG",
            "blocks without owner with free space",
        );
        return;
    }
    let sum = lost.iter().fold(0u64, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)));
    let more = match lost.len() {
        1 => String::new(),
        n => format!(", {sum} blocks in {n} ranges of this AG in all"),
    };
    let spot = blocks(ctx, group.ag, start, end);
    let cause = ctx.who_lacks(sum).map_or(spot.object, Object::Inode);
    ctx.raise_of(LOST, &spot, cause, format_args!("nobody{more}"), "an owner, or free space");
}

fn report_shares(ctx: &Ctx<'_>, group: &Group, shares: &[Share], contested: &mut HashSet<Owner>) {
    if !group.refcntbt.is_witness() {
        if !shares.is_empty() {
            ctx.not_compared(group.ag, "refcntbt", "shared blocks with the refcount btree");
        }
        return;
    }
    let mut said: Vec<Share> = Vec::new();
    for shared in &group.shared {
        let start = shared.startblock.get();
        let (end, count) = (start.saturating_add(shared.blockcount.get()), u64::from(shared.refcount));
        match said.last_mut() {
            Some(last) if last.end == start && last.count == count => last.end = end,
            _ => said.push(Share { start, end, count }),
        }
    }
    let differences = differ(&said, shares);
    let Some(&(start, end, found, expected)) = differences.first() else { return };
    if !contested.is_empty() || !ctx.owners_known() {
        ctx.not_compared(group.ag, "an owner of blocks", "shared blocks with the refcount btree");
        return;
    }
    let more = match differences.len() {
        1 => String::new(),
        n => format!(", and {} more ranges", n.saturating_sub(1)),
    };
    let mut spot = blocks(ctx, group.ag, start, end);
    spot.object = Object::Ag(group.ag, crate::format::Type::Refcntbt);
    ctx.raise(REFCOUNT, &spot, format_args!("refcount {found}{more}"), format_args!("{expected} owners"));
}

/// Ranges in which two lists of shares differ, with both counts: 1 where a list has none.
fn differ(a: &[Share], b: &[Share]) -> Vec<(u64, u64, u64, u64)> {
    let mut edges: Vec<u64> = a.iter().chain(b).flat_map(|share| [share.start, share.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let count = |list: &[Share], at: u64| {
        let after = list.partition_point(|share| share.start <= at);
        after.checked_sub(1).and_then(|i| list.get(i)).filter(|share| at < share.end).map_or(1, |share| share.count)
    };
    let mut found: Vec<(u64, u64, u64, u64)> = Vec::new();
    for (&start, &end) in edges.iter().zip(edges.iter().skip(1)) {
        let (x, y) = (count(a, start), count(b, start));
        if x != y {
            match found.last_mut() {
                Some(last) if last.1 == start && (last.2, last.3) == (x, y) => last.1 = end,
                _ => found.push((start, end, x, y)),
            }
        }
    }
    found
}

/// Joins entries of one owner that follow each other. The list must be in an order in which they do.
fn join(entries: &mut Vec<Entry>) {
    entries.dedup_by(|next, last| {
        let joins = last.joins(next);
        if joins {
            last.blocks = last.blocks.saturating_add(next.blocks);
        }
        joins
    });
}

/// Entries only in one of two lists in the same order.
fn only(a: &[Entry], b: &[Entry], key: impl Fn(&Entry) -> (u64, u64, u64)) -> (Vec<Entry>, Vec<Entry>) {
    let (mut only_a, mut only_b) = (Vec::new(), Vec::new());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if key(x) < key(y) => only_a.extend(a.next().copied()),
            (Some(_), None) => only_a.extend(a.next().copied()),
            (_, Some(_)) => only_b.extend(b.next().copied()),
            (None, None) => return (only_a, only_b),
        }
    }
}

fn compare_mappings(
    ctx: &Ctx<'_>,
    group: &Group,
    mut entries: Vec<Entry>,
    mut mappings: Vec<Entry>,
    contested: &HashSet<Owner>,
) {
    entries.retain_mut(|entry| {
        let known = entry.owner.rmap();
        entry.owner = known.map_or(entry.owner, Owner);
        known.is_some()
    });
    join(&mut entries);
    join(&mut mappings);
    let by_place = |entry: &Entry| (u64::from(entry.start), entry.owner.0, entry.within.0 & !Within::UNWRITTEN);
    let (owned, mapped) = only(&entries, &mappings, by_place);
    if owned.is_empty() && mapped.is_empty() {
        return;
    }
    // Extents of one file between which those of another begin could not be joined above: once more, owner by owner.
    let by_owner =
        |entry: &Entry| (entry.owner.0, entry.within.0 & (Within::ATTR | Within::TREE), u64::from(entry.start));
    let sorted = |mut entries: Vec<Entry>| {
        entries.sort_unstable_by_key(by_owner);
        join(&mut entries);
        entries
    };
    let (mut owned, mut mapped) = only(&sorted(owned), &sorted(mapped), by_owner);
    let before = owned.len().saturating_add(mapped.len());
    let doubtful = |entry: &Entry| match entry.owner.inode() {
        Some(ino) => contested.contains(&entry.owner) || ctx.is_doubtful(ino),
        None => {
            let contested = contested.iter().any(|owner| owner.rmap() == Some(entry.owner.0));
            contested || !group.is_sound(&ctx.context().features) || !ctx.owners_known()
        }
    };
    owned.retain(|entry| !doubtful(entry));
    // What an inode that was not wholly seen owns is not known: that nobody seems to own a block says nothing.
    let seen = ctx.owners_known() || ctx.survey.is_whole() && !owned.is_empty();
    let owner_seen = |entry: &Entry| entry.owner.inode().is_some_and(|ino| ctx.names.is_mapped(ctx, ino));
    mapped.retain(|entry| !doubtful(entry) && (seen || owner_seen(entry)));
    if owned.is_empty() && mapped.is_empty() {
        match before {
            0 => {}
            _ if ctx.owners_known() => {
                ctx.not_compared(group.ag, "an owner of blocks", "owners of blocks with the reverse mapping btree");
            }
            _ => ctx.lost_unjudged(),
        }
        return;
    }
    let (rule, entry) = match (mapped.first(), owned.first()) {
        (Some(entry), _) => (rmapbt::NOT_OWNED, *entry),
        (None, Some(entry)) => (rmapbt::MISSING, *entry),
        (None, None) => return,
    };
    let list = |entries: &[Entry], none: &str| match entries {
        [] => none.to_owned(),
        [one] => rmapbt::text(one),
        [first, more @ ..] => format!("{} and {} more", rmapbt::text(first), more.len()),
    };
    let mut spot = blocks(ctx, group.ag, u64::from(entry.start), entry.end());
    spot.place.structure = format!("agf {} › rmapbt › {}", group.ag, range(u64::from(entry.start), entry.end()));
    spot.object = Object::Ag(group.ag, crate::format::Type::Rmapbt);
    ctx.raise(rule, &spot, list(&mapped, "no record"), list(&owned, "no record: nobody owns these blocks so"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(ino: u64, start: u32, blocks: u32, offset: u64) -> Entry {
        Entry { start, blocks, owner: Owner(ino), within: Within::fork(offset, false, false) }
    }

    fn free(start: u32, blocks: u32) -> Entry {
        Entry { start, blocks, owner: Owner::FREE, within: Within(0) }
    }

    #[test]
    fn unwritten_blocks_are_not_shared() {
        let mut unwritten = file(132, 4, 2, 0);
        unwritten.within = Within::fork(0, false, true);
        assert_eq!(sweep(&[file(131, 0, 10, 0), unwritten], 10, true).conflicts.len(), 1);
    }

    #[test]
    fn gaps_are_lost() {
        let found = sweep(&[free(0, 4), file(131, 4, 2, 0), free(8, 1)], 12, false);
        assert_eq!((found.lost, found.conflicts.len()), (vec![(6, 8), (9, 12)], 0));
    }

    #[test]
    fn only_content_is_shared() {
        let entries = [file(131, 0, 10, 0), file(132, 4, 10, 0), file(133, 6, 2, 0)];
        let found = sweep(&entries, 14, true);
        assert!(found.conflicts.is_empty() && found.lost.is_empty());
        let share = |start, end, count| Share { start, end, count };
        assert_eq!(found.shares, [share(4, 6, 2), share(6, 8, 3), share(8, 10, 2)]);
        assert_eq!(sweep(&entries, 14, false).conflicts.len(), 2);
        let found = sweep(&[file(131, 0, 10, 0), free(4, 2), file(132, 5, 5, 0)], 10, true);
        assert_eq!(found.conflicts, [(file(131, 0, 10, 0), free(4, 2)), (free(4, 2), file(132, 5, 5, 0))]);
    }

    #[test]
    fn shares_differ() {
        let a = [Share { start: 4, end: 8, count: 2 }];
        let b = [Share { start: 4, end: 6, count: 2 }, Share { start: 6, end: 8, count: 3 }];
        assert_eq!(differ(&a, &b), [(6, 8, 2, 3)]);
        assert_eq!(differ(&a, &[]), [(4, 8, 2, 1)]);
        assert!(differ(&b, &b).is_empty());
    }

    #[test]
    fn what_differs_between_lists() {
        let by_place = |entry: &Entry| (u64::from(entry.start), entry.owner.0, entry.within.0);
        let (a, b) = (vec![file(1, 0, 2, 0), file(1, 5, 1, 5)], vec![file(1, 0, 2, 0), file(2, 5, 1, 5)]);
        assert_eq!(only(&a, &b, by_place), (vec![file(1, 5, 1, 5)], vec![file(2, 5, 1, 5)]));
        let mut list = vec![file(1, 0, 2, 0), file(1, 2, 2, 2), file(1, 4, 1, 9)];
        join(&mut list);
        assert_eq!(list, [file(1, 0, 4, 0), file(1, 4, 1, 9)]);
    }
}
