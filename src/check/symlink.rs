//! Targets of symbolic links: in the inode, or in blocks with a header each (V5) or without (V4).
//!
//! `xfs_symlink_verify`, `xfs_symlink_hdr_ok`, `xfs_symlink_shortform_verify` (xfs_symlink_remote.c); `xchk_symlink`
//! (scrub/symlink.c); `process_symlink_extlist`, `process_symlink_remote` (xfs_repair).

use super::context::{Ctx, Spot};
use super::finding::{Object, RuleInfo};
use super::inode::Worker;
use super::raised;
use crate::format::bmbt::Extent;
use crate::format::btree_block::Parts;
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, fork_format};
use crate::format::on_disk::Uuid;
use crate::format::symlink::{CRC_OFFSET, MAGIC, MAX_LENGTH, SymlinkHeader};
use crate::format::{Structure, bits};
use crate::units::{BASIC_BLOCK, FsBlock};
use crate::walk::Inode;
use std::fmt::Display;

raised! { RAISED, structure "symlink", fields SymlinkHeader;
    /// There is no part of a target in this block. The link cannot be followed; xfs_repair removes it.
    BAD_MAGIC: "symlink-bad-magic" corrupt magic, "no part of a target",
        source "xfs_symlink_remote.c:xfs_symlink_verify; repair/dinode.c:process_symlink_remote", since "3.10";
    /// Bytes of the block changed after it was written. The link cannot be followed; the target may be legible with
    /// `show`.
    BAD_CRC: "symlink-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_symlink_remote.c:xfs_symlink_read_verify; repair/dinode.c:process_symlink_remote", since "3.10";
    /// The block belongs to another file system, or to an earlier one on this device.
    BAD_UUID: "symlink-bad-uuid" corrupt uuid, "block of another file system",
        source "xfs_symlink_remote.c:xfs_symlink_verify", since "3.10";
    /// The block says that it lies elsewhere: it was written to the wrong place, or copied.
    BAD_BLKNO: "symlink-bad-blkno" corrupt blkno, "block says it lies elsewhere",
        source "xfs_symlink_remote.c:xfs_symlink_verify", since "3.10";
    /// The block belongs to another link.
    BAD_OWNER: "symlink-bad-owner" corrupt owner, "block belongs to another inode",
        source "xfs_symlink_remote.c:xfs_symlink_hdr_ok; repair/dinode.c:process_symlink_remote", since "3.10";
    /// The parts of a target follow each other.
    BAD_OFFSET: "symlink-bad-offset" corrupt offset, "part begins elsewhere in the target",
        source "xfs_symlink_remote.c:xfs_symlink_hdr_ok; repair/dinode.c:process_symlink_remote", since "3.10";
    /// Each part has as many bytes as its blocks hold, the last what is left of the size.
    BAD_BYTES: "symlink-bad-bytes" corrupt bytes, "part has another length",
        source "xfs_symlink_remote.c:xfs_symlink_hdr_ok; repair/dinode.c:process_symlink_remote", since "3.10";
}

raised! { TARGET, structure "symlink";
    /// The extents of a link lie side by side from its beginning, no more blocks than its size needs at most.
    BAD_MAP: "symlink-bad-extents" corrupt "bmx", "extents of a link",
        source "repair/dinode.c:process_symlink_extlist; xfs_symlink_remote.c:xfs_symlink_remote_read", since "none";
    /// A zero byte ends a target: what is behind it is cut off. xfs_repair removes such a link.
    NUL: "symlink-target-with-nul" corrupt "data", "zero byte in a target",
        source "xfs_symlink_remote.c:xfs_symlink_shortform_verify; repair/dinode.c:process_symlink", since "4.12";
    /// The blocks hold fewer bytes than the link has.
    SHORT: "symlink-target-short" corrupt "data", "target ends early",
        source "scrub/symlink.c:xchk_symlink; repair/dinode.c:process_symlink_remote", since "scrub";
}

/// Blocks that a target takes at most.
fn most_blocks(ctx: &Ctx<'_>) -> u32 {
    let header = if ctx.context().has_crc() { SymlinkHeader::SIZE } else { 0 };
    let room = ctx.context().block_size.saturating_sub(u32::try_from(header).unwrap_or(0));
    MAX_LENGTH.div_ceil(room.max(1))
}

/// Looks at the target of a link whose core and map are sound.
pub fn check(worker: &Worker<'_>, inode: Inode<'_>) {
    let wanted = usize::try_from(inode.size()).unwrap_or(0);
    let bytes = inode.fork(Fork::Data).unwrap_or_default();
    match inode.format(Fork::Data) {
        fork_format::LOCAL => {
            if let Some(at) = bytes.get(..wanted).and_then(|target| target.iter().position(|&byte| byte == 0)) {
                nul(worker, &worker.spot(inode), at);
            }
        }
        fork_format::EXTENTS if map(worker, inode, bytes) => remote(worker, inode, bytes, wanted),
        _ => {}
    }
}

