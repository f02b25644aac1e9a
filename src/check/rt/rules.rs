//! The rules about the realtime section, as data. They are about walks and comparisons, so the code that walks raises
//! them.

use crate::check::{RuleInfo, raised};

raised! { BITMAP, structure "rtbitmap";
    /// The inode that holds the bitmap (or that of a group) cannot be found or read, or is no file. Kernels refuse the
    /// mount. xfs_repair makes a new one; nothing else says what is free, so copy realtime files first.
    BITMAP_INODE: "rtbitmap-inode-bad" corrupt "inode", "bitmap inode cannot be used",
        source "xfs_rtgroup.c:xfs_rtginode_load", since "2.6";
    /// The file is shorter than the bitmap, or its size is no multiple of the block size. Longer is legal: growing
    /// makes the file longer first. Kernels do not test this at mount; online scrub and repair do.
    BITMAP_SIZE: "rtbitmap-size-wrong" corrupt "core.size", "size of the bitmap file does not fit",
        source "scrub/rtbitmap.c:xchk_rtbitmap", since "scrub";
    /// The bitmap file carries a flag that it must not have: realtime, rtinherit, or newrtbm on another inode.
    BITMAP_FLAGS: "rtbitmap-flags-wrong" corrupt "core.flags", "flags of the bitmap inode make no sense",
        source "scrub/inode.c:xchk_inode_flags", since "scrub";
    /// With the flag newrtbm the access time is a sequence number that spreads files over the section; without it,
    /// it is a time, and the kernel starts the sequence anew. mkfs sets the flag.
    BITMAP_SEQUENCE: "rtbitmap-no-sequence" warning "core.newrtbm", "access time of the bitmap inode is no sequence number",
        source "xfs_rtbitmap.c:xfs_rtpick_extent", since "2.6";
    /// A block of the bitmap is missing from its file. The first allocation or free that needs it fails: null pointer
    /// oops on 2.6.37 to 3.7 with some AG sizes, an I/O error before 4.18, EFSCORRUPTED since. Growing the section on
    /// kernels before 5.10 left such files. xfs_repair rebuilds bitmap and summary.
    BITMAP_HOLE: "rtbitmap-hole" corrupt "u3.bmx", "hole in the bitmap file",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "4.18";
    /// A block of the bitmap is allocated but was never written.
    BITMAP_UNWRITTEN: "rtbitmap-unwritten" corrupt "u3.bmx", "unwritten extent in the bitmap file",
        source "scrub/rtbitmap.c:xchk_rtbitmap_check_extents", since "4.18";
    /// A block of the bitmap lies outside the AGs: kernels before 3.8 look it up in an AG that does not exist and may
    /// oops; since 4.17 the inode is refused at mount.
    BITMAP_OUTSIDE: "rtbitmap-block-outside" corrupt "u3.bmx.startblock", "block of the bitmap outside the data section",
        source "xfs_bmap.c:xfs_bmap_validate_extent", since "4.17";
    /// The file has blocks behind its end.
    BITMAP_BEYOND: "rtbitmap-mapped-beyond-size" corrupt "u3.bmx.startoff", "bitmap file has blocks behind its end",
        source "scrub/rtbitmap.c:xchk_rtbitmap_check_extents", since "scrub";
    /// A block of the bitmap could not be read, so part of the section is not judged.
    BITMAP_UNREADABLE: "rtbitmap-unreadable" incomplete "bytes", "block of the bitmap cannot be read",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "2.6";
    /// With realtime groups each block begins with BMPZ.
    BITMAP_MAGIC: "rtbitmap-bad-magic" corrupt "magicnum", "no block of a bitmap",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify", since "6.13";
    /// Bytes of the block changed after it was written.
    BITMAP_CRC: "rtbitmap-bad-crc" corrupt "crc", "checksum of a bitmap block does not match",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify_read", since "6.13";
    /// The block says it belongs to another inode.
    BITMAP_OWNER: "rtbitmap-bad-owner" corrupt "owner", "bitmap block of another inode",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "6.13";
    /// The block says it lies elsewhere.
    BITMAP_BLKNO: "rtbitmap-bad-blkno" corrupt "bno", "bitmap block of another place",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify", since "6.13";
    /// The block belongs to another file system.
    BITMAP_UUID: "rtbitmap-bad-uuid" corrupt "uuid", "bitmap block of another file system",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify", since "6.13";
    /// Bits behind the last extent are set. The allocator never looks at them, but growing the section would take them for
    /// free extents. mkfs and kernels leave them clear; xfs_repair clears them.
    BITMAP_TAIL: "rtbitmap-tail-bits" xcorrupt "rtwords", "bits are set behind the last realtime extent",
        source "xfs_repair rt.c:check_rtbitmap", since "none";
    /// The superblock and the bitmap count different free extents: df is wrong, and writing may fail with ENOSPC too
    /// early or too late. xfs_repair recounts; kernels since 5.19 do so after a crash.
    FREE_COUNT: "rtbitmap-free-count" xcorrupt "frextents", "free realtime extents: superblock and bitmap differ",
        source "scrub/fscounters.c:xchk_fscounters; xfs_repair phase5", since "5.19";
    /// An extent is marked free though a file owns it: the next allocation gives it to a second file, and one of the
    /// two loses its content. Do not write; xfs_repair rebuilds the bitmap from the files.
    FREE_BUT_USED: "rtbitmap-free-but-used" xcorrupt "rtwords", "extent is marked free, but it is in use",
        source "scrub/rtbitmap.c; xfs_repair rt.c", since "scrub";
    /// An extent is marked used, but no file owns it: the space is lost until xfs_repair rebuilds the bitmap.
    USED_BUT_UNOWNED: "rtbitmap-used-but-unowned" xcorrupt "rtwords", "extent is marked used, but nothing owns it",
        source "scrub/rtbitmap.c:xchk_rtbitmap_rec; xfs_repair rt.c", since "scrub";
    /// Some inodes or extent maps could not be read: extents that nothing seems to own may be theirs.
    NOT_COMPARED: "rtbitmap-owners-unknown" xfailed "rtwords", "lost extents were not looked for, since some owners are unreadable",
        source "scrub/common.c:xchk_should_check_xref", since "scrub";
}

