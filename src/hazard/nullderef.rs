//! The null dereference in the buffer lookup of kernels 2.6.37 to 3.7: `_xfs_buf_find` takes the AG of a disk address,
//! finds no such AG, and locks a spinlock at address zero.
//!
//! Realtime files are what reaches it: every allocation and free in the realtime section looks up blocks of the bitmap
//! and summary inodes through `xfs_rtbuf_get`, and a hole or garbage there becomes an absurd block number. The size
//! of the realtime section against that of the data section plays no part, nor do stripe unit, width or extent size.

use super::kernel::{ALWAYS, NEVER, since, v, v26};
use super::{About, Answer, Confidence, Facts, Kernel, Modes, Row, crash, danger, effect, note, refuse};
use super::{Effect, Severity};

/// What a lookup of a block number does in kernels 2.6.37 to 3.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// AG number as shifted out of the block number, cut to 32 bits.
    pub agno: u32,
    /// Block within the AG.
    pub agbno: u64,
    /// AG number that comes back from the disk address, cut to 32 bits again.
    pub agno_effective: u32,
    /// There is no such AG: null pointer dereference. Otherwise the read goes past the end, or into foreign blocks.
    pub oops: bool,
}

/// The lookup of block number `fsb`, with the two 32-bit truncations that the kernel has (`XFS_FSB_TO_DADDR`,
/// `xfs_daddr_to_agno`); `None` where agblklog or agblocks make it impossible.
pub fn lookup(fsb: u64, agblklog: u8, agblocks: u32, agcount: u32) -> Option<Lookup> {
    let mask = 1u64.checked_shl(agblklog.into())?.checked_sub(1)?;
    let low = |n: u64| u32::try_from(n & u64::from(u32::MAX)).unwrap_or(0);
    let agno = low(fsb.checked_shr(agblklog.into())?);
    let agbno = fsb & mask;
    let linear = u64::from(agno).checked_mul(u64::from(agblocks))?.checked_add(agbno)?;
    let agno_effective = low(linear.checked_div(u64::from(agblocks))?);
    Some(Lookup { agno, agbno, agno_effective, oops: agno_effective >= agcount })
}

/// Does recovery of the log look up blocks outside the AGs?
fn waiting(f: &Facts) -> Answer {
    match (f.log, &f.deep) {
        (super::LogState::Clean, _) => Answer::No,
        (_, None) => Answer::Unknown("not looked at yet: what waits in the log decides".into()),
        (_, Some(deep)) => deep.log_outside.answer(deep.log_unread.as_deref()),
    }
}

/// `HOLESTARTBLOCK`, what 3.2 and later take for a hole.
const HOLE: u64 = u64::MAX - 1;
/// `NULLFSBLOCK`, what 3.1 and earlier take for a hole.
const NULL: u64 = u64::MAX;

/// Does a hole in the bitmap oops on that kernel, with these AGs?
fn hole_oops(f: &Facts, kernel: &Kernel) -> bool {
    let fsb = if kernel.version < v(3, 2) { NULL } else { HOLE };
    lookup(fsb, f.sb.agblklog, f.sb.agblocks, f.sb.agcount.0).is_some_and(|l| l.oops)
}

/// Is the last extent known to be in use?
fn latent(f: &Facts, _: &Kernel) -> bool {
    f.deep.as_ref().is_some_and(|deep| deep.tail == Some(0))
}

/// Armed or latent: whether the last extent is free.
fn tail(f: &Facts) -> String {
    match f.deep.as_ref().map(|deep| deep.tail) {
        Some(Some(0)) => "; latent: the last extent is in use, deleting what lies there arms it".to_owned(),
        Some(Some(n)) => {
            format!("; armed: the last {n} extents are free, a request for more than is left there reaches the end")
        }
        Some(None) => "; armed or latent is not known: the end of the bitmap cannot be read".to_owned(),
        None => String::new(),
    }
}

