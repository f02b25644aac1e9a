//! AG headers: what a kernel makes of damaged ones when it mounts, and of free lists in old layouts.

use super::kernel::{ALWAYS, NEVER, by, v, v26};
use super::{About, Confidence, Facts, Kernel, LogState, Modes, Row, Severity, danger, effect, note};

/// Does a read-write mount compute reservations from the AGF (reflink, rmapbt)?
fn reserves_by_agf(f: &Facts, _: &Kernel) -> bool {
    f.ro_compat(0x2 | 0x4)
}
/// Does it read the AGI for the free inode btree's reservation?
fn reserves_by_agi(f: &Facts, _: &Kernel) -> bool {
    f.ro_compat(0x1)
}
/// Are all AG headers read when the log is not known to be clean?
fn counts_lazily(f: &Facts, _: &Kernel) -> bool {
    f.features.has_lazy_count() && f.log != LogState::Dirty
}

/// Is the length the only fault? Kernels before 4.19 do not compare it with the superblock.
fn length_alone(faults: &[super::Fault]) -> bool {
    faults.iter().all(|fault| fault.text.starts_with("length is "))
}

const ALL: &str = "the mount reads every AGF to reserve space, finds this one bad: EFSCORRUPTED; read-only too";
const RW: &str = "read-write: reserving space per AG fails, \"can't read superblock\" (EIO), after a shutdown; read-only works, but ro,norecovery does not, since free space is then counted in every AG";
const LATER: &str = "mounts; the first allocation or free in that AG fails with EFSCORRUPTED, and shuts down where a transaction had begun; ro,norecovery is refused, since free space is then counted in every AG";

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "agf-bad",
        refs: "C13, C17",
        about: About::Kernel,
        title: "a damaged AGF",
        test: |f| f.faults(|h| &h.agf),
        effects: &[
            effect(v(7, 2), NEVER, Severity::Refuse, Modes::ALL, ALL).only(reserves_by_agf),
            effect(v(4, 9), v(7, 2), Severity::Ro, Modes::RW.or(Modes::NOREC), RW).only(reserves_by_agf),
            effect(v(3, 8), NEVER, Severity::Danger, Modes::RW, LATER),
            danger(ALWAYS, v(3, 8), "mounts; nothing checks the header, wrong space is allocated or freed"),
        ],
        explanation: "With shared extents or reverse mapping a read-write mount reserves blocks in every AG and reads its AGF. Until 6.19 an error \
            there fails only the read-write mount; 7.2 fails the read-only one as well (7.0 and 7.1 were not seen).",
        advice: "Mount ro where that works and copy the data, or run xfs_repair, which rebuilds AG headers.",
        source: "xfs_fsops.c:xfs_fs_reserve_ag_blocks, xfs_alloc.c:xfs_agf_verify; run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agf 1' -c 'write -d freeblks 4000000' (neighbour: untouched)",
    },
    Row {
        id: "agf-bad-norecovery",
        refs: "C13, C17",
        about: About::Kernel,
        title: "a damaged AGF, mounted without recovery",
        test: |f| f.faults(|h| &h.agf),
        effects: &[
            effect(v(4, 19), NEVER, Severity::Refuse, Modes::NOREC, "ro,norecovery: free space is counted in every AG, EFSCORRUPTED").only(counts_lazily),
            effect(v26(37), v(4, 19), Severity::Refuse, Modes::NOREC, "ro,norecovery: free space is counted in every AG, EFSCORRUPTED")
                .only(|f, k| counts_lazily(f, k) && !f.headers.as_ref().is_ok_and(|h| length_alone(&h.agf))),
        ],
        explanation: "Without recovery the kernel cannot know that the counters of the superblock are right, and adds up all AG headers.",
        advice: "Mount ro where the log is clean, or run xfs_repair.",
        source: "xfs_mount.c:xfs_check_summary_counts, xfs_initialize_perag_data; run on 2.6.37 to 4.19, 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agf 1' -c 'write -d freeblks 4000000' (neighbour: untouched)",
    },
    Row {
        id: "agi-bad",
        refs: "C17",
        about: About::Kernel,
        title: "a damaged AGI",
        test: |f| f.faults(|h| &h.agi),
        effects: &[
            effect(v(7, 2), NEVER, Severity::Refuse, Modes::ALL, "the mount reads every AGI to reserve space for the free inode btree, finds this one bad: EFSCORRUPTED; read-only too").only(reserves_by_agi),
            effect(v(4, 11), v(7, 2), Severity::Ro, Modes::RW.or(Modes::NOREC), "read-write: reserving space for the free inode btree fails, \"can't read superblock\" (EIO); read-only works").only(reserves_by_agi),
            danger(v(3, 8), NEVER, "mounts; allocating or freeing an inode in that AG fails with EFSCORRUPTED; ro,norecovery is refused"),
            danger(ALWAYS, v(3, 8), "mounts; nothing checks the header, wrong inodes are allocated or freed"),
        ],
        explanation: "With a free inode btree a read-write mount reserves blocks for it in every AG (since 4.11) and reads its AGI.",
        advice: "Mount ro where that works and copy the data, or run xfs_repair, which rebuilds AG headers.",
        source: "xfs_ialloc_btree.c:xfs_finobt_calc_reserves, xfs_ialloc.c:xfs_agi_verify; run on 5.10, 6.1, 6.12, 7.2 (with a bad AGF beside it)",
        confidence: Confidence::Inferred,
        fire: "xfs_db -x -c 'agi 1' -c 'write -d level 0' (neighbour: untouched)",
    },
    Row {
        id: "agi-bad-norecovery",
        refs: "C17",
        about: About::Kernel,
        title: "a damaged AGI, mounted without recovery",
        test: |f| f.faults(|h| &h.agi),
        effects: &[
            effect(v(4, 19), NEVER, Severity::Refuse, Modes::NOREC, "ro,norecovery: inodes are counted in every AG, EFSCORRUPTED").only(counts_lazily),
            effect(v26(37), v(4, 19), Severity::Refuse, Modes::NOREC, "ro,norecovery: inodes are counted in every AG, EFSCORRUPTED")
                .only(|f, k| counts_lazily(f, k) && !f.headers.as_ref().is_ok_and(|h| length_alone(&h.agi))),
        ],
        explanation: "Without recovery the kernel cannot know that the counters of the superblock are right, and adds up all AG headers.",
        advice: "Mount ro where the log is clean, or run xfs_repair.",
        source: "xfs_mount.c:xfs_check_summary_counts, xfs_initialize_perag_data",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agi 1' -c 'write -d level 0' (neighbour: untouched)",
    },
    Row {
        id: "agfl-bad",
        refs: "C17",
        about: About::Kernel,
        title: "a damaged free list (AGFL)",
        test: |f| f.faults(|h| &h.agfl),
        effects: &[danger(v(3, 10), NEVER, "mounts; the first allocation or free in that AG fails with EFSCORRUPTED and shuts the file system down")],
        explanation: "The free list is read when a btree of the AG grows or shrinks.",
        advice: "xfs_repair rebuilds it.",
        source: "xfs_alloc.c:xfs_agfl_verify",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agfl 1' -c 'write -c magicnum 0' (neighbour: untouched)",
    },
    Row {
        id: "agfl-layout-mismatch",
        refs: "G-27",
        about: About::Kernel,
        title: "count of a free list does not fit its first and last slot",
        test: |f| f.faults(|h| &h.free_list),
        effects: &[
            danger(v(3, 10), v(4, 17), "blocks of the list are used twice or lost: corruption, shutdown")
                .fixed(&[by(4, 4, 155), by(4, 9, 337), by(4, 14, 105)])
                .only(|f, _| f.v5()),
            note(v(4, 17), NEVER, "\"WARNING: Reset corrupted AGFL on AG ... blocks leaked. Please unmount and run xfs_repair.\": the list is emptied, its blocks are lost until then")
                .also(&[by(4, 4, 155), by(4, 9, 337), by(4, 14, 105)]),
        ],
        explanation: "The header of the V5 free list has 36 bytes, but 64-bit kernels before 4.5 counted 40 and so one slot less. A list that wraps \
            around looks wrong to the other kind of kernel. From 4.17 on (V4: 6.4) it is noticed and reset.",
        advice: "Run xfs_repair before a kernel of the other kind writes.",
        source: "96f859d52bcb (4.5; packed in 4.4.155 too), a27ba2607e60 (4.17; in 4.4.155, 4.9.337, 4.14.105), e0a8de7da35e (6.4)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agf 0' -c 'write -d fllast 117' with flcount unchanged (neighbour: untouched)",
    },
    Row {
        id: "agfl-last-slot",
        refs: "G-27",
        about: About::Kernel,
        title: "a free list uses its last slot",
        test: |f| f.faults(|h| &h.last_slot),
        effects: &[danger(v(3, 10), v(4, 5), "a 64-bit kernel has one slot less: EFSCORRUPTED, shutdown, or blocks used twice").fixed(&[by(4, 4, 155)]).only(|_, k| k.config.bits64)],
        explanation: "See agfl-layout-mismatch: 64-bit kernels before 4.5 do not have the last slot of a V5 free list.",
        advice: "Use 4.5 or later; xfs_repair rebuilds the list from slot 0.",
        source: "96f859d52bcb (4.5; packed in 4.4.155 too, 4.3 not)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agf 0' -c 'write -d flfirst 115' -c 'write -d fllast 118' -c 'write -d flcount 4' (neighbour: untouched)",
    },
    Row {
        id: "primary-sb-smaller-than-copies",
        refs: "C26",
        about: About::Kernel,
        title: "the primary superblock speaks of less than its copies",
        test: |f| match (f.headers.as_ref().map(|h| h.largest), &f.journal, f.log) {
            // Grown, then crashed: recovery raises the primary to what its copies say already.
            (Ok((agcount, dblocks)), Some(journal), LogState::Dirty)
                if journal.superblock.as_ref().is_some_and(|sb| sb.agcount.0 >= agcount && sb.dblocks.0 >= dblocks) =>
            {
                super::Answer::No
            }
            (Ok((1.., _)), None, LogState::Dirty) => {
                super::Answer::Unknown("not looked at yet: recovery of the log may raise the primary to its copies".into())
            }
            _ => f.faults(|h| &h.larger_copies),
        },
        effects: &[danger(ALWAYS, NEVER, "mounts as a smaller file system: files and inodes beyond its end fail with EFSCORRUPTED, and what is freed or counted there shuts it down")],
        explanation: "The kernel never reads the copies at mount. It believes the primary, although blocks that files own lie past the end it gives.",
        advice: "Do not mount read-write. check looks at the headers of the AGs that are in question, and tells which size is right.",
        source: "run on 5.10, 6.1, 6.12, 7.2: all of them mount it",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d agcount 3' -c 'write -d dblocks' of three AGs (neighbour: untouched)",
    },
    Row {
        id: "secondary-sb-junk",
        refs: "G-22",
        about: About::Kernel,
        title: "bytes behind the last field of a V4 superblock copy",
        test: |f| if f.v4() { f.faults(|h| &h.junk) } else { super::Answer::No },
        effects: &[
            note(v(3, 10), v(3, 13), "growfs and scrub may refuse the copy (EFSCORRUPTED); the mount does not read it"),
            note(ALWAYS, NEVER, "not read at mount; xfs_repair clears it"),
        ],
        explanation: "growfs before 3.7 wrote memory behind the fields of new copies.",
        advice: "Run xfs_repair before growing.",
        source: "10e6e65dfced (as reported); xfs_sb.c:xfs_sb_read_verify",
        confidence: Confidence::Reported,
        fire: "V4: one byte of 1 at byte 300 of the copy in AG 1 (neighbour: zeros)",
    },
];
