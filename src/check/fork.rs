//! Blocks of a fork that hold metadata: read with their neighbours, and what a V5 block says of itself.

use super::context::{Ctx, Spot};
use super::finding::{Object, RuleInfo};
use crate::error::Error;
use crate::format::bits;
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::Fork;
use crate::format::on_disk::Uuid;
use crate::units::{BASIC_BLOCK, Device, FileBlock, FsBlock, Ino};
use crate::walk::Inode;
use crate::walk::extents::{ForkMap, locate};

/// Bytes of blocks that are read along.
const AHEAD: u64 = 256 << 10;

/// How often a check reads a block of a fork at most: entries, and once more to compare them with the index.
const READS: u64 = 4;

/// Blocks that are read beyond what an inode owns or has room for, so that a wrong count hides nothing small.
const SPARE: u64 = 64;

/// Buffers that are kept from one fork to the next.
#[derive(Debug, Default)]
pub struct Buffers {
    ahead: Vec<u8>,
    block: Vec<u8>,
}

/// What came of reading a block.
#[derive(Debug)]
pub enum Read<'b> {
    /// The block.
    Block(&'b [u8]),
    /// The fork has a hole there, or a part of the block is missing.
    Hole,
    /// It could not be read, as was reported.
    Failed,
}

/// Reads blocks of a fork.
#[derive(Debug)]
pub struct Reader<'r, 'c> {
    ctx: &'c Ctx<'c>,
    /// The inode.
    pub ino: Ino,
    /// Extents of the fork.
    pub map: ForkMap,
    /// Were all extents readable?
    pub complete: bool,
    /// File system blocks of a block.
    pub width: u32,
    what: &'static str,
    /// Is the budget of steps used up? Then nothing more is read.
    pub exhausted: bool,
    /// Blocks that were read …
    read: u64,
    /// … and may be: no fork has more than the inode says it owns, or has room for.
    most: u64,
    buffers: &'r mut Buffers,
    /// File block, device block and count of what was read ahead.
    have: (u64, u64, u64),
}

impl<'r, 'c> Reader<'r, 'c> {
    /// For a fork of an inode; `what` names its blocks. What is wrong with the extents is reported elsewhere.
    pub fn new(ctx: &'c Ctx<'c>, inode: Inode<'_>, fork: Fork, what: &'static str, buffers: &'r mut Buffers) -> Self {
        let mut complete = true;
        let map = ForkMap::read(ctx.walk, inode, fork, &mut |_| complete = false);
        let context = ctx.context();
        let width = match fork {
            Fork::Data => context.dir_block_size.checked_div(context.block_size).unwrap_or(1).max(1),
            Fork::Attr => 1,
        };
        let room = u64::try_from(inode.size()).unwrap_or(0).checked_div(context.block_size.into()).unwrap_or(0);
        let most = inode.nblocks().0.max(room).saturating_mul(READS).saturating_add(SPARE);
        Self {
            ctx,
            ino: inode.ino,
            map,
            complete,
            width,
            what,
            exhausted: false,
            read: 0,
            most,
            buffers,
            have: (0, 0, 0),
        }
    }

    /// Bytes of a block.
    pub fn size(&self) -> usize {
        self.block_size().saturating_mul(usize::try_from(self.width).unwrap_or(1))
    }

    /// The same for blocks of one file system block.
    pub fn single(
        ctx: &'c Ctx<'c>,
        inode: Inode<'_>,
        fork: Fork,
        what: &'static str,
        buffers: &'r mut Buffers,
    ) -> Self {
        Self { width: 1, ..Self::new(ctx, inode, fork, what, buffers) }
    }

