//! Files that the superblock or the metadata directory names: the root directory, bitmap and summary of the realtime
//! section, quota files, files of realtime groups. What makes them what they are, not what stands in them.
//!
//! `xfs_rtmount_inodes` (xfs_rtalloc.c), `xfs_rtginode_load` (xfs_rtgroup.c), `xfs_metafile_iget` (xfs_metafile.c),
//! `xchk_metapath` (scrub/metapath.c); `process_check_sb_inodes`, `process_check_inode_sizes` (xfs_repair).

use super::context::Ctx;
use super::forks::Seen;
use super::inode::Worker;
use super::raised;
use crate::format::dinode::{DinodeCore, DinodeV3, Fork, flags2, fork_format, metatype};
use crate::format::dinode_view::Kind;
use crate::units::Ino;
use crate::walk::Inode;

raised! { RAISED, structure "metafile", fields DinodeCore;
    /// An inode that the superblock names is of another kind: the root of the tree and of the metadata directory are
    /// directories, bitmap, summary and quota files regular files.
    BAD_KIND: "metafile-bad-kind" corrupt mode, "inode that the superblock names is of the wrong kind",
        source "repair/dinode.c:process_check_sb_inodes; xfs_mount.c:xfs_mountfs", since "2.6";
    /// Bitmap and summary have the size that goes with the realtime section. Kernels that find less go past their end.
    BAD_SIZE: "metafile-bad-size" corrupt size, "size of a metadata file",
        source "repair/dinode.c:process_check_inode_sizes; scrub/rtbitmap.c:xchk_rtbitmap; xfs_rtgroup.c:xfs_rtginode_load",
        since "scrub";
    /// Without a realtime section its bitmap and summary are empty.
    NOT_EMPTY: "metafile-not-empty" corrupt nextents, "blocks for a realtime section that is not there",
        source "repair/dinode.c:process_check_sb_inodes", since "none";
    /// Bitmap and summary have blocks for all of their size: the kernel reads a hole as damage.
    HOLE: "metafile-hole" corrupt nextents, "hole in a metadata file",
        source "scrub/rtbitmap.c:xchk_rtbitmap_check_extents; repair/rt.c:check_rtwords", since "scrub";
    /// The root of the metadata directory has the flag of metadata files, and the files in it.
    NOT_METADATA: "metafile-without-flag" corrupt metatype, "metadata root without the flag of metadata files",
        source "xfs_metafile.c:xfs_metafile_iget", since "6.13";
    /// The name of a metadata file in its directory says what it holds, and its type must be the same. Kernels refuse the
    /// mount, or quotas.
    OTHER_TYPE: "metafile-other-type" corrupt metatype, "metadata file is of another type than its name says",
        source "xfs_icache.c:xfs_trans_metafile_iget; repair: discovery of quota inodes in the metadata directory", since "6.13";
    /// The file belongs to a realtime group that is not there: its project number is that of its group.
    BAD_GROUP: "metafile-bad-group" corrupt projid_lo, "file of a realtime group that is not there",
        source "xfs_rtgroup.c:xfs_rtginode_load", since "6.13";
    /// A quota file of the metadata directory belongs to no realtime group: its project number is 0. xfs_repair throws such
    /// a file away, and with it limits and grace times; kernels do not look.
    QUOTA_GROUP: "metafile-quota-of-group" corrupt projid_lo, "quota file with the number of a realtime group",
        source "repair: discovery of quota inodes in the metadata directory", since "none";
    /// Quota and metadata files lie on the data section.
    REALTIME: "metafile-realtime" corrupt flags, "metadata file with the realtime flag",
        source "xfs_inode_buf.c:xfs_dinode_verify_metadir; scrub/common.c:xchk_metadata_inode_forks", since "scrub";
    /// Bitmap, summary and quota files that the superblock names have no attributes.
    ATTRIBUTES: "metafile-with-attributes" corrupt forkoff, "metadata file with attributes",
        source "scrub/common.c:xchk_metadata_inode_forks", since "scrub";
}

