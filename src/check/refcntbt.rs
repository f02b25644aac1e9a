//! Shared extents: records of the refcount btree. That they are what files really share is for [`super::space`].
//! `xfs_refcount_check_irec` (xfs_refcount.c), `xchk_refcountbt_rec` (scrub/refcount.c), `scan_refcbt` (xfs_repair).

use super::btree::{of_ag, scan};
use super::context::Ctx;
use super::finding::Mismatch;
use super::group::Group;
use super::owners::{Local, Owner};
use super::{first_broken, raised, rules};
use crate::format::agf::Agf;
use crate::format::refcountbt::{self, RefcountRec, Shared};

/// A record and what it must fit.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The record.
    pub shared: Shared,
    /// First block behind the headers.
    pub first: u32,
    /// Blocks of the AG.
    pub length: u32,
}

rules! { structure "refcntbt", subject Subject, fields RefcountRec;
    /// A shared extent lies within the AG, behind its headers, and is at least a block long.
    "refcntbt-extent-outside" corrupt startblock, "shared extent is empty or lies outside the AG",
        source "xfs_refcount.c:xfs_refcount_check_irec; repair/scan.c:scan_refcbt", since "4.17",
        |s| {
            let (start, length) = (s.shared.startblock, s.shared.blockcount);
            let end = start.get().saturating_add(length.get());
            let right = start.0 >= s.first && length.0 > 0 && end <= u64::from(s.length);
            Mismatch::unless(right, format_args!("[{start},{length}]"), format_args!("blocks {} to {}", s.first, s.length.saturating_sub(1)))
        };
    /// Extents that only one file has are not in this btree, except those that stage a copy on write, which have
    /// refcount 1.
    "refcntbt-bad-refcount" corrupt refcount, "impossible number of owners",
        source "xfs_refcount.c:xfs_refcount_check_irec; repair/scan.c:scan_refcbt", since "4.17",
        |s| {
            let right = if s.shared.cow { s.shared.refcount == 1 } else { (2..=0xffff_fffe).contains(&s.shared.refcount) };
            let expected = if s.shared.cow { "1 for a staging extent" } else { "2 or more" };
            Mismatch::unless(right, s.shared.refcount, expected)
        };
}

raised! { RAISED, structure "refcntbt", fields RefcountRec;
    /// Extents that touch and are shared equally often are one record.
    UNMERGED: "refcntbt-extents-touch" corrupt startblock, "shared extents touch and should be one",
        source "scrub/refcount.c:xchk_refcountbt_check_mergeable; repair/scan.c:scan_refcbt", since "scrub";
    /// Space for a copy on write that never took place: left over from a crash. The kernel frees it at the next mount;
    /// xfs_repair, too.
    LEFTOVER: "refcntbt-leftover-cow" xcorrupt startblock, "staging extent of a copy on write was left over",
        source "xfs_refcount.c:xfs_refcount_recover_cow_leftovers; repair/scan.c:scan_refcbt", since "none";
}

/// The refcount btree of an AG. Records go to the group, staging extents to `owners`.
pub fn check(ctx: &Ctx<'_>, group: &mut Group, agf: &Agf, owners: &mut Local<'_>) {
    let first = super::btree::header_blocks(ctx);
    let tree = of_ag(&refcountbt::SHAPE, group.ag, agf.refcount_root, agf.refcount_level, Owner::REFCNTBT);
    let mut all: Vec<Shared> = Vec::new();
    let mut staging = Vec::new();
    group.refcntbt = scan(ctx, &tree, owners, &mut |leaf| {
        if !leaf.believed {
            return true;
        }
        for (i, record) in leaf.records().enumerate() {
            let Some(shared) = Shared::at(record, 0) else { continue };
            let subject = Subject { shared, first, length: group.length };
            if let Some((rule, mismatch)) = first_broken(RULES, INFOS, &subject) {
                ctx.raise(rule, &leaf.spot(i), mismatch.found, mismatch.expected);
                return false;
            }
            if let Some(last) = all.last()
                && last.cow == shared.cow
                && last.refcount == shared.refcount
                && last.startblock.0.checked_add(last.blockcount.0) == Some(shared.startblock.0)
            {
                let found = format!("[{},{}]", shared.startblock, shared.blockcount);
                ctx.raise(
                    UNMERGED,
                    &leaf.spot(i),
                    found,
                    format_args!("one with [{},{}]", last.startblock, last.blockcount),
                );
            }
            if shared.cow {
                staging.push((shared, leaf.spot(i)));
            }
            all.push(shared);
        }
        true
    });
    // Behind a damaged record anything looks like a record.
    staging.retain(|_| group.refcntbt.is_witness());
    for (shared, spot) in staging {
        let found = format!("[{},{}]", shared.startblock, shared.blockcount);
        ctx.raise(LEFTOVER, &spot, found, "none on a file system that was unmounted");
        owners.blocks(group.ag, shared.startblock, shared.blockcount.0, Owner::COW);
    }
    all.retain(|shared| !shared.cow);
    group.shared = all;
}
