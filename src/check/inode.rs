//! Inodes, chunk by chunk: what makes an inode one, and the blocks that its forks own.
//!
//! [`check`] is called once for every inode that has space, from several threads; what a thread keeps is in its
//! [`Worker`].

use super::context::{Ctx, Spot};
use super::finding::Object;
use super::owners::{Entry, Local, Owner, Within};
use super::fork::Buffers;
use super::{attr, btree, dquot, inobt, raised};
use crate::format::bmbt::{self, Extent};
use crate::format::btree_block::Parts;
use crate::format::checksum::CrcState;
use crate::format::dinode::{CRC_OFFSET, DinodeCore, Fork, fork_format};
use crate::format::{bits, on_disk::Uuid, rtrefcountbt, rtrmapbt};
use crate::units::{AgNumber, FsBlock, RtBlock};
use crate::walk::Inode;
use crate::walk::btree::Root;
use crate::walk::inodes::{Chunk, Slot};

raised! { RAISED, structure "inode", fields DinodeCore;
    /// There is no inode: the place was overwritten, or its write was lost. xfs_repair clears it, and the names that lead
    /// to it.
    BAD_MAGIC: "inode-bad-magic" corrupt magic, "no inode here",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "2.6";
    /// Bytes of the inode changed after it was written. The kernel refuses to open it ("Metadata corruption detected at
    /// xfs_dinode_verify").
    BAD_CRC: "inode-bad-crc" corrupt magic, "checksum does not match",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "3.10";
    /// Version 3 on V5 file systems, 1 or 2 on V4.
    BAD_VERSION: "inode-bad-version" corrupt version, "version does not fit the file system",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "2.6";
    /// The inode belongs to another file system, or to an earlier one on this device.
    BAD_UUID: "inode-bad-uuid" corrupt magic, "inode of another file system",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "3.10";
    /// The inode says that it is another one: it was written to the wrong place.
    BAD_NUMBER: "inode-bad-number" corrupt magic, "inode says it is another one",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "3.10";
    /// More extents than fit into the inode.
    TOO_MANY_EXTENTS: "inode-too-many-extents" corrupt nextents, "more extents than fit into the inode",
        source "xfs_inode_buf.c:xfs_dinode_verify_fork; repair/dinode.c:process_exinode", since "3.10";
    /// An extent must lie within one AG, behind its headers, or within the realtime section.
    BAD_EXTENT: "inode-extent-outside" corrupt nextents, "extent lies outside the device",
        source "xfs_bmap.c:xfs_bmap_validate_extent; repair/dinode.c:process_bmbt_reclist_int", since "4.16";
}

/// What a thread keeps while it goes over inodes.
#[derive(Debug)]
pub struct Worker<'c> {
    /// The run.
    pub ctx: &'c Ctx<'c>,
    /// Owners of blocks of the data section.
    pub owners: Local<'c>,
    /// Owners of blocks of the realtime section.
    pub rt_owners: Local<'c>,
    buffers: Buffers,
    quota: dquot::Local<'c>,
    uuid: Uuid,
}

impl<'c> Worker<'c> {
    /// For a thread.
    pub fn new(ctx: &'c Ctx<'c>) -> Self {
        let uuid = ctx.volume().superblock().metadata_uuid();
        Self { ctx, owners: ctx.owners.local(), rt_owners: ctx.rt_owners.local(), buffers: Buffers::default(), quota: dquot::Local::new(ctx), uuid }
    }

    /// An inode as a spot.
    pub fn spot(&self, inode: Inode<'_>) -> Spot {
        Spot { place: inode.place(self.ctx.volume()), object: Object::Inode(inode.ino) }
    }
}

/// The inodes of a chunk.
pub fn chunk(worker: &mut Worker<'_>, chunk: &Chunk<'_>) {
    let zeroed = zeroed_blocks(worker, chunk);
    for slot in chunk.inodes() {
        if zeroed >> index(worker, chunk, &slot) & 1 == 0 {
            check(worker, slot);
        }
    }
}

/// Which inode of its chunk it is.
fn index(worker: &Worker<'_>, chunk: &Chunk<'_>, slot: &Slot<'_>) -> u32 {
    let agino = worker.ctx.geometry().split_inode(slot.inode.ino).map_or(0, |(_, agino)| agino.0);
    agino.saturating_sub(chunk.record.startino.0) & 63
}

