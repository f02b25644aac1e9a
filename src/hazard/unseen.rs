//! Rows that the superblock and the AG headers do not decide: they need inodes, extents or directories, or no image
//! decides them at all. Where those were not looked at they answer so, or say why, never that all is well.
//!
//! To decide one, give [`super::Deep`] what its walk found and test that here.

use super::deep::{Deep, Met};
use super::iget::{At, Failed};
use super::kernel::{ALWAYS, NEVER, by, since, v};
use super::nullderef::rt_inodes;
use super::{About, Answer, Confidence, Evidence, Facts, Kernel, Modes, Row, danger, note, refuse};

const INODES: &str = "not looked at yet: every inode decides";
const DIRECTORIES: &str = "not looked at yet: the directories decide";

fn unless(decided: bool, why: &str) -> Answer {
    if decided { Answer::No } else { Answer::Unknown(why.into()) }
}
fn rt_files(f: &Facts, which: impl FnOnce(&super::Deep) -> &super::Met) -> Answer {
    if f.rt() { f.deep(INODES, which) } else { Answer::No }
}

/// One is enough, whatever else could not be looked at.
fn mount_inode(f: &Facts, which: fn(&Deep) -> &Met) -> Answer {
    match &f.deep {
        None => Answer::Unknown(LOADED.into()),
        Some(deep) if which(deep).is_met() => f.deep(LOADED, which),
        Some(_) => Answer::No,
    }
}

const LOADED: &str = "not looked at yet: the inodes of the root directory and of metadata decide";

/// Tests that inodes of a mount fail, each with its releases.
fn refused(f: &Facts, moment: At) -> Answer {
    let Some(deep) = &f.deep else { return Answer::Unknown(LOADED.into()) };
    let mut all: Vec<String> = Vec::new();
    let mut place = None;
    for (failed, at) in deep.refused.iter().filter(|(failed, _)| failed.test.at == moment) {
        let Failed { test, mismatch, .. } = failed;
        let text = format!(
            "{}: {}: {} is {}, expected {} ({})",
            at.structure,
            test.what,
            test.field,
            mismatch.found,
            mismatch.expected,
            failed.releases()
        );
        place.get_or_insert_with(|| at.clone().field(test.field));
        if !all.contains(&text) {
            all.push(text);
        }
    }
    let more = all.len().saturating_sub(MOST_NAMED);
    all.truncate(MOST_NAMED);
    match place {
        None => Answer::No,
        Some(_) => {
            let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
            Answer::Yes(Evidence { text: format!("{}{rest}", all.join("; ")), place })
        }
    }
}

/// Does that kernel refuse one of them?
fn refuses(f: &Facts, kernel: &Kernel, moment: At) -> bool {
    let of =
        |deep: &Deep| deep.refused.iter().any(|(failed, _)| failed.test.at == moment && failed.covers(kernel.version));
    f.deep.as_ref().is_none_or(of)
}

/// Failed tests that are named one by one.
const MOST_NAMED: usize = 4;