fn bitmap_end(f: &Facts) -> Answer {
    let (bits, extents) = (f.bits_per_block(), f.sb.rextents.0);
    let exact = f.classic_rt() && extents > 0 && extents.checked_rem(bits) == Some(0);
    f.at(exact, "rextents", || {
        let unit = bits.saturating_mul(f.rt_extent_bytes());
        let hole = |fsb| match lookup(fsb, f.sb.agblklog, f.sb.agblocks, f.sb.agcount.0) {
            Some(l) if l.oops => format!("AG {} of {}: oops", l.agno_effective, f.sb.agcount),
            Some(l) => format!("AG {}: an I/O error", l.agno_effective),
            None => "no AG".to_owned(),
        };
        format!(
            "rextents {extents} is a multiple of 8 x blocksize = {bits}: the section is {} times {} and the bitmap has no \
             spare bit; the block behind it resolves to {} (2.6.37 to 3.1) and {} (3.2 to 3.7)",
            extents.checked_div(bits).unwrap_or(0),
            crate::hazard::geometry::size(unit),
            hole(NULL),
            hole(HOLE)
        ) + &tail(f)
    })
}

const END_FIXED_EARLY: &[super::Stable] = &[since(4, 4, 241), since(4, 9, 241), since(4, 14, 203)];
const END_FIXED: &[super::Stable] = &[since(4, 19, 153), since(5, 4, 73), since(5, 8, 17), since(5, 9, 2)];
const LATENT: &str = "latent: the last extent is in use; once the file that ends there is deleted, a request that reaches the end oopses or fails";
const OOPS: &str = "the block behind the bitmap is looked up in an AG that does not exist: null pointer oops in _xfs_buf_find, the machine stops writing";
const EIO: &str = "the block behind the bitmap is read past the end of the device: EIO to the writer, shutdown if the transaction had changed something";

/// Why rows that need more than the superblock are open.
pub(super) const NEEDS_RT_INODES: &str =
    "not looked at yet: the extents of the realtime bitmap and summary inodes decide";
const NEEDS_EXTENTS: &str = "not looked at yet: the extents of every file decide";

/// The answer of a condition on the inodes of bitmaps and summaries.
pub(super) fn rt_inodes(f: &Facts, which: impl FnOnce(&super::Deep) -> &super::Met) -> Answer {
    if f.rt() && !f.features.has_zoned() { f.deep(NEEDS_RT_INODES, which) } else { Answer::No }
}

