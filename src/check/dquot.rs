//! Quotas: the records of each kind, and their usage counted anew from the inodes.
//!
//! `xfs_dquot_verify`, `xfs_dqblk_verify` (xfs_dquot_buf.c), `scrub/quota.c`, `scrub/quotacheck.c`; `process_quota_inode`
//! (xfs_repair, dinode.c), `quotacheck.c`.
//!
//! Memory: 48 bytes for each owner that inodes have.

use super::context::{Ctx, Spot};
use super::finding::{Finding, RuleInfo};
use super::fork::{Buffers, Read, Reader};
use super::{metafile, raised};
use crate::format::bits;
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, flags2, metatype};
use crate::format::dquot::{self, DiskDquot, kind};
use crate::format::on_disk::Uuid;
use crate::units::Ino;
use crate::walk::Inode;
use crate::walk::extents::extents;
use crate::walk::quota::{self, Kind, State, Usage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

raised! { RAISED, structure "dquot", fields DiskDquot;
    /// There is no quota record. The kernel refuses quotas at mount, or makes the record anew; xfs_repair writes an empty
    /// one.
    BAD_MAGIC: "dquot-bad-magic" corrupt magic, "no quota record",
        source "xfs_dquot_buf.c:xfs_dquot_verify; repair/dinode.c:process_quota_inode", since "2.6";
    /// The version of a record is 1.
    BAD_VERSION: "dquot-bad-version" corrupt version, "version is not 1",
        source "xfs_dquot_buf.c:xfs_dquot_verify; repair/dinode.c:process_quota_inode", since "2.6";
    /// A record is of the kind of its file: user, group or project. Timers in units of four seconds need the feature
    /// bigtime, and record 0 never has them.
    BAD_TYPE: "dquot-bad-type" corrupt type_, "not of the kind of its file",
        source "xfs_dquot_buf.c:xfs_dquot_verify; repair/quotacheck.c:qc_dquot_check_type", since "2.6";
    /// The place of a record in the file gives its owner.
    BAD_ID: "dquot-bad-id" corrupt id, "record is not of its place in the file",
        source "xfs_dquot_buf.c:xfs_dquot_verify; repair/dinode.c:process_quota_inode", since "2.6";
    /// Bytes of the record changed after it was written.
    BAD_CRC: "dquot-bad-crc" corrupt magic, "checksum does not match",
        source "xfs_dquot_buf.c:xfs_dquot_buf_verify_crc; repair/dinode.c:process_quota_inode", since "3.10";
    /// The record belongs to another file system.
    BAD_UUID: "dquot-bad-uuid" corrupt magic, "record of another file system",
        source "xfs_dquot_buf.c:xfs_dqblk_verify; repair/dinode.c:process_quota_inode", since "3.10";
    /// A soft limit lies at or below its hard limit.
    SOFT_ABOVE_HARD: "dquot-soft-above-hard" corrupt blk_softlimit, "soft limit above the hard limit",
        source "scrub/quota.c:xchk_quota_item", since "scrub";
    /// A timer runs from the moment on that a limit is exceeded, and only then.
    BAD_TIMER: "dquot-bad-timer" corrupt btimer, "timer does not fit usage and limits",
        source "xfs_dquot_buf.c:xfs_dquot_verify; scrub/quota.c:xchk_quota_item_timer", since "3.10";
    /// More than a hard limit is in use: the limit was lowered since. Nothing is damaged.
    OVER_LIMIT: "dquot-over-hard-limit" warning blk_hardlimit, "more in use than the hard limit",
        source "scrub/quota.c:xchk_quota_item", since "scrub";
    /// More in use than the device, or the file system, has.
    IMPOSSIBLE: "dquot-usage-impossible" corrupt bcount, "more in use than there is",
        source "scrub/quota.c:xchk_quota_item", since "scrub";
    /// A limit of more than there is limits nothing, and with sharing more may be counted than there is. Nothing is
    /// damaged.
    BEYOND: "dquot-beyond-device" warning blk_hardlimit, "limit or usage beyond what there is",
        source "scrub/quota.c:xchk_quota_item", since "scrub";
    /// Blocks in use, as the inodes have them. xfs_repair has the kernel count anew at the next mount.
    BCOUNT: "dquot-bcount-mismatch" xcorrupt bcount, "not the blocks that the inodes have",
        source "scrub/quotacheck.c:xqcheck_compare_dquot; repair/quotacheck.c:qc_check_dquot", since "scrub";
    /// Inodes in use.
    ICOUNT: "dquot-icount-mismatch" xcorrupt icount, "not the number of inodes",
        source "scrub/quotacheck.c:xqcheck_compare_dquot; repair/quotacheck.c:qc_check_dquot", since "scrub";
    /// Realtime blocks in use.
    RTBCOUNT: "dquot-rtbcount-mismatch" xcorrupt rtbcount, "not the realtime blocks that the inodes have",
        source "scrub/quotacheck.c:xqcheck_compare_dquot; repair/quotacheck.c:qc_check_dquot", since "scrub";
    /// Inodes have an owner for whom the file has no record.
    MISSING: "dquot-missing" xcorrupt id, "no record for an owner of inodes",
        source "scrub/quotacheck.c:xqcheck_walk_observations; repair/quotacheck.c:quotacheck_verify", since "scrub";
}

type Usages = HashMap<(Kind, u32), Usage>;

fn add(to: &mut Usage, usage: Usage) {
    to.blocks = to.blocks.saturating_add(usage.blocks);
    to.inodes = to.inodes.saturating_add(usage.inodes);
    to.rt_blocks = to.rt_blocks.saturating_add(usage.rt_blocks);
}

/// Usage as the inodes have it.
#[derive(Debug, Default)]
pub struct Counter {
    total: Mutex<Usages>,
    unknown: AtomicBool,
}

impl Counter {
    /// An inode in use cannot be counted.
    pub fn unknown(&self) {
        self.unknown.store(true, Ordering::Relaxed);
    }
}

/// Usage that one thread counted.
#[derive(Debug)]
pub struct Local<'c> {
    ctx: &'c Ctx<'c>,
    kinds: Vec<Kind>,
    files: [Option<Ino>; 3],
    usages: Usages,
}

