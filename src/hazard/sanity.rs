//! Single fields of the superblock: what each release tests before it mounts, and what it lets through.

use super::kernel::{ALWAYS, NEVER, by, v};
use super::{About, Answer, Confidence, Facts, Row, note, read_only, refuse};

const SB: &str = "\"SB sanity check failed\", EFSCORRUPTED (Structure needs cleaning)";

/// Size and log2 of one of them agree and lie within bounds.
fn power(size: u32, log: u8, range: std::ops::RangeInclusive<u32>) -> bool {
    range.contains(&size) && 1u32.checked_shl(log.into()) == Some(size)
}

fn impossible_sizes(f: &Facts) -> Answer {
    let sb = &f.sb;
    let (agcount, agblocks, blocks) = (u64::from(sb.agcount.0), u64::from(sb.agblocks), sb.dblocks.0);
    let least = agcount.saturating_sub(1).saturating_mul(agblocks).saturating_add(64);
    let tests = [
        (agcount == 0, "agcount", "agcount is 0".to_owned()),
        (
            !power(u32::from(sb.sectsize), sb.sectlog, 512..=32768),
            "sectsize",
            format!("sectsize {} and sectlog {}", sb.sectsize, sb.sectlog),
        ),
        (
            !power(sb.blocksize, sb.blocklog, 512..=65536),
            "blocksize",
            format!("blocksize {} and blocklog {}", sb.blocksize, sb.blocklog),
        ),
        (
            !power(u32::from(sb.inodesize), sb.inodelog, 256..=2048),
            "inodesize",
            format!("inodesize {} and inodelog {}", sb.inodesize, sb.inodelog),
        ),
        (
            i32::from(sb.blocklog) - i32::from(sb.inodelog) != i32::from(sb.inopblog),
            "inopblog",
            format!("inopblog {}, blocklog {}, inodelog {}", sb.inopblog, sb.blocklog, sb.inodelog),
        ),
        (sb.imax_pct > 100, "imax_pct", format!("imax_pct is {}", sb.imax_pct)),
        (blocks == 0, "dblocks", "dblocks is 0".to_owned()),
        (
            blocks < least && blocks > 0,
            "dblocks",
            format!("dblocks {blocks}, but {agcount} AGs of {agblocks} blocks need {least} at least"),
        ),
    ];
    match tests.into_iter().find(|(bad, ..)| *bad) {
        Some((_, field, text)) => f.at(true, field, || text),
        None => Answer::No,
    }
}

fn ag_shape(f: &Facts) -> Answer {
    let sb = &f.sb;
    let bytes = u128::from(sb.agblocks) * u128::from(sb.blocksize);
    let log = sb.agblocks.saturating_sub(1).checked_ilog2().map_or(0, |bit| bit + 1);
    let right = u128::from(sb.dblocks.0).div_ceil(u128::from(sb.agblocks.max(1)));
    let tests = [
        (
            !(1 << 24..=1 << 40).contains(&bytes),
            "agblocks",
            format!("an AG of {} blocks has {bytes} bytes, outside 16 MiB to 1 TiB", sb.agblocks),
        ),
        (
            u32::from(sb.agblklog) != log,
            "agblklog",
            format!("agblklog is {}, agblocks {} need {log}", sb.agblklog, sb.agblocks),
        ),
        (
            right != u128::from(sb.agcount.0),
            "agcount",
            format!("agcount is {}, dblocks {} need {right}", sb.agcount, sb.dblocks),
        ),
    ];
    match tests.into_iter().find(|(bad, ..)| *bad) {
        Some((_, field, text)) => f.at(true, field, || text),
        None => Answer::No,
    }
}

