//! What a check does not cover, and why: for docs/checks.md. The lists it is measured by are the kernel's scrub with the
//! verifiers (`scrub/`, `xfs_*.c`) and xfs_repair (`repair/`).

/// What is not checked though the kernel's scrub or xfs_repair has it: source, what, reason.
pub const NOT_COVERED: &[(&str, &str, &str)] = &[
    ("scrub/agheader.c:xchk_agf, xchk_agi", "the counters in memory", "there is no mount"),
    (
        "scrub/agheader.c:xchk_agi",
        "more inodes than the AG has numbers for",
        "agi-count-mismatch says how many there are; where the inode btree is damaged, that is said",
    ),
    (
        "scrub/agheader.c:xchk_superblock",
        "preen: inode numbers that a copy does not have; bits attr, nlink, quota and attr2 of a copy",
        "mkfs.xfs and the kernel write them to the primary alone, so nearly every file system has it; nobody reads them \
         from a copy",
    ),
    (
        "scrub/attr.c:xchk_xattr_block",
        "preen: the mark that a leaf has holes; a free space of length 0 that has a place",
        "both are usual once attributes were removed, and nothing depends on them",
    ),
    (
        "scrub/attr.c:xchk_xattr_actor; scrub/dir.c:xchk_dir_actor",
        "looking each name up through the kernel",
        "follows from hashes, their order, the tree over them and the addresses, which have rules of their own",
    ),
    (
        "scrub/bmap.c:xchk_bmap_iext_iter",
        "preen: extents that touch and could be one",
        "usual in files that were written piece by piece; the kernel does not join them, either",
    ),
    (
        "scrub/bmap.c:xchk_bmap_cow, xchk_bmap_iextent_delalloc",
        "the fork for copies on write, delayed allocations",
        "they are in memory alone; what is left of them on disk is refcntbt-leftover-cow",
    ),
    (
        "scrub/common.c, scrub/health.c",
        "forks that a repair under way has emptied, marks of sickness",
        "in memory alone",
    ),
    (
        "scrub/dirtree.c:xchk_dirpath_step_up; scrub/parent.c:xchk_parent_validate",
        "`..` of directories without links",
        "kernels before 5.14 leave there what was right when the directory was removed",
    ),
    (
        "scrub/fscounters.c:xchk_fscounters",
        "delayed allocations, reservations of AGs in memory, negative counters",
        "there is no mount; after an unmount they are 0",
    ),
    (
        "scrub/inode.c:xchk_dinode",
        "warning: a size beyond what the system can open",
        "that is 2^63 - 1 on 64 bits; what is greater is inode-bad-size",
    ),
    (
        "scrub/nlinks.c:xchk_nlinks_compare_inode",
        "warning: more than 2^31 - 1 links",
        "so many entries cannot be counted in any time; a field of that size is inode-nlink-mismatch",
    ),
    (
        "scrub/metapath.c:xchk_metapath",
        "that the files in memory are those that their paths lead to",
        "there is no mount; files are looked up by their paths (rtgroup-file-missing, rtgroup-file-kind, metafile-other-type)",
    ),
    (
        "scrub/quota.c:xchk_quota_item",
        "corrupt: a soft limit without a hard limit",
        "setting one is allowed (xfs_qm_syscalls.c:xfs_setqlim), and the limit is sound",
    ),
    (
        "scrub/quota.c:xchk_quota_item",
        "warning: an inode limit above what imax_pct allows",
        "imax_pct can be raised at any time",
    ),
    (
        "scrub/quotacheck.c:xqcheck_compare_dqtype",
        "quotas that are on but were not counted (flags without chkd)",
        "the next mount counts them; usage is compared where it was counted",
    ),
    ("scrub/*_repair.c, scrub/tempfile.c, scrub/orphanage.c", "rebuilding", "nothing is ever written"),
    ("scrub/readdir.c, scrub/stats.c", "what the running kernel would answer", "there is no mount"),
    (
        "xfs_dir2_sf.c:xfs_dir2_sf_verify; xfs_dir2_data.c:__xfs_dir3_data_check",
        "the file type of an entry whose inode is damaged",
        "the damage is said of the inode",
    ),
    (
        "xfs_sb.c:xfs_validate_sb_write",
        "counters of the superblock out of bounds, where AGs are damaged",
        "they are compared with what was counted, and nothing can be counted in a damaged AG",
    ),
    (
        "xfs_log_recover.c, xfs_*_item_recover.c",
        "the contents of the items that wait in a dirty log, and intents",
        "which places they name is read, and what recovery cannot take is said; what would stand there is not",
    ),
    (
        "repair/attr_repair.c:valuecheck",
        "values named SGI_MAC_FILE; names that only begin with SGI_CAP_FILE",
        "labels of IRIX, which no Linux kernel reads; and a mistake of the comparison there",
    ),
    (
        "repair/dinode.c:process_bmbt_reclist_int",
        "extents behind the largest offset of a file",
        "xfs_repair of 7.2 does not look any more, and kernels read them",
    ),
    ("repair/sb.c:find_secondary_sb", "a geometry that fits no superblock", "xfs_repair guesses, check does not"),
    (
        "repair/scan.c:scan_inobt (uncertain inodes), repair/dino_chunks.c:process_uncertain_aginodes",
        "inodes that no inode btree knows, found by reading all blocks",
        "only a repair needs them, to save files; the damage of the btree is said",
    ),
    (
        "repair/versions.c:update_sb_version",
        "bits of qflags that mean nothing",
        "xfs_repair of 7.2 does not notice them, and kernels do not read them",
    ),
    (
        "repair/xfs_repair.c:guess_correct_sunit, check_fs_vs_host_sectsize",
        "a stripe unit by which the root inode would be where it is; the sectors of the host",
        "guesses, and not of the file system",
    ),
];