impl<'c> Local<'c> {
    /// For a thread.
    pub fn new(ctx: &'c Ctx<'c>) -> Self {
        let states = quota::states(ctx.volume().superblock());
        let kinds = states.iter().filter(|state| state.checked).map(|state| state.kind).collect();
        Self { ctx, kinds, files: states.map(|state| state.ino), usages: Usages::new() }
    }

    /// Counts an inode in use.
    pub fn count(&mut self, inode: Inode<'_>) {
        if self.kinds.is_empty() || inode.flags2() & flags2::METADATA != 0 || self.files.contains(&Some(inode.ino)) {
            return;
        }
        let mut rt_blocks = 0u64;
        if inode.is_realtime() {
            for extent in extents(self.ctx.walk, inode, Fork::Data) {
                match extent {
                    Ok(extent) => rt_blocks = rt_blocks.saturating_add(u64::from(extent.blockcount)),
                    Err(_) => self.unknown(),
                }
            }
        }
        let blocks = inode.nblocks().0.saturating_sub(rt_blocks);
        for kind in &self.kinds {
            add(self.usages.entry((*kind, kind.id(inode))).or_default(), Usage { blocks, inodes: 1, rt_blocks });
        }
    }

    /// An inode in use cannot be counted.
    pub fn unknown(&self) {
        self.ctx.quota.unknown();
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        let mut total = self.ctx.quota.total.lock().unwrap_or_else(PoisonError::into_inner);
        for (owner, usage) in self.usages.drain() {
            add(total.entry(owner).or_default(), usage);
        }
    }
}

/// Checks the quota files, after all inodes were counted.
pub fn check(ctx: &Ctx<'_>) {
    if ctx.is_partial() {
        return;
    }
    let mut total = std::mem::take(&mut *ctx.quota.total.lock().unwrap_or_else(PoisonError::into_inner));
    // Inodes that no record of a sound btree names were not counted.
    let inodes = ctx.all_groups(|group| group.inodes);
    let counted = inodes.is_known()
        && !ctx.quota.unknown.load(Ordering::Relaxed)
        && !ctx.any_inode_damaged()
        && !ctx.is_cancelled();
    let inodes = inodes.get().copied();
    let mut buffers = Buffers::default();
    let mut doubted = false;
    for state in quota::states(ctx.volume().superblock()) {
        // What keeps the file from being found is wrong with the superblock or a directory, as is said there.
        let Some(file) = quota::file(ctx.walk, &state, &mut |_| {}) else { continue };
        let right = match state.kind {
            Kind::User => metatype::USRQUOTA,
            Kind::Group => metatype::GRPQUOTA,
            Kind::Project => metatype::PRJQUOTA,
        };
        let wrong = |&found: &u16| found != right && found != metatype::UNKNOWN && !ctx.is_damaged(file.ino());
        if let Some(found) = file.inode().metatype().filter(wrong) {
            ctx.raise(metafile::OTHER_TYPE, &super::fork::inode_spot(ctx, file.ino()), found, right);
        }
        let usages = state.checked.then_some(&mut total);
        let mut records = Records { ctx, state, usages, inodes, counted, doubted };
        let complete = records.check(file.inode(), &mut buffers);
        if complete {
            records.missing(file.ino());
        }
        doubted = records.doubted;
    }
}

