//! The log: what it means for the verdict, and metadata that is ahead of it.

use super::context::{Ctx, Spot};
use super::finding::{Finding, Object};
use super::raised;
use super::recovery::LogFacts;
use crate::error::Place;
use crate::units::{ByteOffset, Device, LogBlock};
use crate::volume::{Origin, Volume};
use crate::walk::log::{self, Changes, Log, State};

raised! { RAISED, structure "log";
    /// The log holds changes that are not in place yet: the file system was not unmounted. Everything said here is of the
    /// state before recovery. Mount and unmount it, then check again.
    DIRTY: "log-not-replayed" incomplete "head", "the log is dirty: the verdict is of the state before recovery",
        source "xfs_log_recover.c:xlog_recover; repair/phase2.c:zero_log", since "2.6";
    /// Whether the log is dirty could not be found out, so that what looks like damage may be changes that wait in it.
    UNKNOWN: "log-state-unknown" incomplete "head", "the state of the log is not known",
        source "xfs_log_recover.c:xlog_find_tail", since "2.6";
    /// The records of the log carry another uuid: it is the log of another file system, or of an earlier one. No kernel
    /// mounts with it; xfs_repair would write a new one and lose what the right one holds.
    FOREIGN: "log-of-another-fs" xcorrupt "h_fs_uuid", "log of another file system",
        source "xfs_log_recover.c:xlog_header_check_mount", since "2.6";
    /// A log device was named, but the log lies in the data section: the device is not used. Kernels refuse a mount with
    /// it.
    NOT_NEEDED: "log-device-not-needed" warning "logstart", "a log device was given, but the log is internal",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6";
    /// The first block of the log is zero, further ones are not: its start was wiped, and whether it was dirty cannot be
    /// told. Kernels take such a log for empty.
    WIPED: "log-start-wiped" corrupt "h_magicno", "start of the log was wiped",
        source "xfs_log_recover.c:xlog_find_zeroed", since "none";
    /// Recovery would stop at this record: it is damaged, and not only cut short by a power failure. Kernels refuse the
    /// mount (ro,norecovery works), and xfs_repair -L would throw all of the log away.
    RECORD: "log-record-damaged" corrupt "h_crc", "record of the log is damaged: recovery fails",
        source "xfs_log_recover.c:xlog_valid_rec_header, xlog_recover_process", since "2.6";
    /// The record is whole, but its operations make no transactions: recovery stops here. Kernels refuse the mount
    /// (ro,norecovery works), and xfs_repair -L would throw all of the log away.
    ITEM: "log-item-damaged" corrupt "item_type", "item of the log makes no sense: recovery fails",
        source "xfs_log_recover.c:xlog_recover_process_ophdr, xlog_recover_add_to_trans, xlog_recover_reorder_trans", since "2.6";
    /// Metadata was written with a log sequence number that the log has not reached: the log was zeroed (xfs_repair -L of
    /// old versions), replaced, or metadata comes from elsewhere. Recovery would skip newer changes; kernels from 4.5 on
    /// refuse the structure or the mount. xfs_repair of 4.3 and later moves the log on.
    AHEAD: "log-lsn-ahead" corrupt "lsn", "metadata is ahead of the log",
        source "xfs_log.c:xfs_log_check_lsn; repair/phase7 (Maximum metadata LSN)", since "4.4";
}

/// What the log of a file system is like, and what a check has to know of it.
pub fn facts(volume: &Volume) -> (Log, LogFacts) {
    let log = log::state(volume);
    let current = match &log.state {
        // Metadata of a file system whose log was never written has cycle 0 (`Log::allows`).
        State::Zeroed { .. } => Some(u64::from(u32::MAX)),
        _ => log.ends().filter(|_| log.foreign.is_none()).map(|ends| ends.current.0),
    };
    let mut facts = LogFacts { dirty: log.is_dirty(), unread: false, current, recovery: None, changes: None };
    match log::verify(volume, &log) {
        Ok(None) => {}
        Ok(Some(mut recovery)) => {
            match Changes::of(volume, &log, &recovery) {
                Ok((changes, None)) => facts.changes = Some(changes),
                Ok((_, fails)) => recovery.fails = fails,
                // What waits is not known, so nothing can be told from what recovery changes.
                Err(_) => {}
            }
            facts.recovery = Some(Ok(recovery));
        }
        Err(why) => facts.recovery = Some(Err(why)),
    }
    (log, facts)
}

