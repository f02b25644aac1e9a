//! Blocks of a metadata file, in the order of the file: many per read, and whatever is missing named with its reason.

use crate::error::{Error, Place};
use crate::format::bmbt::Extent;
use crate::format::dinode::Fork;
use crate::units::{Device, FileBlock, FsBlock};
use crate::walk::extents::{ForkMap, locate};
use crate::walk::{Inode, InodeBlock, Walk};

/// Bytes of a read at most. More than what the reader of devices keeps: a bitmap passes through, once.
const LARGEST: u64 = 2 << 20;

/// Why a block of a file is not there.
#[derive(Debug)]
pub enum Missing {
    /// No extent covers it.
    Hole,
    /// Its extent is allocated, but was never written.
    Unwritten(Extent),
    /// Its extent leads out of the data section.
    Outside(Extent),
    /// It cannot be read.
    Unreadable(Error),
}

/// A part of the file.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Whole blocks, side by side on the device.
    Blocks {
        /// First block within the file.
        first: u64,
        /// First byte on the data device.
        byte: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Blocks that are not there.
    Missing {
        /// First block within the file.
        first: u64,
        /// How many.
        blocks: u64,
        /// Why.
        why: Missing,
    },
}

/// A metadata file with its extents.
#[derive(Clone, Debug)]
pub struct MetaFile {
    block: InodeBlock,
    map: ForkMap,
}

impl MetaFile {
    /// Reads the extents of the file. What is wrong with the map goes to `report`.
    pub fn new(walk: &Walk<'_>, block: InodeBlock, report: &mut dyn FnMut(Error)) -> Self {
        let map = ForkMap::read(walk, block.inode(), Fork::Data, report);
        Self { block, map }
    }