    /// What its blocks are called.
    pub fn what(&self) -> &'static str {
        self.what
    }

    fn block_size(&self) -> usize {
        usize::try_from(self.ctx.context().block_size).unwrap_or(0)
    }

    /// Where the block at a file block begins on disk.
    pub fn place(&self, at: u64) -> Option<FsBlock> {
        self.map.block(FileBlock(at))
    }

    /// The block at a file block as a spot; the inode where it lies nowhere.
    pub fn spot(&self, at: u64) -> Spot {
        spot(self.ctx, self.ino, self.what, self.place(at), at, self.size())
    }

    /// Reads the block at a file block.
    pub fn read(&mut self, at: u64) -> Read<'_> {
        let size = self.block_size();
        let width = u64::from(self.width);
        self.read = self.read.saturating_add(width);
        let step = match self.read > self.most {
            true => Err(Error::Exhausted { steps: self.most }),
            false => self.ctx.walk.step(width),
        };
        if let Err(error) = step {
            if !self.exhausted {
                self.ctx.unreadable(&error, Object::Inode(self.ino));
            }
            self.exhausted = true;
            return Read::Failed;
        }
        if width > 1 {
            self.buffers.block.clear();
        }
        for i in 0..width {
            let file_block = at.saturating_add(i);
            match self.load(file_block) {
                Some(Ok(())) => {}
                Some(Err(())) => return Read::Failed,
                None => return Read::Hole,
            }
            if width > 1 {
                let start = usize::try_from(file_block.saturating_sub(self.have.0)).unwrap_or(0).saturating_mul(size);
                let from = self.buffers.ahead.get(start..start.saturating_add(size)).unwrap_or_default();
                self.buffers.block.extend_from_slice(from);
            }
        }
        if width > 1 {
            return Read::Block(&self.buffers.block);
        }
        let start = usize::try_from(at.saturating_sub(self.have.0)).unwrap_or(0).saturating_mul(size);
        self.buffers.ahead.get(start..start.saturating_add(size)).map_or(Read::Failed, Read::Block)
    }

    /// The same for a block that must be there: where a part of it is missing, that breaks `hole`.
    pub fn whole(&mut self, at: u64, hole: &'static RuleInfo) -> Option<&[u8]> {
        let (ctx, ino, what, place, size) = (self.ctx, self.ino, self.what, self.place(at), self.size());
        match self.read(at) {
            Read::Block(bytes) => Some(bytes),
            Read::Failed => None,
            Read::Hole => {
                let spot = spot(ctx, ino, what, place, at, size);
                ctx.raise(hole, &spot, "a part of the block is missing", "a whole block");
                None
            }
        }
    }

    /// Makes sure that a block of the file system is in the buffer. `None` for a hole.
    fn load(&mut self, at: u64) -> Option<Result<(), ()>> {
        let (first, disk, count) = self.have;
        let (extent, before) = self.map.find(FileBlock(at))?;
        let wanted = extent.startblock.0.checked_add(u64::from(before))?;
        let within = at.checked_sub(first).filter(|&n| n < count);
        if within.and_then(|n| disk.checked_add(n)) == Some(wanted) {
            return Some(Ok(()));
        }
        let most = AHEAD.checked_div(self.ctx.geometry().block_size()).unwrap_or(1).max(u64::from(self.width));
        let left = u64::from(extent.blockcount.saturating_sub(before)).min(most);
        for count in [left, 1] {
            let blocks = u32::try_from(count).unwrap_or(1);
            let Some(location) = locate(self.ctx.geometry(), false, FsBlock(wanted), blocks) else { continue };
            let length = usize::try_from(location.length).unwrap_or(0);
            if self.buffers.ahead.len() < length {
                self.buffers.ahead.resize(length, 0);
            }
            let into = self.buffers.ahead.get_mut(..length)?;
            let (ino, what) = (self.ino, self.what);
            let name = || format!("inode {ino} › {what} {at}");
            match self.ctx.volume().read_into(Device::Data, location.byte, into, name) {
                Ok(()) => {
                    self.have = (at, wanted, count);
                    return Some(Ok(()));
                }
                Err(error) if count == 1 => self.ctx.unreadable(&error, Object::Inode(self.ino)),
                Err(_) => {}
            }
            self.have = (0, 0, 0);
        }
        Some(Err(()))
    }
}