/// Says what is to be said of the log itself.
pub fn check(ctx: &Ctx<'_>, log: &Log) {
    let spot = |block: LogBlock| {
        let place = match &log.area {
            Some(area) => area.place(block),
            None => Place::new(Device::Log, ByteOffset(0), 512, "log"),
        };
        Spot { place, object: Object::Log }
    };
    let internal = ctx.geometry().log_start.filter(|_| ctx.volume().devices().log.is_some());
    if let Some(start) = internal {
        ctx.raise(NOT_NEEDED, &ctx.whole(), start, "0, for a log on a device of its own");
    }
    let last = log.ends().map_or(LogBlock(0), |ends| ends.last);
    if let Some(uuid) = log.foreign {
        ctx.raise(FOREIGN, &spot(last), uuid, ctx.volume().superblock().uuid);
    }
    match &log.state {
        State::Dirty(ends) => {
            let found = format!("log blocks {} to {} wait for recovery", ends.tail, ends.head);
            ctx.raise(DIRTY, &spot(ends.last), found, "an unmount record");
            records(ctx, log, &spot);
        }
        State::Unknown(why) => {
            if log.area.is_none() && matches!(ctx.volume().origin(), Origin::Inferred { .. }) {
                // It may lie anywhere in the data section.
                ctx.owners_unknown();
            }
            ctx.raise(UNKNOWN, &spot(LogBlock(0)), why, "a log that can be read");
        }
        State::Zeroed { traces: Some(block) } => ctx.raise(WIPED, &spot(*block), "zeros before this block", "a record"),
        State::Zeroed { traces: None } | State::Clean { .. } => {}
    }
}

/// Live records that recovery will not take. A record that was not written whole is usual after a power failure.
fn records(ctx: &Ctx<'_>, log: &Log, spot: &dyn Fn(LogBlock) -> Spot) {
    match &ctx.log.recovery {
        Some(Ok(log::Recovery { fails: Some((at, why)), .. })) => {
            let records = log::Records::live(ctx.volume(), log).into_iter().flatten();
            let damaged = records.flatten().filter(|record| !record.faults.is_empty());
            let mut said = false;
            for record in damaged.take(RECORDS) {
                said |= record.at == *at;
                for fault in &record.faults {
                    raise_record(ctx, spot(record.at), fault);
                }
            }
            if !said {
                raise_record(ctx, spot(*at), why);
            }
        }
        Some(Ok(_)) | None => {}
        Some(Err(why)) => ctx.raise(UNKNOWN, &spot(LogBlock(0)), why, "records that can be read"),
    }
}

/// Damaged records that are named at most.
const RECORDS: usize = 8;

fn raise_record(ctx: &Ctx<'_>, spot: Spot, fault: &log::Fault) {
    let (rule, field) = match fault.field {
        "magicno" => (RECORD, "h_magicno"),
        "cycle" => (RECORD, "h_cycle"),
        "version" => (RECORD, "h_version"),
        "len" => (RECORD, "h_len"),
        "lsn" => (RECORD, "h_lsn"),
        "tail_lsn" => (RECORD, "h_tail_lsn"),
        "prev_block" => (RECORD, "h_prev_block"),
        "num_logops" => (RECORD, "h_num_logops"),
        "fmt" => (RECORD, "h_fmt"),
        "fs_uuid" => (RECORD, "h_fs_uuid"),
        "size" => (RECORD, "h_size"),
        "crc" => (RECORD, "h_crc"),
        of_item => (ITEM, of_item),
    };
    ctx.report(Finding::new(rule, spot.place.field(field), &fault.found, &fault.expected).about(Object::Log));
}

/// What was noted while the run went on.
pub fn finish(ctx: &Ctx<'_>) {
    let ahead = ctx.take_ahead();
    if let Some((lsn, mut spot)) = ahead.greatest {
        let current = ctx.log.current.unwrap_or(0);
        spot.object = Object::Log;
        let text = |lsn: u64| format!("{}:{}", lsn >> 32, lsn & 0xffff_ffff);
        let found = match ahead.count {
            1 => text(lsn),
            n => format!("{}, the greatest of {n} structures", text(lsn)),
        };
        ctx.raise(AHEAD, &spot, found, format_args!("at most {}", text(current)));
    }
}