raised! { SUMMARY, structure "rtsummary";
    /// As rtbitmap-inode-bad, for the summary.
    SUMMARY_INODE: "rtsummary-inode-bad" corrupt "inode", "summary inode cannot be used",
        source "xfs_rtgroup.c:xfs_rtginode_load", since "2.6";
    /// The file is shorter than the summary, or its size is no multiple of the block size. mkfs before 6.8 took the
    /// number of levels from the low 32 bits of the extents.
    SUMMARY_SIZE: "rtsummary-size-wrong" corrupt "core.size", "size of the summary file does not fit",
        source "scrub/rtsummary.c:xchk_rtsummary", since "scrub";
    /// As rtbitmap-flags-wrong.
    SUMMARY_FLAGS: "rtsummary-flags-wrong" corrupt "core.flags", "flags of the summary inode make no sense",
        source "scrub/inode.c:xchk_inode_flags", since "scrub";
    /// As rtbitmap-hole.
    SUMMARY_HOLE: "rtsummary-hole" corrupt "u3.bmx", "hole in the summary file",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "4.18";
    /// As rtbitmap-unwritten.
    SUMMARY_UNWRITTEN: "rtsummary-unwritten" corrupt "u3.bmx", "unwritten extent in the summary file",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "4.18";
    /// As rtbitmap-block-outside.
    SUMMARY_OUTSIDE: "rtsummary-block-outside" corrupt "u3.bmx.startblock", "block of the summary outside the data section",
        source "xfs_bmap.c:xfs_bmap_validate_extent", since "4.17";
    /// The file has blocks behind its end.
    SUMMARY_BEYOND: "rtsummary-mapped-beyond-size" corrupt "u3.bmx.startoff", "summary file has blocks behind its end",
        source "scrub/rtbitmap.c:xchk_rtbitmap_check_extents", since "scrub";
    /// A block of the summary could not be read.
    SUMMARY_UNREADABLE: "rtsummary-unreadable" incomplete "bytes", "block of the summary cannot be read",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "2.6";
    /// With realtime groups each block begins with SUMY.
    SUMMARY_MAGIC: "rtsummary-bad-magic" corrupt "magicnum", "no block of a summary",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify", since "6.13";
    /// Bytes of the block changed after it was written.
    SUMMARY_CRC: "rtsummary-bad-crc" corrupt "crc", "checksum of a summary block does not match",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify_read", since "6.13";
    /// The block says it belongs to another inode.
    SUMMARY_OWNER: "rtsummary-bad-owner" corrupt "owner", "summary block of another inode",
        source "xfs_rtbitmap.c:xfs_rtbuf_get", since "6.13";
    /// The block says it lies elsewhere.
    SUMMARY_BLKNO: "rtsummary-bad-blkno" corrupt "bno", "summary block of another place",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify", since "6.13";
    /// The block belongs to another file system.
    SUMMARY_UUID: "rtsummary-bad-uuid" corrupt "uuid", "summary block of another file system",
        source "xfs_rtbitmap.c:xfs_rtbuf_verify", since "6.13";
    /// A count says something else than the bitmap. The allocator believes the summary: too low hides free space
    /// (ENOSPC), too high makes it search in vain. A count that only has free runs in bits behind the last extent in it
    /// is no fault. xfs_repair rebuilds it.
    SUMMARY_DIFFERS: "rtsummary-mismatch" xcorrupt "suminfo", "summary does not say what the bitmap says",
        source "scrub/rtsummary.c:xchk_rtsum_compare", since "scrub";
    /// Words behind the last counter of the summary are not zero. Nothing reads them until the section grows.
    SUMMARY_TAIL: "rtsummary-tail-words" xcorrupt "suminfo", "words are set behind the last counter of the summary",
        source "xfs_repair rt.c:check_rtsummary", since "none";
    /// Bitmap or summary are not wholly readable, so they were not compared.
    SUMMARY_NOT_COMPARED: "rtsummary-not-compared" xfailed "suminfo", "summary and bitmap were not compared",
        source "scrub/rtsummary.c:xchk_rtsummary", since "scrub";
}

