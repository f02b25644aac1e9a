//! Free space: the btree by block and the btree by size hold the same extents. `xfs_alloc_check_irec` (xfs_alloc.c),
//! `xchk_allocbt` (scrub/alloc.c), `scan_allocbt` (xfs_repair).

use super::btree::{Leaf, Scanned, of_ag, scan};
use super::context::Ctx;
use super::group::Group;
use super::known::Known;
use super::owners::{Local, Owner};
use super::raised;
use crate::format::agf::Agf;
use crate::format::bnobt::FreeExtent;
use crate::format::{bnobt, cntbt};
use crate::units::AgBlock;

raised! { RAISED, structure "freesp";
    /// A free extent lies within the AG, behind its headers, and is at least a block long. Allocation out of such a record
    /// overwrites headers or another AG.
    OUTSIDE: "freesp-extent-outside" corrupt "recs", "free extent is empty or lies outside the AG",
        source "xfs_alloc.c:xfs_alloc_check_irec; repair/scan.c:scan_allocbt", since "6.4";
    /// Free extents that touch are one record.
    UNMERGED: "freesp-extents-touch" corrupt "recs", "free extents touch and should be one",
        source "scrub/alloc.c:xchk_allocbt_mergeable", since "scrub";
    /// An extent stands in the btree by block, not in the one by size. Either it is free and would never be found by size,
    /// or it is in use and would be given away.
    ONLY_BNO: "freesp-only-in-bnobt" xcorrupt "recs", "free extent is not in the btree by size",
        source "scrub/alloc.c:xchk_allocbt_xref_other; repair/phase4 (rebuilds both)", since "scrub";
    /// An extent stands in the btree by size, not in the one by block. Either it is free and would never be found by
    /// place, or it is in use and would be given away.
    ONLY_CNT: "freesp-only-in-cntbt" xcorrupt "recs", "free extent is not in the btree by block",
        source "scrub/alloc.c:xchk_allocbt_xref_other; repair/phase4 (rebuilds both)", since "scrub";
}

/// Records of one of the two btrees, up to the first that cannot be.
fn records(ctx: &Ctx<'_>, length: u32, leaf: &Leaf<'_>, into: &mut Vec<FreeExtent>) -> bool {
    if !leaf.believed {
        return true;
    }
    let first = super::btree::header_blocks(ctx);
    for (i, record) in leaf.records().enumerate() {
        let Some(extent) = FreeExtent::at(record, 0) else { continue };
        let end = extent.startblock.get().saturating_add(u64::from(extent.blockcount.0));
        if extent.startblock.0 < first || extent.blockcount.0 == 0 || end > u64::from(length) {
            let found = format!("[{},{}]", extent.startblock, extent.blockcount);
            ctx.raise(OUTSIDE, &leaf.spot(i), found, format_args!("blocks {first} to {}", length.saturating_sub(1)));
            return false;
        }
        into.push(extent);
    }
    true
}

/// Both btrees of an AG, and against each other. Free extents go to `owners`.
pub fn check(ctx: &Ctx<'_>, group: &mut Group, agf: &Agf, owners: &mut Local<'_>) {
    let (ag, length) = (group.ag, group.length);
    let mut by_block = Vec::new();
    let tree = of_ag(&bnobt::SHAPE, ag, agf.bno_root, agf.bno_level, Owner::BNOBT);
    let mut last: Option<FreeExtent> = None;
    let bno = scan(ctx, &tree, owners, &mut |leaf| {
        let before = by_block.len();
        let right = records(ctx, length, leaf, &mut by_block);
        for (i, extent) in by_block.get(before..).unwrap_or_default().iter().enumerate() {
            if let Some(last) = last
                && last.startblock.0.checked_add(last.blockcount.0) == Some(extent.startblock.0)
            {
                let found = format!("[{},{}]", extent.startblock, extent.blockcount);
                ctx.raise(
                    UNMERGED,
                    &leaf.spot(i),
                    found,
                    format_args!("one with [{},{}]", last.startblock, last.blockcount),
                );
            }
            last = Some(*extent);
        }
        right
    });
    let mut by_size = Vec::new();
    let tree = of_ag(&cntbt::SHAPE, ag, agf.cnt_root, agf.cnt_level, Owner::CNTBT);
    let cnt = scan(ctx, &tree, owners, &mut |leaf| records(ctx, length, leaf, &mut by_size));
    let sum = by_block.iter().fold(0, |sum: u64, extent| sum.saturating_add(u64::from(extent.blockcount.0)));
    group.free_blocks = Known::when(bno.is_witness(), sum);
    let longest = by_size.last().map_or(0, |extent: &FreeExtent| extent.blockcount.get());
    group.longest = Known::when(cnt.is_witness(), longest);
    by_block.sort_unstable();
    by_size.sort_unstable();
    (group.bnobt, group.cntbt) = (bno, cnt);
    settle(ctx, group, (&by_block, bno), (&by_size, cnt), owners);
}