struct Records<'q> {
    ctx: &'q Ctx<'q>,
    state: State,
    usages: Option<&'q mut Usages>,
    /// All inodes that the inode btrees hold, if these are sound.
    inodes: Option<u64>,
    /// Were all inodes counted, and none found damaged?
    counted: bool,
    /// Was said that a difference means nothing?
    doubted: bool,
}

impl Records<'_> {
    fn check(&mut self, inode: Inode<'_>, buffers: &mut Buffers) -> bool {
        let ctx = self.ctx;
        let mut reader = Reader::single(ctx, inode, Fork::Data, "quota block", buffers);
        let mut complete = reader.complete;
        let per_block = u64::try_from(reader.size() / dquot::SIZE).unwrap_or(0);
        let mut i = 0;
        while let Some(extent) = reader.map.extents().get(i) {
            i += 1;
            let (start, count) = (extent.startoff.0, u64::from(extent.blockcount));
            for at in start..start.saturating_add(count) {
                let spot = reader.spot(at);
                match reader.read(at) {
                    Read::Block(bytes) => complete &= self.block(bytes, at.saturating_mul(per_block), &spot),
                    _ => complete = false,
                }
                if ctx.is_cancelled() || reader.exhausted {
                    return false;
                }
            }
        }
        complete
    }

    fn block(&mut self, bytes: &[u8], first: u64, spot: &Spot) -> bool {
        if bytes.iter().all(|&byte| byte == 0) {
            self.ctx.raise(BAD_MAGIC, spot, "a block of zeros", "records");
            return false;
        }
        let mut sound = true;
        for (i, (id, (bytes, record))) in (first..).zip(dquot::records(bytes)).enumerate() {
            let byte = u64::try_from(i.saturating_mul(dquot::SIZE)).unwrap_or(0);
            let part = || {
                let mut part = spot.part(format_args!("dquot {id}"));
                part.place.byte.0 = part.place.byte.0.saturating_add(byte);
                part.place.length = 136;
                part
            };
            sound &= self.record(bytes, &record, id, &part);
        }
        sound
    }

    /// One record. False where it is not believed.
    fn record(&mut self, bytes: &[u8], record: &DiskDquot, id: u64, spot: &dyn Fn() -> Spot) -> bool {
        let ctx = self.ctx;
        let not = |rule, found: String, right: String| {
            ctx.raise(rule, &spot(), found, right);
            false
        };
        if record.magic != dquot::MAGIC {
            return not(BAD_MAGIC, format!("{:#x}", record.magic), format!("{:#x}", dquot::MAGIC));
        }
        if ctx.context().has_crc() {
            if let CrcState::Bad { computed } = checksum::verify(bytes, dquot::CRC_OFFSET) {
                let stored = bits::array(bytes, dquot::CRC_OFFSET).map_or(0, u32::from_le_bytes);
                return not(BAD_CRC, crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
            }
            let right = ctx.volume().superblock().metadata_uuid();
            let found = bits::array(bytes, 120).map(Uuid).unwrap_or_default();
            if found != right {
                return not(BAD_UUID, found.to_string(), right.to_string());
            }
            ctx.lsn(bits::be64(bytes, 112).unwrap_or(0), spot);
        }
        if record.version != 1 {
            return not(BAD_VERSION, record.version.to_string(), "1".to_owned());
        }
        let right = match self.state.kind {
            Kind::User => kind::USER,
            Kind::Group => kind::GROUP,
            Kind::Project => kind::PROJECT,
        };
        let bigtime = record.type_ & kind::BIGTIME != 0;
        if record.type_ & !kind::BIGTIME != right
            || (bigtime && (record.id == 0 || !ctx.context().features.has_bigtime()))
        {
            return not(BAD_TYPE, format!("{:#x}", record.type_), format!("{right:#x}"));
        }
        if u64::from(record.id) != id {
            return not(BAD_ID, record.id.to_string(), id.to_string());
        }
        self.limits(record, spot);
        self.possible(record, spot);
        self.usage(record, spot);
        true
    }

    fn limits(&self, record: &DiskDquot, spot: &dyn Fn() -> Spot) {
        let ctx = self.ctx;
        let raise = |rule: &'static RuleInfo, field, found: String, right: String| {
            let spot = spot();
            ctx.report(Finding::new(rule, spot.place.field(field), found, right).about(spot.object));
        };
        for (what, names, soft, hard, count, timer) in [
            (
                "blocks",
                ("blk_softlimit", "blk_hardlimit", "btimer"),
                record.blk_softlimit,
                record.blk_hardlimit,
                record.bcount,
                record.btimer,
            ),
            (
                "inodes",
                ("ino_softlimit", "ino_hardlimit", "itimer"),
                record.ino_softlimit,
                record.ino_hardlimit,
                record.icount,
                record.itimer,
            ),
            (
                "realtime blocks",
                ("rtb_softlimit", "rtb_hardlimit", "rtbtimer"),
                record.rtb_softlimit,
                record.rtb_hardlimit,
                record.rtbcount,
                record.rtbtimer,
            ),
        ] {
            if soft > hard && hard != 0 {
                raise(SOFT_ABOVE_HARD, names.0, format!("{soft} {what}"), format!("at most {hard}"));
            }
            if record.id == 0 {
                continue;
            }
            let over_hard = hard != 0 && count > hard;
            let over = over_hard || (soft != 0 && count > soft);
            if over != (timer != 0) {
                let right = if over { "a timer that runs" } else { "0" };
                raise(BAD_TIMER, names.2, format!("{timer} for {what}"), right.to_owned());
            }
            if over_hard {
                raise(OVER_LIMIT, names.1, format!("{count} {what}"), format!("at most {hard}"));
            }
        }
    }

    /// Limits and usage against what there is.
    fn possible(&self, record: &DiskDquot, spot: &dyn Fn() -> Spot) {
        let (ctx, sb) = (self.ctx, self.ctx.volume().superblock());
        let shares = ctx.context().features.has_reflink();
        // Usage that was counted is compared with the count.
        let counted = self.usages.is_some();
        let raise = |rule: &'static RuleInfo, field, found: String, most: u64| {
            let spot = spot();
            let finding = Finding::new(rule, spot.place.field(field), found, format!("at most {most}"));
            ctx.report(finding.about(spot.object));
        };
        for (what, names, hard, count, most) in [
            ("blocks", ("blk_hardlimit", "bcount"), record.blk_hardlimit, record.bcount, sb.dblocks.0),
            ("realtime blocks", ("rtb_hardlimit", "rtbcount"), record.rtb_hardlimit, record.rtbcount, sb.rblocks.0),
        ] {
            if hard > most {
                raise(BEYOND, names.0, format!("limit of {hard} {what}"), most);
            }
            if count > most && !counted {
                raise(if shares { BEYOND } else { IMPOSSIBLE }, names.1, format!("{count} {what}"), most);
            }
        }
        if let Some(most) = self.inodes.filter(|&most| record.icount > most && !counted) {
            raise(IMPOSSIBLE, "icount", format!("{} inodes", record.icount), most);
        }
    }

    fn usage(&mut self, record: &DiskDquot, spot: &dyn Fn() -> Spot) {
        let Some(usages) = &mut self.usages else { return };
        let usage = usages.remove(&(self.state.kind, record.id)).unwrap_or_default();
        for (rule, found, right) in [
            (BCOUNT, record.bcount, usage.blocks),
            (ICOUNT, record.icount, usage.inodes),
            (RTBCOUNT, record.rtbcount, usage.rt_blocks),
        ] {
            if found != right && self.is_certain(&spot()) {
                self.ctx.raise(rule, &spot(), found, right);
            }
        }
    }

    /// May a difference be reported? Where inodes are damaged it follows from that, as is said once.
    fn is_certain(&mut self, spot: &Spot) -> bool {
        if !self.counted && !self.doubted {
            self.doubted = true;
            self.ctx.raise(super::context::NOT_COMPARED, spot, "damaged inodes", "usage counted from the inodes");
        }
        self.counted && !self.ctx.is_cancelled()
    }

    /// Owners without a record, after all records were seen.
    fn missing(&mut self, ino: Ino) {
        let (ctx, kind) = (self.ctx, self.state.kind);
        let Some(usages) = &self.usages else { return };
        let mut ids: Vec<u32> = usages.keys().filter(|(of, _)| *of == kind).map(|(_, id)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            let inodes =
                self.usages.as_ref().and_then(|usages| usages.get(&(kind, id))).map_or(0, |usage| usage.inodes);
            let spot = super::fork::inode_spot(ctx, ino);
            if !self.is_certain(&spot) {
                return;
            }
            ctx.raise(MISSING, &spot, format_args!("none for {} {id}", kind.name()), format_args!("{inodes} inodes"));
        }
    }
}
