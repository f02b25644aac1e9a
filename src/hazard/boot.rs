//! Boot loaders and tools: what they read, by release. These rows never change the verdict on a kernel.
//!
//! GRUB tests features_incompat of V5 against a mask of its own and ignores features_ro_compat. Releases are upstream's;
//! distributions patch theirs, and whether GRUB has to read this file system only its owner knows.

use super::kernel::{ALWAYS, NEVER, v};
use super::{About, Answer, Confidence, LogState, Row, danger, note, refuse};
use crate::format::features::Word;

const UNKNOWN: &str = "\"unknown filesystem\": grub-install fails, or the machine does not boot";

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "grub-no-v5",
        refs: "U-02",
        about: About::Grub,
        title: "format V5",
        test: |f| f.at(f.v5(), "versionnum", || "version 5".into()),
        effects: &[refuse(ALWAYS, v(2, 2), UNKNOWN)],
        explanation: "2.00 and older, and 2.02~beta1 and beta2, read V4 only.",
        advice: "GRUB 2.02 or later, or a V4 or other file system for /boot.",
        source: "grub b6e80c777 (2.02~beta3)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=1 (neighbour: crc=0)",
    },
    Row {
        id: "grub-no-meta-uuid",
        refs: "U-02",
        about: About::Grub,
        title: "metadata with another UUID",
        test: |f| {
            f.at(f.v5() && f.incompat(4), "features_incompat", || {
                format!("features_incompat {:#x} has 0x4", f.features.incompat)
            })
        },
        effects: &[refuse(ALWAYS, v(2, 2), UNKNOWN)],
        explanation: "2.02~beta3 and older do not know the bit.",
        advice: "GRUB 2.02 or later.",
        source: "grub 58590cb2e (2.02-rc1)",
        confidence: Confidence::Confirmed,
        fire: "xfs_admin -U generate (neighbour: fresh)",
    },
    Row {
        id: "grub-no-sparse",
        refs: "U-01",
        about: About::Grub,
        title: "sparse inode chunks",
        test: |f| {
            f.at(f.v5() && f.incompat(2), "features_incompat", || {
                format!("features_incompat {:#x} has 0x2", f.features.incompat)
            })
        },
        effects: &[refuse(ALWAYS, v(2, 4), UNKNOWN)],
        explanation: "2.02 and older do not know the bit, which mkfs.xfs sets since xfsprogs 4.16.",
        advice: "GRUB 2.04 or later, or mkfs.xfs -i sparse=0.",
        source: "grub cda0a857d (2.04-rc1)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -i sparse=1 (neighbour: sparse=0)",
    },
    Row {
        id: "grub-no-bigtime",
        refs: "U-03",
        about: About::Grub,
        title: "bigtime or needsrepair",
        test: |f| {
            f.at(f.v5() && f.incompat(0x18), "features_incompat", || {
                format!("features_incompat {:#x} has {:#x}", f.features.incompat, f.features.incompat & 0x18)
            })
        },
        effects: &[refuse(ALWAYS, v(2, 6), UNKNOWN)],
        explanation: "2.04 and older do not know the bits; bigtime is a default of mkfs.xfs since xfsprogs 5.15.",
        advice: "GRUB 2.06 or later, or mkfs.xfs -m bigtime=0.",
        source: "grub 8b1e5d193, 777276063 (2.06)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m bigtime=1 (neighbour: bigtime=0)",
    },
    Row {
        id: "grub-206-v4",
        refs: "U-03",
        about: About::Grub,
        title: "format V4, and GRUB 2.06",
        test: |f| f.at(f.v4(), "versionnum", || "version 4".into()),
        effects: &[refuse(v(2, 6), v(2, 12), "\"attempt to read or write outside of partition\"")],
        explanation: "2.06 as released takes inodes of V4 for larger than they are; distributions patch it.",
        advice: "A patched 2.06, or 2.12.",
        source: "grub a4b495520 (2.12-rc1)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 (neighbour: crc=1)",
    },
    Row {
        id: "grub-no-nrext64",
        refs: "U-04",
        about: About::Grub,
        title: "64-bit extent counters",
        test: |f| {
            f.at(f.v5() && f.incompat(0x20), "features_incompat", || {
                format!("features_incompat {:#x} has 0x20", f.features.incompat)
            })
        },
        effects: &[refuse(ALWAYS, v(2, 12), UNKNOWN)],
        explanation: "2.06 and older, and 2.12~rc1, do not know the bit, a default of mkfs.xfs since xfsprogs 6.5.",
        advice: "GRUB 2.12 or later, or mkfs.xfs -i nrext64=0.",
        source: "grub aa7c13226 (2.12)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -i nrext64=1 (neighbour: nrext64=0)",
    },
    Row {
        id: "grub-nrext64-dir",
        refs: "U-05",
        about: About::Grub,
        title: "64-bit extent counters and directories of one block",
        test: |f| {
            f.at(f.v5() && f.incompat(0x20), "features_incompat", || {
                format!(
                    "features_incompat {:#x} has 0x20; which directories have one block was not looked at",
                    f.features.incompat
                )
            })
        },
        effects: &[danger(
            v(2, 12),
            v(2, 14),
            "directories of one block are read past their entries: files are missing or have false names",
        )],
        explanation: "2.12 knows the bit but reads the count of extents from its old place in two spots.",
        advice: "GRUB 2.14, or a patched 2.12.",
        source: "grub 4abac0ad5 (2.14-rc1)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -i nrext64=1 (neighbour: nrext64=0)",
    },
    Row {
        id: "grub-dir-extents",
        refs: "U-05",
        about: About::Grub,
        title: "directories of several extents, or with gaps",
        test: |_| Answer::Unknown("not looked at yet: the directories decide".into()),
        effects: &[danger(
            v(2, 12),
            v(2, 14),
            "directories with a gap between blocks: \"invalid XFS directory entry\", files are not found (2.12~rc1: every directory of several extents)",
        )],
        explanation: "A check against damaged directories was too strict.",
        advice: "GRUB 2.14, or a patched 2.12.",
        source: "grub ef7850c75 (2.12~rc1), 07318ee7e (2.12), 68dd65cfd (2.14-rc1)",
        confidence: Confidence::Confirmed,
        fire: "a directory of some thousand names from which the first were deleted",
    },
    Row {
        id: "grub-no-exchange-parent",
        refs: "U-06, C09",
        about: About::Grub,
        title: "exchange-range, parent pointers or metadir",
        test: |f| {
            f.at(f.v5() && f.incompat(0x1c0), "features_incompat", || {
                format!("features_incompat {:#x} has {:#x}", f.features.incompat, f.features.incompat & 0x1c0)
            })
        },
        effects: &[refuse(ALWAYS, v(2, 14), UNKNOWN)],
        explanation: "2.12 and older do not know the bits, of which mkfs.xfs sets 0xc0 by default in current releases.",
        advice: "GRUB 2.14 or later, or mkfs.xfs -i exchange=0 -n parent=0.",
        source: "grub 1ed2628b5 (2.14-rc1)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -i exchange=1 (neighbour: exchange=0 -n parent=0)",
    },
    Row {
        id: "grub-no-zoned",
        refs: "U-06",
        about: About::Grub,
        title: "zoned, or a feature newer than 7.2",
        test: |f| {
            f.at(f.v5() && f.incompat(!0x1ff), "features_incompat", || {
                format!("features_incompat {:#x} has {:#x}", f.features.incompat, f.features.incompat & !0x1ff)
            })
        },
        effects: &[refuse(ALWAYS, NEVER, UNKNOWN)],
        explanation: "No release up to 2.14 knows these bits.",
        advice: "Another file system for /boot.",
        source: "grub 2.14: mask 0x1ff",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -r zoned=1 (neighbour: metadir only)",
    },
    Row {
        id: "grub-v4-features",
        refs: "U-06",
        about: About::Grub,
        title: "version bits of V4 that GRUB does not take",
        test: |f| {
            let odd = f.v4() && (f.sb.versionnum & !0xbdff != 0 || f.sb.versionnum & 0x2000 == 0);
            f.at(odd, "versionnum", || {
                format!("versionnum {:#x}: ascii-ci (0x4000), shared (0x200) or no dirv2 (0x2000)", f.sb.versionnum)
            })
        },
        effects: &[refuse(ALWAYS, NEVER, UNKNOWN)],
        explanation: "GRUB compares names byte by byte and cannot follow a case-insensitive hash.",
        advice: "Another file system for /boot.",
        source: "grub masks of 2.04 to 2.14",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 -n version=ci (neighbour: version=2)",
    },
    Row {
        id: "grub-ro-compat-ignored",
        refs: "U-07",
        about: About::Grub,
        title: "read-only compatible features",
        test: |f| {
            f.at(f.v5() && f.features.ro_compat != 0, "features_ro_compat", || {
                format!("features_ro_compat {:#x}", f.features.ro_compat)
            })
        },
        effects: &[note(v(2, 2), NEVER, "ignored, as it should be: the file system is readable")],
        explanation: "finobt, rmapbt, reflink and inobtcount do not change what a reader sees.",
        advice: "Nothing.",
        source: "grub: only features_incompat is tested",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m finobt=1 (neighbour: crc=0)",
    },
    Row {
        id: "reader-no-replay",
        refs: "U-08",
        about: About::Grub,
        title: "a dirty log",
        test: |f| match f.log {
            LogState::Clean => Answer::No,
            LogState::Dirty => f.at(true, "logstart", || "the log is dirty".into()),
            LogState::Unknown => Answer::Unknown("not looked at yet: whether the log is dirty".into()),
        },
        effects: &[note(
            ALWAYS,
            NEVER,
            "the log is not replayed: what was written last is not seen (a new kernel, a new configuration)",
        )],
        explanation: "GRUB, like any other reader that is no kernel, sees what lies in place.",
        advice: "Freeze or unmount /boot after an update; sync is not enough.",
        source: "grub has no code for the log",
        confidence: Confidence::Confirmed,
        fire: "cut the power of a mounted file system (neighbour: unmount it)",
    },
    Row {
        id: "tool-unknown-feature",
        refs: "U-10",
        about: About::Tools,
        title: "features newer than the tool",
        test: |f| {
            let bits = || f.features.names().filter(|bit| matches!(bit.word, Word::Incompat | Word::RoCompat));
            let known = || bits().filter_map(|bit| Some((bit.since?.xfsprogs, bit.name)));
            if f.v5() && (f.features.unknown(Word::Incompat) | f.features.unknown(Word::RoCompat)) != 0 {
                let text = || "a feature that 7.2 does not know: no release of xfsprogs up to 7.2".into();
                return f.at(true, "features_incompat", text);
            }
            let Some(newest) = known().map(|(version, _)| version).max() else { return Answer::No };
            let names: Vec<_> = known().filter(|(version, _)| *version == newest).map(|(_, name)| name).collect();
            f.at(true, "features_incompat", || {
                format!("xfsprogs {} or later is needed ({})", v(newest.0, newest.1), names.join(", "))
            })
        },
        effects: &[refuse(
            ALWAYS,
            NEVER,
            "older xfs_repair, xfs_db, xfs_metadump and xfs_copy refuse: \"Found unsupported filesystem features\"",
        )],
        explanation: "A release of xfsprogs knows the features of the kernel of the same number.",
        advice: "Use a current xfsprogs from a rescue system.",
        source: "xfsprogs repair/versions.c; 6.1 run on 0xc0",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=1 (neighbour: crc=0)",
    },
    Row {
        id: "repair-agfl-wrap",
        refs: "U-09",
        about: About::Tools,
        title: "a free list that uses its last slot",
        test: |f| f.faults(|h| &h.last_slot),
        effects: &[note(ALWAYS, v(4, 5), "xfs_repair before 4.5.0 reports corruption that is none")],
        explanation: "It had the layout of 64-bit kernels of its time, with a slot less (agfl-layout-mismatch).",
        advice: "xfsprogs 4.5.0 or later.",
        source: "ad747e3b2996 (as its text says)",
        confidence: Confidence::Reported,
        fire: "xfs_db -x -c 'agf 0' -c 'write -d flfirst 115' -c 'write -d fllast 118' -c 'write -d flcount 4' (neighbour: untouched)",
    },
    Row {
        id: "metadump-ascii-ci",
        refs: "U-11",
        about: About::Tools,
        title: "case-insensitive names and xfs_metadump",
        test: |f| {
            f.at(f.sb.versionnum & 0x4000 != 0, "versionnum", || {
                format!("versionnum {:#x} has 0x4000 (ascii-ci)", f.sb.versionnum)
            })
        },
        effects: &[danger(
            ALWAYS,
            v(6, 4),
            "xfs_metadump with obfuscated names writes hashes that do not fit: lookups in the restored image fail",
        )],
        explanation: "Names were replaced by others of the same case-sensitive hash.",
        advice: "xfs_metadump -o (plain names), or xfsprogs 6.4 and later.",
        source: "list mail of April 2023, not run",
        confidence: Confidence::Reported,
        fire: "mkfs.xfs -n version=ci (neighbour: version=2)",
    },
];
