//! The log: its size, sectors, stripe unit and device, and what each release tests of them.

use super::kernel::{ALWAYS, NEVER, since, v, v26};
use super::minlog::minimum_log_blocks;
use super::{
    About, Answer, Confidence, Facts, Kernel, LogState, Modes, Row, Severity, Stable, danger, effect, note, refuse,
};

/// The tests of log geometry moved into the superblock verifier in 6.5; 6.1.112 took that.
const VERIFIER: &[Stable] = &[since(6, 1, 112)];

/// The most blocks and bytes a log may have (`XFS_MAX_LOG_BLOCKS`, `XFS_MAX_LOG_BYTES`).
const MAX_BLOCKS: u64 = 1 << 20;
const MAX_BYTES: u64 = (1 << 31) - 10 * 1024 * 1024;

/// `h_fmt` of records that a little-endian Linux wrote (`XLOG_FMT_LINUX_LE`).
const LITTLE_ENDIAN: u32 = 1;

/// A log sequence number as cycle and block.
fn position(lsn: u64) -> String {
    let lsn = crate::units::Lsn(lsn);
    format!("cycle {}, block {}", lsn.cycle(), lsn.block())
}

fn external(f: &Facts) -> bool {
    f.sb.logstart.0 == 0
}

/// Is it surely too small, whatever release counts? The exact bound is that of 7.2; older ones differ.
fn surely_too_small(f: &Facts, kernel: &Kernel) -> bool {
    let Some(least) = minimum_log_blocks(f) else { return false };
    let blocks = u64::from(f.sb.logblocks.0);
    let exact = kernel.version >= v(6, 18);
    blocks < least && (exact || blocks.saturating_mul(2) < least || blocks.saturating_mul(f.block()) < 2 << 20)
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "log-too-small",
        refs: "G-13",
        about: About::Kernel,
        title: "the log is smaller than the largest transaction needs",
        test: |f| match minimum_log_blocks(f) {
            None => Answer::No,
            Some(least) => f.at(u64::from(f.sb.logblocks.0) < least && f.sb.logblocks.0 > 0, "logblocks", || {
                format!("logblocks is {}, 7.2 needs {least}", f.sb.logblocks)
            }),
        },
        effects: &[
            refuse(v(3, 12), NEVER, "\"Log size ... blocks too small, minimum size is ... blocks\", \"AAIEEE! Log failed size checks. Abort!\", EINVAL, with norecovery too")
                .only(|f, k| f.v5() && surely_too_small(f, k)),
            note(v(3, 12), NEVER, "\"Log size out of supported range. Continuing onwards, but if log hangs are experienced then please report this message\"")
                .only(|f, k| !f.v5() && surely_too_small(f, k)),
            note(v(3, 12), v(6, 18), "below the minimum of 7.2; the exact minimum of this release is not computed, so it may be refused"),
        ],
        explanation: "Since 3.12 the mount computes how much log the largest transaction of this geometry can take, and refuses a smaller log. The \
            number here is that of 7.2; releases before 6.18 count a little otherwise, so for them only a log of less than half of \
            it is called too small.",
        advice: "The log cannot be resized in place: copy the data to a file system with a larger log.",
        source: "xfs_log.c:xfs_log_mount, xfs_log_rlimit.c:xfs_log_calc_minimum_size (3.11.0 none, 3.12.10 yes); compared with xfs_db logres and real mounts of 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logblocks' one below the minimum (neighbour: the minimum)",
    },
    Row {
        id: "log-blocks-zero",
        refs: "G-14",
        about: About::Kernel,
        title: "no log",
        test: |f| f.at(f.sb.logblocks.0 == 0, "logblocks", || "logblocks is 0".into()),
        effects: &[refuse(ALWAYS, NEVER, "\"no log defined\", EFSCORRUPTED")],
        explanation: "XFS cannot be mounted without a log.",
        advice: "Compare the copies; xfs_repair.",
        source: "xfs_mount.c:xfs_mountfs",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logblocks 0' (neighbour: untouched)",
    },
    Row {
        id: "log-too-large",
        refs: "G-14",
        about: About::Kernel,
        title: "the log is larger than allowed",
        test: |f| {
            let blocks = u64::from(f.sb.logblocks.0);
            let bytes = blocks.saturating_mul(f.block());
            f.at(blocks > MAX_BLOCKS || bytes > MAX_BYTES, "logblocks", || format!("{blocks} blocks, {bytes} bytes; at most {MAX_BLOCKS} blocks and {MAX_BYTES} bytes"))
        },
        effects: &[
            refuse(v(6, 5), NEVER, "EFSCORRUPTED (Structure needs cleaning)").also(VERIFIER),
            refuse(v(3, 12), v(6, 5), "\"Log size ... blocks too large\", EINVAL").only(|f, _| f.v5()),
            note(ALWAYS, v(6, 5), "not tested, or only warned of"),
        ],
        explanation: "Positions in the log are kept in 32 bits.",
        advice: "Compare the copies.",
        source: "f1e1765aad7d (6.5, 6.1.112); xfs_log.c:xfs_log_mount (3.12.10, 6.4.6)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logblocks 600000' with 4 KiB blocks (neighbour: untouched)",
    },
    Row {
        id: "log-sunit-not-block-multiple",
        refs: "G-14",
        about: About::Kernel,
        title: "log stripe unit is no multiple of the block size",
        test: |f| {
            let rest = f.sb.logsunit.checked_rem(f.sb.blocksize).unwrap_or(0);
            f.at(f.sb.logsunit > 1 && rest != 0, "logsunit", || format!("logsunit is {}, blocksize {}", f.sb.logsunit, f.sb.blocksize))
        },
        effects: &[
            refuse(v(6, 5), NEVER, "EFSCORRUPTED (Structure needs cleaning)").also(VERIFIER),
            refuse(v(4, 17), v(6, 5), "\"log stripe unit ... bytes must be a multiple of block size\", EINVAL"),
            super::crash(v26(37), v(3, 2), Modes::RW, "not tested: a read-write mount oopses (seen on 2.6.37 and 3.1)"),
            note(ALWAYS, v(4, 17), "not tested; log buffers may be rounded wrongly"),
        ],
        explanation: "Log records are padded to the stripe unit, which must be whole blocks.",
        advice: "Compare the copies.",
        source: "9c92ee208b1f (4.17: 4.16.13 no, 4.17.0 yes), f1e1765aad7d (6.5)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logsunit 4097' (neighbour: 4096)",
    },
    Row {
        id: "log-sunit-too-large",
        refs: "G-14",
        about: About::Kernel,
        title: "log stripe unit beyond 256 KiB",
        test: |f| f.at(f.sb.logsunit > 256 << 10, "logsunit", || format!("logsunit is {}", f.sb.logsunit)),
        effects: &[
            refuse(v(3, 18), NEVER, "EFSCORRUPTED (Structure needs cleaning; until 6.4 \"SB sanity check failed\")"),
            note(ALWAYS, v(3, 18), "not tested"),
        ],
        explanation: "A log buffer has at most 256 KiB.",
        advice: "Compare the copies.",
        source: "xfs_sb.c in 3.16.0 (no), 3.18.20 (yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logsunit 524288' (neighbour: 262144)",
    },
    Row {
        id: "log-sector-mismatch",
        refs: "G-14",
        about: About::Kernel,
        title: "log sector size and its log2 disagree",
        test: |f| {
            let (size, log) = (f.sb.logsectsize, f.sb.logsectlog);
            let sector = f.sb.versionnum & 0x800 != 0;
            let right = if sector { 1u32.checked_shl(log.into()) == Some(u32::from(size)) } else { size == 0 && log == 0 };
            f.at(!right, "logsectsize", || format!("logsectsize {size}, logsectlog {log}, versionnum {:#x} {} 0x800 (sector)", f.sb.versionnum, if sector { "has" } else { "lacks" }))
        },
        effects: &[
            refuse(v(6, 5), NEVER, "EFSCORRUPTED (Structure needs cleaning)").also(VERIFIER),
            note(ALWAYS, v(6, 5), "not tested here"),
        ],
        explanation: "The fields count where the sector feature is set, and are 0 where it is not. 6.5 began to test that at mount.",
        advice: "Compare the copies.",
        source: "f1e1765aad7d (6.5, 6.1.112; absent in 5.4.286, 5.10.223, 5.15.148, where backports were posted: number unknown)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logsectsize 512' on 512-byte sectors (neighbour: 0)",
    },
    Row {
        id: "log-sector-unsupported",
        refs: "G-14",
        about: About::Kernel,
        title: "log sectors that the log code cannot use",
        test: |f| {
            let log = f.sb.logsectlog;
            let large = log > 9 && f.sb.logstart.0 != 0 && !f.features.has_logv2();
            let bad = f.sb.versionnum & 0x800 != 0 && (log < 9 || log > f.sb.sectlog || large);
            f.at(bad, "logsectlog", || format!("logsectlog is {log}, sectlog {}", f.sb.sectlog))
        },
        effects: &[refuse(ALWAYS, NEVER, "\"Log sector size too small\", \"too large\" or \"invalid for configuration\", EFSCORRUPTED")],
        explanation: "Log sectors have 512 bytes at least, not more than the sectors of the data device, and 512 exactly with a log of version 1 inside it.",
        advice: "Compare the copies.",
        source: "xfs_log.c:xlog_alloc_log, 3.2 to 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d logsectlog 13' on 4 KiB sectors (neighbour: 12)",
    },
    Row {
        id: "log-device-mismatch",
        refs: "G-15",
        about: About::Kernel,
        title: "a log device was named, but the log is internal",
        test: |f| f.at(!external(f) && f.log_bytes.is_some(), "logstart", || format!("logstart is {}: the log lies inside, --logdev names another", f.sb.logstart)),
        effects: &[refuse(ALWAYS, NEVER, "\"filesystem is marked as having an internal log; do not specify logdev on the mount command line\", EINVAL")],
        explanation: "The mount option logdev= and the superblock must agree.",
        advice: "Mount without logdev=.",
        source: "xfs_sb.c:xfs_validate_sb_common",
        confidence: Confidence::Confirmed,
        fire: "any image with an internal log asked about with --logdev (neighbour: without)",
    },
    Row {
        id: "log-device-needed",
        refs: "G-15",
        about: About::Kernel,
        title: "the log lies on another device",
        test: |f| f.at(external(f) && f.log_bytes.is_none(), "logstart", || "logstart is 0: the log is external, and no --logdev was given".into()),
        effects: &[note(ALWAYS, NEVER, "mounts with logdev= only, else \"filesystem is marked as having an external log\", EINVAL; the verdict is for a mount with it")],
        explanation: "The mount option logdev= names the device. Whether it is the right one, and clean, only the journal on it tells.",
        advice: "Give it with --logdev to have it looked at, and mount with logdev=.",
        source: "xfs_mount.c:xfs_mountfs, xfs_super.c:xfs_finish_flags",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -l logdev=L asked about without --logdev (neighbour: with)",
    },
    Row {
        id: "log-device-short",
        refs: "G-15",
        about: About::Kernel,
        title: "the log device ends before the log does",
        test: |f| {
            let needed = u64::from(f.sb.logblocks.0).saturating_mul(f.block());
            match f.log_bytes {
                _ if !external(f) => Answer::No,
                None => Answer::Unknown("no --logdev was given".into()),
                Some(bytes) => {
                    let short = f.at(bytes < needed, "logblocks", || format!("the log has {needed} bytes, the device {bytes}"));
                    f.end_of(crate::units::Device::Log, short)
                }
            }
        },
        effects: &[refuse(ALWAYS, NEVER, "\"log device too small\" or \"log size mismatch detected\", EIO")],
        explanation: "At mount the last block of the log is read, to see that it is there.",
        advice: "Name the right device, or make it as long as the log.",
        source: "xfs_mount.c:xfs_check_sizes",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -l logdev=L, then L cut by a block (neighbour: whole)",
    },
    Row {
        id: "log-dirty",
        refs: "U-08",
        about: About::Kernel,
        title: "the log is dirty",
        test: |f| match f.log {
            LogState::Clean => Answer::No,
            LogState::Unknown => Answer::Unknown("not looked at yet: the records of the journal decide".into()),
            LogState::Dirty => f.at(true, "logstart", || "the log holds changes that are not in place yet".into()),
        },
        effects: &[effect(ALWAYS, NEVER, Severity::Note, Modes::RECOVERING, "recovered at mount, read-only too (unless the device itself is read-only: EROFS); ro,norecovery shows the state before")],
        explanation: "After a crash changes stand in the log only. Any mount but one with norecovery replays them first.",
        advice: "Mount once on a kernel that takes the image, and unmount, before moving it to an older one.",
        source: "xfs_log.c:xfs_log_mount",
        confidence: Confidence::Confirmed,
        fire: "cut the power of a mounted file system (neighbour: unmount it)",
    },
    Row {
        id: "sb-lsn-ahead",
        refs: "G-31, C16",
        about: About::Kernel,
        title: "the superblock is newer than the log",
        test: |f| match &f.journal {
            _ if !f.v5() || f.sb.lsn == 0 || f.sb.lsn == u64::MAX => Answer::No,
            None => Answer::Unknown("not looked at yet: the head of the journal decides".into()),
            Some(journal) => match (journal.current, &journal.unread) {
                (Some(current), _) => f.at(journal.ahead(f.sb.lsn).is_some(), "lsn", || {
                    format!("lsn is {}, the log has come to {}", position(f.sb.lsn), position(current.0))
                }),
                (None, Some(why)) => Answer::Unknown(why.clone()),
                (None, None) => Answer::No,
            },
        },
        effects: &[
            effect(v(4, 4), NEVER, Severity::Refuse, Modes::RECOVERING, "\"Corruption warning: Metadata has LSN ahead of current LSN\", EINVAL; ro,norecovery mounts"),
            danger(v(3, 10), v(4, 4), "not tested: a later recovery may leave out changes, believing the metadata newer"),
        ],
        explanation: "Metadata of V5 carries the log position of its last change. Where it lies ahead of the log, log and metadata are not of the \
            same time: the log was zeroed, or the parts of an image were taken at different moments.",
        advice: "xfs_repair 4.3 or later moves the log ahead. Ask first where the image comes from.",
        source: "xfs_log_recover.c:xlog_recover (4.3 no, 4.4 yes); run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d lsn' beyond the head of the log",
    },
    Row {
        id: "log-contents-bad",
        refs: "C25, C44",
        about: About::Kernel,
        title: "the log is of another file system, or its records are damaged",
        test: |f| match f.on_journal(|journal| journal.bad.as_ref()) {
            Answer::Unknown(_) if f.log == LogState::Clean => Answer::No,
            answer => answer,
        },
        effects: &[effect(ALWAYS, NEVER, Severity::Refuse, Modes::RECOVERING, "log recovery fails: EFSCORRUPTED; ro,norecovery mounts")],
        explanation: "Recovery stops at a record whose UUID is another file system's, or whose lengths are absurd.",
        advice: "Name the right log device; where there is none, xfs_repair -L gives up what the log holds.",
        source: "xfs_log_recover.c:xlog_header_check_mount; run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "the external log of another file system named with logdev=",
    },
    Row {
        id: "log-other-byte-order",
        refs: "D30",
        about: About::Kernel,
        title: "the log is dirty, and was written by a machine of the other byte order",
        test: |f| match (&f.journal, f.log) {
            (_, LogState::Clean) => Answer::No,
            (None, _) => Answer::Unknown("not looked at yet: the records of the journal decide".into()),
            (Some(journal), _) => match (journal.order, &journal.unread) {
                (Some(order), _) => f.at(order != LITTLE_ENDIAN, "logstart", || {
                    format!("its records have h_fmt {order}, those of little-endian Linux {LITTLE_ENDIAN}")
                }),
                (None, Some(why)) => Answer::Unknown(why.clone()),
                (None, None) => Answer::No,
            },
        },
        effects: &[effect(ALWAYS, NEVER, Severity::Refuse, Modes::RECOVERING, "\"dirty log written in incompatible format - can't recover\", EFSCORRUPTED; ro,norecovery mounts. The answer is for little-endian machines")],
        explanation: "Metadata is big-endian everywhere, but the items of the log are in the byte order of the machine that wrote them: \
            only such a machine can replay them.",
        advice: "Mount it once, and unmount, on a big-endian Linux (an emulated one will do): nothing is lost then. xfs_repair -L would \
            throw the changes in the log away.",
        source: "xfs_log_recover.c:xlog_header_check_recover",
        confidence: Confidence::Confirmed,
        fire: "a crash on a big-endian machine (neighbour: unmounted there)",
    },
    Row {
        id: "log-start-wiped",
        refs: "G-33",
        about: About::Kernel,
        title: "the first block of the log is zero, and others are not",
        test: |f| match &f.journal {
            None => Answer::Unknown("not looked at yet: the blocks of the log decide".into()),
            Some(journal) => match (journal.wiped, &journal.unread) {
                (Some(block), _) => f.at(true, "logstart", || format!("log block 0 is zero, block {block} is not")),
                (None, Some(why)) => Answer::Unknown(why.clone()),
                (None, None) => Answer::No,
            },
        },
        effects: &[danger(ALWAYS, NEVER, "the log is taken for empty: changes that it held are not replayed, and nothing says so")],
        explanation: "A kernel takes a log whose first block is zero for one that was never written.",
        advice: "Copy the device before it is mounted. check tells whether metadata is newer than an empty log could be.",
        source: "xfs_log_recover.c:xlog_find_zeroed",
        confidence: Confidence::Inferred,
        fire: "the first sector of the log zeroed (neighbour: untouched)",
    },
    Row {
        id: "log-device-is-data-device",
        refs: "G-34",
        about: About::Kernel,
        title: "the log device is the data device",
        test: |f| f.at(f.same.log_data && external(f), "logstart", || "logdev= names the data device, and the log is external".into()),
        effects: &[refuse(ALWAYS, NEVER, "\"filesystem is marked as having an external log; specify logdev on the mount command line\", EINVAL")],
        explanation: "The superblock says that the log lies on another device than the data.",
        advice: "Name the device that the log is on.",
        source: "xfs_super.c:xfs_open_devices, xfs_sb.c:xfs_validate_sb_common",
        confidence: Confidence::Inferred,
        fire: "an external log, and logdev= the data device (neighbour: its own)",
    },
    Row {
        id: "log-sector-larger",
        refs: "G-36",
        about: About::Kernel,
        title: "the log device has larger sectors than the log",
        test: |f| {
            let own = if f.features.has_sector() { u32::from(f.sb.logsectsize) } else { 512 };
            let larger = external(f) && f.log_sector.is_some_and(|sector| sector > own);
            f.at(larger, "logsectsize", || format!("sectors of the log have {own} bytes, those of its device {}", f.log_sector.unwrap_or(0)))
        },
        effects: &[refuse(ALWAYS, NEVER, "\"Cannot use blocksize ... on device\" (before 6.12 \"Cannot set_blocksize\"), EINVAL")],
        explanation: "The log is written in sectors of its own size, which its device must be able to write.",
        advice: "Put the log on a device with logical sectors no larger than the log's.",
        source: "xfs_super.c:xfs_setup_devices; run on 6.1 and 7.2",
        confidence: Confidence::Confirmed,
        fire: "an external log copied to a disk with logical sectors of 4096 (neighbour: of 512)",
    },
    Row {
        id: "unlinked-inodes-clean-log",
        refs: "D47",
        about: About::Kernel,
        title: "inodes were left on unlinked lists, and the log is clean",
        test: |f| match f.log {
            LogState::Dirty => Answer::No,
            LogState::Unknown => Answer::Unknown("not looked at yet: whether recovery runs hangs on the log".into()),
            LogState::Clean => f.faults(|h| &h.unlinked),
        },
        effects: &[danger(v(6, 0), v(6, 6), "an inode from such a list that is met again (a rename, the unlink of its neighbour) finds no link back in memory: EFSCORRUPTED, shutdown")],
        explanation: "Kernels empty the lists of unlinked inodes only after recovering a dirty log. From 6.0 on each inode on a list must be in \
            memory with the one before it; those that a clean mount leaves behind are not. 6.6 loads them when they are needed.",
        advice: "Use 6.6 or later, or an older kernel than 6.0; xfs_repair frees the inodes.",
        source: "2fd26cc07e9f (6.0), 68b957f64fca, 83771c50e42b (6.6)",
        confidence: Confidence::Inferred,
        fire: "an inode put on a list of AGI 0 by xfs_db, log clean (neighbour: lists empty)",
    },
];
