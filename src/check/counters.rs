//! Counters of the superblock, against what was counted. `xfs_initialize_perag_data` (xfs_ag.c), `xchk_fscounters`
//! (scrub/fscounters.c), `phase5` (xfs_repair).

use super::context::{Ctx, Spot};
use super::finding::Finding;
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
    let Some(group) = ctx.group(ag).filter(|group| group.inobt.is_witness()) else { return };
    let chunk = group.chunk_of(agino.0);
    if !chunk.is_some_and(|chunk| chunk.startino == agino && chunk.in_use(0)) {
        let right = group.chunks.first().and_then(|chunk| ctx.geometry().join_inode(ag, chunk.startino));
        ctx.raise(ROOT, spot, sb.rootino, right.map_or("an inode in use".to_owned(), |ino| ino.to_string()));
    }
}

/// The quota inodes, against the inode btrees. With metadata directories they have names.
pub fn quota_inodes(ctx: &Ctx<'_>, sb: &Superblock, spot: &Spot) {
    let features = &ctx.context().features;
    if ctx.is_partial() || features.has_metadir() || !features.has_quota() {
        return;
    }
    let project = if features.is_v5() { sb.pquotino } else { Ino::NULL };
    for (field, ino) in [("uquotino", sb.uquotino), ("gquotino", sb.gquotino), ("pquotino", project)] {
        if ino.is_null() || ino.0 == 0 {
            continue;
        }
        let group = ctx.geometry().split_inode(ino).and_then(|(ag, agino)| Some((ctx.group(ag)?, agino)));
        let known = group.is_none_or(|(group, _)| group.inobt.is_witness());
        let in_use = group.is_some_and(|(group, agino)| {
            let chunk = group.chunk_of(agino.0);
            chunk.is_some_and(|chunk| chunk.in_use(agino.0.saturating_sub(chunk.startino.0)))
        });
        if known && !in_use {
            let finding = Finding::new(QUOTA_INODE, spot.place.clone().field(field), ino, "an inode in use, or null");
            ctx.report(finding.about(spot.object));
        }
    }
}

/// Counters of the primary against the sums over all AGs, as far as those are known.
pub fn check(ctx: &Ctx<'_>, sb: &Superblock, spot: &Spot) {
    let groups = ctx.groups();
    let complete = u32::try_from(groups.len()) == Ok(ctx.geometry().ag_count);
    // What is wrong with an AG was said there.
    if ctx.is_partial() || !complete || ctx.is_any_ag_damaged() {
        return;
    }
    let sum = |value: &dyn Fn(&super::group::Group) -> u64| {
        groups.iter().fold(0u64, |sum, group| sum.saturating_add(value(group)))
    };
    if groups.iter().all(|group| group.inobt.is_witness()) {
        for (rule, found, right) in
            [(ICOUNT, sb.icount, sum(&|group| group.inodes)), (IFREE, sb.ifree, sum(&|group| group.free_inodes))]
        {
            if found != right {
                ctx.raise(rule, spot, found, right);
            }
        }
    }
    let known =
        |group: &super::group::Group| group.bnobt.is_witness() && group.cntbt.complete && group.free_list.is_some();
    if groups.iter().all(known) {
        let right = sum(&|group| {
            let trees = group.bnobt.blocks.saturating_add(group.cntbt.blocks).saturating_sub(2);
            let rmapbt = group.rmapbt_blocks.get().map_or(0, |blocks| blocks.saturating_sub(1));
            let list = u64::from(group.free_list.unwrap_or(0));
            group.free_blocks.saturating_add(list).saturating_add(trees).saturating_add(rmapbt)
        });
        if sb.fdblocks != right {
            ctx.raise(FDBLOCKS, spot, sb.fdblocks, right);
        }
    }
}
