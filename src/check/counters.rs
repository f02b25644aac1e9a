//! Counters of the superblock, against what was counted. `xfs_initialize_perag_data` (xfs_ag.c), `xchk_fscounters`
//! (scrub/fscounters.c), `phase5` (xfs_repair).

use super::context::{Ctx, Spot};
use super::finding::Finding;
use super::known::Known;
use super::raised;
use crate::format::superblock::Superblock;
use crate::units::Ino;

raised! { RAISED, structure "sb", fields Superblock;
    /// Inodes with space, free ones included, as the inode btrees hold them.
    ICOUNT: "sb-icount-mismatch" xcorrupt icount, "number of inodes is not what was counted",
        source "scrub/fscounters.c:xchk_fscounters; repair/phase5.c", since "scrub";
    /// Free inodes as the inode btrees hold them.
    IFREE: "sb-ifree-mismatch" xcorrupt ifree, "number of free inodes is not what was counted",
        source "scrub/fscounters.c:xchk_fscounters; repair/phase5.c", since "scrub";
    /// The root directory is the first inode of a chunk, and in use. Without it nothing can be reached by name; xfs_repair
    /// makes a new one and puts what it finds into lost+found.
    ROOT: "sb-rootino-not-in-use" xcorrupt rootino, "root inode is not the first of a chunk, in use",
        source "xfs_mount.c:xfs_mountfs; repair/xfs_repair.c:calc_mkfs", since "2.6";
    /// Free blocks, those of the free lists and free space btrees included. Kernels count anew at a mount after a crash,
    /// not after an unmount: df and allocation are wrong until then.
    FDBLOCKS: "sb-fdblocks-mismatch" xcorrupt fdblocks, "number of free blocks is not what was counted",
        source "scrub/fscounters.c:xchk_fscounters; repair/phase5.c", since "scrub";
    /// A quota inode is one in use. xfs_repair takes it out of the superblock, and limits are lost.
    QUOTA_INODE: "sb-quota-inode-not-in-use" xcorrupt uquotino, "quota inode is no inode in use",
        source "repair/phase4.c:quotino_check", since "none";
}

/// Rules about counters that xfs_repair counts anew.
pub const COUNTED: [&str; 3] = [ICOUNT.id, IFREE.id, FDBLOCKS.id];

/// The root directory, against the inode btree.
pub fn root(ctx: &Ctx<'_>, sb: &Superblock, spot: &Spot) {
    let Some((ag, agino)) = ctx.geometry().split_inode(sb.rootino) else { return };
    let Some(group) = ctx.group(ag) else { return };
    let first = group.chunk_of(agino.0).is_some_and(|chunk| chunk.startino == agino);
    let Some(&in_use) = group.in_use(agino).get() else { return };
    if !(first && in_use) {
        let right = group.chunks.first().and_then(|chunk| ctx.geometry().join_inode(ag, chunk.startino));
        ctx.raise(ROOT, spot, sb.rootino, right.map_or("an inode in use".to_owned(), |ino| ino.to_string()));
    }
}

/// The quota inodes, against the inode btrees. With metadata directories they have names.
pub fn quota_inodes(ctx: &Ctx<'_>, sb: &Superblock, spot: &Spot) {
    let features = &ctx.context().features;
    if features.has_metadir() || !features.has_quota() {
        return;
    }
    let project = if features.is_v5() { sb.pquotino } else { Ino::NULL };
    for (field, ino) in [("uquotino", sb.uquotino), ("gquotino", sb.gquotino), ("pquotino", project)] {
        if ino.is_null() || ino.0 == 0 {
            continue;
        }
        let in_use = match ctx.geometry().split_inode(ino) {
            None => Known::when(true, false),
            Some((ag, agino)) => ctx.group(ag).map_or(Known::UNKNOWN, |group| group.in_use(agino)),
        };
        if in_use.get() == Some(&false) {
            let finding = Finding::new(QUOTA_INODE, spot.place.clone().field(field), ino, "an inode in use, or null");
            ctx.report(finding.about(spot.object));
        }
    }
}

/// Counters of the primary against the sums over all AGs, as far as those are known.
pub fn check(ctx: &Ctx<'_>, sb: &Superblock, spot: &Spot) {
    // What is wrong with an AG was said there.
    if ctx.is_any_ag_damaged() {
        return;
    }
    ctx.compare(ICOUNT, spot, sb.icount, &ctx.all_groups(|group| group.inodes));
    ctx.compare(IFREE, spot, sb.ifree, &ctx.all_groups(|group| group.free_inodes));
    let rmapbt = ctx.context().features.has_rmapbt();
    let free = ctx.all_groups(|group| {
        let not_roots = |tree: Known<u64>| tree.map(|blocks| blocks.saturating_sub(1));
        let rmapbt = if rmapbt { group.rmapbt_blocks.get().copied().unwrap_or_default() } else { Known::when(true, 1) };
        let parts = [
            group.free_blocks,
            group.free_list.map(u64::from),
            not_roots(group.bnobt.all_blocks()),
            not_roots(group.cntbt.all_blocks()),
            not_roots(rmapbt),
        ];
        parts.into_iter().sum()
    });
    ctx.compare(FDBLOCKS, spot, sb.fdblocks, &free);
}
