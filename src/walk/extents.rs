//! From a fork to its extents, whether they stand in the inode or in a btree.
//! `xfs_iread_extents`, `xfs_bmap_validate_extent` (xfs_bmap.c).

use super::btree::{Blocks, Root};
use super::{Inode, Walk, corrupt};
use crate::error::{Error, Result};
use crate::format::bmbt::{self, Extent};
use crate::format::btree_block::Parts;
use crate::format::dinode::{Fork, fork_format};
use crate::geometry::Geometry;
use crate::units::{ByteOffset, Device, FileBlock, FsBlock, RtBlock};

/// The extents of a fork in disk order, which is the order of the file on a sound one. Values are as stored: sizes,
/// order and places are not judged.
///
/// An error is about one btree block or the count; the iterator goes on with the rest and then ends. The kernel refuses
/// a fork whose btree holds more or fewer extents than the core says; here that is the last error.
#[derive(Debug)]
pub struct Extents<'a> {
    state: State<'a>,
    error: Option<Error>,
    walk: &'a Walk<'a>,
    inode: Inode<'a>,
    fork: Fork,
    /// Extents so far; `None` once a part of the btree was lost.
    found: Option<u64>,
}

#[derive(Debug)]
enum State<'a> {
    /// Nothing, or nothing more.
    End,
    /// Records in the inode.
    Inode(Parts<'a>),
    /// Records in the leaves of a btree.
    Tree { blocks: Box<Blocks<'a>>, next: usize },
}

/// The extents of a fork; none where the fork holds its content itself, or does not exist.
pub fn extents<'a>(walk: &'a Walk<'a>, inode: Inode<'a>, fork: Fork) -> Extents<'a> {
    let make = |state, error| Extents { state, error, walk, inode, fork, found: Some(0) };
    let Some(bytes) = inode.fork(fork) else { return make(State::End, None) };
    let name = if fork == Fork::Data { "core.format" } else { "core.aformat" };
    match inode.format(fork) {
        fork_format::EXTENTS => {
            let count = inode.extents(fork);
            let room = bytes.len().checked_div(16).unwrap_or(0);
            let most = u64::try_from(room).unwrap_or(u64::MAX);
            let field = if fork == Fork::Data { "core.nextents" } else { "core.naextents" };
            let error = (count > most).then(|| {
                corrupt(inode.place(walk.volume()).field(field), "more extents than the fork can hold", count, most)
            });
            let count = u32::try_from(count.min(most)).unwrap_or(0);
            make(State::Inode(Parts::new(bytes, 0, 16, count)), error)
        }
        fork_format::BTREE => {
            let shape = if fork == Fork::Data { &bmbt::SHAPE } else { &bmbt::ATTR_SHAPE };
            let blocks = Box::new(Blocks::new(walk, shape, Root::Fork { ino: inode.ino, bytes }));
            make(State::Tree { blocks, next: 0 }, None)
        }
        fork_format::DEV | fork_format::LOCAL | fork_format::META_BTREE => make(State::End, None),
        other => {
            let place = inode.place(walk.volume()).field(name);
            let error = corrupt(place, "format of the fork", other, "1 (local), 2 (extents) or 3 (btree)");
            make(State::End, Some(error))
        }
    }
}

impl Extents<'_> {
    fn tree_step(&mut self) -> Option<Result<Extent>> {
        let State::Tree { blocks, next } = &mut self.state else { return None };
        loop {
            if let Some(record) = blocks.current().and_then(|block| block.records().nth(*next)) {
                *next = next.saturating_add(1);
                if let Some(extent) = Extent::at(record, 0) {
                    return Some(Ok(extent));
                }
            } else {
                *next = 0;
                match blocks.advance()? {
                    Ok(()) => {}
                    Err(error) => return Some(Err(error)),
                }
            }
        }
    }
}

impl Iterator for Extents<'_> {
    type Item = Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let item = match &mut self.state {
            State::End => None,
            State::Inode(parts) => parts.next().and_then(|record| Extent::at(record, 0)).map(Ok),
            State::Tree { .. } => {
                let item = self.tree_step();
                match &item {
                    Some(Ok(_)) => self.found = self.found.and_then(|n| n.checked_add(1)),
                    Some(Err(_)) => self.found = None,
                    None => {
                        self.state = State::End;
                        return self.count_error().map(Err);
                    }
                }
                item
            }
        };
        if item.is_none() {
            self.state = State::End;
        }
        item
    }
}

impl Extents<'_> {
    /// The btree was read to its end: does the core agree?
    fn count_error(&self) -> Option<Error> {
        let (said, found) = (self.inode.extents(self.fork), self.found?);
        let field = if self.fork == Fork::Data { "core.nextents" } else { "core.naextents" };
        let place = || self.inode.place(self.walk.volume()).field(field);
        (said != found).then(|| corrupt(place(), "the btree holds another number of extents", said, found))
    }
}

