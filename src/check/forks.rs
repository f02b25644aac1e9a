//! Forks of inodes: where their extents lie, in which order, how many they are, and the blocks that they take in all.
//! The blocks go to the map of owners. What stands in the blocks is for the file of each kind.
//!
//! `xfs_bmap_validate_extent` (xfs_bmap.c); `xchk_bmap` (scrub/bmap.c), `xchk_inode_xref_bmap` (scrub/inode.c);
//! `process_bmbt_reclist_int`, `process_btinode`, `process_inode_blocks_and_extents` (xfs_repair).

use super::context::Ctx;
use super::finding::{Object, RuleInfo};
use super::inode::Worker;
use super::owners::{Entry, Owner, Within};
use super::{btree, raised};
use crate::format::bmbt::{self, Extent};
use crate::format::btree_block::{Parts, Shape};
use crate::format::dinode::{DinodeCore, Fork, flags2, fork_format, metatype};
use crate::format::dinode_view::Kind;
use crate::format::{rtrefcountbt, rtrmapbt};
use crate::units::{AgNumber, FsBlock, RtBlock};
use crate::volume::Origin;
use crate::walk::Inode;
use crate::walk::btree::Root;
use std::sync::PoisonError;

raised! { EXTENTS, structure "inode";
    /// An extent must lie within one AG, behind its headers, or within the realtime section.
    OUTSIDE: "inode-extent-outside" corrupt "startblock", "extent lies outside the device",
        source "xfs_bmap.c:xfs_bmap_validate_extent; repair/dinode.c:process_bmbt_reclist_int", since "4.17";
    /// Extents stand in the order of the file, and none begins before the one in front of it ends.
    DISORDER: "inode-extents-disordered" corrupt "startoff", "extents out of order or overlapping",
        source "scrub/bmap.c:xchk_bmap_iextent; repair/dinode.c:process_bmbt_reclist_int", since "4.16";
    /// An extent has at least one block. Records of zeros behind the others are a count that is too large.
    EMPTY: "inode-extent-empty" corrupt "blockcount", "extent without blocks",
        source "xfs_bmap.c:xfs_bmap_validate_extent; repair/dinode.c:process_bmbt_reclist_int", since "4.16";
    /// Only regular files have extents that are allocated but not written, and on V4 only with the feature extflg.
    UNWRITTEN: "inode-extent-unwritten" corrupt "extentflag", "unwritten extent where there can be none",
        source "xfs_bmap.c:xfs_bmap_validate_extent; repair/dinode.c:process_bmbt_reclist_int", since "4.16";
    /// Directories have three parts of 32 GiB, attribute forks 2^32 blocks: an extent behind that is never found.
    BEYOND: "inode-extent-beyond" corrupt "startoff", "extent behind the end of what can be in such a fork",
        source "scrub/bmap.c:xchk_bmap_dirattr_extent; repair/phase6.c:longform_dir2_entry_check", since "scrub";
    /// The level of the btree of extents must be one that so many extents can need, and never 0.
    BAD_ROOT_LEVEL: "inode-bmbt-bad-level" corrupt "level", "impossible level in the root of the btree",
        source "xfs_inode_fork.c:xfs_iformat_btree; repair/dinode.c:process_btinode", since "2.6";
    /// The root of a btree in the inode has 1 child at least, and not more than fit into the fork.
    BAD_ROOT_COUNT: "inode-bmbt-bad-numrecs" corrupt "numrecs", "impossible number of records in the root of the btree",
        source "xfs_inode_fork.c:xfs_iformat_btree; repair/dinode.c:process_btinode", since "2.6";
}

raised! { RAISED, structure "inode", fields DinodeCore;
    /// The btree holds another number of extents than the inode says. The kernel reads the whole list before it uses one,
    /// and gives up the file where the numbers differ ("corrupt extents" or an I/O error for every access). xfs_repair
    /// sets the count to what it finds.
    NEXTENTS: "inode-nextents-mismatch" xcorrupt nextents, "number of extents is not what was counted",
        source "xfs_bmap.c:xfs_iread_extents; repair/dinode.c:process_inode_blocks_and_extents", since "2.6";
    /// The btree of the attribute fork holds another number of extents than the inode says.
    ANEXTENTS: "inode-anextents-mismatch" xcorrupt anextents, "number of attribute extents is not what was counted",
        source "xfs_bmap.c:xfs_iread_extents; repair/dinode.c:process_inode_blocks_and_extents", since "2.6";
    /// Blocks of all extents of both forks, and of their btrees. Quota and du take the wrong number.
    NBLOCKS: "inode-nblocks-mismatch" xcorrupt nblocks, "number of blocks is not what was counted",
        source "scrub/inode.c:xchk_inode_xref_bmap; repair/dinode.c:process_inode_blocks_and_extents", since "scrub";
}

