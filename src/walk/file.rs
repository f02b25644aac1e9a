//! The content of a file: bytes from its extents, zeros for holes and for blocks that are allocated but unwritten.
//! Data of realtime files comes from the realtime device, or not at all.

use super::extents::{self, ForkMap};
use super::{Inode, Walk, corrupt};
use crate::error::{Error, Result};
use crate::format::bmbt::Extent;
use crate::format::dinode::{Fork, fork_format};
use crate::format::dinode_view::Kind;
use crate::units::{FileBlock, FsBlock};
use std::iter::Peekable;

/// Largest read.
const LARGEST: u64 = 4 << 20;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes from the disk, at most 4 MiB.
    Data {
        /// First byte within the file.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Zeros, however many: a hole, or blocks that are allocated but unwritten.
    Zeros {
        /// First byte within the file.
        offset: u64,
        /// How many.
        length: u64,
        /// Allocated?
        unwritten: bool,
    },
}

/// The content of a file from its first byte to its last, piece by piece. Not an `Iterator`: each piece is only lent.
#[derive(Debug)]
pub struct Content<'a> {
    walk: &'a Walk<'a>,
    inode: Inode<'a>,
    extents: Peekable<extents::Extents<'a>>,
    rest: Option<Extent>,
    at: u64,
    size: u64,
    buffer: Vec<u8>,
    failed: bool,
    realtime: bool,
    /// Blocks to read one by one, since they could not be read together.
    careful: u32,
}

/// Length of a file that has content.
fn size_of(walk: &Walk<'_>, inode: Inode<'_>) -> Result<u64> {
    if inode.kind() != Kind::Regular {
        return Err(Error::request(format!("inode {}: a {}, not a regular file", inode.ino, inode.kind().name())));
    }
    let format = inode.format(Fork::Data);
    if !matches!(format, fork_format::EXTENTS | fork_format::BTREE) {
        let place = inode.place(walk.volume()).field("core.format");
        return Err(corrupt(place, "format of a regular file", format, "2 (extents) or 3 (btree)"));
    }
    u64::try_from(inode.size()).map_err(|_| {
        corrupt(inode.place(walk.volume()).field("core.size"), "length of the file", inode.size(), "0 or more")
    })
}

/// The content of a regular file.
///
/// # Errors
/// [`Error::Request`] for anything but a regular file, and for a realtime file whose device was not given;
/// [`Error::Corrupt`] for a length or format that no file has.
pub fn content<'a>(walk: &'a Walk<'a>, inode: Inode<'a>) -> Result<Content<'a>> {
    let realtime = extents::on_realtime(inode, Fork::Data);
    if realtime {
        refuse_missing_device(walk, inode)?;
    }
    content_of(walk, inode, realtime)
}

/// The content of a regular file whose realtime flag was set by mistake: its blocks are taken as blocks of the data
/// device.
///
/// # Errors
/// As [`content`], but for the device.
pub fn content_on_data<'a>(walk: &'a Walk<'a>, inode: Inode<'a>) -> Result<Content<'a>> {
    content_of(walk, inode, false)
}

fn content_of<'a>(walk: &'a Walk<'a>, inode: Inode<'a>, realtime: bool) -> Result<Content<'a>> {
    let size = size_of(walk, inode)?;
    let extents = extents::extents(walk, inode, Fork::Data).peekable();
    Ok(Content {
        walk,
        inode,
        extents,
        rest: None,
        at: 0,
        size,
        buffer: Vec::new(),
        failed: false,
        realtime,
        careful: 0,
    })
}

fn refuse_missing_device(walk: &Walk<'_>, inode: Inode<'_>) -> Result<()> {
    if inode.extents(Fork::Data) == 0 {
        return Ok(());
    }
    let Some(realtime) = &walk.geometry().realtime else {
        let place = inode.place(walk.volume()).field("core.realtime");
        let right = "0: there is no realtime section, its blocks may be blocks of the data device (--as-data)";
        return Err(corrupt(place, "the file is marked as a realtime file", 1, right));
    };
    if walk.volume().devices().get(realtime.device).is_none() {
        let text =
            format!("inode {}: its content lies on the realtime device, which was not given (--rtdev)", inode.ino);
        return Err(Error::request(text));
    }
    Ok(())
}

