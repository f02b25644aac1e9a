//! Inodes, chunk by chunk: what makes an inode one. Its fields: [`dinode`](super::dinode), its forks:
//! [`forks`](super::forks).
//!
//! [`check`] is called once for every inode that has space, from several threads; what a thread keeps is in its
//! [`Worker`].

use super::context::{Ctx, InodeSlot, Spot};
use super::dinode::{self, Bounds};
use super::finding::{Object, RuleInfo};
use super::fork::Buffers;
use super::metafile::{self, Named};
use super::owners::Local;
use super::{attr, dquot, forks, inobt, links, raised, symlink};
use crate::format::checksum::CrcState;
use crate::format::dinode::{CRC_OFFSET, DinodeCore, DinodeV3};
use crate::format::dinode_view::Kind;
use crate::format::{bits, on_disk::Uuid};
use crate::units::{AgIno, Ino};
use crate::walk::Inode;
use crate::walk::inodes::{Chunk, Slot};

raised! { RAISED, structure "inode", fields DinodeCore;
    /// There is no inode: the place was overwritten, or its write was lost. xfs_repair clears it, and the names that lead
    /// to it.
    BAD_MAGIC: "inode-bad-magic" corrupt magic, "no inode here",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "2.6";
    /// Version 3 on V5 file systems, 1 or 2 on V4.
    BAD_VERSION: "inode-bad-version" corrupt version, "version does not fit the file system",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "2.6";
}

raised! { RAISED_V3, structure "inode", fields DinodeV3;
    /// Bytes of the inode changed after it was written. The kernel refuses to open it ("Metadata corruption detected at
    /// xfs_dinode_verify").
    BAD_CRC: "inode-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "3.10";
    /// The inode belongs to another file system, or to an earlier one on this device.
    BAD_UUID: "inode-bad-uuid" corrupt uuid, "inode of another file system",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "3.10";
    /// The inode says that it is another one: it was written to the wrong place.
    BAD_NUMBER: "inode-bad-number" corrupt ino, "inode says it is another one",
        source "xfs_inode_buf.c:xfs_dinode_verify; repair/dinode.c:process_dinode_int", since "3.10";
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
    /// Numbers that fields are compared with.
    pub bounds: Bounds,
    /// Inodes that the superblock names.
    pub named: Named,
    /// Is it known which blocks are shared?
    pub shared_known: bool,
    /// Blocks of the headers at the start of an AG.
    pub headers: u32,
    buffers: Buffers,
    quota: dquot::Local<'c>,
    uuid: Uuid,
    /// First inode of the chunk at hand, with its slot: those of the others follow.
    chunk: Option<(Ino, InodeSlot)>,
}

impl<'c> Worker<'c> {
    /// For a thread.
    pub fn new(ctx: &'c Ctx<'c>) -> Self {
        let uuid = ctx.volume().superblock().metadata_uuid();
        let groups = ctx.groups();
        let shared_known = ctx.context().features.has_reflink()
            && u32::try_from(groups.len()) == Ok(ctx.geometry().ag_count)
            && groups.iter().all(|group| group.refcntbt.is_witness());
        Self {
            ctx,
            owners: ctx.owners.local(),
            rt_owners: ctx.rt_owners.local(),
            bounds: Bounds::of(ctx),
            named: Named::of(ctx),
            shared_known,
            headers: super::btree::header_blocks(ctx),
            buffers: Buffers::default(),
            quota: dquot::Local::new(ctx),
            uuid,
            chunk: None,
        }
    }

    /// Begins a chunk. Where another begins within it, each inode is looked for alone.
    fn begin(&mut self, chunk: &Chunk<'_>) {
        let geometry = self.ctx.geometry();
        let ino = |agino: u32| geometry.join_inode(chunk.ag, AgIno(agino));
        let slot = |agino: Option<u32>| agino.and_then(ino).and_then(|ino| self.ctx.slot(ino));
        let first = chunk.record.startino.0;
        let (slots, last) = (slot(Some(first)), slot(first.checked_add(63)));
        let whole = slots
            .zip(last)
            .filter(|(slot, last)| slot.group == last.group && slot.index.checked_add(63) == Some(last.index));
        self.chunk = ino(first).zip(whole.map(|(slot, _)| slot));
    }

    /// The slot of an inode of the chunk at hand, which has space.
    fn slot(&self, inode: Inode<'_>, in_use: bool) -> Option<InodeSlot> {
        let Some((first, slot)) = self.chunk else { return self.ctx.slot(inode.ino) };
        let within = inode.ino.0.checked_sub(first.0).and_then(|n| usize::try_from(n).ok())?;
        Some(InodeSlot { index: slot.index.checked_add(within)?, has_space: true, in_use, ..slot })
    }

    /// Hands over the owners that were gathered.
    pub fn flush(&mut self) {
        self.owners.flush();
        self.rt_owners.flush();
    }

    /// An inode as a spot.
    pub fn spot(&self, inode: Inode<'_>) -> Spot {
        Spot { place: inode.place(self.ctx.volume()), object: Object::Inode(inode.ino) }
    }
}