raised! { FILE, structure "rtfile";
    /// A file has the realtime flag, but the file system has no realtime section: kernels refuse the inode
    /// (EFSCORRUPTED). Its extents lie on the data device if they are valid at all. xfs_repair clears the inode and
    /// drops its name: copy the content out first.
    FLAG_WITHOUT_SECTION: "rtfile-without-section" corrupt "core.realtime", "realtime flag without a realtime section",
        source "xfs_inode_buf.c:xfs_dinode_verify", since "2.6";
    /// Only regular files are realtime files.
    FLAG_NOT_REGULAR: "rtfile-not-regular" corrupt "core.realtime", "realtime flag on something that is no regular file",
        source "scrub/inode.c:xchk_inode_flags", since "scrub";
    /// The filestream allocator is one for the data section. Kernels let a user set both flags and open such a file all the
    /// same; only online scrub calls it corrupt.
    FLAG_FILESTREAM: "rtfile-filestream" warning "core.filestream", "filestream flag on a realtime file",
        source "scrub/inode.c:xchk_inode_flags", since "scrub";
    /// Only directories hand the realtime flag down.
    INHERIT_NOT_DIRECTORY: "rtfile-rtinherit-no-directory" corrupt "core.rtinherit", "rtinherit on something that is no directory",
        source "scrub/inode.c:xchk_inode_flags", since "scrub";
    /// New files in this directory would become realtime files, but there is no realtime section: kernels before 4.14
    /// oops in fsync of such a file (CVE-2017-14340), kernels before 5.10 make files that cannot be opened later.
    INHERIT_WITHOUT_SECTION: "rtfile-rtinherit-without-section" warning "core.rtinherit", "directory hands down realtime without a realtime section",
        source "xfs_inode.c:xfs_ialloc before 5.10", since "5.10";
    /// New realtime files in this directory get a hint that their own check refuses: kernels 4.18 to 5.12 shut down.
    INHERIT_EXTSIZE: "rtfile-inherited-extsize-misfit" warning "core.extsize", "hint handed down is no multiple of the realtime extent",
        source "xfs_inode_buf.c:xfs_inode_validate_extsize", since "none";
    /// The hint of a realtime file must be a multiple of the realtime extent; kernels since 4.18 refuse the inode.
    EXTSIZE: "rtfile-extsize-misfit" corrupt "core.extsize", "extent size hint is no multiple of the realtime extent",
        source "xfs_inode_buf.c:xfs_inode_validate_extsize", since "4.18";
    /// As rtfile-extsize-misfit, for copies on write.
    COWEXTSIZE: "rtfile-cowextsize-misfit" corrupt "v3.cowextsize", "copy-on-write hint is no multiple of the realtime extent",
        source "xfs_inode_buf.c:xfs_inode_validate_cowextsize", since "6.14";
    /// Realtime files share extents only with realtime groups and reflink; otherwise kernels refuse the inode.
    SHARED_FLAG: "rtfile-shared-flag" corrupt "v3.reflink", "shared flag on a realtime file that cannot share",
        source "xfs_inode_buf.c:xfs_dinode_verify", since "4.11";
    /// An extent of no length.
    EMPTY: "rtfile-extent-empty" corrupt "u3.bmx.blockcount", "extent without blocks",
        source "xfs_types.c:xfs_verify_rtbext", since "4.17";
    /// The extent is not wholly within the section (or its group). Kernels since 4.17 refuse the inode; older ones walk
    /// past the bitmap when it is freed (null pointer oops on 2.6.37 to 3.7).
    OUTSIDE: "rtfile-extent-beyond-section" corrupt "u3.bmx.startblock", "extent of a realtime file outside the section",
        source "xfs_bmap.c:xfs_bmap_validate_extent, xfs_types.c:xfs_verify_rtbext", since "4.17";
    /// Extents of a file come in ascending order and do not overlap.
    ORDER: "rtfile-extent-order" corrupt "u3.bmx.startoff", "extents overlap or are out of order",
        source "scrub/bmap.c:xchk_bmap_iextent; xfs_bmap.c:xfs_iread_bmbt_block", since "4.17";
    /// Offset in the file and place in the section must have the same position within a realtime extent. Freeing such an
    /// extent frees the wrong one, or shuts the file system down.
    UNALIGNED: "rtfile-extent-not-aligned" corrupt "u3.bmx.startblock", "extent does not fit the realtime extents",
        source "xfs_bmap.c:xfs_bunmapi, xfs_bmap_util.c:xfs_bmap_rtalloc", since "none";
    /// Part of a realtime extent is mapped, and the rest of it by nothing: allocation is by whole extents, so a record
    /// is too short, or lost.
    PARTIAL: "rtfile-extent-partial" corrupt "u3.bmx.blockcount", "only part of a realtime extent is mapped",
        source "xfs_bmap.c:xfs_bunmapi", since "none";
    /// Two files, or two places of one file, own the same realtime blocks. One of them has lost its content.
    /// xfs_repair keeps the first it meets and clears the other: copy both.
    DOUBLY_USED: "rtfile-doubly-used" xcorrupt "u3.bmx.startblock", "realtime extent is owned twice",
        source "xfs_repair rt.c; scrub/bmap.c:xchk_bmap_xref_rmap", since "scrub";
    /// The inode, or its extent map, could not be read wholly.
    UNREADABLE: "rtfile-unreadable" incomplete "inode", "inode or extent map could not be looked at",
        source "scrub/common.c:xchk_process_error", since "scrub";
    /// An inode or a block of a map is damaged.
    DAMAGED: "rtfile-inode-damaged" corrupt "inode", "inode or extent map is damaged",
        source "xfs_inode_buf.c:xfs_dinode_verify, xfs_btree.c:xfs_btree_lblock_verify", since "3.10";
}