raised! { RAISED_V3, structure "metafile", fields DinodeV3;
    /// Metadata files share no blocks.
    SHARED: "metafile-shared" corrupt flags2, "metadata file with the reflink flag",
        source "scrub/common.c:xchk_metadata_inode_forks", since "scrub";
}

/// Inodes that the superblock names, and how large bitmap and summary are.
#[derive(Clone, Debug)]
pub struct Named {
    root: Ino,
    metadir: Option<Ino>,
    bitmap: Option<Ino>,
    summary: Option<Ino>,
    quota: [Option<Ino>; 3],
    bitmap_bytes: u64,
    summary_bytes: u64,
    groups: u32,
    has_realtime: bool,
}

/// Bytes of bitmap and summary (`xfs_rtbitmap_blockcount`, `xfs_rtsummary_blockcount`).
fn sizes(ctx: &Ctx<'_>) -> (u64, u64) {
    // By the extents, not by rextslog: that may be what is wrong.
    let Some(rt) = ctx.geometry().realtime.as_ref() else { return (0, 0) };
    let (size, sizes) = (u64::from(ctx.context().block_size), crate::walk::rt::sizes(ctx.walk, rt));
    (sizes.bitmap_blocks.saturating_mul(size), sizes.summary_blocks.saturating_mul(size))
}

impl Named {
    /// From the superblock.
    pub fn of(ctx: &Ctx<'_>) -> Self {
        let (sb, features) = (ctx.volume().superblock(), &ctx.context().features);
        let some = |ino: Ino| (ino.0 != 0 && !ino.is_null()).then_some(ino);
        let classic = |ino: Ino| if features.has_metadir() { None } else { some(ino) };
        let quota = |ino: Ino| if features.has_quota() { classic(ino) } else { None };
        let (bitmap_bytes, summary_bytes) = sizes(ctx);
        let project = if features.is_v5() { quota(sb.pquotino) } else { None };
        Self {
            root: sb.rootino,
            metadir: features.has_metadir().then_some(sb.metadirino),
            bitmap: classic(sb.rbmino),
            summary: classic(sb.rsumino),
            quota: [quota(sb.uquotino), quota(sb.gquotino), project],
            bitmap_bytes,
            summary_bytes,
            groups: sb.rgcount,
            has_realtime: ctx.geometry().realtime.is_some(),
        }
    }
}

/// Is this one of the files that hold metadata?
pub fn is_metafile(ctx: &Ctx<'_>, inode: Inode<'_>) -> bool {
    if ctx.context().features.has_metadir() {
        return inode.flags2() & flags2::METADATA != 0;
    }
    let sb = ctx.volume().superblock();
    [sb.rbmino, sb.rsumino, sb.uquotino, sb.gquotino, sb.pquotino].contains(&inode.ino)
}

/// Looks at an inode in use.
pub fn check(worker: &Worker<'_>, inode: Inode<'_>, data: Seen) {
    let named = &worker.named;
    let ino = inode.ino;
    let (ctx, some) = (worker.ctx, Some(ino));
    let metadata = inode.flags2() & flags2::METADATA != 0;
    if metadata && named.metadir.is_some() {
        in_metadir(worker, inode, data);
    }
    if ino == named.root || some == named.metadir {
        if inode.kind() != Kind::Directory {
            ctx.raise(BAD_KIND, &worker.spot(inode), inode.kind().name(), "a directory");
        } else if some == named.metadir && !metadata {
            ctx.raise(NOT_METADATA, &worker.spot(inode), "no metadata flag", "the flag");
        }
    } else if some == named.bitmap || some == named.summary {
        let right = if some == named.bitmap { named.bitmap_bytes } else { named.summary_bytes };
        classic(worker, inode, right, data);
    } else if named.quota.contains(&some) {
        quota(worker, inode);
    }
}

