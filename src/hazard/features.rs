//! Feature bits: which release accepts them, and what older ones do.
//!
//! An unknown bit of features_incompat is refused in every mode, one of features_ro_compat read-write only, one of
//! features_log_incompat while the log is dirty (`xfs_validate_sb_read`, `xlog_recover`). V5 itself begins with 3.10.

use super::kernel::{ALWAYS, NEVER, by, since, v, v26};
use super::{
    About, Answer, Confidence, Evidence, Facts, LogState, Modes, Row, danger, effect, note, read_only, refuse,
};
use super::{Severity, Stable};
use crate::format::features::{self, Word};

/// First kernel with V5.
const V5: super::Version = v(3, 10);

/// First kernel that knows a bit.
const fn first(word: Word, mask: u32) -> super::Version {
    match features::first_kernel(word, mask) {
        Some((major, minor)) => v(major, minor),
        None => NEVER,
    }
}

macro_rules! feature_rows {
    ($( $id:literal $refs:literal $kind:ident $mask:literal, $title:literal,
        $explanation:literal, advice $advice:literal, source $source:literal, fire $fire:literal; )*) => {
        &[ $( Row {
            id: $id,
            refs: $refs,
            about: About::Kernel,
            title: $title,
            test: |f| feature_rows!(@test $kind f $mask),
            effects: &[feature_rows!(@effect $kind $mask)],
            explanation: $explanation,
            advice: $advice,
            source: $source,
            confidence: Confidence::Confirmed,
            fire: $fire,
        }, )* ]
    };
    (@test incompat $f:ident $mask:literal) => {
        $f.at($f.v5() && $f.incompat($mask), "features_incompat", || {
            format!("features_incompat {:#x} has {:#x}", $f.features.incompat, $mask)
        })
    };
    (@test ro_compat $f:ident $mask:literal) => {
        $f.at($f.v5() && $f.ro_compat($mask), "features_ro_compat", || {
            format!("features_ro_compat {:#x} has {:#x}", $f.features.ro_compat, $mask)
        })
    };
    (@effect incompat $mask:literal) => {
        refuse(V5, first(Word::Incompat, $mask), concat!("\"Superblock has unknown incompatible features\" (", stringify!($mask), "), EINVAL"))
    };
    (@effect ro_compat $mask:literal) => {
        read_only(V5, first(Word::RoCompat, $mask), concat!("read-write: \"Superblock has unknown read-only compatible features\" (", stringify!($mask), "), EINVAL; read-only works"))
    };
}