/// Tests of single fields that a superblock must pass.
pub(super) const ROWS: &[Row] = &[
    Row {
        id: "sb-impossible-sizes",
        refs: "G-07, G-08",
        about: About::Kernel,
        title: "sizes in the superblock that cannot be",
        test: impossible_sizes,
        effects: &[refuse(ALWAYS, NEVER, SB)],
        explanation: "Block, sector and inode size are powers of two within bounds, their log2 fields agree, and the number of AGs fits the \
            number of blocks. Every release tests that.",
        advice: "Compare the copies (show TARGET sb 1); xfs_repair takes a good one.",
        source: "xfs_mount.c:xfs_mount_validate_sb (2.6.32), xfs_sb.c:xfs_validate_sb_common (7.2)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d imax_pct 101' (neighbour: 25)",
    },
    Row {
        id: "inopblock-mismatch",
        refs: "G-08",
        about: About::Kernel,
        title: "inodes per block do not fit block and inode size",
        test: |f| {
            let right = f.sb.blocksize.div_ceil(u32::from(f.sb.inodesize).max(1));
            let bad = f.sb.inodesize > 0 && u32::from(f.sb.inopblock) != right;
            f.at(bad, "inopblock", || {
                format!("inopblock is {}, {} / {} is {right}", f.sb.inopblock, f.sb.blocksize, f.sb.inodesize)
            })
        },
        effects: &[refuse(v(3, 15), NEVER, SB), note(ALWAYS, v(3, 15), "not tested")],
        explanation: "The field follows from two others; a wrong one is damage.",
        advice: "xfs_repair.",
        source: "392c6de98af1; xfs_sb.c in 3.14.1 (no) and 3.15.5 (yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d inopblock 7' (neighbour: 8)",
    },
    Row {
        id: "ag-shape-impossible",
        refs: "G-08",
        about: About::Kernel,
        title: "AG size outside 16 MiB to 1 TiB, or its log2 or the number of AGs wrong",
        test: ag_shape,
        effects: &[refuse(v(4, 16), NEVER, SB), note(ALWAYS, v(4, 16), "not tested")],
        explanation: "4.16 began to test agblocks, agblklog and agcount against each other. AGs below 16 MiB, as old mkfs made them on small \
            devices, are refused too, though nothing is wrong with them.",
        advice: "Mount on a kernel before 4.16 and copy the data where only the size is too small; otherwise compare the copies.",
        source: "xfs_sb.c in 4.15.15 (no) and 4.16.13 (yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d agblklog' one larger (neighbour: right)",
    },
    Row {
        id: "shared-vn-nonzero",
        refs: "G-08",
        about: About::Kernel,
        title: "shared_vn is not 0",
        test: |f| f.at(f.sb.shared_vn != 0, "shared_vn", || format!("shared_vn is {}", f.sb.shared_vn)),
        effects: &[
            refuse(v(3, 16), NEVER, SB),
            refuse(ALWAYS, v(3, 16), "\"bad version\", EINVAL (wrong fs type)")
                .only(|f, _| f.sb.versionnum & 0x200 != 0),
            note(ALWAYS, v(3, 16), "not tested without the version bit of shared volumes"),
        ],
        explanation: "A leftover of IRIX; always 0.",
        advice: "xfs_db -x -c 'sb 0' -c 'write shared_vn 0' on every copy.",
        source: "xfs_sb.c:xfs_validate_sb_common, xfs_sb.h:xfs_sb_good_version (3.15.5)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d shared_vn 1' (neighbour: 0)",
    },
    Row {
        id: "directory-block-too-large",
        refs: "G-08",
        about: About::Kernel,
        title: "directory blocks beyond 64 KiB",
        test: |f| {
            let log = u32::from(f.sb.dirblklog) + u32::from(f.sb.blocklog);
            f.at(log > 16, "dirblklog", || {
                format!("dirblklog {} and blocklog {}: 2^{log} bytes", f.sb.dirblklog, f.sb.blocklog)
            })
        },
        effects: &[
            refuse(v(4, 10), NEVER, SB).also(&[by(4, 9, 337)]),
            refuse(v(3, 18), v(4, 10), SB).only(|f, _| f.sb.dirblklog > 16),
            note(ALWAYS, v(4, 10), "not tested: directories cannot be read"),
        ],
        explanation: "A directory block has at most 64 KiB.",
        advice: "xfs_repair.",
        source: "xfs_sb.c in 3.16.0, 3.18.20, 4.9.0, 4.9.337, 4.10.0",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d dirblklog 5' with 4 KiB blocks (neighbour: 4)",
    },
    Row {
        id: "v5-block-below-1k",
        refs: "G-08",
        about: About::Kernel,
        title: "V5 with blocks of 512 bytes",
        test: |f| {
            f.at(f.v5() && f.sb.blocksize < 1024, "blocksize", || format!("V5 with blocksize {}", f.sb.blocksize))
        },
        effects: &[refuse(v(4, 10), NEVER, SB).also(&[by(4, 9, 337)])],
        explanation: "Headers of V5 metadata leave too little of a block of 512 bytes; mkfs.xfs does not make such file systems.",
        advice: "Copy the data on a kernel before 4.10.",
        source: "xfs_sb.c in 4.9.0, 4.9.337, 4.10.0",
        confidence: Confidence::Confirmed,
        fire: "blocksize 512 and every field that follows from it (neighbour: 1024)",
    },
    Row {
        id: "inprogress-set",
        refs: "G-16",
        about: About::Kernel,
        title: "mkfs or another tool did not finish",
        test: |f| {
            f.at(f.sb.inprogress != 0 && !f.copy, "inprogress", || {
                format!("inprogress is {} in the primary", f.sb.inprogress)
            })
        },
        effects: &[refuse(
            ALWAYS,
            NEVER,
            "\"Offline file system operation in progress!\" (before 3.8: \"file system busy\"), EFSCORRUPTED",
        )],
        explanation: "mkfs.xfs sets the flag first and clears it in the primary last; copies keep it. xfs_copy does the same.",
        advice: "Make the file system or the copy again; if it is known to be whole, xfs_repair clears the flag.",
        source: "xfs_sb.c:xfs_validate_sb_common, xfs_super.c:xfs_fs_fill_super",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d inprogress 1' (neighbour: 0)",
    },
    Row {
        id: "nil-uuid",
        refs: "G-08",
        about: About::Kernel,
        title: "the UUID is zero",
        test: |f| f.at(f.sb.uuid.0 == [0; 16], "uuid", || "uuid is all zeros".into()),
        effects: &[refuse(
            ALWAYS,
            NEVER,
            "\"Filesystem has null UUID - can't mount\", EINVAL, unless mounted with nouuid",
        )],
        explanation: "The kernel keeps a list of mounted UUIDs and does not take zero for one.",
        advice: "Mount with -o nouuid, or give it a UUID with xfs_admin -U generate.",
        source: "xfs_mount.c:xfs_uuid_mount",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d uuid 00000000-0000-0000-0000-000000000000' on V4 (neighbour: any other)",
    },
    Row {
        id: "readonly-flag",
        refs: "G-17",
        about: About::Kernel,
        title: "marked read-only",
        test: |f| f.at(f.sb.flags & 1 != 0, "flags", || format!("flags {:#x} has 1", f.sb.flags)),
        effects: &[read_only(
            ALWAYS,
            NEVER,
            "\"cannot mount a read-only filesystem as read-write\", EROFS; read-only works",
        )],
        explanation: "Bit 0 of flags says that the file system may not be written.",
        advice: "Mount with -o ro, or clear the bit with xfs_db.",
        source: "xfs_super.c:xfs_finish_flags",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d flags 1' (neighbour: 0)",
    },
    Row {
        id: "quota-flags-wrong-format",
        refs: "G-20",
        about: About::Kernel,
        title: "quota flags of the other format",
        test: |f| {
            let wrong = f.sb.qflags & if f.v5() { 0x0030 } else { 0x0780 };
            f.at(wrong != 0, "qflags", || {
                format!(
                    "qflags {:#x} has {wrong:#x}, which belongs to {}",
                    f.sb.qflags,
                    if f.v5() { "V4" } else { "V5" }
                )
            })
        },
        effects: &[refuse(v(3, 13), NEVER, "EFSCORRUPTED (Structure needs cleaning)").also(&[by(3, 12, 10)])],
        explanation: "V4 keeps one pair of bits for group and project quota, V5 a pair for each. 3.11 refuses it only where both kinds are mixed.",
        advice: "xfs_repair clears them; quota is counted again at the next mount with quota.",
        source: "xfs_sb.c in 3.10.105, 3.11.0, 3.13.10",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d qflags 0x10' on V5 (neighbour: 0)",
    },
    Row {
        id: "sparse-alignment-bad",
        refs: "G-26",
        about: About::Kernel,
        title: "inode alignment does not fit sparse inode chunks",
        test: |f| {
            let right = (64 * u64::from(f.sb.inodesize)).checked_shr(f.sb.blocklog.into()).unwrap_or(0);
            let bad = f.v5() && f.incompat(2) && u64::from(f.sb.inoalignmt.0) != right;
            f.at(bad, "inoalignmt", || {
                format!("inoalignmt is {}, a chunk of 64 inodes has {right} blocks", f.sb.inoalignmt)
            })
        },
        effects: &[refuse(v(4, 2), NEVER, "\"Inode block alignment must match chunk size for sparse inodes\", EINVAL")],
        explanation: "With sparse chunks whole chunks must be aligned to their own size, or records of the inode btree could overlap.",
        advice: "Compare the copies.",
        source: "xfs_sb.c:xfs_validate_sb_common (4.2.8, 7.2)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d inoalignmt 4' where 8 is right (neighbour: 8)",
    },
    Row {
        id: "sparse-cluster-bad",
        refs: "G-26",
        about: About::Kernel,
        title: "alignment of sparse inode chunks does not fit",
        test: |f| {
            if !f.v5() || !f.sizes_hold() {
                return Answer::No;
            }
            let (align, whole) = (f.sb.spino_align.0, f.sb.inoalignmt.0);
            if !f.incompat(2) {
                return f
                    .at(align != 0, "spino_align", || format!("spino_align is {align} without sparse inode chunks"));
            }
            let scaled = 8192u32.saturating_mul(u32::from(f.sb.inodesize) / 256);
            let cluster = if whole >= scaled >> f.sb.blocklog { scaled } else { 8192 };
            let right = cluster >> f.sb.blocklog;
            f.at(align != right, "spino_align", || {
                format!("spino_align is {align}, an inode cluster has {right} blocks")
            })
        },
        effects: &[
            refuse(v(4, 2), NEVER, "\"Sparse inode block alignment must match cluster size\", EINVAL")
                .only(|f, _| f.incompat(2)),
            refuse(v(6, 13), NEVER, "EINVAL").also(&[by(6, 12, 117)]).only(|f, _| !f.incompat(2)),
        ],
        explanation: "A sparse chunk is allocated cluster by cluster; the field must say how large one is, and be 0 without the feature.",
        advice: "Compare the copies.",
        source: "xfs_mount.c:xfs_mountfs (4.2.8, 7.2); xfs_sb.c:xfs_validate_sb_common (6.10.0 no, 6.12.117 and 6.13.2 yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d spino_align 2' where 4 is right (neighbour: 4)",
    },
    Row {
        id: "bad-features2-mismatch",
        refs: "G-18",
        about: About::Kernel,
        title: "features2 and its misplaced twin differ",
        test: |f| {
            let (one, two) = (f.sb.features2, f.sb.bad_features2);
            f.at(one != two, "bad_features2", || format!("features2 {one:#x}, bad_features2 {two:#x}"))
        },
        effects: &[note(
            ALWAYS,
            NEVER,
            "both are joined with the message \"correcting sb_features alignment problem\", and written back when mounted read-write; kernels before 2.6.25 read one of them only",
        )],
        explanation: "Some machines once padded the superblock, so the word stood 4 bytes later; both places are kept equal since.",
        advice: "Nothing; xfs_repair makes them equal.",
        source: "xfs_mount.c:xfs_mountfs (2.6.24, 2.6.32, 7.2)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d bad_features2 0' (neighbour: equal to features2)",
    },
    Row {
        id: "v5-inode-256",
        refs: "G-07",
        about: About::Kernel,
        title: "V5 with inodes of 256 bytes",
        test: |f| f.at(f.v5() && f.sb.inodesize == 256, "inodesize", || "inodesize is 256 on V5".into()),
        effects: &[note(v(3, 10), NEVER, "mounts; mkfs.xfs does not make such file systems")],
        explanation: "Only mkfs.xfs insists on 512 bytes with V5: the core of an inode takes 176 of them.",
        advice: "Nothing.",
        source: "xfs_sb.c in 3.10.105, 5.10, 7.2",
        confidence: Confidence::Confirmed,
        fire: "inodesize 256 and the fields that follow from it (neighbour: 512)",
    },
];