/// Blocks of the chunk that are all zeros, as a bit for each inode: each one is one finding.
fn zeroed_blocks(worker: &Worker<'_>, chunk: &Chunk<'_>) -> u64 {
    let is_zero = |slot: &Slot<'_>| slot.inode.bytes().iter().all(|&byte| byte == 0);
    if chunk.inodes().all(|slot| slot.inode.has_magic()) {
        return 0;
    }
    let per_block = inobt::Layout::of(worker.ctx.volume()).per_block.clamp(1, 64);
    let zeros = chunk.inodes().filter(is_zero).fold(0u64, |mask, slot| mask | 1 << index(worker, chunk, &slot));
    let mut zeroed = 0;
    for slot in chunk.inodes() {
        let first = index(worker, chunk, &slot);
        let block = u64::MAX >> 64u32.saturating_sub(per_block) << first;
        if first.checked_rem(per_block) == Some(0) && zeros & block == block {
            zeroed |= block;
            report_zeroed(worker, slot.inode, per_block);
        }
    }
    zeroed
}

fn report_zeroed(worker: &Worker<'_>, first: Inode<'_>, count: u32) {
    let ctx = worker.ctx;
    let mut spot = worker.spot(first);
    spot.place.length = u64::from(ctx.context().block_size);
    let last = first.ino.0.saturating_add(u64::from(count)).saturating_sub(1);
    if let Some((block, _)) = ctx.geometry().inode_place(first.ino) {
        spot.place.structure = format!("inodes {} to {last} (fsblock {block})", first.ino);
    }
    ctx.owners_unknown();
    ctx.raise(inobt::ZEROED, &spot, "zeros", format_args!("{count} inodes"));
}

/// One inode, in use or free.
pub fn check(worker: &mut Worker<'_>, slot: Slot<'_>) {
    let inode = slot.inode;
    let sound = is_sound(worker, inode);
    worker.ctx.names.note(worker.ctx, inode, sound);
    if !sound {
        worker.quota.unknown();
        if slot.in_use {
            worker.ctx.owners_unknown();
        }
        return;
    }
    let free = inode.mode() == 0;
    if free == slot.in_use {
        let rule = if free { inobt::FREE_INODE } else { inobt::USED_INODE };
        let found = if free { "mode 0" } else { "mode not 0" };
        worker.ctx.raise(rule, &worker.spot(inode), found, if free { "an inode in use" } else { "a free inode" });
        if free {
            return;
        }
    }
    if slot.in_use {
        collect(worker, inode, Fork::Data);
        collect(worker, inode, Fork::Attr);
        worker.quota.count(inode);
        attr::check(worker.ctx, inode, &mut worker.buffers);
    }
}

/// Is it an inode at all, the one that should be here, unchanged since it was written?
fn is_sound(worker: &Worker<'_>, inode: Inode<'_>) -> bool {
    let ctx = worker.ctx;
    let raise = |rule, found: String, expected: String| {
        ctx.raise(rule, &worker.spot(inode), found, expected);
        false
    };
    if !inode.has_magic() {
        let found = bits::be16(inode.bytes(), 0).unwrap_or(0);
        return raise(BAD_MAGIC, format!("{found:#x}"), "0x494e".to_owned());
    }
    let v5 = ctx.context().has_crc();
    if (inode.version() == 3) != v5 || inode.version() == 0 || inode.version() > 3 {
        return raise(BAD_VERSION, inode.version().to_string(), if v5 { "3" } else { "1 or 2" }.to_owned());
    }
    if !v5 {
        return true;
    }
    if let CrcState::Bad { computed } = inode.crc() {
        let stored = bits::array(inode.bytes(), CRC_OFFSET).map_or(0, u32::from_le_bytes);
        return raise(BAD_CRC, format!("{stored:#x}"), format!("{computed:#x}"));
    }
    let uuid = bits::array(inode.bytes(), 160).map(Uuid).unwrap_or_default();
    if uuid != worker.uuid {
        return raise(BAD_UUID, uuid.to_string(), worker.uuid.to_string());
    }
    if let Some(own) = inode.own_number().filter(|&own| own != inode.ino) {
        return raise(BAD_NUMBER, own.to_string(), inode.ino.to_string());
    }
    ctx.lsn(bits::be64(inode.bytes(), 112).unwrap_or(0), || worker.spot(inode));
    true
}

