//! The index of free space of a directory: the longest free space of each data block, at the end of a single leaf, or in
//! blocks of their own. `xfs_dir3_free_verify` (xfs_dir2_node.c), `xchk_directory_free_bestfree` (scrub/dir.c);
//! `longform_dir2_check_node` (xfs_repair, phase6.c).

use super::context::Spot;
use super::da::{self, FRAME};
use super::dir::Names;
use super::dir_index::{HOLE, NAMED, number};
use super::fork::{self, Reader};
use super::raised;
use crate::format::{bits, dir_free};

raised! { RAISED, structure "dir.free";
    /// A single leaf ends with the longest free space of each data block, and their number.
    BESTCOUNT: "dirleaf-bad-bestcount" corrupt "bestcount", "not the number of data blocks",
        source "xfs_dir2_leaf.c:xfs_dir3_leaf_check_int; scrub/dir.c:xchk_directory_leaf1_bestfree", since "3.10";
    /// The longest free space that the index keeps for a data block is not what the block has. New names go to the wrong
    /// block, or the kernel gives up ("XFS_WANT_CORRUPTED_GOTO").
    BESTS: "dirfree-bad-best" corrupt "bests", "longest free space is not that of the data block",
        source "scrub/dir.c:xchk_directory_leaf1_bestfree, xchk_directory_free_bestfree; repair/phase6.c:longform_dir2_check_leaf",
        since "scrub";
    /// Data blocks that the index of free space does not speak of.
    NOT_LISTED: "dirfree-missing-block" corrupt "bests", "a data block without an entry",
        source "repair/phase6.c:longform_dir2_check_node", since "none";
    /// The first data block that a block of the free space index speaks of follows from its place.
    FIRSTDB: "dirfree-bad-firstdb" corrupt "firstdb", "first data block does not fit the place",
        source "xfs_dir2_node.c:xfs_dir3_free_header_check; repair/phase6.c:longform_dir2_check_node", since "3.10";
    /// More entries than fit into the block, or than there can be data blocks.
    NVALID: "dirfree-bad-nvalid" corrupt "nvalid", "more entries than fit",
        source "xfs_dir2_node.c:xfs_dir3_free_header_check; repair/phase6.c:longform_dir2_check_node", since "3.10";
    /// How many entries of the block are in use.
    NUSED: "dirfree-bad-nused" corrupt "nused", "not the number of entries in use",
        source "xfs_dir2_node.c:xfs_dir3_free_header_check; repair/phase6.c:longform_dir2_check_node", since "3.10";
}

/// A data block that does not exist, in lists of free space.
const NO_BLOCK: u16 = 0xffff;

/// A data block by number, and its longest free space; `None` where that is not known.
pub(super) type Longest = (u64, Option<u16>);

/// A list of free spaces: what it speaks of.
#[derive(Clone, Copy)]
pub(super) struct Listed<'l> {
    /// Longest free space of each data block.
    pub blocks: &'l [Longest],
    /// Data block that the first entry speaks of.
    pub first: u64,
    /// Where the list stands.
    pub spot: &'l dyn Fn() -> Spot,
}

/// Compares listed free spaces with those of the data blocks. Gives the entries in use.
pub(super) fn list(names: &Names<'_, '_>, listed: &Listed<'_>, bests: impl Iterator<Item = u16>) -> u32 {
    let blocks = listed.blocks;
    let mut at = blocks.partition_point(|(number, _)| *number < listed.first);
    let mut used = 0;
    let mut wrong = 0usize;
    for (i, best) in bests.enumerate() {
        let number = listed.first.saturating_add(u64::try_from(i).unwrap_or(0));
        used += u32::from(best != NO_BLOCK);
        let block = blocks.get(at).filter(|block| block.0 == number);
        at += usize::from(block.is_some());
        let right = match block {
            None => NO_BLOCK,
            Some((_, Some(longest))) => *longest,
            // The block could not be read: nothing follows from it.
            Some((_, None)) => continue,
        };
        if best != right && wrong < NAMED {
            wrong += 1;
            let part = (listed.spot)().part(format_args!("bests[{i}]"));
            names.ctx.raise(BESTS, &part, format_args!("{best:#x}"), format_args!("{right:#x}"));
        }
    }
    used
}