/// Where an extent lies on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The device.
    pub device: Device,
    /// First byte.
    pub byte: ByteOffset,
    /// Length in bytes.
    pub length: u64,
}

/// Does this fork map blocks of the realtime section?
pub fn on_realtime(inode: Inode<'_>, fork: Fork) -> bool {
    fork == Fork::Data && inode.is_realtime()
}

/// Where `blocks` blocks from `start` on lie; `None` where they do not all exist, side by side.
pub fn locate(geometry: &Geometry, realtime: bool, start: FsBlock, blocks: u32) -> Option<Location> {
    let last = start.0.checked_add(u64::from(blocks.checked_sub(1)?))?;
    let length = u64::from(blocks).checked_mul(geometry.block_size())?;
    if realtime {
        let (device, byte) = geometry.rt_block_byte(RtBlock(start.0))?;
        let (_, end) = geometry.rt_block_byte(RtBlock(last))?;
        let together = end.0.checked_sub(byte.0)? == length.checked_sub(geometry.block_size())?;
        return together.then_some(Location { device, byte, length });
    }
    let (ag, _) = geometry.split(start)?;
    let (last_ag, _) = geometry.split(FsBlock(last))?;
    let byte = geometry.block_byte(start)?;
    (ag == last_ag).then_some(Location { device: Device::Data, byte, length })
}

/// The error for an extent that lies nowhere.
pub fn nowhere(walk: &Walk<'_>, inode: Inode<'_>, fork: Fork, extent: &Extent) -> Error {
    let place = inode.place(walk.volume());
    let (field, section) = match (fork, on_realtime(inode, fork)) {
        (Fork::Data, true) if walk.geometry().realtime.is_none() => {
            ("u3.bmx", "a realtime section, which there is not")
        }
        (Fork::Data, true) => ("u3.bmx", "blocks of the realtime section"),
        (Fork::Data, false) => ("u3.bmx", "blocks within one AG"),
        (Fork::Attr, _) => ("a.bmx", "blocks within one AG"),
    };
    let found = format!("[{},{},{}]", extent.startoff, extent.startblock, extent.blockcount);
    corrupt(place.field(field), "the extent lies outside", found, section)
}

/// The extents of a fork, held together for access by offset. Takes about twice the memory of the records on disk.
#[derive(Clone, Debug, Default)]
pub struct ForkMap {
    extents: Vec<Extent>,
}

impl ForkMap {
    /// Reads the extents of a fork. Whatever is wrong goes to `report`; the rest is kept, sorted by file block.
    pub fn read(walk: &Walk<'_>, inode: Inode<'_>, fork: Fork, report: &mut dyn FnMut(Error)) -> Self {
        let mut found = Vec::new();
        for extent in extents(walk, inode, fork) {
            match extent {
                Ok(extent) => found.push(extent),
                Err(error) => report(error),
            }
        }
        // Sound maps are sorted already, which makes this one pass.
        found.sort_by_key(|extent| extent.startoff);
        Self { extents: found }
    }

    /// The extents, by file block.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The extent that holds a file block, and how many blocks of it lie before; `None` in a hole.
    pub fn find(&self, block: FileBlock) -> Option<(&Extent, u32)> {
        let after = self.extents.partition_point(|extent| extent.startoff <= block);
        let extent = self.extents.get(after.checked_sub(1)?)?;
        let before = u32::try_from(block.0.checked_sub(extent.startoff.0)?).ok()?;
        (before < extent.blockcount).then_some((extent, before))
    }

    /// The block of the device behind a file block.
    pub fn block(&self, block: FileBlock) -> Option<FsBlock> {
        let (extent, before) = self.find(block)?;
        extent.startblock.0.checked_add(u64::from(before)).map(FsBlock)
    }

    /// Reads `count` blocks of the data device from file block `first` on, wherever they lie; for directory and
    /// attribute blocks.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where one of them is a hole, [`Error::Io`], [`Error::Request`] where it does not exist.
    pub fn read_blocks(
        &self,
        walk: &Walk<'_>,
        first: FileBlock,
        count: u32,
        what: &str,
    ) -> Result<crate::volume::Block> {
        let mut bytes = Vec::new();
        let mut place = None;
        for i in 0..count {
            let at = first.0.checked_add(u64::from(i)).map(FileBlock).unwrap_or(FileBlock::NULL);
            let Some(block) = self.block(at) else {
                let place = place.unwrap_or_else(|| walk.place(FsBlock(0), what));
                return Err(corrupt(place, "there is no block in the file", at, "a mapped block"));
            };
            let piece = walk.volume().blocks(block, 1, what)?;
            place.get_or_insert(piece.place);
            bytes.extend_from_slice(&piece.bytes);
        }
        let mut place = place.unwrap_or_else(|| walk.place(FsBlock(0), what));
        place.length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(crate::volume::Block { bytes, place })
    }
}