    /// The inode.
    pub fn inode(&self) -> Inode<'_> {
        self.block.inode()
    }

    /// Where the inode lies.
    pub fn place(&self) -> &Place {
        self.block.place()
    }

    /// The extents, by file block.
    pub fn extents(&self) -> &[Extent] {
        self.map.extents()
    }

    /// The place of block `block` of the file.
    pub fn block_place(&self, walk: &Walk<'_>, block: u64, name: &str) -> Place {
        let size = walk.geometry().block_size();
        let byte = self.map.block(FileBlock(block)).and_then(|fsb| walk.geometry().block_byte(fsb));
        match byte {
            Some(byte) => Place::new(Device::Data, byte, size, format!("{name} block {block}")),
            None => Place { structure: format!("{name} block {block}"), ..self.place().clone() },
        }
    }

    /// Hands out blocks `from..to`. Gives how many blocks were there. `each` may end the pass with `false`.
    ///
    /// Memory: one read, up to 2 MiB.
    pub fn each(&self, walk: &Walk<'_>, from: u64, to: u64, each: &mut dyn FnMut(Piece<'_>) -> bool) -> u64 {
        let geometry = walk.geometry();
        let size = geometry.block_size().max(1);
        let most = LARGEST.checked_div(size).unwrap_or(1).max(1);
        let mut buffer: Vec<u8> = Vec::new();
        let (mut at, mut there) = (from, 0u64);
        while at < to {
            let (blocks, found) = self.next(at, to);
            let blocks = blocks.max(1);
            let (extent, before) = match found {
                Found::Hole => {
                    if !each(Piece::Missing { first: at, blocks, why: Missing::Hole }) {
                        return there;
                    }
                    at = at.saturating_add(blocks);
                    continue;
                }
                Found::Extent(extent, before) => (extent, before),
            };
            if extent.unwritten {
                if !each(Piece::Missing { first: at, blocks, why: Missing::Unwritten(extent) }) {
                    return there;
                }
                at = at.saturating_add(blocks);
                continue;
            }
            let count = blocks.min(most);
            let start = FsBlock(extent.startblock.0.saturating_add(before));
            let short = u32::try_from(count).unwrap_or(u32::MAX);
            let location = locate(geometry, false, start, short);
            let (count, location) = match location {
                Some(location) => (count, Some(location)),
                None => (1, locate(geometry, false, start, 1)),
            };
            let Some(location) = location else {
                // All that is left of the extent, so that an absurd one costs one step.
                if !each(Piece::Missing { first: at, blocks, why: Missing::Outside(extent) }) {
                    return there;
                }
                at = at.saturating_add(blocks);
                continue;
            };
            let go_on = match self.read(walk, &mut buffer, at, location.byte.0, location.length) {
                Ok(()) => {
                    there = there.saturating_add(count);
                    each(Piece::Blocks { first: at, byte: location.byte.0, bytes: &buffer })
                }
                Err(error) => match count {
                    1 => each(Piece::Missing { first: at, blocks: 1, why: Missing::Unreadable(error) }),
                    _ => self.one_by_one(walk, at, at.saturating_add(count), &mut there, each),
                },
            };
            if !go_on || walk.step(count).is_err() {
                return there;
            }
            at = at.saturating_add(count);
        }
        there
    }

    fn read(&self, walk: &Walk<'_>, buffer: &mut Vec<u8>, at: u64, byte: u64, length: u64) -> crate::error::Result<()> {
        buffer.resize(usize::try_from(length).unwrap_or(0), 0);
        let name = || format!("inode {} › file block {at}", self.block.ino());
        walk.volume().read_into(Device::Data, crate::units::ByteOffset(byte), buffer, name)
    }

    /// A run that cannot be read as a whole, block by block.
    fn one_by_one(
        &self,
        walk: &Walk<'_>,
        from: u64,
        to: u64,
        there: &mut u64,
        each: &mut dyn FnMut(Piece<'_>) -> bool,
    ) -> bool {
        let mut buffer = Vec::new();
        for at in from..to {
            let place = self.map.block(FileBlock(at)).and_then(|block| walk.geometry().block_byte(block));
            let Some(byte) = place else { continue };
            let go_on = match self.read(walk, &mut buffer, at, byte.0, walk.geometry().block_size()) {
                Ok(()) => {
                    *there = there.saturating_add(1);
                    each(Piece::Blocks { first: at, byte: byte.0, bytes: &buffer })
                }
                Err(error) => each(Piece::Missing { first: at, blocks: 1, why: Missing::Unreadable(error) }),
            };
            if !go_on {
                return false;
            }
        }
        true
    }

    /// What covers block `at`, and for how many blocks, up to `to`.
    fn next(&self, at: u64, to: u64) -> (u64, Found) {
        let rest = to.saturating_sub(at);
        match self.map.find(FileBlock(at)) {
            Some((extent, before)) => {
                let before = u64::from(before);
                (u64::from(extent.blockcount).saturating_sub(before).min(rest), Found::Extent(*extent, before))
            }
            None => {
                let next = self.map.extents().partition_point(|extent| extent.startoff.0 <= at);
                let end = self.map.extents().get(next).map_or(to, |extent| extent.startoff.0);
                (end.saturating_sub(at).min(rest), Found::Hole)
            }
        }
    }

    /// Reads `count` words of 4 bytes from word `first` on into `out` as raw bytes; the words of each block begin at
    /// byte `header` of it. Words that are not there stay away: gives false then.
    pub fn words(&self, walk: &Walk<'_>, header: u64, (first, count): (u64, u64), out: &mut Vec<[u8; 4]>) -> bool {
        out.clear();
        let size = walk.geometry().block_size();
        let per_block = size.saturating_sub(header).checked_div(4).unwrap_or(0).max(1);
        let mut at = first;
        let end = first.saturating_add(count);
        let mut piece = Vec::new();
        while at < end {
            let (block, within) = (at.checked_div(per_block).unwrap_or(0), at.checked_rem(per_block).unwrap_or(0));
            let here = per_block.saturating_sub(within).min(end.saturating_sub(at));
            let found = self.map.find(FileBlock(block)).filter(|(extent, _)| !extent.unwritten);
            let byte = found.and_then(|(extent, before)| {
                let fsb = FsBlock(extent.startblock.0.checked_add(u64::from(before))?);
                walk.geometry().block_byte(fsb)?.checked_add(header)?.checked_add(within.checked_mul(4)?)
            });
            let Some(byte) = byte else { return false };
            if self.read(walk, &mut piece, block, byte.0, here.saturating_mul(4)).is_err() {
                return false;
            }
            out.extend_from_slice(piece.as_chunks::<4>().0);
            at = at.saturating_add(here);
        }
        true
    }
}

enum Found {
    Hole,
    Extent(Extent, u64),
}