/// The index of free space.
pub(super) fn check(names: &Names<'_, '_>, reader: &mut Reader<'_, '_>, blocks: &[Longest], free_at: u64) {
    let (ctx, context) = (names.ctx, names.ctx.context());
    let width = u64::from(reader.width);
    let room = reader.size().saturating_sub(usize::try_from(dir_free::header_size(context)).unwrap_or(0));
    let most = u64::try_from(room / 2).unwrap_or(0);
    let mut covered: Vec<(u64, u64)> = Vec::new();
    let (mut next, mut i) = (0u64, 0usize);
    while let Some(extent) = reader.map.extents().get(i) {
        i += 1;
        let stop = extent.startoff.0.saturating_add(u64::from(extent.blockcount));
        let mut at = extent.startoff.0.max(free_at).max(next);
        while at < stop && !ctx.is_cancelled() && !reader.exhausted {
            let first_at = at.saturating_sub(at.saturating_sub(free_at).checked_rem(width).unwrap_or(0));
            next = first_at.saturating_add(width);
            at = next;
            let first = number(first_at.saturating_sub(free_at), width).saturating_mul(most);
            let count = block(names, reader, blocks, (first_at, first, most));
            // What a damaged block speaks of is not missing.
            covered.push((first, first.saturating_add(count.unwrap_or(most))));
        }
    }
    if ctx.is_cancelled() || reader.exhausted {
        // What was not come to is not missing.
        return;
    }
    let is_covered = |number: u64| {
        let after = covered.partition_point(|range| range.0 <= number);
        after.checked_sub(1).and_then(|i| covered.get(i)).is_some_and(|range| number < range.1)
    };
    if let Some((number, _)) = blocks.iter().find(|(number, _)| !is_covered(*number)) {
        let spot = reader.spot(free_at);
        ctx.raise(NOT_LISTED, &spot, format_args!("nothing of data block {number}"), "its longest free space");
    }
}

/// A block of it; gives how many data blocks it speaks of.
fn block(
    names: &Names<'_, '_>,
    reader: &mut Reader<'_, '_>,
    blocks: &[Longest],
    (at, first, most): (u64, u64, u64),
) -> Option<u64> {
    let (ctx, context) = (names.ctx, names.ctx.context());
    let (ino, size, what, place) = (reader.ino, reader.size(), reader.what(), reader.place(at));
    let spot = || fork::spot(ctx, ino, what, place, at, size);
    let bytes = reader.whole(at, HOLE)?;
    let header = dir_free::header(context, bytes)?;
    let right = if context.has_crc() { dir_free::magic::V5 } else { dir_free::magic::V4 };
    if header.magic != right {
        ctx.raise(da::BAD_MAGIC, &spot(), format_args!("{:#x}", header.magic), format_args!("{right:#x}"));
        return None;
    }
    if !fork::frame(ctx, (fork::DIR, &FRAME), bytes, (place, ino), &spot) {
        return None;
    }
    if context.has_crc() && bits::be32(bytes, 60).unwrap_or(0) != 0 {
        ctx.raise(da::BAD_PAD, &spot(), format_args!("{:#x}", bits::be32(bytes, 60).unwrap_or(0)), 0);
    }
    if u64::from(header.firstdb) != first {
        ctx.raise(FIRSTDB, &spot(), header.firstdb, first);
    }
    if u64::from(header.nvalid) > most {
        ctx.raise(NVALID, &spot(), header.nvalid, format_args!("at most {most}"));
        return None;
    }
    // Entries behind the last data block are no list any more: one finding says so.
    let last = blocks.last().map_or(0, |(number, _)| number.saturating_add(1));
    let count = u64::from(header.nvalid);
    if first.saturating_add(count) > last.max(first) {
        ctx.raise(NVALID, &spot(), header.nvalid, format_args!("at most {}", last.saturating_sub(first)));
        return Some(count);
    }
    let used = list(names, &Listed { blocks, first, spot: &spot }, dir_free::bests(context, bytes));
    if used != header.nused {
        ctx.raise(NUSED, &spot(), header.nused, used);
    }
    Some(count)
}