#[cold]
fn nul(worker: &Worker<'_>, spot: &Spot, at: usize) {
    worker.ctx.raise(NUL, spot, format_args!("zero at byte {at}"), "no zero byte");
}

fn extents<'a>(inode: Inode<'a>, bytes: &'a [u8]) -> impl Iterator<Item = Extent> + use<'a> {
    let count = u32::try_from(inode.extents(Fork::Data)).unwrap_or(0);
    Parts::new(bytes, 0, 16, count).filter_map(|record| Extent::at(record, 0))
}

/// Do the extents lie as those of a link must?
fn map(worker: &Worker<'_>, inode: Inode<'_>, bytes: &[u8]) -> bool {
    let ctx = worker.ctx;
    let most = u64::from(most_blocks(ctx));
    let mut next = 0u64;
    for (i, extent) in extents(inode, bytes).enumerate() {
        let end = next.saturating_add(u64::from(extent.blockcount));
        if extent.startoff.0 != next || end > most {
            let found = format!("[{},{},{}]", extent.startoff, extent.startblock, extent.blockcount);
            let spot = worker.spot(inode).part(format_args!("bmx[{i}]"));
            ctx.raise(BAD_MAP, &spot, found, format_args!("from {next} on, up to block {most}"));
            return false;
        }
        next = end;
    }
    true
}

fn remote(worker: &Worker<'_>, inode: Inode<'_>, bytes: &[u8], wanted: usize) {
    let ctx = worker.ctx;
    let mut have = 0usize;
    for extent in extents(inode, bytes) {
        if have >= wanted {
            return;
        }
        let name = format!("inode {} › symlink block {}", inode.ino, extent.startoff);
        let block = match ctx.volume().blocks(extent.startblock, extent.blockcount, name) {
            Ok(block) => block,
            Err(error) => return ctx.unreadable(&error, Object::Inode(inode.ino)),
        };
        let spot = Spot { place: block.place, object: Object::Inode(inode.ino) };
        let left = wanted.saturating_sub(have);
        let part = Part { worker, inode, spot: &spot, bytes: &block.bytes, have, left };
        let Some(target) = part.check(extent.startblock) else { return };
        let target = target.get(..left.min(target.len())).unwrap_or_default();
        if let Some(at) = target.iter().position(|&byte| byte == 0) {
            return nul(worker, &spot, have.saturating_add(at));
        }
        have = have.saturating_add(target.len());
    }
    if have < wanted {
        ctx.raise(SHORT, &worker.spot(inode), format_args!("{have} bytes"), format_args!("{wanted} bytes"));
    }
}

struct Part<'p, 'c> {
    worker: &'p Worker<'c>,
    inode: Inode<'p>,
    spot: &'p Spot,
    bytes: &'p [u8],
    have: usize,
    left: usize,
}

impl<'p> Part<'p, '_> {
    /// The bytes of the target in it; `None` where they are not to be believed.
    fn check(&self, block: FsBlock) -> Option<&'p [u8]> {
        let Self { worker, bytes, .. } = *self;
        let ctx = worker.ctx;
        if !ctx.context().has_crc() {
            return Some(bytes);
        }
        let magic = bits::be32(bytes, 0).unwrap_or(0);
        if magic != MAGIC {
            self.raise(BAD_MAGIC, format_args!("{magic:#x}"), format_args!("{MAGIC:#x}"));
            return None;
        }
        if let CrcState::Bad { computed } = checksum::verify(bytes, CRC_OFFSET) {
            let stored = bits::array(bytes, CRC_OFFSET).map_or(0, u32::from_le_bytes);
            self.raise(BAD_CRC, crate::format::Crc(stored), crate::format::Crc(computed));
            return None;
        }
        let right = ctx.volume().superblock().metadata_uuid();
        let uuid = bits::array(bytes, 16).map(Uuid).unwrap_or_default();
        if uuid != right {
            self.raise(BAD_UUID, uuid, right);
        }
        let daddr = ctx.geometry().block_byte(block).and_then(|byte| byte.0.checked_div(BASIC_BLOCK)).unwrap_or(0);
        let room = bytes.len().saturating_sub(SymlinkHeader::SIZE);
        let payload = u64::try_from(room.min(self.left)).unwrap_or(0);
        let offset = u64::try_from(self.have).unwrap_or(0);
        let word = |at| bits::be32(bytes, at).map(u64::from);
        for (rule, found, right) in [
            (BAD_OFFSET, word(4), offset),
            (BAD_BYTES, word(8), payload),
            (BAD_OWNER, bits::be64(bytes, 32), self.inode.ino.0),
            (BAD_BLKNO, bits::be64(bytes, 40), daddr),
        ] {
            if found != Some(right) {
                self.raise(rule, found.unwrap_or(0), right);
            }
        }
        ctx.lsn(bits::be64(bytes, 48).unwrap_or(0), || self.spot.clone());
        bytes.get(SymlinkHeader::SIZE..)
    }

    fn raise(&self, rule: &'static RuleInfo, found: impl Display, expected: impl Display) {
        self.worker.ctx.raise(rule, self.spot, found, expected);
    }
}