raised! { FEATURE, structure "sb", fields crate::format::superblock::Superblock;
    /// The superblock gets the attribute bit together with the first attribute of the file system. Kernels without
    /// attributes would not look for them.
    NO_ATTR_BIT: "sb-attr-bit-missing" corrupt versionnum, "attributes without the attribute bit",
        source "scrub/bmap.c:xchk_bmap", since "scrub";
}

raised! { RAISED_V3, structure "inode", fields crate::format::dinode::DinodeV3;
    /// Blocks of the file are shared with another, but its flag says that they are not: a write would change both.
    SHARED_UNFLAGGED: "inode-shared-without-flag" xcorrupt flags2, "shared blocks in a file without the reflink flag",
        source "scrub/inode.c:xchk_inode_check_reflink_iflag; repair/rmap.c:fix_inode_reflink_flags", since "scrub";
    /// The flag is set, but nothing is shared any more: the kernel asks the refcount btree in vain on each write.
    FLAGGED_UNSHARED: "inode-flag-without-shared" preen flags2, "reflink flag of a file that shares nothing",
        source "scrub/inode.c:xchk_inode_check_reflink_iflag", since "scrub";
}

/// Bit of the version word: there are attributes (`XFS_SB_VERSION_ATTRBIT`).
const ATTR_BIT: u16 = 0x10;

/// What is gathered about a fork.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Extents.
    pub extents: u64,
    /// Blocks of the extents and of the btree.
    pub blocks: u64,
    /// Nothing was found wrong, and everything was read.
    pub sound: bool,
    /// Some block is shared, by the refcount btree.
    pub shared: bool,
    /// The AG whose refcount btree says so.
    pub shared_in: Option<AgNumber>,
    /// Of a realtime file: it is known whether its blocks are shared.
    pub sharing_known: bool,
    /// The extents leave a hole, or do not begin with the file.
    pub holes: bool,
    /// File block behind the last extent.
    pub end: u64,
    ordered_from: u64,
}

/// What both forks are.
#[derive(Clone, Copy, Debug)]
pub struct Forks {
    /// Data fork.
    pub data: Seen,
    /// Attribute fork.
    pub attr: Seen,
}

impl Forks {
    /// Was nothing found wrong with the maps?
    pub fn sound(&self) -> bool {
        self.data.sound && self.attr.sound
    }
}

/// Looks at both forks of an inode in use, whose core allows it.
pub fn check(worker: &mut Worker<'_>, inode: Inode<'_>) -> Forks {
    let ctx = worker.ctx;
    let data = fork(worker, inode, Fork::Data);
    let attr =
        if inode.forkoff() == 0 { Seen { sound: true, ..Seen::default() } } else { fork(worker, inode, Fork::Attr) };
    let forks = Forks { data, attr };
    let version = ctx.context().features.versionnum;
    // The bit may wait in a dirty log, and copies of the superblock do not get it.
    let primary = matches!(ctx.volume().origin(), Origin::Primary);
    let applies = version & ATTR_BIT == 0 && ctx.log.dirty != Some(true) && primary;
    if inode.forkoff() != 0 && applies {
        let mut first = ctx.unannounced.lock().unwrap_or_else(PoisonError::into_inner);
        *first = Some(first.map_or(inode.ino, |first| first.min(inode.ino)));
    }
    if !forks.sound() {
        worker.ctx.owners_unknown();
        return forks;
    }
    let mut counted = true;
    for (rule, of, seen) in [(NEXTENTS, Fork::Data, data), (ANEXTENTS, Fork::Attr, attr)] {
        if inode.format(of) == fork_format::BTREE && inode.extents(of) != seen.extents {
            counted = false;
            worker.ctx.raise(rule, &worker.spot(inode), inode.extents(of), seen.extents);
        }
    }
    let blocks = data.blocks.saturating_add(attr.blocks);
    // A count that does not fit the format was named already, and explains it.
    if blocks != inode.nblocks().0 && counted {
        worker.ctx.raise(NBLOCKS, &worker.spot(inode), inode.nblocks(), blocks);
    }
    if let Some(lacks) = inode.nblocks().0.checked_sub(blocks) {
        worker.ctx.short_of(inode.ino, lacks);
    }
    sharing(worker, inode, data);
    forks
}