pub(super) const BITS: &[Row] = feature_rows! {
    "incompat-ftype-unknown" "F-02" incompat 0x001, "file type in directory entries",
        "The type of a file stands in its directory entry, which a kernel without the feature would read as part of the next field.",
        advice "Use 3.12 or later.", source "xfs_sb.h masks in 3.11.0 and 3.12.10", fire "any V5 mkfs (neighbour: V4)";
    "incompat-sparse-inodes-unknown" "F-05" incompat 0x002, "sparse inode chunks",
        "Inode chunks may be only partly allocated; 4.2 itself calls the feature experimental.",
        advice "Use 4.2 or later, or make the file system with -i sparse=0.", source "masks in 4.1.6 and 4.2.8",
        fire "mkfs.xfs -i sparse=1 (neighbour: sparse=0)";
    "incompat-meta-uuid-unknown" "F-06" incompat 0x004, "metadata carries another UUID than the superblock shows",
        "xfs_admin -U changed the UUID that users see; metadata still carries the old one, kept in meta_uuid.",
        advice "Use 4.3 or later; xfs_admin -U restore brings the old UUID back.", source "masks in 4.2.8 and 4.3-rc",
        fire "xfs_admin -U generate (neighbour: fresh)";
    "incompat-bigtime-unknown" "F-10" incompat 0x008, "timestamps past 2038",
        "Timestamps count nanoseconds since 1901 in 64 bits; another kernel would read wrong dates.",
        advice "Use 5.10 or later, or make the file system with -m bigtime=0.", source "masks in 5.9.1 and 5.10.198",
        fire "mkfs.xfs -m bigtime=1 (neighbour: bigtime=0)";
    "incompat-nrext64-unknown" "F-12" incompat 0x020, "64-bit extent counters",
        "Inodes of such file systems count extents in another field of 64 bits. 5.19 to 6.4 print that the feature is experimental.",
        advice "Use 5.19 or later, or make the file system with -i nrext64=0.", source "masks in 5.15.148 and 5.19.0",
        fire "mkfs.xfs -i nrext64=1 (neighbour: nrext64=0)";
    "incompat-exchange-unknown" "F-13" incompat 0x040, "exchange-range",
        "The log may hold requests to exchange extents of two files. mkfs.xfs sets the bit by default in current releases.",
        advice "Use 6.10 or later, or make the file system with -i exchange=0.", source "masks in 6.9.0 and 6.10.0",
        fire "mkfs.xfs -i exchange=1 (neighbour: exchange=0)";
    "incompat-parent-unknown" "F-14" incompat 0x080, "parent pointers",
        "Every file carries the names of its parents as extended attributes, kept up to date with directories. mkfs.xfs sets \
         the bit by default in current releases.",
        advice "Use 6.10 or later, or make the file system with -n parent=0.", source "masks in 6.9.0 and 6.10.0",
        fire "mkfs.xfs -n parent=1 (neighbour: parent=0)";
    "incompat-metadir-unknown" "F-15" incompat 0x100, "metadata directory, realtime groups",
        "Metadata inodes hang below a directory of their own, and the realtime section is cut into groups.",
        advice "Use 6.13 or later, or make the file system with -m metadir=0.", source "masks in 6.12.117 and 6.13.2",
        fire "mkfs.xfs -m metadir=1 (neighbour: metadir=0)";
    "incompat-zoned-unknown" "F-17" incompat 0x200, "zoned realtime section",
        "Realtime space is allocated zone by zone, without a bitmap. That 6.15 is the first rests on its merge text: 6.14.0 \
         lacks the bit, 6.18.2 has it.",
        advice "Use 6.15 or later.", source "masks in 6.14.0 and 6.18.2",
        fire "mkfs.xfs -m metadir=1 -r zoned=1 (neighbour: metadir only)";
    "incompat-zone-gaps-unknown" "F-17" incompat 0x400, "zones with gaps",
        "Zones begin at powers of two on the device. First release uncertain by one: 6.14.0 lacks the bit, 6.18.2 has it.",
        advice "Use 6.15 or later.", source "masks in 6.14.0 and 6.18.2",
        fire "xfs_db -x -c 'write -d features_incompat' with 0x400 added on a zoned image (neighbour: without)";
    "rocompat-finobt-unknown" "F-04" ro_compat 0x1, "free inode btree",
        "A kernel without the feature would let the btree of free inodes go stale.",
        advice "Mount read-only, or use 3.16 or later.", source "masks in 3.15.5 and 3.16.0",
        fire "mkfs.xfs -m finobt=1 (neighbour: finobt=0)";
    "rocompat-rmapbt-unknown" "F-07" ro_compat 0x2, "reverse mapping btree",
        "A kernel without the feature would let the btree of owners go stale.",
        advice "Mount read-only, use 4.8 or later, or make the file system with -m rmapbt=0.", source "masks in 4.4.155 and 4.8.15",
        fire "mkfs.xfs -m rmapbt=1 (neighbour: rmapbt=0)";
    "rocompat-reflink-unknown" "F-08" ro_compat 0x4, "shared extents",
        "A kernel without the feature would overwrite blocks that other files share. 4.9 to 4.15 call it experimental.",
        advice "Mount read-only, use 4.9 or later, or make the file system with -m reflink=0.", source "masks in 4.8.15 and 4.9.0",
        fire "mkfs.xfs -m reflink=1 (neighbour: reflink=0)";
    "rocompat-inobtcount-unknown" "F-09" ro_compat 0x8, "block counts of the inode btrees",
        "A kernel without the feature would let the counts in the AGI go stale.",
        advice "Mount read-only, use 5.10 or later, or make the file system with -m inobtcount=0.", source "masks in 5.9.1 and 5.10.198",
        fire "mkfs.xfs -m inobtcount=1 (neighbour: inobtcount=0)";
};