/// The blocks of a fork go to the map of owners.
fn collect(worker: &mut Worker<'_>, inode: Inode<'_>, fork: Fork) {
    let Some(bytes) = inode.fork(fork) else { return };
    match inode.format(fork) {
        fork_format::EXTENTS => {
            let room = u64::try_from(bytes.len() / 16).unwrap_or(0);
            let count = inode.extents(fork);
            if count > room {
                worker.ctx.raise(TOO_MANY_EXTENTS, &worker.spot(inode), count, format_args!("at most {room}"));
                worker.ctx.owners_unknown();
                return;
            }
            let count = u32::try_from(count).unwrap_or(0);
            for record in Parts::new(bytes, 0, 16, count) {
                if let Some(extent) = Extent::at(record, 0) {
                    add(worker, inode, fork, &extent);
                }
            }
        }
        fork_format::BTREE => {
            let shape = if fork == Fork::Data { &bmbt::SHAPE } else { &bmbt::ATTR_SHAPE };
            tree(worker, inode, fork, bytes, shape, true);
        }
        fork_format::META_BTREE if fork == Fork::Data => {
            let shape = if inode.metatype() == Some(8) { &rtrefcountbt::SHAPE } else { &rtrmapbt::SHAPE };
            tree(worker, inode, fork, bytes, shape, false);
        }
        _ => {}
    }
}

fn tree(
    worker: &mut Worker<'_>,
    inode: Inode<'_>,
    fork: Fork,
    bytes: &[u8],
    shape: &'static crate::format::btree_block::Shape,
    extents: bool,
) {
    if !extents && shape.root(bytes).is_some_and(|root| root.level == 0) {
        return;
    }
    let ctx = worker.ctx;
    let tree = btree::Tree {
        shape,
        root: Root::Fork { ino: inode.ino, bytes },
        attr: fork == Fork::Attr,
        object: Object::Inode(inode.ino),
        owner: Owner(inode.ino.0),
    };
    // The map of the thread joins extents that follow each other: the blocks of the btree must not come between.
    let mut nodes = ctx.owners.local();
    let scanned = btree::scan(ctx, &tree, &mut nodes, &mut |leaf| {
        if extents {
            for record in leaf.records() {
                if let Some(extent) = Extent::at(record, 0) {
                    add(worker, inode, fork, &extent);
                }
            }
        }
    });
    if !scanned.is_witness() {
        ctx.owners_unknown();
    }
}

/// An extent of a fork.
fn add(worker: &mut Worker<'_>, inode: Inode<'_>, fork: Fork, extent: &Extent) {
    let ctx = worker.ctx;
    let within = Within::fork(extent.startoff.0, fork == Fork::Attr, extent.unwritten);
    let entry = |start: u32| Entry { start, blocks: extent.blockcount, owner: Owner(inode.ino.0), within };
    let raise = |worker: &Worker<'_>, what: &str| {
        let found = format!("[{},{},{}]", extent.startoff, extent.startblock, extent.blockcount);
        worker.ctx.raise(BAD_EXTENT, &worker.spot(inode), found, what);
        worker.ctx.owners_unknown();
    };
    if fork == Fork::Data && inode.is_realtime() {
        if let Some((group, start)) = rt_piece(ctx, extent) {
            worker.rt_owners.add(group, entry(start));
        } else {
            raise(worker, "blocks of the realtime section");
        }
        return;
    }
    let end = extent.startblock.0.checked_add(u64::from(extent.blockcount));
    let last = end.and_then(|end| end.checked_sub(1)).map(FsBlock);
    let first = ctx.geometry().split(extent.startblock);
    match (first, last.and_then(|last| ctx.geometry().split(last))) {
        (Some((ag, start)), Some((last_ag, _)))
            if ag == last_ag && extent.blockcount > 0 && start.0 >= btree::header_blocks(ctx) =>
        {
            worker.owners.add(ag, entry(start.0));
        }
        _ => raise(worker, "blocks within one AG"),
    }
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