/// Which blocks are free: what both btrees say, or the one that is a witness.
fn settle(
    ctx: &Ctx<'_>,
    group: &mut Group,
    by_block: (&[FreeExtent], Scanned),
    by_size: (&[FreeExtent], Scanned),
    owners: &mut Local<'_>,
) {
    let ag = group.ag;
    let mut add = |extents: &[FreeExtent], owner| {
        for extent in extents {
            owners.blocks(ag, extent.startblock, extent.blockcount.0, owner);
        }
    };
    match (by_block.1.is_witness(), by_size.1.is_witness()) {
        (true, true) if by_block.0 == by_size.0 => add(by_block.0, Owner::FREE),
        (true, true) => {
            let (both, only_bno, only_cnt) = compare(by_block.0, by_size.0);
            group.disputed = true;
            (group.free_blocks, group.longest) = (Known::UNKNOWN, Known::UNKNOWN);
            add(&both, Owner::FREE);
            add(&disputed(&only_bno, &only_cnt), Owner::DISPUTED);
            let agf = super::agf::spot(ctx, ag);
            for (rule, name, extents) in [(ONLY_BNO, "bnobt", &only_bno), (ONLY_CNT, "cntbt", &only_cnt)] {
                // A record that changed in one btree makes one record on each side: one finding says both.
                let other = if rule.id == ONLY_BNO.id { &only_cnt } else { &only_bno };
                if let Some(extent) = extents.first()
                    && (rule.id == ONLY_BNO.id || other.is_empty())
                {
                    let more = if extents.len() > 1 {
                        format!(" and {} more", extents.len().saturating_sub(1))
                    } else {
                        String::new()
                    };
                    let found = format!("[{},{}]{more}", extent.startblock, extent.blockcount);
                    let expected = match other.first() {
                        Some(other) => format!("[{},{}] as in the other btree", other.startblock, other.blockcount),
                        None => "the same records in both".to_owned(),
                    };
                    ctx.raise(rule, &agf.part(name), found, expected);
                }
            }
        }
        (true, false) => add(by_block.0, Owner::FREE),
        (false, true) => add(by_size.0, Owner::FREE),
        (false, false) => group.free_known = false,
    }
}

type Extents = Vec<FreeExtent>;

/// Records in both lists, only in the first, only in the second. Both lists are sorted.
fn compare(a: &[FreeExtent], b: &[FreeExtent]) -> (Extents, Extents, Extents) {
    let (mut both, mut only_a, mut only_b) = (Vec::new(), Vec::new(), Vec::new());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                both.extend(a.next());
                b.next();
            }
            (Some(x), Some(y)) if x < y => only_a.extend(a.next()),
            (Some(_), None) => only_a.extend(a.next()),
            (_, Some(_)) => only_b.extend(b.next()),
            (None, None) => return (both, only_a, only_b),
        }
    }
}

/// The blocks of both lists, each once.
fn disputed(a: &[FreeExtent], b: &[FreeExtent]) -> Extents {
    let mut all: Vec<FreeExtent> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let mut merged: Extents = Vec::new();
    for extent in all {
        if let Some(last) = merged.last_mut() {
            let end = last.startblock.0.saturating_add(last.blockcount.0);
            if extent.startblock.0 <= end {
                let new_end = end.max(extent.startblock.0.saturating_add(extent.blockcount.0));
                last.blockcount.0 = new_end.saturating_sub(last.startblock.0);
                continue;
            }
        }
        merged.push(FreeExtent { startblock: AgBlock(extent.startblock.0), blockcount: extent.blockcount });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::ExtLen;

    fn extents(list: &[(u32, u32)]) -> Extents {
        list.iter()
            .map(|&(start, length)| FreeExtent { startblock: AgBlock(start), blockcount: ExtLen(length) })
            .collect()
    }

    #[test]
    fn what_differs_is_disputed_once() {
        let (a, b) = (extents(&[(10, 4), (20, 8), (40, 1)]), extents(&[(10, 4), (20, 9), (50, 2)]));
        let (both, only_a, only_b) = compare(&a, &b);
        assert_eq!((both, only_a.len(), only_b.len()), (extents(&[(10, 4)]), 2, 2));
        assert_eq!(disputed(&only_a, &only_b), extents(&[(20, 9), (40, 1), (50, 2)]));
    }
}