const FILE_BEYOND: &[Effect] = &[
    danger(
        v26(37),
        v(3, 8),
        "freeing it walks past the bitmap: null pointer oops in _xfs_buf_find or EIO, as rt-bitmap-end-scan",
    )
    .fixed(&[since(3, 7, 6)]),
    danger(ALWAYS, v(4, 17), "freeing it walks past the bitmap: EIO or EFSCORRUPTED, shutdown"),
    danger(v(4, 17), NEVER, "the inode fails its checks: EFSCORRUPTED, the file cannot be read"),
];

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "rt-uninitialised-nmap",
        refs: "P0, RT-00",
        about: About::Kernel,
        title: "realtime section on a kernel that passes an uninitialised count to the bitmap lookup",
        test: |f| {
            let there = |ino: crate::units::Ino| f.copy || (!ino.is_null() && ino.0 != 0);
            let fires = f.classic_rt() && there(f.sb.rbmino) && there(f.sb.rsumino);
            f.at(fires, "rblocks", || {
                format!(
                    "realtime section of {} blocks, {} extents of {}; bitmap in inode {}, summary in inode {}",
                    f.sb.rblocks,
                    f.sb.rextents,
                    crate::hazard::geometry::size(f.rt_extent_bytes()),
                    f.sb.rbmino,
                    f.sb.rsumino
                )
            })
        },
        effects: &[
            crash(
                v(3, 2),
                v(3, 6),
                Modes::RW,
                "an unlinked realtime file waits in the dirty log: recovery of a read-write mount frees it and may oops in _xfs_buf_find (null pointer); ro works",
            )
            .only(|f, _| f.log != super::LogState::Clean && f.deep.as_ref().is_some_and(|deep| deep.orphan.is_met())),
            danger(
            v(3, 2),
            v(3, 6),
            "any write, fallocate, truncate or delete of a realtime file may oops in _xfs_buf_find (null pointer, spinlock), fail with EIO, or change a foreign block as if it were bitmap; reading and a plain ro mount do not",
            ),
        ],
        explanation: "xfs_rtbuf_get asks for the disk block of a bitmap or summary block with a count that nobody set. If the \
            stack holds zero or less there, the mapping loop never runs and the mapping stays stack garbage: its block number \
            leads to an AG that does not exist (oops), to a place past the device (EIO), or to some block of this file system, \
            which is then changed as if it were bitmap. It depends on what the stack held, so: may, not will. No layout \
            protects from it. No 3.2.y release seen (to 3.2.71) and no 3.4.y release seen (to 3.4.112) has the fix; of 3.5.y \
            only 3.5.0 was seen, later ones are counted as affected, and 3.3.y lies between two affected ones.",
        advice: "Do not write realtime files on this kernel. The first good one is 3.6; 3.8 also refuses wrong block numbers \
            instead of crashing. Mounted read-only the section can be read.",
        source: "fs/xfs/xfs_rtalloc.c:xfs_rtbuf_get in 3.2.7, 3.2.71, 3.4.112, 3.5.0 (no initial value) against 3.6.0 (int nmap = 1); 3.0.101 and 3.1 use another helper; seen on 3.2.23, 3.4.4, 3.5.0 (81 of 81 writes or frees, 3 of 3 mounts with an unlinked file), never on 2.6.37 or 3.1",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 -r rtdev=R,extsize=64k D (neighbour: the same without -r)",
    },
    Row {
        id: "rt-bitmap-end-scan",
        refs: "P1, RT-12",
        about: About::Kernel,
        title: "the realtime bitmap fills its last block exactly",
        test: bitmap_end,
        effects: &[
            note(ALWAYS, v(4, 18), LATENT).fixed(END_FIXED_EARLY).only(latent),
            note(v(4, 18), v(5, 10), LATENT).fixed(END_FIXED).only(latent),
            danger(v26(37), v(3, 8), OOPS).fixed(&[since(3, 7, 6)]).only(hole_oops),
            danger(v26(37), v(3, 8), EIO).fixed(&[since(3, 7, 6)]),
            danger(ALWAYS, v26(37), "the block behind the bitmap is read as block -1: EIO to the writer"),
            danger(v(3, 8), v(4, 18), "the lookup of the block behind the bitmap is refused: EIO or ENOMEM to the writer, shutdown if the transaction had changed something")
                .fixed(END_FIXED_EARLY)
                .also(&[since(3, 7, 6)]),
            danger(v(4, 18), v(5, 10), "the block behind the bitmap is noticed as a hole: EFSCORRUPTED to the writer, shutdown if the transaction had changed something").fixed(END_FIXED),
        ],
        explanation: "The realtime allocator does not shorten a request to the end of the section: while it checks the last run of \
            free extents it fetches the next bitmap block, and when the number of extents is a multiple of the bits in a \
            block there is none. It takes a request for more than one realtime extent that begins in that last run (direct \
            writes, fallocate, an extent size hint; up to 3.4 buffered writes, too), and the last extent must be free (armed); while \
            it is in use (latent), deleting the file at the end arms it. Even armed it says can, not will.",
        advice: "Use 5.10 or later (or a stable release with the fix); or make the section at least one extent longer or \
            shorter, so that it is no multiple of 8 x blocksize x extent size.",
        source: "fs/xfs/xfs_rtalloc.c:xfs_rtcheck_range, xfs_rtallocate_extent_block (3.2.71, 2.6.36, 4.17.0, 4.19.40); fixed by 2a6ca4baed62 (5.10); stable releases from changelogs and review rounds; seen on 2.6.37 to 3.7.2 (oops or EIO by AG size), 3.8 and 4.4 (ENOMEM), 4.19 (EUCLEAN)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 -d agsize=256m -r rtdev=<128 MiB>,extsize=4k D: 32768 extents (neighbour: 132 MiB, 33792)",
    },
    Row {
        id: "rt-first-allocation-deadlock",
        refs: "L1",
        about: About::Kernel,
        title: "realtime section on a kernel that locks the bitmap inode twice",
        test: |f| f.at(f.classic_rt(), "rblocks", || format!("realtime section of {} blocks", f.sb.rblocks)),
        effects: &[danger(v26(36), v26(39), "the first direct write or reservation (resvsp, fallocate) of a new realtime file hangs for ever; buffered writes do not")],
        explanation: "The place of a new file is picked with the bitmap inode locked, which the allocation has locked before.",
        advice: "Use 2.6.39 or later.",
        source: "898621d5a72 (brings it), 04e99455ea5b (2.6.39); seen on 2.6.36, 2.6.37, 2.6.38, not on 2.6.39 and 3.1",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m crc=0 -r rtdev=R D (neighbour: without -r)",
    },
    Row {
        id: "rt-free-deadlock",
        refs: "L2",
        about: About::Kernel,
        title: "a realtime file of two or more extents on a kernel that locks the bitmap inode for each",
        test: |f| if f.classic_rt() { f.deep(NEEDS_EXTENTS, |deep| &deep.pieces) } else { Answer::No },
        effects: &[danger(v26(36), v(3, 4), "unlink, truncate or punch of that file hangs for ever (3.3 was not tried)")],
        explanation: "Each freed extent locks the bitmap inode again within one transaction. Files of one extent are freed well.",
        advice: "Do not delete or truncate realtime files on this kernel; 3.4 has the mend.",
        source: "xfs_rtalloc.c:xfs_rtfree_extent; seen on 2.6.36 to 3.2.23, not on 3.6.0 and later",
        confidence: Confidence::Confirmed,
        fire: "a realtime file with a hole between two written pieces",
    },
    Row {
        id: "agcount-too-small",
        refs: "P9, G-08",
        about: About::Kernel,
        title: "fewer AGs than the data section needs",
        test: |f| {
            let right = f.sb.dblocks.0.div_ceil(u64::from(f.sb.agblocks).max(1));
            let short = f.sb.agblocks > 0 && u64::from(f.sb.agcount.0) < right;
            f.at(short, "agcount", || format!("agcount is {}, dblocks {} need {right} of {} blocks", f.sb.agcount, f.sb.dblocks, f.sb.agblocks))
        },
        effects: &[refuse(ALWAYS, NEVER, "\"SB sanity check failed\", EFSCORRUPTED (Structure needs cleaning)")],
        explanation: "Any block in a missing AG would be looked up in an AG that does not exist, and kernels before 4.16 have no \
            test of agcount against dblocks as such. But every release read, from 2.6.32 on, refuses dblocks beyond agcount x \
            agblocks at mount, so that null dereference can only be reached when the superblock changes under log recovery \
            (dirty-log-beyond-eofs).",
        advice: "xfs_repair takes the geometry of a good copy; compare show TARGET sb 1.",
        source: "xfs_mount.c:xfs_mount_validate_sb (XFS_MAX_DBLOCKS) in 2.6.32 to 4.15, xfs_sb.c:xfs_validate_sb_common since; seen on 2.6.37 to 4.19: all refuse",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d agcount 3' on agcount 4 (neighbour: 4)",
    },
    Row {
        id: "rt-inode-fork-hole",
        refs: "P2, RT-13",
        about: About::Kernel,
        title: "hole in the realtime bitmap or summary file",
        test: |f| rt_inodes(f, |deep| &deep.rt_hole),
        effects: &[
            danger(v26(37), v(3, 8), OOPS_HOLE).fixed(&[since(3, 7, 6)]).only(hole_oops),
            danger(ALWAYS, v(4, 18), "the missing block is read past the end of the device or refused: EIO to whoever allocates or frees realtime space"),
            danger(v(4, 18), v(5, 19), "EFSCORRUPTED on the first use of the missing block, shutdown"),
            danger(v(5, 19), NEVER, "EFSCORRUPTED on the first use of the missing block; after a crash, and with norecovery, the mount itself fails, since free extents are then counted in the bitmap"),
        ],
        explanation: "A bitmap or summary file that has fewer blocks than the superblock says: growing the section and unmounting on \
            a kernel before 5.10 (5.9.5) cut both files back. The first allocation or free that needs the missing block fails \
            as a block behind the bitmap does.",
        advice: "xfs_repair rebuilds bitmap and summary. Do not grow a realtime section on kernels before 5.10.",
        source: "xfs_rtalloc.c:xfs_rtbuf_get; f4c32e87de7d (5.10, 5.9.5; in 4.9.337, 4.19.222, 5.4.286); mounts run on 5.10, 6.1, 6.12, 7.2; oops seen on 3.1, 3.2.23, 3.6.0",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'addr rbmino' -c 'write -d u3.bmx[0].blockcount 1' where it was 2 (neighbour: untouched)",
    },
    Row {
        id: "rt-inode-block-outside",
        refs: "P3",
        about: About::Kernel,
        title: "the realtime bitmap or summary file has a block outside the data section",
        test: |f| rt_inodes(f, |deep| &deep.rt_outside),
        effects: &[
            danger(v26(37), v(3, 8), "null pointer oops in _xfs_buf_find where the block number leads to an AG that does not exist").fixed(&[since(3, 7, 6)]),
            danger(ALWAYS, v(4, 17), "the block cannot be read: EIO to whoever allocates or frees realtime space"),
            refuse(v(4, 17), NEVER, "the inode fails its checks when it is loaded at mount: EFSCORRUPTED"),
        ],
        explanation: "A damaged extent of the bitmap or summary inode leads outside the AGs; see rt-uninitialised-nmap for the lookup.",
        advice: "xfs_repair rebuilds both files.",
        source: "xfs_rtalloc.c:xfs_rtbuf_get; xfs_bmap.c:xfs_bmap_validate_extent (4.16.13 lacks it, 4.17.0 has it); run on four kernels; oops seen on 3.1, 3.2.23, 3.6.0",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'addr rbmino' -c 'write -d u3.bmx[0].startblock 2621440' (neighbour: untouched)",
    },
    Row {
        id: "rt-file-extent-outside",
        refs: "P5",
        about: About::Kernel,
        title: "a realtime file has an extent beyond the section",
        test: |f| if f.rt() { f.deep(NEEDS_EXTENTS, |deep| &deep.file_outside) } else { Answer::No },
        effects: FILE_BEYOND,
        explanation: "Truncating or deleting such a file walks the bitmap beyond its end, as rt-bitmap-end-scan does.",
        advice: "xfs_repair; copy the file first, reading it is safe.",
        source: "xfs_rtalloc.c:xfs_rtfree_range; xfs_bmap.c:xfs_bmap_validate_extent (4.17.0)",
        confidence: Confidence::Inferred,
        fire: "xfs_db -x: inode of a realtime file, write -d u3.bmx[0].startblock beyond rblocks",
    },
    Row {
        id: "metadata-block-outside",
        refs: "P6",
        about: About::Kernel,
        title: "a directory, attribute, symlink or quota block lies outside the AGs",
        test: |f| f.deep(NEEDS_EXTENTS, |deep| &deep.metadata_outside),
        effects: &OUTSIDE,
        explanation: "Looking up a name, an attribute or a quota record follows the extent of its inode; outside the AGs it meets the \
            same missing AG as rt-uninitialised-nmap.",
        advice: "Run check; xfs_repair junks what it cannot place. Do not touch the directory on a kernel before 3.7.6.",
        source: "eb178619f930 (3.8, 3.7.6; not in 3.2.71, 3.4.112), CVE-2013-1819; xfs_bmap.c:xfs_bmap_validate_extent (4.17.0)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: inode of a directory, write -d u3.bmx[0].startblock outside agcount << agblklog",
    },
    Row {
        id: "metadata-block-hole",
        refs: "P6",
        about: About::Kernel,
        title: "a symbolic link or an attribute value lacks a block",
        test: |f| f.deep(NEEDS_EXTENTS, |deep| &deep.metadata_hole),
        effects: &[
            danger(v26(37), v(3, 8), "readlink or getxattr looks the missing block up in an AG that does not exist: null pointer oops in _xfs_buf_find")
                .fixed(&[since(3, 7, 6)])
                .only(hole_oops),
            danger(ALWAYS, v(3, 8), "the missing block is read past the end of the device: EIO to readlink or getxattr"),
            danger(v(3, 8), NEVER, "the lookup of the missing block is refused: EIO or EFSCORRUPTED to readlink or getxattr"),
        ],
        explanation: "Long link targets and large attribute values lie in blocks of their own, and kernels take the map for complete there: \
            only an assertion guards it. Directories and attribute leaves are looked at first (EFSCORRUPTED), quota files allocate what is missing.",
        advice: "Run check; xfs_repair removes the link or the attribute. Do not read them on a kernel before 3.7.6.",
        source: "xfs_vnodeops.c:xfs_readlink_bmap, xfs_attr.c:xfs_attr_rmtval_get (3.6.0), xfs_attr_remote.c, xfs_symlink_remote.c (7.2)",
        confidence: Confidence::Inferred,
        fire: "xfs_db -x: inode of a link of more than 500 bytes, write -d u3.bmx[0].startoff 1",
    },
    Row {
        id: "btree-pointer-outside",
        refs: "P7",
        about: About::Kernel,
        title: "a btree pointer leads outside its AG",
        test: |f| f.deep("not looked at yet: the blocks of the btrees decide", |deep| &deep.pointer_outside),
        effects: &OUTSIDE,
        explanation: "As metadata-block-outside, for the blocks of free space, inode and extent btrees.",
        advice: "Run check; xfs_repair rebuilds the btrees.",
        source: "eb178619f930 (3.8, 3.7.6); xfs_btree.c:xfs_btree_check_ptr",
        confidence: Confidence::Inferred,
        fire: "xfs_db -x: fsblock of a bnobt root, write -d ptrs[1] beyond the AG",
    },
    Row {
        id: "dirty-log-beyond-eofs",
        refs: "P8, G-24",
        about: About::Kernel,
        title: "the log holds changes of blocks beyond the data section (grown, then crashed)",
        test: waiting,
        effects: &[
            crash(v26(37), v(3, 8), Modes::RECOVERING, "null pointer oops during log recovery at mount").fixed(&[since(3, 7, 6)]),
            effect(ALWAYS, v(6, 12), Severity::Refuse, Modes::RECOVERING, "log recovery fails, the mount is refused; norecovery works"),
        ],
        explanation: "growfs raises agcount in the log before the superblock on disk says so. After a crash recovery looks up blocks of \
            AGs that the superblock does not know yet; since 6.12 it takes the new geometry as soon as it has replayed it. The \
            fix is in 6.12, and in later stable releases of 6.6, number unknown (not in 6.6.63). Seen on 6.1: the first mount fails, \
            but has written the superblock, so that the next one recovers the log.",
        advice: "Mount with 6.12 or later to recover the log.",
        source: "6a18765b54e2 (6.12; absent in 6.10.0, 6.6.63, 6.1.192); xfs_log_recover.c:xlog_recover_do_primary_sb_buffer; run on 6.1 and 7.2; oops seen on 3.1, 3.2.23, 3.6.0, rw and ro; ENOMEM on 4.4, 4.19",
        confidence: Confidence::Confirmed,
        fire: "testimages/recipes/grown.py: grow, then stop with everything in the log",
    },
];

