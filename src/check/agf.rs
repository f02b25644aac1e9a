//! Rules about the free space header of an AG, alone and against the btrees it heads. `xfs_agf_verify` (xfs_alloc.c),
//! `xchk_agf` (scrub/agheader.c), `verify_set_agf`, `validate_agf` (xfs_repair).

use super::context::{Ctx, Spot};
use super::finding::Mismatch;
use super::group::{Group, Limits};
use super::known::Known;
use super::{raised, rules};
use crate::format::agf::{self, Agf};
use crate::format::checksum::CrcState;
use crate::format::features::Features;
use crate::format::on_disk::Uuid;
use crate::units::AgNumber;

/// An AGF and what it must agree with.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its contents.
    pub agf: Agf,
    /// The AG it lies in.
    pub ag: AgNumber,
    /// Blocks of that AG, by the superblock.
    pub length: u32,
    /// First block behind the headers.
    pub first: u32,
    /// Slots of the free list.
    pub slots: u32,
    /// Levels that btrees can have.
    pub limits: Limits,
    /// Features.
    pub features: Features,
    /// Identity that metadata must carry.
    pub uuid: Uuid,
    /// State of the checksum.
    pub crc: CrcState,
    /// Was the free list written with a slot less ([`super::agfl::OLD_LAYOUT`])?
    pub old_layout: bool,
}

impl Subject {
    fn within(&self, block: u32) -> bool {
        (self.first..self.length).contains(&block)
    }

    fn root(&self, block: u32) -> Option<Mismatch> {
        Mismatch::unless(self.within(block), block, format_args!("{} to {}", self.first, self.length.saturating_sub(1)))
    }

    fn free_list(&self) -> u32 {
        free_list_length(&self.agf, self.slots)
    }
}

/// Slots in use from flfirst to fllast, around the end (`xfs_agfl_needs_reset`).
pub fn free_list_length(agf: &Agf, slots: u32) -> u32 {
    match agf.fllast.checked_sub(agf.flfirst) {
        Some(n) => n.saturating_add(1),
        None => slots.saturating_sub(agf.flfirst).saturating_add(agf.fllast).saturating_add(1),
    }
}

/// Levels must be from 1 to `most`.
pub(super) fn level(level: u32, most: u32) -> Option<Mismatch> {
    Mismatch::unless((1..=most).contains(&level), level, format_args!("1 to {most}"))
}

/// A number must not be above the blocks of the AG.
fn at_most(found: u32, most: u32) -> Option<Mismatch> {
    Mismatch::unless(found <= most, found, format_args!("at most {most}"))
}