/// A block of a fork as a spot; the inode where it lies nowhere.
pub fn spot(ctx: &Ctx<'_>, ino: Ino, what: &str, block: Option<FsBlock>, at: u64, size: usize) -> Spot {
    let name = format!("inode {ino} › {what} {at}");
    let object = Object::Inode(ino);
    match block {
        Some(block) => {
            let mut spot = ctx.block(block, name, object);
            spot.place.length = u64::try_from(size).unwrap_or(0);
            spot
        }
        None => {
            let byte = ctx.geometry().inode_byte(ino).unwrap_or_default();
            let length = u64::from(ctx.context().inode_size);
            Spot { place: crate::error::Place::new(Device::Data, byte, length, name), object }
        }
    }
}

/// An inode as a spot.
pub fn inode_spot(ctx: &Ctx<'_>, ino: Ino) -> Spot {
    let byte = ctx.geometry().inode_byte(ino).unwrap_or_default();
    let length = u64::from(ctx.context().inode_size);
    let place = crate::error::Place::new(Device::Data, byte, length, format!("inode {ino}"));
    Spot { place, object: Object::Inode(ino) }
}

/// Where a V5 block says what it is: bytes of the fields.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    crc: usize,
    blkno: usize,
    lsn: Option<usize>,
    uuid: usize,
    owner: usize,
}

/// Index blocks (`struct xfs_da3_blkinfo`).
pub const DA: Frame = Frame { crc: 12, blkno: 16, lsn: Some(24), uuid: 32, owner: 48 };
/// Directory data and free blocks (`struct xfs_dir3_blk_hdr`).
pub const DIR: Frame = Frame { crc: 4, blkno: 8, lsn: Some(16), uuid: 24, owner: 40 };
/// Blocks of large values (`struct xfs_attr3_rmt_hdr`). They are written past the log: their LSN means nothing, and
/// recovery and verifiers of the kernel pass it over.
pub const REMOTE: Frame = Frame { crc: 12, blkno: 40, lsn: None, uuid: 16, owner: 32 };

/// Rules about what a block says of itself.
#[derive(Clone, Copy, Debug)]
pub struct FrameRules {
    /// Checksum.
    pub crc: &'static RuleInfo,
    /// Identity of the file system.
    pub uuid: &'static RuleInfo,
    /// Address.
    pub blkno: &'static RuleInfo,
    /// Inode.
    pub owner: &'static RuleInfo,
}

/// Looks at what a V5 block says of itself. False: its content is not to be believed.
pub fn frame(
    ctx: &Ctx<'_>,
    (frame, rules): (Frame, &FrameRules),
    bytes: &[u8],
    (block, ino): (Option<FsBlock>, Ino),
    spot: &dyn Fn() -> Spot,
) -> bool {
    if !ctx.context().has_crc() {
        return true;
    }
    if let CrcState::Bad { computed } = checksum::verify(bytes, frame.crc) {
        let stored = bits::array(bytes, frame.crc).map_or(0, u32::from_le_bytes);
        ctx.raise(rules.crc, &spot(), crate::format::Crc(stored), crate::format::Crc(computed));
        return false;
    }
    let mut foreign = 0;
    let right = ctx.volume().superblock().metadata_uuid();
    let found = bits::array(bytes, frame.uuid).map(Uuid).unwrap_or_default();
    if found != right {
        foreign += 1;
        ctx.raise(rules.uuid, &spot(), found, right);
    }
    let byte = block.and_then(|block| ctx.geometry().block_byte(block));
    let right = byte.and_then(|byte| byte.0.checked_div(BASIC_BLOCK)).unwrap_or(0);
    let found = bits::be64(bytes, frame.blkno).unwrap_or(0);
    if found != right {
        foreign += 1;
        ctx.raise(rules.blkno, &spot(), found, right);
    }
    let found = bits::be64(bytes, frame.owner).unwrap_or(0);
    if found != ino.0 {
        foreign += 1;
        ctx.raise(rules.owner, &spot(), found, ino);
    }
    if let Some(lsn) = frame.lsn.and_then(|lsn| bits::be64(bytes, lsn)) {
        ctx.lsn(lsn, spot);
    }
    // One wrong field is damage; more are a block that belongs elsewhere.
    foreign < 2
}