impl Content<'_> {
    /// Length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next piece; pieces follow each other without gaps. `None` at the end of the file, and after an error: what
    /// lies behind a part that is lost cannot be placed safely.
    pub fn next_piece(&mut self) -> Option<Result<Piece<'_>>> {
        if self.failed || self.at >= self.size {
            return None;
        }
        match self.advance() {
            Ok((offset, length, None)) => {
                let bytes = self.buffer.get(..usize::try_from(length).ok()?)?;
                Some(Ok(Piece::Data { offset, bytes }))
            }
            Ok((offset, length, Some(unwritten))) => Some(Ok(Piece::Zeros { offset, length, unwritten })),
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }

    /// Offset and length of the next piece; whether it is zeros, and why.
    fn advance(&mut self) -> Result<(u64, u64, Option<bool>)> {
        let block_size = self.walk.geometry().block_size();
        let extent = match self.rest.take() {
            Some(rest) => rest,
            None => match self.extents.next() {
                Some(extent) => extent?,
                None => return Ok(self.zeros(self.size, false)),
            },
        };
        let start = extent.startoff.0.saturating_mul(block_size);
        if start > self.at {
            self.rest = Some(extent);
            return Ok(self.zeros(start.min(self.size), false));
        }
        if start < self.at || extent.blockcount == 0 {
            let place = self.inode.place(self.walk.volume()).field("u3.bmx.startoff");
            let right = self.at.checked_div(block_size).unwrap_or(0);
            return Err(corrupt(
                place,
                "extents overlap or are out of order",
                extent.startoff,
                format!("{right} or more"),
            ));
        }
        let length = u64::from(extent.blockcount).saturating_mul(block_size);
        if extent.unwritten {
            return Ok(self.zeros(start.saturating_add(length).min(self.size), true));
        }
        let most = LARGEST.checked_div(block_size).and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1);
        let blocks = if self.careful > 0 { 1 } else { extent.blockcount.min(most) };
        let place = extents::locate(self.walk.geometry(), self.realtime, extent.startblock, blocks);
        let Some(location) = place else {
            return Err(extents::nowhere(self.walk, self.inode, Fork::Data, &extent));
        };
        let wanted = usize::try_from(location.length.min(self.size.saturating_sub(self.at))).unwrap_or(0);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let name = || format!("inode {} › file block {}", self.inode.ino, extent.startoff);
        let into = self.buffer.get_mut(..wanted).unwrap_or_default();
        match self.walk.volume().read_into(location.device, location.byte, into, name) {
            // What is before the block that cannot be read is delivered.
            Err(Error::Io { .. }) if blocks > 1 => {
                (self.careful, self.rest) = (blocks, Some(extent));
                return self.advance();
            }
            read => read?,
        }
        self.careful = self.careful.saturating_sub(1);
        if extent.blockcount > blocks {
            self.rest = Some(Extent {
                startoff: FileBlock(extent.startoff.0.saturating_add(u64::from(blocks))),
                startblock: FsBlock(extent.startblock.0.saturating_add(u64::from(blocks))),
                blockcount: extent.blockcount.saturating_sub(blocks),
                unwritten: false,
            });
        }
        let (offset, length) = (self.at, u64::try_from(wanted).unwrap_or(0));
        self.at = self.at.saturating_add(length);
        Ok((offset, length, None))
    }

    fn zeros(&mut self, end: u64, unwritten: bool) -> (u64, u64, Option<bool>) {
        let (offset, length) = (self.at, end.saturating_sub(self.at));
        self.at = end;
        (offset, length, Some(unwritten))
    }
}

/// A file for reading at any offset. Holds the extents of the file.
#[derive(Debug)]
pub struct Reader<'a> {
    walk: &'a Walk<'a>,
    inode: Inode<'a>,
    map: ForkMap,
    size: u64,
}

impl<'a> Reader<'a> {
    /// Opens a regular file.
    ///
    /// # Errors
    /// As [`content`]; and the first damage of the extent map.
    pub fn open(walk: &'a Walk<'a>, inode: Inode<'a>) -> Result<Self> {
        let size = size_of(walk, inode)?;
        if extents::on_realtime(inode, Fork::Data) {
            refuse_missing_device(walk, inode)?;
        }
        let mut first = None;
        let map = ForkMap::read(walk, inode, Fork::Data, &mut |error| {
            first.get_or_insert(error);
        });
        first.map_or(Ok(Self { walk, inode, map, size }), Err)
    }

    /// Length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads from byte `offset` on, as much as `buf` takes and the file has; gives how much.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Corrupt`] for an extent that lies nowhere.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let wanted = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let block_size = self.walk.geometry().block_size();
        let mut rest = buf.get_mut(..wanted).unwrap_or_default();
        let mut at = offset;
        while !rest.is_empty() {
            let block = FileBlock(at.checked_div(block_size).unwrap_or(0));
            let within = at.checked_rem(block_size).unwrap_or(0);
            let found = self.map.find(block);
            let blocks = match found {
                Some((extent, before)) => u64::from(extent.blockcount.saturating_sub(before)),
                None => {
                    let next = self.map.extents().partition_point(|extent| extent.startoff <= block);
                    let next = self.map.extents().get(next).map_or(u64::MAX, |extent| extent.startoff.0);
                    next.saturating_sub(block.0)
                }
            };
            let length = blocks.saturating_mul(block_size).saturating_sub(within);
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
            let (into, more) = rest.split_at_mut_checked(length).unwrap_or_default();
            match found {
                Some((extent, before)) if !extent.unwritten => self.read_extent(extent, before, within, into)?,
                _ => into.fill(0),
            }
            rest = more;
            at = at.saturating_add(u64::try_from(length.max(1)).unwrap_or(u64::MAX));
        }
        Ok(wanted)
    }

    fn read_extent(&self, extent: &Extent, before: u32, within: u64, into: &mut [u8]) -> Result<()> {
        let realtime = extents::on_realtime(self.inode, Fork::Data);
        let location = extents::locate(self.walk.geometry(), realtime, extent.startblock, extent.blockcount)
            .ok_or_else(|| extents::nowhere(self.walk, self.inode, Fork::Data, extent))?;
        let skip = u64::from(before).saturating_mul(self.walk.geometry().block_size()).saturating_add(within);
        let byte = location.byte.checked_add(skip).unwrap_or(location.byte);
        let name = || format!("inode {} › file block {}", self.inode.ino, extent.startoff);
        self.walk.volume().read_into(location.device, byte, into, name)
    }
}