/// Says once for all inodes that the superblock does not know of attributes.
pub fn unannounced(ctx: &Ctx<'_>) {
    if let Some(ino) = ctx.unannounced.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let version = ctx.volume().superblock().versionnum;
        let found = format!("{version:#x}, inode {ino} has attributes");
        ctx.raise(NO_ATTR_BIT, &ctx.whole(), found, format_args!("with {ATTR_BIT:#x} (attr)"));
    }
}

fn sharing(worker: &Worker<'_>, inode: Inode<'_>, data: Seen) {
    let ctx = worker.ctx;
    let flagged = inode.flags2() & flags2::REFLINK != 0;
    if flagged == data.shared || !ctx.context().features.has_reflink() {
        return;
    }
    let realtime = inode.is_realtime() && ctx.geometry().realtime.is_some();
    let known = if realtime { data.sharing_known } else { worker.shared_known };
    if data.shared {
        let spot = worker.spot(inode);
        let cause = data.shared_in.map_or(spot.object, |ag| Object::Ag(ag, crate::format::Type::Refcntbt));
        ctx.raise_of(SHARED_UNFLAGGED, &spot, cause, "not set", "set");
    } else if known && !super::metafile::is_metafile(ctx, inode) {
        ctx.raise(FLAGGED_UNSHARED, &worker.spot(inode), "set", "not set");
    }
}

fn fork(worker: &mut Worker<'_>, inode: Inode<'_>, fork: Fork) -> Seen {
    let mut seen = Seen { sound: true, ..Seen::default() };
    let Some(bytes) = inode.fork(fork) else { return seen };
    match inode.format(fork) {
        fork_format::EXTENTS => {
            let count = u32::try_from(inode.extents(fork)).unwrap_or(u32::MAX);
            for record in Parts::new(bytes, 0, 16, count) {
                if let Some(extent) = Extent::at(record, 0) {
                    add(worker, inode, fork, &extent, &mut seen);
                }
            }
        }
        fork_format::BTREE => {
            let shape = if fork == Fork::Data { &bmbt::SHAPE } else { &bmbt::ATTR_SHAPE };
            tree(worker, inode, fork, (bytes, shape), &mut seen);
        }
        fork_format::META_BTREE if fork == Fork::Data => {
            let shape =
                if inode.metatype() == Some(metatype::RTREFCOUNT) { &rtrefcountbt::SHAPE } else { &rtrmapbt::SHAPE };
            tree(worker, inode, fork, (bytes, shape), &mut seen);
        }
        _ => {}
    }
    seen
}

/// Levels that a btree of extents can have (`xfs_bmap_compute_maxlevels`), of the root in the inode.
pub fn most_levels(ctx: &Ctx<'_>, fork: Fork) -> u32 {
    let context = ctx.context();
    let (mut blocks, root): (u64, u64) = match (fork, context.features.has_nrext64()) {
        (Fork::Data, true) => ((1 << 48) - 1, 3),
        (Fork::Data, false) => ((1 << 31) - 1, 3),
        (Fork::Attr, true) => ((1 << 32) - 1, 2),
        (Fork::Attr, false) => ((1 << 15) - 1, 2),
    };
    let (leaf, node) = (bmbt::SHAPE.max_records(context) / 2, bmbt::SHAPE.max_keys(context) / 2);
    blocks = blocks.div_ceil(u64::from(leaf.max(1)));
    let mut levels = 1u32;
    while blocks > 1 && levels < 16 {
        blocks = if blocks <= root { 1 } else { blocks.div_ceil(u64::from(node.max(2))) };
        levels = levels.saturating_add(1);
    }
    levels
}