/// Rules whose class is not that of scrub: id, what scrub and xfs_repair say, reason.
pub const OTHER_CLASS: &[(&str, &str, &str)] = &[
    ("agi-unlinked-not-empty", "scrub silent, xfs_repair -n exits 1", "what xfs_repair notices is damage here"),
    (
        "inode-bad-extsize",
        "scrub warning for hints handed down, xfs_repair -n exits 1",
        "what xfs_repair notices is damage here",
    ),
    (
        "inode-bad-flags2",
        "scrub warning for unknown flags, xfs_repair -n exits 1",
        "what xfs_repair notices is damage here",
    ),
    ("inode-flag-without-shared", "scrub preen, xfs_repair -n silent", "as in scrub"),
    ("refcntbt-leftover-cow", "scrub silent, xfs_repair -n exits 1", "what xfs_repair notices is damage here"),
    (
        "rtfile-filestream",
        "scrub corrupt, xfs_repair -n silent",
        "kernels make such files themselves, in a directory with both flags (xfs_inode_util.c:xfs_inode_inherit_flags)",
    ),
];

/// Fields of which every value is legal, or every value within the bounds of a rule: structure, fields, reason.
pub const ANY_VALUE: &[(&str, &str, &str)] = &[
    (
        "sb",
        "fname, uuid (with meta_uuid, and the same in the log), imax_pct up to 100, unused bits of qflags",
        "set by whoever made or tuned the file system",
    ),
    (
        "sb, agf, agi, agfl, btrees, inodes, dquots",
        "lsn up to the head of the log",
        "any write in the past may have been the last",
    ),
    ("agf, agi", "spare fields behind the last", "no kernel reads them, and none tests them"),
    ("agi", "newino, dirino within the AG", "hints of where to look first"),
    ("agfl", "slots that are not in use, within the AG", "what stood there before stays"),
    ("inode", "permissions in mode, uid, gid, projid", "set by users; quotas follow them"),
    (
        "inode",
        "atime, mtime, ctime, crtime, changecount, gen",
        "clocks and counters; gen is also in parent pointers, where there are any",
    ),
    ("inode", "size of a regular file", "blocks may lie behind the end, and holes before it"),
    ("inode", "flags that go with the kind of file, extsize and cowextsize within their bounds", "set by users"),
    (
        "inode",
        "rdev of devices; dmevmask, dmstate and flushiter outside the metadata directory; padding",
        "no kernel tests them",
    ),
    (
        "bmbt, extents in the inode",
        "startoff that keeps the order, unwritten mark, without rmapbt",
        "nothing else says where in the file a block belongs",
    ),
    (
        "bmbt, extents in the inode",
        "startblock of two files exchanged, without rmapbt",
        "both then have the other's content, once each",
    ),
    (
        "dir",
        "hash of stale index entries, bytes of unused space, order of names",
        "nobody reads them, or any order will do",
    ),
    ("dir", "a name, with hash and parent pointer to match", "any name is one"),
    ("attr", "values, but for access control lists and capabilities; bytes between names", "any bytes are a value"),
    ("symlink", "the target, without zeros", "any target is one"),
    ("dquot", "limits, warnings, grace times, the time of a timer that runs", "set by users, or clocks"),
    ("content of files", "all of it", "there is no checksum"),
    ("log", "blocks behind the last record, in a clean log all of them", "they are overwritten"),
];