rules! { structure "agf", subject Subject, fields Agf;
    /// There is no AGF: the sector was overwritten. The free space of this AG is unknown until xfs_repair builds it anew.
    "agf-bad-magic" corrupt magicnum, "no AGF here",
        source "xfs_alloc.c:xfs_agf_verify; repair/agheader.c:verify_set_agf", since "2.6",
        |s| Mismatch::unless(s.agf.magicnum == agf::MAGIC, format!("{:#x}", s.agf.magicnum), "0x58414746");
    /// Bytes of the sector changed after it was written: a bad disk, a stray write, or an edit. The kernel refuses every
    /// allocation in this AG ("Metadata CRC error detected at xfs_agf_read_verify").
    "agf-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_alloc.c:xfs_agf_read_verify; repair/scan.c:scan_ag", since "3.10",
        |s| match s.crc {
            CrcState::Bad { computed } => Some(Mismatch::new(s.agf.crc, crate::format::Crc(computed))),
            _ => None,
        };
    /// The header belongs to another file system, or to an earlier one on this device.
    "agf-bad-uuid" corrupt uuid, "header of another file system",
        source "xfs_alloc.c:xfs_agf_verify", since "3.10",
        |s| Mismatch::unless(!s.features.is_v5() || s.agf.uuid == s.uuid, s.agf.uuid, s.uuid);
    /// There has only been version 1.
    "agf-bad-version" corrupt versionnum, "version is not 1",
        source "xfs_alloc.c:xfs_agf_verify; repair/agheader.c:verify_set_agf", since "2.6",
        |s| Mismatch::unless(s.agf.versionnum == 1, s.agf.versionnum, 1);
    /// The header says that it is that of another AG: it was written to the wrong place.
    "agf-bad-seqno" corrupt seqno, "header of another AG",
        source "xfs_alloc.c:xfs_validate_ag_length; repair/agheader.c:verify_set_agf", since "2.6",
        |s| Mismatch::unless(s.agf.seqno == s.ag, s.agf.seqno, s.ag);
    /// All AGs have sb.agblocks blocks; only the last may be shorter, so that all end with sb.dblocks.
    "agf-bad-length" corrupt length, "length of the AG is not what the superblock says",
        source "xfs_alloc.c:xfs_validate_ag_length; repair/agheader.c:verify_set_agf", since "2.6",
        |s| Mismatch::unless(s.agf.length.0 == s.length, s.agf.length, s.length);
    /// The root of the free space btree by block lies outside the AG or in its headers.
    "agf-bnoroot-outside" corrupt bno_root, "root of the bnobt lies outside the AG",
        source "scrub/agheader.c:xchk_agf; repair/scan.c:validate_agf", since "scrub",
        |s| s.root(s.agf.bno_root.0);
    /// The root of the free space btree by size lies outside the AG or in its headers.
    "agf-cntroot-outside" corrupt cnt_root, "root of the cntbt lies outside the AG",
        source "scrub/agheader.c:xchk_agf; repair/scan.c:validate_agf", since "scrub",
        |s| s.root(s.agf.cnt_root.0);
    /// The root of the reverse mapping btree lies outside the AG or in its headers.
    "agf-rmaproot-outside" corrupt rmap_root, "root of the rmapbt lies outside the AG",
        source "scrub/agheader.c:xchk_agf; repair/scan.c:validate_agf", since "scrub",
        |s| if s.features.has_rmapbt() { s.root(s.agf.rmap_root.0) } else { None };
    /// The root of the refcount btree lies outside the AG or in its headers.
    "agf-refcntroot-outside" corrupt refcount_root, "root of the refcntbt lies outside the AG",
        source "scrub/agheader.c:xchk_agf; repair/scan.c:validate_agf", since "scrub",
        |s| if s.features.has_reflink() { s.root(s.agf.refcount_root.0) } else { None };
    /// A btree has at least one level, and never more than an AG of this size could fill.
    "agf-bad-bnolevel" corrupt bno_level, "impossible number of levels",
        source "xfs_alloc.c:xfs_agf_verify; repair/scan.c:validate_agf", since "3.10",
        |s| level(s.agf.bno_level, s.limits.alloc);
    /// A btree has at least one level, and never more than an AG of this size could fill.
    "agf-bad-cntlevel" corrupt cnt_level, "impossible number of levels",
        source "xfs_alloc.c:xfs_agf_verify; repair/scan.c:validate_agf", since "3.10",
        |s| level(s.agf.cnt_level, s.limits.alloc);
    /// A btree has at least one level, and never more than an AG of this size could fill.
    "agf-bad-rmaplevel" corrupt rmap_level, "impossible number of levels",
        source "xfs_alloc.c:xfs_agf_verify; repair/scan.c:validate_agf", since "4.8",
        |s| if s.features.has_rmapbt() { level(s.agf.rmap_level, s.limits.rmap) } else { None };
    /// A btree has at least one level, and never more than an AG of this size could fill.
    "agf-bad-refcntlevel" corrupt refcount_level, "impossible number of levels",
        source "xfs_alloc.c:xfs_agf_verify; repair/scan.c:validate_agf", since "4.9",
        |s| if s.features.has_reflink() { level(s.agf.refcount_level, s.limits.refcount) } else { None };
    /// The first slot in use must be one of the free list. The kernel refuses the AGF.
    "agf-flfirst-outside" corrupt flfirst, "first slot of the free list does not exist",
        source "xfs_alloc.c:xfs_agf_verify; repair/agheader.c:verify_set_agf", since "2.6",
        |s| Mismatch::unless(s.agf.flfirst < s.slots, s.agf.flfirst, format!("below {}", s.slots));
    /// The last slot in use must be one of the free list. The kernel refuses the AGF.
    "agf-fllast-outside" corrupt fllast, "last slot of the free list does not exist",
        source "xfs_alloc.c:xfs_agf_verify; repair/agheader.c:verify_set_agf", since "2.6",
        |s| Mismatch::unless(s.agf.fllast < s.slots, s.agf.fllast, format!("below {}", s.slots));
    /// The number of blocks on the free list is that of the slots from flfirst to fllast. Kernels from 4.17 on drop a list
    /// that does not fit ("resetting AGFL") and lose its blocks.
    "agf-flcount-mismatch" corrupt flcount, "length of the free list does not fit its slots",
        source "xfs_alloc.c:xfs_agfl_needs_reset; repair/scan.c:scan_freelist", since "4.17",
        |s| {
            let slots_exist = s.agf.flfirst < s.slots && s.agf.fllast < s.slots;
            let right = s.free_list();
            let fits = s.agf.flcount == 0 || s.agf.flcount == right || s.old_layout;
            let found = format!("{}, slots {} to {}", s.agf.flcount, s.agf.flfirst, s.agf.fllast);
            Mismatch::unless(!slots_exist || fits, found, right)
        };
    /// More free blocks than the AG has: the kernel refuses the AGF, and with it every allocation here.
    "agf-freeblks-beyond-length" corrupt freeblks, "more free blocks than the AG has",
        source "xfs_alloc.c:xfs_agf_verify", since "3.10",
        |s| at_most(s.agf.freeblks.0, s.agf.length.0.min(s.length));
    /// The longest free extent cannot be longer than all free space. The kernel refuses the AGF. Which of the two is wrong
    /// the btrees tell, where they are sound.
    "agf-longest-beyond-freeblks" corrupt longest, "longest free extent is longer than the free space",
        source "xfs_alloc.c:xfs_agf_verify", since "5.10",
        |s| at_most(s.agf.longest.0, s.agf.freeblks.0);
    /// More blocks of btrees than the AG has.
    "agf-btreeblks-beyond-length" corrupt btreeblks, "more btree blocks than the AG has",
        source "xfs_alloc.c:xfs_agf_verify", since "2.6.24",
        |s| if s.features.has_lazy_count() { at_most(s.agf.btreeblks, s.length) } else { None };
    /// More blocks of the reverse mapping btree than the AG has.
    "agf-rmapblocks-beyond-length" corrupt rmap_blocks, "more rmapbt blocks than the AG has",
        source "xfs_alloc.c:xfs_agf_verify", since "5.10",
        |s| if s.features.has_rmapbt() { at_most(s.agf.rmap_blocks, s.length) } else { None };
    /// More blocks of the refcount btree than the AG has.
    "agf-refcntblocks-beyond-length" corrupt refcount_blocks, "more refcntbt blocks than the AG has",
        source "xfs_alloc.c:xfs_agf_verify", since "5.10",
        |s| if s.features.has_reflink() { at_most(s.agf.refcount_blocks, s.length) } else { None };
}