/// The root in the inode: true where the blocks below it can be looked at.
fn root(worker: &Worker<'_>, inode: Inode<'_>, fork: Fork, (bytes, shape): (&[u8], &'static Shape)) -> Option<bool> {
    let ctx = worker.ctx;
    let spot = || worker.spot(inode).part(format_args!("{} root", shape.kind.name()));
    let root = shape.root(bytes)?;
    let extents = inode.format(fork) == fork_format::BTREE;
    let most = if extents { most_levels(ctx, fork) } else { 9 };
    let level = u32::from(root.level);
    if level > most || (extents && level == 0) {
        ctx.raise(BAD_ROOT_LEVEL, &spot(), level, format_args!("{} to {most}", u8::from(extents)));
        return None;
    }
    let room = if level == 0 { root.max_records } else { root.max_keys };
    if u32::from(root.numrecs) > room || (level > 0 && root.numrecs == 0) {
        ctx.raise(BAD_ROOT_COUNT, &spot(), root.numrecs, format_args!("{} to {room}", u8::from(level > 0)));
        return None;
    }
    Some(level > 0)
}

fn tree(worker: &mut Worker<'_>, inode: Inode<'_>, fork: Fork, fork_root: (&[u8], &'static Shape), seen: &mut Seen) {
    match root(worker, inode, fork, fork_root) {
        None => seen.sound = false,
        Some(false) => {}
        Some(true) => blocks(worker, inode, fork, fork_root, seen),
    }
}

fn blocks(
    worker: &mut Worker<'_>,
    inode: Inode<'_>,
    fork: Fork,
    (bytes, shape): (&[u8], &'static Shape),
    seen: &mut Seen,
) {
    let ctx = worker.ctx;
    let extents = inode.format(fork) == fork_format::BTREE;
    let tree = btree::Tree {
        shape,
        root: Root::Fork { ino: inode.ino, bytes },
        attr: fork == Fork::Attr,
        lenient: fork == Fork::Data && inode.forkoff() != 0,
        object: Object::Inode(inode.ino),
        owner: Owner(inode.ino.0),
    };
    // The map of the thread joins extents that follow each other: the blocks of the btree must not come between.
    let mut nodes = ctx.owners.local();
    let scanned = btree::scan(ctx, &tree, &mut nodes, &mut |leaf| {
        if extents {
            for record in leaf.records() {
                if let Some(extent) = Extent::at(record, 0) {
                    // Their order was looked at by the btree.
                    seen.ordered_from = 0;
                    add(worker, inode, fork, &extent, seen);
                }
            }
        }
        true
    });
    seen.sound &= scanned.is_witness();
    seen.blocks = seen.blocks.saturating_add(scanned.sound_blocks().get().copied().unwrap_or(0));
}

/// An extent of a fork.
fn add(worker: &mut Worker<'_>, inode: Inode<'_>, fork: Fork, extent: &Extent, seen: &mut Seen) {
    let ctx = worker.ctx;
    seen.extents = seen.extents.saturating_add(1);
    seen.blocks = seen.blocks.saturating_add(u64::from(extent.blockcount));
    if extent.blockcount == 0 {
        return wrong(worker, (inode, fork), extent, seen, EMPTY, "at least 1 block");
    }
    if extent.startoff.0 < seen.ordered_from {
        let expected = format!("from file block {} on", seen.end);
        wrong(worker, (inode, fork), extent, seen, DISORDER, &expected);
    }
    seen.holes |= extent.startoff.0 != seen.end;
    seen.end = extent.startoff.0.saturating_add(u64::from(extent.blockcount));
    seen.ordered_from = seen.end;
    let most = match (fork, inode.kind()) {
        (Fork::Attr, _) => 1 << 32,
        (Fork::Data, Kind::Directory) => worker.bounds.dir_extents,
        _ => u64::MAX,
    };
    if seen.end > most {
        wrong(worker, (inode, fork), extent, seen, BEYOND, &format!("file blocks up to {most}"));
    }
    if extent.unwritten && !may_be_unwritten(ctx, inode, fork) {
        wrong(worker, (inode, fork), extent, seen, UNWRITTEN, "a written extent");
    }
    let within = Within::fork(extent.startoff.0, fork == Fork::Attr, extent.unwritten);
    let entry = |start: u32| Entry { start, blocks: extent.blockcount, owner: Owner(inode.ino.0), within };
    // The flag without a realtime section, or on what is no file, is what is wrong: the blocks are those of the data
    // device.
    // (A mark of metadata files on a file of the section is what is wrong, not the other way round.)
    let internal = !ctx.context().features.has_metadir() && super::metafile::is_metafile(ctx, inode);
    let realtime = inode.is_realtime() && inode.kind() == Kind::Regular && !internal;
    if fork == Fork::Data && realtime && ctx.geometry().realtime.is_some() {
        if let Some((group, start)) = rt_piece(ctx, extent) {
            if ctx.context().features.has_reflink() && !seen.shared {
                let shared = ctx.rt_shared.overlaps(ctx, group, start, extent.blockcount);
                seen.sharing_known = shared.is_some();
                seen.shared = shared == Some(true);
            }
            worker.rt_owners.add(group, entry(start));
        } else {
            wrong(worker, (inode, fork), extent, seen, OUTSIDE, "blocks of the realtime section");
        }
        return;
    }
    let end = extent.startblock.0.checked_add(u64::from(extent.blockcount));
    let last = end.and_then(|end| end.checked_sub(1)).map(FsBlock);
    let first = ctx.geometry().split(extent.startblock);
    match (first, last.and_then(|last| ctx.geometry().split(last))) {
        (Some((ag, start)), Some((last_ag, _))) if ag == last_ag && start.0 >= worker.headers => {
            if fork == Fork::Data && worker.shared_known && !seen.shared {
                seen.shared = is_shared(ctx, ag, start.0, extent.blockcount);
                seen.shared_in = seen.shared.then_some(ag);
            }
            worker.owners.add(ag, entry(start.0));
        }
        _ => wrong(worker, (inode, fork), extent, seen, OUTSIDE, "blocks within one AG"),
    }
}

#[cold]
fn wrong(
    worker: &Worker<'_>,
    (inode, fork): (Inode<'_>, Fork),
    extent: &Extent,
    seen: &mut Seen,
    rule: &'static RuleInfo,
    expected: &str,
) {
    let unwritten = u8::from(extent.unwritten);
    let found = format!("[{},{},{},{unwritten}]", extent.startoff, extent.startblock, extent.blockcount);
    // One wrong record tends to be followed by many: the first names the fault.
    if seen.sound {
        let name = if fork == Fork::Data { "u3.bmx" } else { "a.bmx" };
        let spot = worker.spot(inode).part(format_args!("{name}[{}]", seen.extents.saturating_sub(1)));
        worker.ctx.raise(rule, &spot, found, expected);
    }
    seen.sound = false;
}

fn may_be_unwritten(ctx: &Ctx<'_>, inode: Inode<'_>, fork: Fork) -> bool {
    let file = inode.kind() == Kind::Regular && !super::metafile::is_metafile(ctx, inode);
    fork == Fork::Data && file && ctx.context().features.has_extflg()
}

fn is_shared(ctx: &Ctx<'_>, ag: AgNumber, start: u32, blocks: u32) -> bool {
    let Some(group) = ctx.group(ag) else { return false };
    let end = start.saturating_add(blocks);
    let after = group.shared.partition_point(|shared| shared.startblock.0 < end);
    let before = group.shared.get(..after).unwrap_or_default().iter().rev();
    let near = before.take_while(|shared| shared.startblock.0.saturating_add(shared.blockcount.0) > start);
    near.into_iter().any(|shared| !shared.cow && shared.refcount > 1)
}

/// Group and first block of a realtime extent; pieces of 2^31 blocks where there are no groups.
fn rt_piece(ctx: &Ctx<'_>, extent: &Extent) -> Option<(AgNumber, u32)> {
    let rt = ctx.geometry().realtime.as_ref()?;
    let last = extent.startblock.0.checked_add(u64::from(extent.blockcount))?.checked_sub(1)?;
    let (group, start) = rt.split(RtBlock(extent.startblock.0))?;
    let (last_group, _) = rt.split(RtBlock(last))?;
    if rt.groups.is_some() {
        return (group == last_group).then_some((AgNumber(group.0), u32::try_from(start).ok()?));
    }
    Some((AgNumber(u32::try_from(start >> 31).ok()?), u32::try_from(start & 0x7fff_ffff).ok()?))
}