fn root_record(f: &Facts) -> Answer {
    let root = (f.sb.agblklog > 0 || f.sb.inopblog > 0)
        .then(|| u32::from(f.sb.agblklog).saturating_add(u32::from(f.sb.inopblog)));
    let ag = root.and_then(|log| f.sb.rootino.0.checked_shr(log)).unwrap_or(0);
    let headers = f.headers.as_ref().ok();
    let bad = headers.and_then(|h| h.agi.iter().find(|fault| fault.place.structure == format!("agi {ag}")));
    match bad {
        Some(fault) => {
            let text = format!("{}: {}", fault.place.structure, fault.text);
            Answer::Yes(Evidence { text, place: Some(fault.place.clone()) })
        }
        None => mount_inode(f, |deep| &deep.root_record),
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "rt-flag-without-device",
        refs: "RT-06, C34",
        about: About::Kernel,
        title: "a realtime file, but no realtime section",
        test: |f| if f.rt() { Answer::No } else { f.deep(INODES, |deep| &deep.flag_without_section) },
        effects: &[danger(ALWAYS, NEVER, "mounts; the file cannot be opened: EFSCORRUPTED (Structure needs cleaning)")],
        explanation: "An inode with the realtime flag on a file system without the section fails its checks when it is loaded. The null dereference \
            of CVE-2017-14340 cannot come from such an inode, only from a flag that a directory hands down (rtinherit-without-rt).",
        advice: "xfs_repair clears the inode: copy its extents first (they lie on the data device if they are valid at all).",
        source: "xfs_inode.c:xfs_iformat (2.6.36), xfs_inode_buf.c:xfs_dinode_verify (7.2); run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: an inode, write -d core.realtime 1, without a section",
    },
    Row {
        id: "rtinherit-without-rt",
        refs: "RT-05",
        about: About::Kernel,
        title: "a directory hands down the realtime flag, but there is no realtime section",
        test: |f| if f.rt() { Answer::No } else { f.deep(DIRECTORIES, |deep| &deep.inherit_without_section) },
        effects: &[
            danger(
                ALWAYS,
                v(4, 14),
                "a new file in that directory becomes realtime, and fsync of it oopses (null pointer)",
            )
            .fixed(&[since(4, 13, 2), by(4, 4, 155), by(4, 9, 337)]),
            danger(
                ALWAYS,
                v(5, 10),
                "a new file in that directory becomes realtime, and after the next mount it cannot be opened (EFSCORRUPTED): its data is lost",
            ),
        ],
        explanation: "New files take the flag from their directory without a look at whether there is a realtime section, until 5.10. Any user who may \
            set the flag on a directory can cause it, so kernels before 4.14 are at risk with every file system.",
        advice: "Clear the flag: xfs_io -c 'chattr -t' DIRECTORY.",
        source: "b31ff3cdf540 (4.14, 4.13.2), CVE-2017-14340; xfs_inode.c:xfs_ialloc (5.9.1 sets it always, 5.10.223 asks)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -d rtinherit=1 without -r rtdev=",
    },
    Row {
        id: "rt-inode-size",
        refs: "RT-14",
        about: About::Kernel,
        title: "size of the bitmap or summary inode",
        test: |f| rt_inodes(f, |deep| &deep.rt_size),
        effects: &[note(ALWAYS, NEVER, "mounts; scrub and repair complain")],
        explanation: "The sizes are not tested at mount.",
        advice: "xfs_repair.",
        source: "xfs_rtalloc.c:xfs_rtmount_inodes (7.2)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: addr rbmino, write -d core.size 0",
    },
    Row {
        id: "rt-extsize-inherit",
        refs: "RT-18",
        about: About::Kernel,
        title: "a directory hands down an extent size that is no multiple of the realtime extent",
        test: |f| if f.rt() { f.deep(DIRECTORIES, |deep| &deep.inherit_extsize) } else { Answer::No },
        effects: &[danger(v(4, 18), v(5, 13), "a new realtime file gets a hint that its own check refuses: shutdown")],
        explanation: "The check of hints came with 4.18; from 5.13 on a hint that does not fit is not handed down. 5.10.y is affected as far as seen \
            (5.10.223). The root directory may get such a hint when the section is grown, until 6.11 (6.1.142).",
        advice: "Clear the hint: xfs_io -c 'extsize 0' DIRECTORY.",
        source: "603f000b15f2, 6b69e485894b, a24cae8fc1f1; xfs_inode.c in 5.10.223, 5.15.135",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: addr rootino, write -d core.rtinherit 1, core.extszinherit 1, core.extsize 3 with rextsize 16",
    },
    Row {
        id: "rt-file-extsize",
        refs: "RT-19",
        about: About::Kernel,
        title: "a realtime file with an extent size hint that is no multiple of the realtime extent",
        test: |f| rt_files(f, |deep| &deep.file_extsize),
        effects: &[
            danger(v(4, 18), NEVER, "the file cannot be opened: EFSCORRUPTED"),
            note(ALWAYS, v(4, 18), "tolerated"),
        ],
        explanation: "The inode check of 4.18 and later refuses such a hint.",
        advice: "Copy the file on a kernel before 4.18, or xfs_repair.",
        source: "7d71a671a2d9; xfs_inode_buf.c (4.17.0 no, 4.19.40 yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: a realtime file, write -d core.extsize 3 with rextsize 16",
    },
    Row {
        id: "rt-reflinked-file",
        refs: "RT-20",
        about: About::Kernel,
        title: "a realtime file with the shared flag",
        test: |f| rt_files(f, |deep| &deep.shared_flag),
        effects: &[danger(
            v(4, 9),
            NEVER,
            "the file cannot be opened: EFSCORRUPTED (6.14 and later take it with realtime groups and shared extents)",
        )],
        explanation: "Realtime files cannot share extents without realtime groups.",
        advice: "xfs_repair.",
        source: "xfs_inode_buf.c:xfs_dinode_verify (4.9.45, 7.2)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: a realtime file, write -d v3.reflink 1",
    },
    Row {
        id: "rt-extent-unaligned",
        refs: "RT-27",
        about: About::Kernel,
        title: "a realtime file with an extent that does not begin at a realtime extent",
        test: |f| rt_files(f, |deep| &deep.unaligned),
        effects: &[note(
            ALWAYS,
            NEVER,
            "freeing it may free the wrong realtime extent or shut the file system down; not run",
        )],
        explanation: "Only a split between written and unwritten may lie inside a realtime extent.",
        advice: "Run check; copy the file.",
        source: "comments of xfs_bmap.c:xfs_bunmapi (3.6.0)",
        confidence: Confidence::Reported,
        fire: "xfs_db -x: a realtime file, write -d u3.bmx[0].startblock one more with rextsize 16",
    },
    Row {
        id: "inode-cluster-bad",
        refs: "C51",
        about: About::Kernel,
        title: "an inode that is read at mount is not there, or one beside it is none",
        test: |f| match mount_inode(f, |deep| &deep.mount_inode) {
            Answer::No => refused(f, At::Cluster),
            answer => answer,
        },
        effects: &[refuse(
            ALWAYS,
            NEVER,
            "the root directory or an inode of the realtime section cannot be read: EFSCORRUPTED, EINVAL or EIO, with norecovery too",
        )
        .only(|f, k| {
            let lost = f.deep.as_ref().is_some_and(|deep| deep.mount_inode.is_met());
            lost || refuses(f, k, At::Cluster)
        })],
        explanation: "At mount the root directory, and the inodes of bitmap and summary or the files of every realtime group are loaded, with \
            norecovery too. Quota inodes are left out here: without them quota is off. Inodes are read in clusters, and one with a wrong magic \
            number, version or unlinked list spoils all of its cluster (before 3.8: the first one alone).",
        advice: "Run check; xfs_repair makes a new root directory.",
        source: "xfs_mount.c:xfs_mountfs, xfs_inode_buf.c:xfs_inode_buf_verify; run on kernels from 2.6.37 to 7.2",
        confidence: Confidence::Confirmed,
        fire: "zeros over the inode cluster of the root directory",
    },
    Row {
        id: "inode-at-mount-invalid",
        refs: "C51",
        about: About::Kernel,
        title: "an inode that is read at mount has fields that cannot be",
        test: |f| refused(f, At::Read),
        effects: &[refuse(ALWAYS, NEVER, "\"Metadata corruption detected at xfs_dinode_verify\", EFSCORRUPTED, with norecovery too")
            .only(|f, k| refuses(f, k, At::Read))],
        explanation: "The same inodes as of inode-cluster-bad. Which fields, and from which release on, is said beside each of them; explain \
            tells it of every rule (explain inode-bad-extsize).",
        advice: "Run check; xfs_repair mends such an inode or makes a new one.",
        source: "xfs_inode_buf.c:xfs_dinode_verify, xfs_inode_fork.c:xfs_iformat_data_fork; run on 5.10, 6.1, 6.12, 7.2 with 1,161 altered \
            inodes",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'inode 129' -c 'write -d core.forkoff 255' (neighbour: 0)",
    },
    Row {
        id: "inode-at-mount-foreign",
        refs: "C51",
        about: About::Kernel,
        title: "an inode that is read at mount is free, or not what the superblock says",
        test: |f| refused(f, At::Mount),
        effects: &[refuse(
            ALWAYS,
            NEVER,
            "the mount does not take the inode for the root directory or a metadata file: EFSCORRUPTED (a free one: ENOENT), with norecovery too",
        )
        .only(|f, k| refuses(f, k, At::Mount))],
        explanation: "Every kernel refuses a free inode, and a root that is no directory. Kernels that know realtime groups (6.13) take a \
            section without groups for group 0, and look at link count, type and project number of its files as at those of any group; older \
            ones mount.",
        advice: "Run check; xfs_repair makes the inodes anew.",
        source: "xfs_icache.c:xfs_iget_check_free_state, xfs_trans_metafile_iget, xfs_rtgroup.c:xfs_rtginode_load; run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'inode 129' -c 'write -d core.projid_lo 1' (neighbour: 0)",
    },
    Row {
        id: "inode-at-mount-unlinked",
        refs: "C51",
        about: About::Kernel,
        title: "the root directory or a metadata inode has no links",
        test: |f| mount_inode(f, |deep| &deep.unlinked),
        effects: &[danger(ALWAYS, NEVER, "mounts; at unmount the inode is freed as an unlinked one: shutdown with a dirty log, or its blocks are lost")],
        explanation: "An inode without links is freed when the last one who uses it lets go, and of the root, bitmap and summary that is the unmount.",
        advice: "Do not mount read-write; run xfs_repair, which counts links.",
        source: "xfs_inode.c:xfs_inactive; the root run on 5.10 and 7.2: each unmount shuts the file system down",
        confidence: Confidence::Inferred,
        fire: "xfs_db -x -c 'inode 128' -c 'write -d core.nlinkv2 0' (neighbour: 2)",
    },
    Row {
        id: "root-inode-record",
        refs: "C51",
        about: About::Kernel,
        title: "the root directory is not found in the inode btree",
        test: root_record,
        effects: &[refuse(v(4, 19), NEVER, "\"Failed to read root inode\", EINVAL or EFSCORRUPTED, with norecovery too")],
        explanation: "Since 4.19 the mount does not trust the number of the root: it reads the AGI of its AG, and looks the inode up in the \
            inode btree, where it must be marked as in use.",
        advice: "Run check; xfs_repair rebuilds the inode btree.",
        source: "xfs_mount.c:xfs_mountfs, xfs_ialloc.c:xfs_imap_lookup; run on 4.19.40, 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'agi 0' -c 'write -d magicnum 0' (neighbour: untouched)",
    },
    Row {
        id: "rt-inode-map-unreadable",
        refs: "C51",
        about: About::Kernel,
        title: "the map of a file of the realtime section cannot be read to its end",
        test: |f| mount_inode(f, |deep| &deep.rt_map),
        effects: &[
            refuse(v(6, 8), NEVER, "\"failed to read RT inodes\", EFSCORRUPTED: the map is read at mount, with norecovery too"),
            danger(ALWAYS, v(6, 8), "mounts; the first allocation or free of realtime space, or the mount's own count of free extents, fails"),
        ],
        explanation: "Bitmap and summary of many extents have their map in a btree. Since 6.8 a mount reads it whole.",
        advice: "Run check; xfs_repair makes the inodes anew.",
        source: "xfs_rtalloc.c:xfs_rtmount_iread_extents (6.12, 7.2; not in 6.1); run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: addr rbmino, write -d core.format 3 with a root that leads nowhere",
    },
    Row {
        id: "rt-bitmap-uncounted",
        refs: "P2, RT-13",
        about: About::Kernel,
        title: "the realtime bitmap lacks a block, mounted without recovery",
        test: |f| rt_inodes(f, |deep| &deep.uncounted),
        effects: &[refuse(v(5, 19), NEVER, "ro,norecovery: free realtime extents are counted in the bitmap, EFSCORRUPTED").modes(Modes::NOREC)],
        explanation: "Without recovery the kernel cannot know that the count of the superblock is right, and goes through the bitmap.",
        advice: "Mount ro where the log is clean, or run xfs_repair.",
        source: "xfs_mount.c:xfs_check_summary_counts, xfs_rtalloc.c:xfs_rtalloc_reinit_frextents; run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x: addr rbmino, write -d u3.bmx[0].startoff 1",
    },
    Row {
        id: "ascii-ci-high-bytes",
        refs: "G-03",
        about: About::Kernel,
        title: "case-insensitive directories with names beyond ASCII",
        test: |f| unless(f.sb.versionnum & 0x4000 == 0, DIRECTORIES),
        effects: &[
            note(
                ALWAYS,
                v(6, 4),
                "such names are hashed otherwise than tools do: a file that xfs_repair \"corrected\" is not found any more",
            ),
            note(v(6, 4), NEVER, "kernel and tools agree on the hash"),
        ],
        explanation: "Kernels before 6.4 fold bytes of 0x80 and more with their own table, xfsprogs before 6.4 with the C library's.",
        advice: "Use names of ASCII only, or 6.4 and later for both.",
        source: "xfs_ascii_ci_xfrm (6.2.1 none, 6.4.6 yes)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -n version=ci and a file name with a byte of 0xe4",
    },
    Row {
        id: "secondary-sb-stale",
        refs: "G-23",
        about: About::Tools,
        title: "counters of superblock copies",
        test: |_| Answer::Unknown("no image decides this: copies are only written when the geometry changes".into()),
        effects: &[note(
            ALWAYS,
            NEVER,
            "counters, quota flags and inprogress of copies differ from the primary's on every file system",
        )],
        explanation: "A tool that compares copies must leave these fields out.",
        advice: "Nothing.",
        source: "xfs_sb.c:xfs_validate_sb_write",
        confidence: Confidence::Confirmed,
        fire: "no image: use the file system",
    },
    Row {
        id: "rootino-not-computed",
        refs: "G-12",
        about: About::Kernel,
        title: "the root inode is not where it would be with another stripe unit",
        test: |_| {
            Answer::Unknown(
                "no image decides this: it matters only when the mount option sunit= gives a new value".into(),
            )
        },
        effects: &[note(
            v(5, 7),
            NEVER,
            "\"Cannot change stripe alignment; would require moving root inode.\": the new value is left out",
        )],
        explanation: "The root inode's place follows from the stripe unit at mkfs, and xfs_repair relies on it. First seen in 5.7, absent in 5.4.",
        advice: "Leave sunit= out.",
        source: "13eaec4b2adf; xfs_mount.c:xfs_check_new_dalign (5.4.0 no, 5.7.14 yes)",
        confidence: Confidence::Confirmed,
        fire: "no image: mount with another sunit=",
    },
    Row {
        id: "removed-mount-options",
        refs: "G-30, C59",
        about: About::Kernel,
        title: "attr2, noattr2, ikeep, noikeep in fstab",
        test: |_| Answer::Unknown("no image decides this: the mount options do".into()),
        effects: &[
            note(
                v(6, 18),
                NEVER,
                "ignored with a warning (6.18.0 and 6.18.1 were not seen: a release candidate refused them)",
            ),
            note(ALWAYS, v(6, 18), "taken; noattr2 with V5 is refused (EINVAL)"),
        ],
        explanation: "The options lost their meaning. Inodes written with noattr2 stay readable.",
        advice: "Take them out of fstab.",
        source: "b9a176e54162 (6.18-rc1) and its follow-up; xfs_super.c in 6.18.2, 7.2",
        confidence: Confidence::Confirmed,
        fire: "no image: mount -o noikeep",
    },
    Row {
        id: "rt-atime-is-sequence",
        refs: "RT-26",
        about: About::Tools,
        title: "access time of the realtime bitmap inode",
        test: |f| rt_inodes(f, |deep| &deep.sequence),
        effects: &[note(ALWAYS, NEVER, "a tool that prints it as a date prints nonsense")],
        explanation: "With the flag newrtbm set, as mkfs sets it, the seconds count realtime files made so far: they spread the files over the section.",
        advice: "Nothing.",
        source: "xfs_rtalloc.c:xfs_rtpick_extent (3.6.0, 7.2.13)",
        confidence: Confidence::Confirmed,
        fire: "any file system with a classic realtime section",
    },
];