const OOPS_HOLE: &str =
    "the missing block is looked up in an AG that does not exist: null pointer oops in _xfs_buf_find";

const OUTSIDE: [Effect; 3] = [
    danger(
        v26(37),
        v(3, 8),
        "null pointer oops in _xfs_buf_find where the block number leads to an AG that does not exist",
    )
    .fixed(&[since(3, 7, 6)]),
    danger(
        ALWAYS,
        v(4, 17),
        "the block cannot be read: EIO or ENOMEM, shutdown if the transaction had changed something",
    ),
    danger(v(4, 17), NEVER, "the inode or block fails its checks: EFSCORRUPTED, its contents cannot be reached"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of exact values that the arithmetic of the kernel gives, for the two values that stand for a hole:
    /// agblocks, agblklog, AG for -2, AG for -1.
    #[test]
    fn holes_by_ag_size() {
        for (agblocks, agblklog, hole, null) in [
            (65536u32, 16u8, u32::MAX, u32::MAX),
            (65535, 16, u32::MAX, 0),
            ((1 << 28) - 1, 28, u32::MAX, 0),
            (7_380_047, 23, 0, 0),
            (61440, 16, 0, 0),
            (32769, 16, 0, 0),
        ] {
            let ag = |fsb| lookup(fsb, agblklog, agblocks, 32).expect("possible").agno_effective;
            assert_eq!((ag(HOLE), ag(NULL)), (hole, null), "agblocks {agblocks}");
        }
    }

    #[test]
    fn the_geometry_of_the_recorder() {
        let hole = lookup(HOLE, 23, 7_380_047, 32).expect("possible");
        assert_eq!((hole.agno, hole.agbno, hole.agno_effective, hole.oops), (u32::MAX, 8_388_606, 0, false));
        // Garbage whose AG number lies in 32..0xfffffffe does.
        assert!(lookup(32 << 23, 23, 7_380_047, 32).expect("possible").oops);
        assert!(!lookup((31 << 23) + 7_380_046, 23, 7_380_047, 32).expect("possible").oops);
    }

    #[test]
    fn impossible_ag_sizes_give_no_answer() {
        assert_eq!(lookup(1, 64, 4096, 4), None);
        assert_eq!(lookup(1, 12, 0, 4), None);
        assert_eq!(lookup(u64::MAX, 255, u32::MAX, u32::MAX), None);
        // 2^28 blocks of any size fit 64 bits.
        assert!(lookup(u64::MAX, 32, u32::MAX, 1).is_some());
    }
}