raised! { GROUP, structure "rtgroup";
    /// A group lacks one of its files in the metadata directory. Kernels refuse the mount.
    GROUP_FILE: "rtgroup-file-missing" corrupt "path", "file of a realtime group is missing or damaged",
        source "xfs_rtgroup.c:xfs_rtginode_load", since "6.13";
    /// The file is of another kind than its name says.
    GROUP_TYPE: "rtgroup-file-kind" corrupt "core.metatype", "file of a realtime group is of another kind",
        source "xfs_metafile.c:xfs_trans_metafile_iget", since "6.13";
    /// The file says it belongs to another group.
    GROUP_NUMBER: "rtgroup-file-number" corrupt "core.projid", "file belongs to another realtime group",
        source "xfs_rtgroup.c:xfs_rtginode_load", since "6.13";
    /// The blocks in use that the inode of a zone counts are not those of its reverse mappings. Garbage collection
    /// chooses zones by this count.
    ZONE_USED: "rtgroup-zone-used-count" xcorrupt "v3.used_blocks", "blocks in use of a zone are miscounted",
        source "xfs_zone_alloc.c:xfs_init_zone, xfs_zone_record_blocks", since "6.15";
    /// More blocks in use than a zone has: kernels refuse the inode.
    ZONE_FULLER: "rtgroup-zone-used-beyond" corrupt "v3.used_blocks", "more blocks in use than a zone has",
        source "xfs_inode_buf.c:xfs_dinode_verify", since "6.15";
}