/// The inodes of a chunk.
pub fn chunk(worker: &mut Worker<'_>, chunk: &Chunk<'_>) {
    let ctx = worker.ctx;
    let layout = inobt::Layout::of(ctx.volume());
    let none = chunk.unreadable == 0 && !chunk.inodes().any(|slot| slot.inode.has_magic());
    let zeroed = if none { 0 } else { zeroed_blocks(worker, chunk, layout.per_block) };
    if none && !one_zeroed_block(worker, chunk, layout.per_block) {
        let spot = super::agi::spot(ctx, chunk.ag).part(format_args!("inobt chunk {}", chunk.record.startino));
        ctx.owners_unknown();
        if !is_doubtful(ctx, chunk) {
            ctx.raise(inobt::NO_INODES, &spot, "no inode in the whole chunk", "inodes");
        }
        return;
    }
    inobt::own(chunk.ag, &chunk.record, layout, &mut worker.owners);
    if none {
        return;
    }
    worker.begin(chunk);
    let mut wrong = Wrong { doubtful: is_doubtful(ctx, chunk), ..Wrong::default() };
    for slot in chunk.inodes() {
        if zeroed >> index(worker, chunk, &slot) & 1 == 0 {
            check(worker, slot, &mut wrong);
        }
    }
    wrong.report(worker);
}

/// Was something said of the chunk's record already?
fn is_doubtful(ctx: &Ctx<'_>, chunk: &Chunk<'_>) -> bool {
    ctx.group(chunk.ag).is_some_and(|group| group.doubtful.binary_search(&chunk.record.startino).is_ok())
}

/// Inodes of a chunk about which its record is wrong: one finding says all.
#[derive(Debug, Default)]
pub struct Wrong {
    /// Something was said of the record already.
    doubtful: bool,
    first: Option<(&'static RuleInfo, Spot)>,
    more: u32,
}

impl Wrong {
    fn note(&mut self, rule: &'static RuleInfo, spot: impl FnOnce() -> Spot) {
        match self.first {
            _ if self.doubtful => {}
            None => self.first = Some((rule, spot())),
            Some(_) => self.more = self.more.saturating_add(1),
        }
    }

    fn report(self, worker: &Worker<'_>) {
        let Some((rule, spot)) = self.first else { return };
        let more = if self.more > 0 { format!(", and {} more of the chunk", self.more) } else { String::new() };
        let (found, expected) = if rule.id == inobt::FREE_INODE.id {
            ("mode 0", "an inode in use")
        } else {
            ("mode not 0", "a free inode")
        };
        worker.ctx.raise(rule, &spot, format_args!("{found}{more}"), expected);
    }
}

/// Is the chunk a single block, and that all zeros? Then it was lost as a whole, as others are block by block.
fn one_zeroed_block(worker: &Worker<'_>, chunk: &Chunk<'_>, per_block: u32) -> bool {
    per_block >= 64 && zeroed_blocks(worker, chunk, per_block) != 0
}

/// Which inode of its chunk it is.
fn index(worker: &Worker<'_>, chunk: &Chunk<'_>, slot: &Slot<'_>) -> u32 {
    let agino = worker.ctx.geometry().split_inode(slot.inode.ino).map_or(0, |(_, agino)| agino.0);
    agino.saturating_sub(chunk.record.startino.0) & 63
}

/// Blocks of the chunk that are all zeros, as a bit for each inode: each one is one finding.
fn zeroed_blocks(worker: &Worker<'_>, chunk: &Chunk<'_>, per_block: u32) -> u64 {
    let is_zero = |slot: &Slot<'_>| slot.inode.bytes().iter().all(|&byte| byte == 0);
    if chunk.inodes().all(|slot| slot.inode.has_magic()) {
        return 0;
    }
    let per_block = per_block.clamp(1, 64);
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

/// One inode, in use or free. `wrong` gathers what the chunk's record says wrongly.
pub fn check(worker: &mut Worker<'_>, slot: Slot<'_>, wrong: &mut Wrong) {
    let inode = slot.inode;
    let place = worker.slot(inode, slot.in_use);
    let sound = is_sound(worker, inode);
    if !sound {
        worker.ctx.names.note(place, inode, false);
        worker.quota.unknown();
        if slot.in_use {
            worker.ctx.owners_unknown();
        }
        return;
    }
    let free = inode.mode() == 0;
    if free == slot.in_use {
        if free {
            worker.ctx.short_of(inode.ino, inode.nblocks().0);
        }
        wrong.note(if free { inobt::FREE_INODE } else { inobt::USED_INODE }, || worker.spot(inode));
    }
    // An inode whose record is wrong owns its blocks all the same.
    if !free {
        used(worker, inode, place);
        return;
    }
    worker.ctx.names.note(place, inode, true);
    if !slot.in_use {
        dinode::check(worker, inode);
    }
}

/// An inode that is in use, and one.
fn used(worker: &mut Worker<'_>, inode: Inode<'_>, place: Option<InodeSlot>) {
    let ctx = worker.ctx;
    let named = !ctx.context().features.has_metadir() && metafile::is_metafile(ctx, inode);
    ctx.links.note(place, inode, named);
    let core = dinode::check(worker, inode);
    ctx.names.note(place, inode, core.forks);
    if !core.forks {
        ctx.owners_unknown();
        worker.quota.unknown();
        if inode.kind() == Kind::Directory {
            ctx.names.names_unknown(inode.ino);
        }
        return;
    }
    let forks = forks::check(worker, inode);
    if forks.sound() {
        ctx.names.mapped(place);
    }
    metafile::check(worker, inode, forks.data);
    links::unlinked(ctx, inode);
    worker.quota.count(inode);
    if forks.attr.sound {
        attr::check(ctx, inode, &mut worker.buffers);
    }
    if core.sound && forks.sound() && inode.kind() == Kind::Symlink {
        symlink::check(worker, inode);
    }
}

/// Is it an inode at all, the one that should be here, unchanged since it was written?
pub(super) fn is_sound(worker: &Worker<'_>, inode: Inode<'_>) -> bool {
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
        return raise(BAD_CRC, crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
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