/// 9e037cb7972f (4.19) checks features when the superblock is written; 652f03db897b (6.13) leaves compat out.
const COMPAT_FIXED: &[Stable] = &[since(6, 6, 64), by(5, 15, 176), by(6, 1, 192), by(6, 12, 117)];

pub(super) const WORDS: &[Row] = &[
    Row {
        id: "primary-superblock-lost",
        refs: "C01",
        about: About::Kernel,
        title: "sector 0 is no XFS superblock",
        test: |f| match &f.primary_lost {
            None => Answer::No,
            Some(why) => Answer::Yes(Evidence {
                text: why.clone(),
                place: Some(crate::error::Place::new(crate::units::Device::Data, crate::units::ByteOffset(0), 512, "sb 0")),
            }),
        },
        effects: &[refuse(ALWAYS, NEVER, "\"Invalid superblock magic number\" (older: \"bad magic number\"), EINVAL (wrong fs type)")],
        explanation: "A kernel reads the primary superblock only, never a copy. What else stands here is computed from the copy that \
            was found: it is what a kernel would say once the primary is restored.",
        advice: "xfs_repair restores the primary from the copies; look at them first (show TARGET sb 1).",
        source: "xfs_mount.c:xfs_readsb",
        confidence: Confidence::Confirmed,
        fire: "dd if=/dev/zero of=D bs=512 count=1 conv=notrunc (neighbour: untouched)",
    },
    Row {
        id: "superblock-crc-bad",
        refs: "G-08",
        about: About::Kernel,
        title: "the checksum of the superblock does not match",
        test: |f| {
            let bad = matches!(f.crc, crate::format::checksum::CrcState::Bad { .. }) && f.v5();
            f.at(bad, "crc", || "the sector changed after its checksum was computed".into())
        },
        effects: &[refuse(V5, NEVER, "\"SB validate failed\", a metadata CRC error, EFSCORRUPTED")],
        explanation: "Every field of the superblock is doubtful.",
        advice: "Compare the copies; xfs_repair takes a good one.",
        source: "xfs_sb.c:xfs_sb_read_verify",
        confidence: Confidence::Confirmed,
        fire: "one byte of the label changed without mending the checksum (neighbour: with it mended)",
    },
    Row {
        id: "v4-primary-crc-nonzero",
        refs: "G-22",
        about: About::Kernel,
        title: "V4 superblock with something in the field of the checksum",
        test: |f| {
            let bad = f.v4() && matches!(f.crc, crate::format::checksum::CrcState::Bad { .. });
            f.at(bad, "crc", || format!("crc is {:#x} on a V4 superblock, and does not match", f.sb.crc.0))
        },
        effects: &[refuse(V5, NEVER, "a metadata CRC error, EFSCORRUPTED")],
        explanation: "Kernels that know V5 check the checksum of a primary superblock whenever the field is not zero, in case the \
            version bit was lost.",
        advice: "Find out what wrote there; xfs_repair clears it.",
        source: "xfs_sb.c:xfs_sb_read_verify (7.2; older releases by the same comment)",
        confidence: Confidence::Inferred,
        fire: "V4, 4 bytes of 1 at byte 224 of sector 0 (neighbour: zeros)",
    },
    Row {
        id: "v5-format-unknown",
        refs: "F-01",
        about: About::Kernel,
        title: "format V5 (checksums)",
        test: |f| f.at(f.v5(), "versionnum", || format!("versionnum {:#x}: version 5", f.sb.versionnum)),
        effects: &[
            refuse(ALWAYS, v(3, 10), "\"bad version\", EINVAL (wrong fs type)"),
            note(v(3, 10), v(3, 15), "mounts with the alert that the format is EXPERIMENTAL"),
        ],
        explanation: "Version 5 (mkfs.xfs -m crc=1, the default since xfsprogs 3.2.3) came with 3.10 and was called experimental until 3.14.",
        advice: "Use 3.10 or later (3.16 for the default features of its time), or mkfs.xfs -m crc=0.",
        source: "xfs_sb.h:xfs_sb_good_version in 3.8.3 and 3.10.105; the alert in 3.14.1, gone in 3.15.5",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=1 (neighbour: crc=0)",
    },
    Row {
        id: "version-unknown",
        refs: "G-04",
        about: About::Kernel,
        title: "a version that is neither 4 nor 5",
        test: |f| {
            let odd = !matches!(f.features.version(), 4 | 5);
            f.at(odd, "versionnum", || format!("versionnum {:#x}: version {}", f.sb.versionnum, f.features.version()))
        },
        effects: &[refuse(ALWAYS, NEVER, "\"bad version\" (1 to 3 before 3.16: \"version 1 directory format\"), EINVAL or ENOSYS")],
        explanation: "Versions 1 to 3 are of IRIX and have directories that Linux never read; others do not exist. 5.15 to 6.3 compare \
            with less care and let versions above 5 pass this test, but nothing after it makes sense.",
        advice: "Compare the copies; this is damage.",
        source: "xfs_sb.c:xfs_sb_good_version (3.15.5, 3.16.0, 5.19.0, 6.4.6)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write versionnum' with the low four bits 3 (neighbour: 4)",
    },
    Row {
        id: "incompat-unknown",
        refs: "F-20",
        about: About::Kernel,
        title: "an incompatible feature that Linux 7.2 does not know",
        test: |f| {
            let bits = f.features.unknown(Word::Incompat);
            f.at(f.v5() && bits != 0, "features_incompat", || format!("features_incompat {:#x} has {bits:#x}", f.features.incompat))
        },
        effects: &[refuse(V5, NEVER, "\"Superblock has unknown incompatible features\", EINVAL")],
        explanation: "A newer kernel made this, or the word is damaged.",
        advice: "Use the kernel that made it.",
        source: "xfs_sb.c:xfs_validate_sb_read",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_incompat' with 0x8000 added (neighbour: without)",
    },
    Row {
        id: "rocompat-unknown",
        refs: "F-20",
        about: About::Kernel,
        title: "a read-only compatible feature that Linux 7.2 does not know",
        test: |f| {
            let bits = f.features.unknown(Word::RoCompat);
            f.at(f.v5() && bits != 0, "features_ro_compat", || format!("features_ro_compat {:#x} has {bits:#x}", f.features.ro_compat))
        },
        effects: &[read_only(V5, NEVER, "read-write: \"Superblock has unknown read-only compatible features\", EINVAL; read-only works")],
        explanation: "A newer kernel made this, or the word is damaged.",
        advice: "Mount read-only, or use the kernel that made it.",
        source: "xfs_sb.c:xfs_validate_sb_read",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_ro_compat' with 0x10 added (neighbour: without)",
    },
    Row {
        id: "rocompat-unknown-dirty-log",
        refs: "G-21",
        about: About::Kernel,
        title: "a read-only compatible feature that the kernel does not know, and a dirty log",
        test: |f| {
            if !f.v5() || f.features.ro_compat == 0 {
                return Answer::No;
            }
            match f.log {
                LogState::Clean => Answer::No,
                LogState::Unknown => Answer::Unknown(LOG_UNKNOWN.into()),
                LogState::Dirty => f.at(true, "features_ro_compat", || format!("features_ro_compat {:#x}, and the log is dirty", f.features.ro_compat)),
            }
        },
        effects: &[
            effect(v(4, 19), v(6, 6), Severity::Refuse, Modes::RECOVERING, "read-only: recovery writes the superblock, its check fails on the unknown feature, and so does the mount; norecovery shows the state before recovery")
                .fixed(&[since(6, 1, 92), since(5, 15, 176)])
                .only(unknown_ro_compat),
            note(V5, v(4, 19), "read-only: recovery may be refused for the unknown feature; not run, sources are ambiguous").only(unknown_ro_compat),
        ],
        explanation: "A ro mount recovers the log, and recovery writes the superblock. From 4.19 on the check of what is written also \
            looks for unknown features.",
        advice: "Recover the log on a kernel that knows the feature (mount it there once), then mount read-only here.",
        source: "9e037cb7972f (4.19), 74ad4693b647 (6.6; 6.1.92 and 5.15.176 by their review rounds)",
        confidence: Confidence::Inferred,
        fire: "a dirty log, and features_ro_compat with 0x10 added in every superblock",
    },
    Row {
        id: "compat-unknown",
        refs: "F-20",
        about: About::Kernel,
        title: "a compatible feature: none is defined",
        test: |f| f.at(f.v5() && f.features.compat != 0, "features_compat", || format!("features_compat is {:#x}", f.features.compat)),
        effects: &[
            danger(v(4, 19), v(6, 13), "the first write of the superblock fails its check (\"Corruption detected in superblock compatible features\") and shuts the file system down").fixed(COMPAT_FIXED),
            note(ALWAYS, NEVER, "a warning when it is mounted"),
        ],
        explanation: "Compatible features are meant to be harmless, but kernels 4.19 to 6.12 refuse to write a superblock that has one.",
        advice: "Do not mount read-write on these kernels.",
        source: "9e037cb7972f (4.19.40 has it, 4.18.0 not), 652f03db897b (6.13, 6.6.64; in 6.12.117, 6.1.192; 5.15.176 or a little earlier)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_compat 1' (neighbour: 0)",
    },
    Row {
        id: "log-incompat-unknown",
        refs: "F-18",
        about: About::Kernel,
        title: "a log feature and a dirty log",
        test: |f| {
            if !f.v5() || f.features.log_incompat == 0 {
                return Answer::No;
            }
            match f.log {
                LogState::Clean => Answer::No,
                LogState::Unknown => Answer::Unknown(LOG_UNKNOWN.into()),
                LogState::Dirty => f.at(true, "features_log_incompat", || format!("features_log_incompat is {:#x}, and the log is dirty", f.features.log_incompat)),
            }
        },
        effects: &[
            effect(V5, v(5, 19), Severity::Refuse, Modes::RECOVERING, "the log cannot be recovered: \"Superblock has unknown incompatible log features\", EINVAL; ro,norecovery works"),
            effect(v(5, 19), NEVER, Severity::Refuse, Modes::RECOVERING, "the log cannot be recovered: \"Superblock has unknown incompatible log features\", EINVAL; ro,norecovery works").only(|f, _| f.features.log_incompat & !1 != 0),
        ],
        explanation: "The journal may hold items that the kernel does not know (0x1: logged extended attributes, since 5.19).",
        advice: "Recover the log on a kernel that knows the feature.",
        source: "xfs_log_recover.c:xlog_recover (log masks in 5.15.148 and 5.19.0)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_log_incompat 1' and a dirty log",
    },
    Row {
        id: "log-incompat-shutdown",
        refs: "F-18",
        about: About::Kernel,
        title: "a log feature in the superblock",
        test: |f| f.at(f.v5() && f.features.log_incompat != 0, "features_log_incompat", || format!("features_log_incompat is {:#x}", f.features.log_incompat)),
        effects: &[
            danger(v(4, 19), v(5, 19), "the first write of the superblock fails its check and shuts the file system down"),
            danger(v(5, 19), NEVER, "the first write of the superblock fails its check and shuts the file system down; after a read-only mount the log is left dirty, and the next mount is refused for it (seen on 7.2: mounted read-only, then refused read-write)").modes(Modes::RECOVERING).only(|f, _| f.features.log_incompat & !1 != 0),
            note(V5, NEVER, "with a clean log it mounts"),
        ],
        explanation: "With a clean log a log feature does not keep a kernel from mounting, but from 4.19 on it keeps it from writing the superblock.",
        advice: "Mount read-only, or on a kernel that knows the feature: it clears the bit when it unmounts.",
        source: "xfs_sb.c:xfs_validate_sb_write (4.19.40 has it, 4.18.0 not)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_log_incompat 1' with a clean log (neighbour: 0)",
    },
    Row {
        id: "needsrepair-set",
        refs: "F-11",
        about: About::Kernel,
        title: "xfs_repair was interrupted, or a feature was added and not finished",
        test: |f| f.at(f.v5() && f.incompat(0x10), "features_incompat", || format!("features_incompat {:#x} has 0x10 (needsrepair)", f.features.incompat)),
        effects: &[
            refuse(V5, v(5, 11), "\"Superblock has unknown incompatible features\" (0x10), EINVAL"),
            refuse(v(5, 11), v(6, 14), "\"Filesystem needs repair.  Please run xfs_repair.\", EFSCORRUPTED, with norecovery too").fixed(&[since(6, 12, 26)]),
            effect(v(5, 11), NEVER, Severity::Refuse, Modes::RECOVERING, "\"Filesystem needs repair.  Please run xfs_repair.\", EFSCORRUPTED; ro,norecovery mounts"),
        ],
        explanation: "xfs_repair and xfs_admin set the bit before they change structures and clear it when they are done.",
        advice: "Run xfs_repair: it clears the bit. Do not clear it by hand unless that fails.",
        source: "xfs_super.c:xfs_fs_fill_super (5.11.4, 6.13.2, 6.14.0, 7.2); 9e00163c3167 (6.14, 6.12.26); run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_incompat' with 0x10 added (neighbour: without)",
    },
    Row {
        id: "v4-ftype-unknown",
        refs: "F-03",
        about: About::Kernel,
        title: "file type in directory entries of V4",
        test: |f| f.at(v4_features2(f, 0x200), "features2", || format!("features2 {:#x} has 0x200 (ftype)", f.sb.features2)),
        effects: &[refuse(ALWAYS, v(3, 13), "\"bad version\", EINVAL (wrong fs type)").fixed(&[by(3, 12, 10)])],
        explanation: "mkfs.xfs writes it by default since xfsprogs 4.2. It came with 3.13; the stable release 3.12.10 has it already.",
        advice: "Use 3.13 or later, or mkfs.xfs -m crc=0 -n ftype=0.",
        source: "XFS_SB_VERSION2_OKBITS in 3.11.0, 3.12.10, 3.13.10",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 -n ftype=1 (neighbour: ftype=0)",
    },
    Row {
        id: "v4-projid32-unknown",
        refs: "F-19",
        about: About::Kernel,
        title: "32-bit project ids of V4",
        test: |f| f.at(v4_features2(f, 0x80), "features2", || format!("features2 {:#x} has 0x80 (projid32bit)", f.sb.features2)),
        effects: &[refuse(ALWAYS, v26(37), "\"bad version\", EINVAL (wrong fs type)")],
        explanation: "mkfs.xfs writes it by default since xfsprogs 3.2.0.",
        advice: "Use 2.6.37 or later, or mkfs.xfs -m crc=0 -i projid32bit=0.",
        source: "XFS_SB_VERSION2_OKBITS in 2.6.36 and 2.6.37",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 -i projid32bit=1 (neighbour: projid32bit=0)",
    },
    Row {
        id: "v4-features2-unknown",
        refs: "F-20",
        about: About::Kernel,
        title: "a bit of features2 that no kernel accepts",
        test: |f| {
            let (counts, known) = if f.v5() { (true, 0x38a) } else { (f.sb.versionnum & 0x8000 != 0, 0x28a) };
            let bits = f.sb.features2 & !known;
            f.at(counts && bits != 0, "features2", || format!("features2 {:#x} has {bits:#x}", f.sb.features2))
        },
        effects: &[
            refuse(ALWAYS, NEVER, "\"bad version\" or \"unknown features enabled\", EINVAL (wrong fs type)").only(|f, _| !f.v5()),
            refuse(v(5, 15), NEVER, "\"Superblock has unknown features enabled or corrupted feature masks\", EINVAL"),
        ],
        explanation: "Only lazy-count, attr2, projid32bit and ftype (and crc with V5) are known.",
        advice: "Compare the copies; this is damage, or a file system of another system (IRIX).",
        source: "xfs_sb.c:xfs_sb_good_version, xfs_sb_validate_v5_features (5.14.2 has no test for V5, 5.15.148 has)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write features2' with 0x10 added (neighbour: without)",
    },
    Row {
        id: "shared-bit",
        refs: "F-20",
        about: About::Kernel,
        title: "the version bit of shared volumes",
        test: |f| f.at(f.sb.versionnum & 0x200 != 0, "versionnum", || format!("versionnum {:#x} has 0x200", f.sb.versionnum)),
        effects: &[
            refuse(v(3, 16), NEVER, "\"bad version\", EINVAL (wrong fs type)").only(|f, _| !f.v5()),
            refuse(v(5, 15), NEVER, "\"Superblock has unknown features enabled or corrupted feature masks\", EINVAL"),
            note(ALWAYS, NEVER, "accepted as long as shared_vn is 0"),
        ],
        explanation: "A feature of IRIX that Linux never had.",
        advice: "Clear the bit in every superblock with xfs_db, or use a kernel before 3.16 to copy the data.",
        source: "xfs_sb.h masks in 3.15.5 (0xffff) and 3.16.0 (0xfdff)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write versionnum' with 0x200 added (neighbour: without)",
    },
    Row {
        id: "v5-feature-bits-missing",
        refs: "G-19",
        about: About::Kernel,
        title: "V5 without the older features that it includes",
        test: |f| {
            let (missing, missing2) = (!f.sb.versionnum & 0xb4a0, !f.sb.features2 & 0x18a);
            f.at(f.v5() && (missing != 0 || missing2 != 0), "versionnum", || {
                format!("versionnum {:#x} lacks {missing:#x}, features2 {:#x} lacks {missing2:#x}", f.sb.versionnum, f.sb.features2)
            })
        },
        effects: &[
            refuse(v(5, 15), NEVER, "\"Superblock has unknown features enabled or corrupted feature masks\", EINVAL"),
            note(ALWAYS, v(5, 15), "not noticed: the features are taken for granted"),
        ],
        explanation: "V5 includes nlink, align, logv2, extflg, dirv2, lazy-count, attr2 and projid32bit; 5.15 began to insist on the bits.",
        advice: "Compare the copies; xfs_repair takes a good one.",
        source: "xfs_sb.c:xfs_sb_validate_v5_features (5.14.2 no, 5.15.148 yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d versionnum 0xb495' (neighbour: 0xb4b5)",
    },
    Row {
        id: "v4-no-dirv2",
        refs: "G-04",
        about: About::Kernel,
        title: "directories of format 1",
        test: |f| f.at(f.v4() && f.sb.versionnum & 0x2000 == 0, "versionnum", || format!("versionnum {:#x} lacks 0x2000 (dirv2)", f.sb.versionnum)),
        effects: &[refuse(ALWAYS, NEVER, "\"bad version\" (before 3.16: \"file system using version 1 directory format\", ENOSYS)")],
        explanation: "Linux never read directories of format 1.",
        advice: "Read it with IRIX, or compare the copies: this may be damage.",
        source: "xfs_sb.c:xfs_sb_good_version",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write versionnum' without 0x2000 (neighbour: with)",
    },
    Row {
        id: "v4-no-extflg",
        refs: "G-04",
        about: About::Kernel,
        title: "no unwritten extents",
        test: |f| f.at(f.v4() && f.sb.versionnum & 0x1000 == 0, "versionnum", || format!("versionnum {:#x} lacks 0x1000 (extflg)", f.sb.versionnum)),
        effects: &[
            refuse(v(5, 0), NEVER, "\"bad version\", EINVAL (wrong fs type)"),
            note(ALWAYS, v(5, 0), "accepted"),
        ],
        explanation: "mkfs.xfs -d unwritten=0 of its day. 5.0 and later insist on the bit.",
        advice: "Mount on a kernel before 5.0 and copy the data; or set the bit with xfs_db (older kernels accept both).",
        source: "xfs_sb.c:xfs_sb_good_version (4.19.222 lacks the test, 5.0.0 has it)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write versionnum' without 0x1000 (neighbour: with)",
    },
    Row {
        id: "v4-support-off",
        refs: "G-01",
        about: About::Kernel,
        title: "format V4, and a kernel built without it",
        test: |f| f.at(f.v4(), "versionnum", || format!("versionnum {:#x}: version 4", f.sb.versionnum)),
        effects: &[
            refuse(v(5, 10), NEVER, "\"Deprecated V4 format (crc=0) not supported by kernel.\", EINVAL").only(|_, k| !k.takes_v4()),
            note(v(5, 10), NEVER, "mounts with the warning that V4 is deprecated until September 2030"),
        ],
        explanation: "CONFIG_XFS_SUPPORT_V4 exists since 5.10; it is on by default up to 6.17 and off from 6.18 on. The code goes in September 2030.",
        advice: "Use a kernel built with CONFIG_XFS_SUPPORT_V4, or copy the data to a V5 file system: there is no conversion.",
        source: "fs/xfs/Kconfig in 5.10.223, 6.14.0 (y), 6.18.2, 7.2.13 (n); xfs_super.c:xfs_fs_fill_super",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 (neighbour: crc=1)",
    },
    Row {
        id: "ascii-ci-support-off",
        refs: "G-02",
        about: About::Kernel,
        title: "case-insensitive names, and a kernel built without them",
        test: |f| f.at(f.sb.versionnum & 0x4000 != 0, "versionnum", || format!("versionnum {:#x} has 0x4000 (ascii-ci)", f.sb.versionnum)),
        effects: &[
            refuse(v(6, 4), NEVER, "\"Deprecated ASCII case-insensitivity feature (ascii-ci=1) not supported by kernel.\", EINVAL").only(|_, k| !k.takes_ascii_ci()),
            note(v(6, 4), NEVER, "mounts with the warning that ascii-ci is deprecated until September 2030"),
        ],
        explanation: "CONFIG_XFS_SUPPORT_ASCII_CI exists since 6.4; on by default up to 6.17, off from 6.18 on.",
        advice: "Use a kernel built with CONFIG_XFS_SUPPORT_ASCII_CI, or copy the data.",
        source: "fs/xfs/Kconfig in 6.2.1 (none), 6.4.6 (y), 6.18.2 (n)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -n version=ci (neighbour: version=2)",
    },
];

const LOG_UNKNOWN: &str = "not looked at yet: whether the log is dirty";

/// Bits of features2 that count on V4. The kernel judges the word before it joins bad_features2.
fn v4_features2(f: &Facts, mask: u32) -> bool {
    f.v4() && f.sb.versionnum & 0x8000 != 0 && f.sb.features2 & mask != 0
}

/// Has the image a ro_compat bit that the kernel does not know?
fn unknown_ro_compat(f: &Facts, kernel: &super::Kernel) -> bool {
    let known = [(0x1, v(3, 16)), (0x2, v(4, 8)), (0x4, v(4, 9)), (0x8, v(5, 10))]
        .into_iter()
        .filter(|(_, from)| *from <= kernel.version)
        .fold(0, |mask, (bit, _)| mask | bit);
    f.features.ro_compat & !known != 0
}