raised! { RAISED, structure "agf", fields Agf;
    /// The btree by block holds another number of free blocks. Allocation trusts the header: too much, and writes fail
    /// with a shutdown; too little, and space is lost. xfs_repair counts anew.
    FREEBLKS: "agf-freeblks-mismatch" xcorrupt freeblks, "free blocks are not those of the btrees",
        source "scrub/agheader.c:xchk_agf_xref_freeblks; repair/scan.c:validate_agf", since "scrub";
    /// The longest free extent of the btree by size is another one.
    LONGEST: "agf-longest-mismatch" xcorrupt longest, "longest free extent is not that of the btrees",
        source "scrub/agheader.c:xchk_agf_xref_cntbt; repair/scan.c:validate_agf", since "scrub";
    /// Blocks of the free space and reverse mapping btrees, without their roots, as they were counted.
    BTREEBLKS: "agf-btreeblks-mismatch" xcorrupt btreeblks, "number of btree blocks is not what was counted",
        source "scrub/agheader.c:xchk_agf_xref_btreeblks; repair/scan.c:validate_agf", since "scrub";
    /// Blocks of the reverse mapping btree as they were counted.
    RMAPBLOCKS: "agf-rmapblocks-mismatch" xcorrupt rmap_blocks, "number of rmapbt blocks is not what was counted",
        source "scrub/agheader.c:xchk_agf_xref_btreeblks; repair/scan.c:validate_agf", since "scrub";
    /// Blocks of the refcount btree as they were counted.
    REFCNTBLOCKS: "agf-refcntblocks-mismatch" xcorrupt refcount_blocks, "number of refcntbt blocks is not what was counted",
        source "scrub/agheader.c:xchk_agf_xref_refcblks; repair/scan.c:validate_agf", since "scrub";
}

/// Counts of the header against the btrees, once all of them were walked. What a btree that is no witness would say is
/// left out.
pub fn against_btrees(ctx: &Ctx<'_>, group: &Group, rmapbt: super::btree::Scanned) {
    let Some(agf) = group.agf.as_ref().filter(|_| group.agf_believed) else { return };
    let spot = spot(ctx, group.ag);
    let features = &ctx.context().features;
    let compare = |rule: &'static super::RuleInfo, found: u32, right: &Known<u64>| {
        if !group.reported.contains(&rule.field) {
            ctx.compare(rule, &spot, u64::from(found), right);
        }
    };
    compare(FREEBLKS, agf.freeblks.0, &group.free_blocks);
    // Even where it is beyond freeblks: only the btree tells which of the two is wrong.
    ctx.compare(LONGEST, &spot, u64::from(agf.longest.0), &group.longest);
    if features.has_rmapbt() {
        compare(RMAPBLOCKS, agf.rmap_blocks, &rmapbt.sound_blocks());
    }
    if features.has_reflink() {
        compare(REFCNTBLOCKS, agf.refcount_blocks, &group.refcntbt.sound_blocks());
    }
    if features.has_lazy_count() {
        let trees = [(true, group.bnobt), (true, group.cntbt), (features.has_rmapbt(), rmapbt)];
        let trees = trees.iter().filter(|(exists, _)| *exists).map(|(_, scanned)| scanned.all_blocks());
        let right = trees.map(|blocks| blocks.map(|blocks| blocks.saturating_sub(1))).sum();
        compare(BTREEBLKS, agf.btreeblks, &right);
    }
}

/// The AGF of an AG as a spot.
pub fn spot(ctx: &Ctx<'_>, ag: AgNumber) -> Spot {
    super::group::header_spot(ctx, ag, crate::volume::AgHeader::Agf)
}
