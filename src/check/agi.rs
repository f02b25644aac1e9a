//! Rules about the inode header of an AG, alone and against its btrees. `xfs_agi_verify` (xfs_ialloc.c), `xchk_agi`
//! (scrub/agheader.c), `verify_set_agi`, `validate_agi` (xfs_repair).

use super::agf::level;
use super::context::{Ctx, Spot};
use super::finding::Mismatch;
use super::group::{Group, Limits};
use super::known::Known;
use super::{raised, rules};
use crate::format::agi::{self, Agi};
use crate::format::checksum::CrcState;
use crate::format::features::Features;
use crate::format::on_disk::Uuid;
use crate::units::{AgIno, AgNumber};
use crate::walk::unlinked::unlinked;
use std::collections::BTreeSet;

/// An AGI and what it must agree with.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its contents.
    pub agi: Agi,
    /// The AG it lies in.
    pub ag: AgNumber,
    /// Blocks of that AG, by the superblock.
    pub length: u32,
    /// First block behind the headers.
    pub first: u32,
    /// Numbers that inodes of this AG can have.
    pub inodes: std::ops::Range<u32>,
    /// Levels that btrees can have.
    pub limits: Limits,
    /// Features.
    pub features: Features,
    /// Identity that metadata must carry.
    pub uuid: Uuid,
    /// State of the checksum.
    pub crc: CrcState,
}

impl Subject {
    fn root(&self, block: u32) -> Option<Mismatch> {
        let within = (self.first..self.length).contains(&block);
        Mismatch::unless(within, block, format_args!("{} to {}", self.first, self.length.saturating_sub(1)))
    }

    fn inode_or_null(&self, ino: AgIno) -> Option<Mismatch> {
        let right = ino.is_null() || self.inodes.contains(&ino.0);
        Mismatch::unless(
            right,
            ino,
            format_args!("null, or {} to {}", self.inodes.start, self.inodes.end.saturating_sub(1)),
        )
    }
}

rules! { structure "agi", subject Subject, fields Agi;
    /// There is no AGI: the sector was overwritten. The inodes of this AG cannot be found until xfs_repair scans for them.
    "agi-bad-magic" corrupt magicnum, "no AGI here",
        source "xfs_ialloc.c:xfs_agi_verify; repair/agheader.c:verify_set_agi", since "2.6",
        |s| Mismatch::unless(s.agi.magicnum == agi::MAGIC, format!("{:#x}", s.agi.magicnum), "0x58414749");
    /// Bytes of the sector changed after it was written: a bad disk, a stray write, or an edit. The kernel refuses every
    /// change of inodes in this AG ("Metadata CRC error detected at xfs_agi_read_verify").
    "agi-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_ialloc.c:xfs_agi_read_verify; repair/scan.c:scan_ag", since "3.10",
        |s| match s.crc {
            CrcState::Bad { computed } => Some(Mismatch::new(s.agi.crc, crate::format::Crc(computed))),
            _ => None,
        };
    /// The header belongs to another file system, or to an earlier one on this device.
    "agi-bad-uuid" corrupt uuid, "header of another file system",
        source "xfs_ialloc.c:xfs_agi_verify", since "3.10",
        |s| Mismatch::unless(!s.features.is_v5() || s.agi.uuid == s.uuid, s.agi.uuid, s.uuid);
    /// There has only been version 1.
    "agi-bad-version" corrupt versionnum, "version is not 1",
        source "xfs_ialloc.c:xfs_agi_verify; repair/agheader.c:verify_set_agi", since "2.6",
        |s| Mismatch::unless(s.agi.versionnum == 1, s.agi.versionnum, 1);
    /// The header says that it is that of another AG: it was written to the wrong place.
    "agi-bad-seqno" corrupt seqno, "header of another AG",
        source "xfs_ialloc.c:xfs_agi_verify; repair/agheader.c:verify_set_agi", since "2.6",
        |s| Mismatch::unless(s.agi.seqno == s.ag, s.agi.seqno, s.ag);
    /// All AGs have sb.agblocks blocks; only the last may be shorter, so that all end with sb.dblocks.
    "agi-bad-length" corrupt length, "length of the AG is not what the superblock says",
        source "xfs_alloc.c:xfs_validate_ag_length; repair/agheader.c:verify_set_agi", since "2.6",
        |s| Mismatch::unless(s.agi.length.0 == s.length, s.agi.length, s.length);
    /// The root of the inode btree lies outside the AG or in its headers.
    "agi-root-outside" corrupt root, "root of the inobt lies outside the AG",
        source "scrub/agheader.c:xchk_agi; repair/scan.c:validate_agi", since "scrub",
        |s| s.root(s.agi.root.0);
    /// The root of the free inode btree lies outside the AG or in its headers.
    "agi-free-root-outside" corrupt free_root, "root of the finobt lies outside the AG",
        source "scrub/agheader.c:xchk_agi; repair/scan.c:validate_agi", since "scrub",
        |s| if s.features.has_finobt() { s.root(s.agi.free_root.0) } else { None };
    /// A btree has at least one level, and never more than an AG of this size could fill.
    "agi-bad-level" corrupt level, "impossible number of levels",
        source "xfs_ialloc.c:xfs_agi_verify; repair/scan.c:validate_agi", since "3.10",
        |s| level(s.agi.level, s.limits.inobt);
    /// A btree has at least one level, and never more than an AG of this size could fill.
    "agi-bad-free-level" corrupt free_level, "impossible number of levels",
        source "xfs_ialloc.c:xfs_agi_verify; repair/scan.c:validate_agi", since "4.16",
        |s| if s.features.has_finobt() { level(s.agi.free_level, s.limits.inobt) } else { None };
    /// The inode chunk allocated last, a hint, must be an inode of the AG, or null.
    "agi-newino-outside" corrupt newino, "hint for new inodes lies outside the AG",
        source "scrub/agheader.c:xchk_agi", since "scrub",
        |s| s.inode_or_null(s.agi.newino);
    /// Unused since the beginning, and null.
    "agi-dirino-outside" corrupt dirino, "unused field holds no inode of the AG",
        source "scrub/agheader.c:xchk_agi", since "scrub",
        |s| s.inode_or_null(s.agi.dirino);
    /// Heads of the lists of unlinked inodes must be inodes of the AG, or null. The kernel refuses the AGI.
    "agi-unlinked-outside" corrupt unlinked, "head of an unlinked list lies outside the AG",
        source "xfs_ialloc.c:xfs_agi_verify; repair/scan.c:validate_agi", since "4.17",
        |s| s.agi.unlinked.iter().find_map(|&head| s.inode_or_null(head));
    /// Unused, and zero.
    "agi-bad-pad" corrupt pad32, "unused field is not zero",
        source "scrub/agheader.c:xchk_agi", since "scrub",
        |s| Mismatch::unless(s.agi.pad32 == 0, format!("{:#x}", s.agi.pad32), 0);
    /// Free inodes are some of all inodes.
    "agi-freecount-beyond-count" corrupt freecount, "more free inodes than inodes",
        source "scrub/agheader.c:xchk_agi (against the in-core count)", since "scrub",
        |s| Mismatch::unless(s.agi.freecount <= s.agi.count, s.agi.freecount, format_args!("at most count {}", s.agi.count));
}