fn regular(worker: &Worker<'_>, inode: Inode<'_>) -> bool {
    let ctx = worker.ctx;
    if inode.kind() != Kind::Regular {
        ctx.raise(BAD_KIND, &worker.spot(inode), inode.kind().name(), "a regular file");
    } else if inode.is_realtime() {
        ctx.raise(REALTIME, &worker.spot(inode), "realtime", "not on the realtime section");
    } else {
        if inode.flags2() & flags2::REFLINK != 0 && ctx.context().features.has_reflink() {
            ctx.raise(SHARED, &worker.spot(inode), "reflink", "no reflink flag");
        }
        let empty = inode.format(Fork::Attr) == fork_format::EXTENTS && inode.extents(Fork::Attr) == 0;
        if inode.forkoff() != 0 && !empty && !ctx.context().features.has_metadir() {
            ctx.raise(ATTRIBUTES, &worker.spot(inode), inode.forkoff(), "0");
        }
        return true;
    }
    false
}

/// The file has the right size, and blocks for all of it.
fn whole(worker: &Worker<'_>, inode: Inode<'_>, right: u64, data: Seen) {
    let ctx = worker.ctx;
    let blocks = right.div_ceil(u64::from(ctx.context().block_size).max(1));
    if inode.size().cast_unsigned() != right {
        ctx.raise(BAD_SIZE, &worker.spot(inode), inode.size(), right);
    } else if data.sound && blocks > 0 && (data.holes || data.end < blocks) {
        let found = format!("a hole, or an end at block {}", data.end);
        ctx.raise(HOLE, &worker.spot(inode), found, format_args!("blocks 0 to {}", blocks.saturating_sub(1)));
    }
}

fn classic(worker: &Worker<'_>, inode: Inode<'_>, right: u64, data: Seen) {
    let ctx = worker.ctx;
    if !regular(worker, inode) {
        return;
    }
    whole(worker, inode, right, data);
    if !worker.named.has_realtime && inode.extents(Fork::Data) != 0 {
        ctx.raise(NOT_EMPTY, &worker.spot(inode), inode.extents(Fork::Data), "0 extents");
    }
    // 7.2 loads both without a section, too, as files of group 0. With one, the rules of the section say it.
    if !worker.named.has_realtime && inode.projid() != 0 {
        ctx.raise(BAD_GROUP, &worker.spot(inode), inode.projid(), 0);
    }
}

fn quota(worker: &Worker<'_>, inode: Inode<'_>) {
    if regular(worker, inode) && inode.size() != 0 {
        worker.ctx.raise(BAD_SIZE, &worker.spot(inode), inode.size(), 0);
    }
}

fn in_metadir(worker: &Worker<'_>, inode: Inode<'_>, data: Seen) {
    let (ctx, named) = (worker.ctx, &worker.named);
    let what = inode.metatype().unwrap_or(0);
    if what == metatype::DIR || inode.kind() == Kind::Directory || !regular(worker, inode) {
        return;
    }
    match what {
        metatype::RTBITMAP => whole(worker, inode, named.bitmap_bytes, data),
        metatype::RTSUMMARY => whole(worker, inode, named.summary_bytes, data),
        metatype::USRQUOTA..=metatype::PRJQUOTA => {
            if inode.projid() != 0 {
                ctx.raise(QUOTA_GROUP, &worker.spot(inode), inode.projid(), 0);
            }
            whole(worker, inode, 0, data);
        }
        _ => {}
    }
    let of_group = (metatype::RTBITMAP..=metatype::RTREFCOUNT).contains(&what);
    if of_group && named.has_realtime && inode.projid() >= named.groups {
        let most = named.groups.saturating_sub(1);
        ctx.raise(BAD_GROUP, &worker.spot(inode), inode.projid(), format_args!("0 to {most}"));
    }
}