raised! { RMAP, structure "rtrmap";
    /// A block of the btree is damaged or unreachable.
    RMAP_BLOCK: "rtrmap-block-damaged" corrupt "block", "block of the realtime rmap btree is damaged",
        source "xfs_rtrmap_btree.c:xfs_rtrmapbt_verify", since "6.14";
    /// The record makes no sense: length 0, outside the group, an owner that cannot be, flags that do not exist here.
    RMAP_RECORD: "rtrmap-record-invalid" corrupt "recs", "record of the realtime rmap btree makes no sense",
        source "xfs_rmap.c:xfs_rtrmap_check_irec", since "6.14";
    /// Records must be in order.
    RMAP_ORDER: "rtrmap-order" corrupt "recs", "records of the realtime rmap btree are out of order",
        source "xfs_rtrmap_btree.c:xfs_rtrmapbt_recs_inorder", since "6.14";
    /// Two records of one owner that follow each other, in the file and in the section, are one: kernels join them.
    RMAP_TOUCH: "rtrmap-mappings-touch" corrupt "recs", "mappings touch and should be one",
        source "scrub/rtrmap.c:xchk_rtrmapbt_check_mergeable", since "scrub";
    /// A file owns blocks that the btree does not give it.
    RMAP_LACKS: "rtrmap-lacks-mapping" xcorrupt "recs", "mapping of a file is missing in the realtime rmap btree",
        source "scrub/bmap.c:xchk_bmap_xref_rmap", since "scrub";
    /// The btree gives blocks to an owner that does not have them.
    RMAP_EXTRA: "rtrmap-extra-mapping" xcorrupt "recs", "realtime rmap btree has a mapping that no file has",
        source "scrub/rtrmap.c; xfs_repair rmap.c", since "scrub";
}

raised! { REFCOUNT, structure "rtrefcount";
    /// A block of the btree is damaged or unreachable.
    REFC_BLOCK: "rtrefcount-block-damaged" corrupt "block", "block of the realtime refcount btree is damaged",
        source "xfs_rtrefcount_btree.c:xfs_rtrefcountbt_verify", since "6.14";
    /// The record makes no sense: length 0, outside the group, count 0, or a staging extent with another count than 1.
    REFC_RECORD: "rtrefcount-record-invalid" corrupt "recs", "record of the realtime refcount btree makes no sense",
        source "xfs_refcount.c:xfs_rtrefcount_check_irec", since "6.14";
    /// Records must be in order and must not overlap.
    REFC_ORDER: "rtrefcount-order" corrupt "recs", "records of the realtime refcount btree are out of order",
        source "xfs_rtrefcount_btree.c:xfs_rtrefcountbt_recs_inorder", since "6.14";
    /// Two records with one count that follow each other are one: kernels join them.
    REFC_TOUCH: "rtrefcount-extents-touch" corrupt "recs", "shared extents touch and should be one",
        source "scrub/rtrefcount.c:xchk_rtrefcountbt_check_mergeable", since "scrub";
    /// Blocks that several files own are not counted so: a write to one of them changes the others.
    REFC_LACKS: "rtrefcount-lacks-shared" xcorrupt "recs", "shared realtime blocks are not counted as such",
        source "scrub/rtrefcount.c:xchk_rtrefcountbt_xref_rmap", since "scrub";
    /// Blocks are counted as shared that so many files do not own.
    REFC_EXTRA: "rtrefcount-extra-shared" xcorrupt "recs", "realtime blocks are counted as shared that are not",
        source "scrub/rtrefcount.c:xchk_rtrefcountbt_xref_rmap", since "scrub";
}