raised! { RAISED, structure "agi", fields Agi;
    /// The inode btree holds another number of inodes.
    COUNT: "agi-count-mismatch" xcorrupt count, "number of inodes is not that of the inode btree",
        source "scrub/agheader.c:xchk_agi_xref_icounts; repair/scan.c:validate_agi", since "scrub";
    /// The inode btree holds another number of free inodes.
    FREECOUNT: "agi-freecount-mismatch" xcorrupt freecount, "number of free inodes is not that of the inode btree",
        source "scrub/agheader.c:xchk_agi_xref_icounts; repair/scan.c:validate_agi", since "scrub";
    /// Blocks of the inode btree as they were counted.
    IBLOCKS: "agi-ino-blocks-mismatch" xcorrupt iblocks, "number of inobt blocks is not what was counted",
        source "scrub/agheader.c:xchk_agi_xref_fiblocks; repair/scan.c:validate_agi", since "scrub";
    /// Blocks of the free inode btree as they were counted.
    FBLOCKS: "agi-fino-blocks-mismatch" xcorrupt fblocks, "number of finobt blocks is not what was counted",
        source "scrub/agheader.c:xchk_agi_xref_fiblocks; repair/scan.c:validate_agi", since "scrub";
    /// Inodes that were unlinked while open, though the log is clean: a system without room to recover them was unmounted
    /// or frozen, or the list is damage. Kernels from 6.6 on free them at the next mount; xfs_repair frees them.
    NOT_EMPTY: "agi-unlinked-not-empty" xcorrupt unlinked, "unlinked inodes on a file system with a clean log",
        source "repair/scan.c:validate_agi", since "none";
    /// The list leads out of the AG, in circles, or to something that is no inode.
    BAD_LIST: "agi-unlinked-bad-list" corrupt unlinked, "list of unlinked inodes leads nowhere",
        source "xfs_inode.c:xfs_iunlink_reload_next; scrub/agheader_repair.c", since "6.6";
    /// The list leads to an inode that is free, or that has links: freeing what is on the list would free a file that is
    /// in use.
    NOT_UNLINKED: "agi-unlinked-in-use" corrupt unlinked, "list of unlinked inodes leads to one that is none",
        source "scrub/inode.c:xchk_inode_check_unlinked; scrub/agheader.c:xchk_iunlink_bucket", since "scrub";
    /// Inodes stand on list number modulo 64.
    WRONG_BUCKET: "agi-unlinked-wrong-bucket" corrupt unlinked, "unlinked inode on the wrong list",
        source "scrub/agheader.c:xchk_iunlink_bucket", since "scrub";
}

