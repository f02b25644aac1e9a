//! The log: what it means for the verdict, and metadata that is ahead of it.

use super::context::{Ctx, LogFacts};
use super::finding::Object;
use super::raised;
use crate::volume::Volume;

raised! { RAISED, structure "log";
    /// The log holds changes that are not in place yet: the file system was not unmounted. Everything said here is of the
    /// state before recovery. Mount and unmount it, then check again.
    DIRTY: "log-dirty" incomplete "head", "the log is dirty: the verdict is of the state before recovery",
        source "xfs_log_recover.c:xlog_recover; repair/phase2.c:zero_log", since "2.6";
    /// Metadata was written with a log sequence number that the log has not reached: the log was zeroed (xfs_repair -L of
    /// old versions), replaced, or metadata comes from elsewhere. Recovery would skip newer changes; kernels from 4.5 on
    /// refuse the structure or the mount. xfs_repair of 4.3 and later moves the log on.
    AHEAD: "log-lsn-ahead" corrupt "lsn", "metadata is ahead of the log",
        source "xfs_log.c:xfs_log_check_lsn; repair/phase7 (Maximum metadata LSN)", since "4.4";
}

/// What is known of the log of a file system before the check begins: nothing yet, until the walk of the log is merged.
pub fn facts(_: &Volume) -> LogFacts {
    LogFacts::default()
}

/// What was noted while the run went on.
pub fn finish(ctx: &Ctx<'_>) {
    let ahead = ctx.take_ahead();
    if let Some((lsn, mut spot)) = ahead.greatest {
        let current = ctx.log.current.unwrap_or(0);
        spot.object = Object::Log;
        let text = |lsn: u64| format!("{}:{}", lsn >> 32, lsn & 0xffff_ffff);
        let found = format!("{}, greatest of {} structures", text(lsn), ahead.count);
        ctx.raise(AHEAD, &spot, found, format_args!("at most {}", text(current)));
    }
}