raised! { SUPER, structure "rtsb";
    /// The first block of the realtime device is no realtime superblock: it is another device, or was overwritten.
    /// Kernels refuse the mount.
    RTSB_MAGIC: "rtsb-bad-magic" corrupt "magicnum", "no realtime superblock on this device",
        source "xfs_sb.c:xfs_rtsb_verify_common", since "6.13";
    /// Bytes of the block changed after it was written.
    RTSB_CRC: "rtsb-bad-crc" corrupt "crc", "checksum of the realtime superblock does not match",
        source "xfs_sb.c:xfs_rtsb_read_verify", since "6.13";
    /// Its superblock is sound and carries neither UUID of this file system. Kernels refuse the mount. Nothing on the device is
    /// this file system's: find the right one before anything else.
    DEVICE_OTHER: "rtdev-of-another-fs" corrupt "uuid", "realtime device of another file system",
        source "xfs_rtgroup.c:xfs_rtsb_verify_all", since "6.13";
    /// The UUID that users see differs from the superblock's, while the one that metadata carries is the same: this is the
    /// device, but its superblock was left out when the UUID was changed (xfs_admin -U without it), or is damaged. Kernels refuse
    /// the mount; xfs_repair writes it again.
    RTSB_UUID: "rtsb-wrong-uuid" corrupt "uuid", "the realtime superblock has another UUID",
        source "xfs_rtgroup.c:xfs_rtsb_verify_all", since "6.13";
    /// As rtsb-wrong-uuid, for the identity that metadata carries.
    RTSB_META_UUID: "rtsb-wrong-meta-uuid" corrupt "meta_uuid", "the realtime superblock has another metadata UUID",
        source "xfs_rtgroup.c:xfs_rtsb_verify_all", since "6.13";
    /// The label differs from the superblock's.
    RTSB_LABEL: "rtsb-wrong-label" corrupt "fname", "label of the realtime device differs",
        source "xfs_sb.c:xfs_rtsb_verify_all", since "6.13";
    /// What follows the fields must be zeros.
    RTSB_PADDING: "rtsb-padding" corrupt "pad", "padding of the realtime superblock is not zero",
        source "xfs_sb.c:xfs_rtsb_verify_common", since "6.13";
}

raised! { DEVICE, structure "rtdev";
    /// The realtime device is shorter than the section: kernels read its last block at mount, and refuse (EIO).
    DEVICE_SHORT: "rtdev-too-short" corrupt "rblocks", "realtime device is too short",
        source "xfs_rtalloc.c:xfs_rt_check_size", since "2.6";
    /// Another file system, partition table or array begins on it. A realtime section without groups has nothing of its
    /// own there, so only this tells that it may be the wrong device.
    DEVICE_FOREIGN: "rtdev-holds-something-else" warning "bytes", "the realtime device begins with something else",
        source "none: a guess", since "none";
    /// The superblock has no realtime section, or one on the data device (zoned), so the device is not used. With a section on
    /// the data device the mount option rtdev= is refused.
    DEVICE_UNUSED: "rtdev-not-needed" warning "rblocks", "a realtime device was given, but none is needed",
        source "xfs_super.c:xfs_open_devices", since "2.6";
}

/// All of them.
pub const ALL: [&[RuleInfo]; 8] = [BITMAP, SUMMARY, FILE, GROUP, RMAP, REFCOUNT, SUPER, DEVICE];

/// Rules about single inodes that [`check`](crate::check::check) has under other names, for inodes of every kind: only a
/// look at the realtime section alone raises these.
pub const OF_INODES: [&RuleInfo; 10] = [
    FLAG_NOT_REGULAR,
    INHERIT_NOT_DIRECTORY,
    EXTSIZE,
    COWEXTSIZE,
    SHARED_FLAG,
    EMPTY,
    OUTSIDE,
    ORDER,
    UNREADABLE,
    DAMAGED,
];

/// Rules about files of the section that cannot be found or used: what follows where a directory on the way to them, or
/// their inode, is damaged.
pub const NOT_FOUND: [&RuleInfo; 3] = [BITMAP_INODE, SUMMARY_INODE, GROUP_FILE];