/// Counts of the header against the btrees. What a btree that is no witness would say is left out. Gives the inodes on
/// the lists of unlinked ones, in order, where all lists could be followed.
pub fn against_btrees(ctx: &Ctx<'_>, group: &mut Group) -> Known<Vec<AgIno>> {
    let Some(agi) = group.agi.as_ref().filter(|_| group.agi_believed) else { return Known::UNKNOWN };
    let spot = spot(ctx, group.ag);
    let features = &ctx.context().features;
    let compare = |rule: &'static super::RuleInfo, found: u32, right: &Known<u64>| {
        if !group.reported.contains(&rule.field) {
            ctx.compare(rule, &spot, u64::from(found), right);
        }
    };
    compare(COUNT, agi.count.0, &group.inodes);
    match group.inodes.and(group.free_inodes).get() {
        // Both counts are wrong: rather than the header, the btree has lost chunks.
        Some(&(inodes, free)) if u64::from(agi.count.0) != inodes => {
            if u64::from(agi.freecount.0) != free {
                ctx.owners_unknown();
            }
        }
        _ => compare(FREECOUNT, agi.freecount.0, &group.free_inodes),
    }
    if features.has_inobtcount() {
        compare(IBLOCKS, agi.iblocks, &group.inobt.all_blocks());
        if features.has_finobt() {
            compare(FBLOCKS, agi.fblocks, &group.finobt.all_blocks());
        }
    }
    if group.reported.contains(&NOT_EMPTY.field) {
        return Known::UNKNOWN;
    }
    let (members, sound) = unlinked_lists(ctx, group.ag, agi, &spot);
    group.left_over = sound && members.get().is_some_and(|members| !members.is_empty());
    members
}

/// Says once of all lists that they are not empty.
pub fn not_empty(ctx: &Ctx<'_>) {
    let left = || ctx.groups().iter().filter(|group| group.left_over);
    let ags: BTreeSet<u32> = left().map(|group| group.ag.0).collect();
    let Some(group) = left().next() else { return };
    let first = group.unlinked.get().and_then(|members| members.first());
    let Some((agino, ino)) = first.and_then(|&agino| Some((agino, ctx.geometry().join_inode(group.ag, agino)?))) else {
        return;
    };
    let count: usize = left().filter_map(|group| group.unlinked.get()).map(Vec::len).sum();
    let found = match count {
        1 => format!("inode {ino}"),
        n if ags.len() == 1 => format!("{n} inodes, the first of them {ino}"),
        n => format!("{n} inodes in AGs {}, the first of them {ino}", super::repair::ranges(&ags)),
    };
    let part = spot(ctx, group.ag).part(format_args!("unlinked[{}]", agino.0 % 64));
    ctx.raise(NOT_EMPTY, &part, found, "empty lists, with a clean log");
}

/// The members of all lists, and whether nothing is wrong with the lists but that they have members.
fn unlinked_lists(ctx: &Ctx<'_>, ag: AgNumber, agi: &Agi, spot: &Spot) -> (Known<Vec<AgIno>>, bool) {
    if agi.unlinked.iter().all(|head| head.is_null()) {
        return (Known::when(true, Vec::new()), true);
    }
    let mut sound = true;
    let (mut wrong, mut in_use) = (None, None);
    let mut members = Vec::new();
    for item in unlinked(ctx.walk, ag, agi) {
        match item {
            Ok((bucket, ino)) => {
                let agino = ctx.geometry().split_inode(ino).map_or(AgIno(0), |(_, agino)| agino);
                members.push(agino);
                if agino.0 % 64 != bucket {
                    wrong.get_or_insert((bucket, ino, agino.0 % 64));
                }
                if let Ok(block) = ctx.walk.inode(ino)
                    && (block.inode().mode() == 0 || block.inode().nlink() > 0)
                {
                    let (mode, nlink) = (block.inode().mode(), block.inode().nlink());
                    in_use.get_or_insert((bucket, ino, mode, nlink));
                }
            }
            Err(error) => {
                sound = false;
                ctx.error(BAD_LIST, &error, spot.object);
            }
        }
    }
    if !sound {
        return (Known::UNKNOWN, false);
    }
    members.sort_unstable();
    let part = |bucket| spot.part(format_args!("unlinked[{bucket}]"));
    if let Some((bucket, ino, right)) = wrong {
        ctx.raise(WRONG_BUCKET, &part(bucket), ino, format_args!("list {right}"));
    } else if let Some((bucket, ino, mode, nlink)) = in_use {
        let found = if mode == 0 { format!("{ino}, free") } else { format!("{ino}, with {nlink} links") };
        ctx.raise(NOT_UNLINKED, &part(bucket), found, "an inode in use, without links");
    } else {
        return (Known::when(true, members), true);
    }
    (Known::when(true, members), false)
}

/// The AGI of an AG as a spot.
pub fn spot(ctx: &Ctx<'_>, ag: AgNumber) -> Spot {
    super::group::header_spot(ctx, ag, crate::volume::AgHeader::Agi)
}
