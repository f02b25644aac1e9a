//! From a directory to its entries, in every format: in the inode, in one block, or in the data blocks below the leaf
//! offset. The hash index is not used: it may be damaged, and holds no names.
//! `xfs_readdir` (xfs_dir2_readdir.c); `xfs_dir2_byte_to_dataptr`, `XFS_DIR2_LEAF_OFFSET` (xfs_dir2.h).

use super::extents::{self, Extents};
use super::{Inode, InodeBlock, Walk, corrupt, index};
use crate::error::{Error, Place, Result};
use crate::format::bmbt::Extent;
use crate::format::checksum::{self, CrcState};
use crate::format::dinode::{Fork, fork_format};
use crate::format::dinode_view::Kind;
use crate::format::dir_data::{self, Slot, magic};
use crate::format::{bits, dir_shortform, hash};
use crate::geometry::Geometry;
use crate::units::{FileBlock, FsBlock, Ino};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Where the hash index begins: entries lie below (`XFS_DIR2_LEAF_OFFSET`, 32 GiB).
pub const LEAF_BYTE: u64 = 1 << 35;
/// Where the index of free space begins (`XFS_DIR2_FREE_OFFSET`, 64 GiB).
pub const FREE_BYTE: u64 = 1 << 36;
/// Largest read of directory blocks.
const LARGEST: u64 = 1 << 20;

/// An entry, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name: any bytes.
    pub name: &'a [u8],
    /// Inode it names, unchecked.
    pub ino: Ino,
    /// File type (`XFS_DIR3_FT_*`) where the file system keeps one.
    pub ftype: Option<u8>,
}

impl Entry<'_> {
    /// Is it `.` or `..`?
    pub fn is_dots(&self) -> bool {
        self.name == b"." || self.name == b".."
    }

    /// What its file type says it is.
    pub fn kind(&self) -> Option<Kind> {
        self.ftype.and_then(Kind::of_ftype)
    }
}

/// A block of a directory, in memory.
#[derive(Clone, Copy, Debug)]
pub struct DirBlock<'a> {
    /// Its first file block; 0 for a directory in its inode.
    pub at: FileBlock,
    /// The block; the data fork where the directory lies in its inode.
    pub bytes: &'a [u8],
    /// The entries, `.` and `..` included: those of a directory in its inode are made up.
    shortform: Option<Ino>,
    walk: &'a Walk<'a>,
}

impl<'a> DirBlock<'a> {
    /// Gives each entry to `each`, `.` and `..` included, in disk order.
    ///
    /// Where the parent of a directory in its inode is wanted: it comes first, as `..`.
    pub fn entries(&self, mut each: impl FnMut(Entry<'a>) -> ControlFlow<()>) -> ControlFlow<()> {
        let context = self.walk.context();
        if let Some(own) = self.shortform {
            each(Entry { name: b".", ino: own, ftype: Some(2) })?;
            if let Some(header) = dir_shortform::header(self.bytes) {
                each(Entry { name: b"..", ino: header.parent, ftype: Some(2) })?;
            }
            for entry in dir_shortform::entries(context, self.bytes) {
                each(Entry { name: entry.name, ino: entry.ino, ftype: entry.ftype })?;
            }
            return ControlFlow::Continue(());
        }
        for slot in dir_data::slots(context, self.bytes) {
            if let Slot::Entry { name, ino, ftype, .. } = slot {
                each(Entry { name, ino, ftype })?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The blocks of a directory that hold entries, one after the other. Not an `Iterator`: each block is only lent.
#[derive(Debug)]
pub struct DirBlocks<'a> {
    walk: &'a Walk<'a>,
    inode: Inode<'a>,
    shortform: Option<&'a [u8]>,
    extents: Option<Extents<'a>>,
    /// What is left of the extent at hand.
    rest: Option<Extent>,
    /// Blocks that were read together: first file block, first block, how many, and how many were used.
    run: (FileBlock, FsBlock, u32, u32),
    buffer: Vec<u8>,
    block: Vec<u8>,
    /// File block and first place of the directory block being put together.
    block_at: Option<(FileBlock, FsBlock)>,
    errors: VecDeque<Error>,
    ready: bool,
    /// Blocks to read one by one, since they could not be read together.
    careful: u32,
}

/// The blocks of a directory. For anything else than a directory there are none, after an error.
pub fn blocks<'a>(walk: &'a Walk<'a>, inode: Inode<'a>) -> DirBlocks<'a> {
    let mut blocks = DirBlocks {
        walk,
        inode,
        shortform: None,
        extents: None,
        rest: None,
        run: (FileBlock(0), FsBlock(0), 0, 0),
        buffer: Vec::new(),
        block: Vec::new(),
        block_at: None,
        errors: VecDeque::new(),
        ready: false,
        careful: 0,
    };
    let place = |field| inode.place(walk.volume()).field(field);
    if inode.kind() != Kind::Directory {
        let error = Error::request(format!("inode {}: a {}, not a directory", inode.ino, inode.kind().name()));
        blocks.errors.push_back(error);
        return blocks;
    }
    match inode.format(Fork::Data) {
        fork_format::LOCAL => {
            let fork = inode.fork(Fork::Data).unwrap_or_default();
            let said = dir_shortform::header(fork).map_or(0, |header| usize::from(header.count));
            let found = dir_shortform::entries(walk.context(), fork).count();
            if found != said || dir_shortform::header(fork).is_none() {
                let error = corrupt(place("u3.sfdir3.hdr.count"), "entries leave the inode", said, found);
                blocks.errors.push_back(error);
            }
            blocks.shortform = Some(fork);
        }
        fork_format::EXTENTS | fork_format::BTREE => {
            blocks.extents = Some(extents::extents(walk, inode, Fork::Data));
        }
        other => {
            let right = "1 (local), 2 (extents) or 3 (btree)";
            blocks.errors.push_back(corrupt(place("core.format"), "format of a directory", other, right));
        }
    }
    blocks
}

impl<'a> DirBlocks<'a> {
    /// The next block, or what is wrong with one. `None` at the end.
    ///
    /// A block that cannot be read or is no directory block is an error, and the next one follows. A block whose
    /// checksum, owner or entries are wrong is an error, and then comes itself.
    pub fn next_block(&mut self) -> Option<Result<DirBlock<'_>>> {
        self.ready = false;
        loop {
            if let Some(error) = self.errors.pop_front() {
                return Some(Err(error));
            }
            if self.ready {
                let at = self.block_at.map_or(FileBlock(0), |(at, _)| at);
                self.block_at = None;
                return Some(Ok(DirBlock { at, bytes: &self.block, shortform: None, walk: self.walk }));
            }
            if let Some(fork) = self.shortform.take() {
                let own = Some(self.inode.ino);
                return Some(Ok(DirBlock { at: FileBlock(0), bytes: fork, shortform: own, walk: self.walk }));
            }
            if !self.step() {
                self.extents = None;
                if self.errors.is_empty() {
                    return None;
                }
            }
        }
    }

    /// Blocks of a directory block.
    fn width(&self) -> u64 {
        let context = self.walk.context();
        u64::from(context.dir_block_size.checked_div(context.block_size).unwrap_or(1).max(1))
    }

    /// Moves on by one block of the file, or one extent. False at the end.
    fn step(&mut self) -> bool {
        let (first, start, count, used) = self.run;
        if used < count {
            self.run.3 = used.saturating_add(1);
            let at = FileBlock(first.0.saturating_add(u64::from(used)));
            self.add(at, FsBlock(start.0.saturating_add(u64::from(used))), used);
            return true;
        }
        if let Some(rest) = self.rest.take() {
            return self.read(rest);
        }
        let Some(extents) = &mut self.extents else { return false };
        let limit = LEAF_BYTE.checked_shr(self.walk.geometry().block_log).unwrap_or(0);
        match extents.next() {
            None => {
                self.incomplete();
                return false;
            }
            Some(Err(error)) => self.errors.push_back(error),
            Some(Ok(extent)) if extent.startoff.0 >= limit => {}
            Some(Ok(extent)) => {
                let most = u32::try_from(limit.saturating_sub(extent.startoff.0)).unwrap_or(u32::MAX);
                self.rest = Some(Extent { blockcount: extent.blockcount.min(most), ..extent });
            }
        }
        true
    }

    /// Reads the beginning of an extent. False when the budget is used up.
    fn read(&mut self, extent: Extent) -> bool {
        let geometry = self.walk.geometry();
        let size = geometry.block_size();
        let most = LARGEST.checked_div(size).and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1);
        let count = if self.careful > 0 { 1 } else { extent.blockcount.min(most) }.min(extent.blockcount);
        if count == 0 {
            return true;
        }
        if let Err(error) = self.walk.step(u64::from(count)) {
            self.errors.push_back(error);
            return false;
        }
        let after = |n: u32| Extent {
            startoff: FileBlock(extent.startoff.0.saturating_add(u64::from(n))),
            startblock: FsBlock(extent.startblock.0.saturating_add(u64::from(n))),
            blockcount: extent.blockcount.saturating_sub(n),
            unwritten: extent.unwritten,
        };
        let Some(location) = extents::locate(geometry, false, extent.startblock, count) else {
            self.errors.push_back(extents::nowhere(self.walk, self.inode, Fork::Data, &extent));
            return true;
        };
        let length = usize::try_from(location.length).unwrap_or(0);
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let (ino, startoff) = (self.inode.ino, extent.startoff);
        let name = || format!("inode {ino} › directory block {startoff}");
        let into = self.buffer.get_mut(..length).unwrap_or_default();
        self.careful = self.careful.saturating_sub(count);
        match self.walk.volume().read_into(location.device, location.byte, into, name) {
            Ok(()) => self.run = (extent.startoff, extent.startblock, count, 0),
            // One bad block must not hide its neighbours: read again, block by block.
            Err(_) if count > 1 => {
                self.careful = count;
                self.rest = Some(extent);
                return true;
            }
            Err(error) => self.errors.push_back(error),
        }
        self.rest = Some(after(count)).filter(|rest| rest.blockcount > 0);
        true
    }

    fn name(&self, at: FileBlock) -> String {
        format!("inode {} › directory block {at}", self.inode.ino)
    }

    /// Adds a block of the file to the directory block being put together.
    fn add(&mut self, at: FileBlock, from: FsBlock, position: u32) {
        let size = index(self.walk.context().block_size);
        let start = index(position).saturating_mul(size);
        let width = self.width();
        let within = at.0.checked_rem(width).unwrap_or(0);
        let have = u64::try_from(self.block.len().checked_div(size).unwrap_or(0)).unwrap_or(0);
        let follows = self.block_at.is_some_and(|(first, _)| first.0.checked_add(have) == Some(at.0));
        if within == 0 || !follows {
            self.incomplete();
            if within != 0 {
                let error = corrupt(
                    self.walk.place(from, self.name(at)),
                    "its first part is missing",
                    at,
                    at.0.saturating_sub(within),
                );
                self.errors.push_back(error);
                return;
            }
            self.block.clear();
            self.block_at = Some((at, from));
        }
        let bytes = self.buffer.get(start..start.saturating_add(size)).unwrap_or_default();
        self.block.extend_from_slice(bytes);
        if within.checked_add(1) == Some(width) {
            self.finish();
        }
    }

    /// A directory block whose rest is missing is lost.
    fn incomplete(&mut self) {
        if let Some((at, from)) = self.block_at.take() {
            let found = self.block.len();
            let place = self.walk.place(from, self.name(at));
            let right = format!("{} bytes", self.walk.context().dir_block_size);
            self.errors.push_back(corrupt(place, "a part of it is missing", format!("{found} bytes"), right));
        }
    }

    /// Looks at a directory block that is complete.
    fn finish(&mut self) {
        let Some((at, from)) = self.block_at else { return };
        let context = self.walk.context();
        let place = || {
            let mut place = self.walk.place(from, self.name(at));
            place.length = u64::from(context.dir_block_size);
            place
        };
        let (block, data) = match context.has_crc() {
            true => (magic::BLOCK_V5, magic::DATA_V5),
            false => (magic::BLOCK_V4, magic::DATA_V4),
        };
        let found = bits::be32(&self.block, 0).unwrap_or(0);
        if found != block && found != data {
            let error =
                corrupt(place().field("magic"), "no directory block", format!("{found:#x}"), format!("{data:#x}"));
            self.errors.push_back(error);
            self.block_at = None;
            return;
        }
        let mut errors = Vec::new();
        if context.has_crc() {
            if let CrcState::Bad { computed } = checksum::verify(&self.block, 4) {
                let stored = bits::array(&self.block, 4).map_or(0, u32::from_le_bytes);
                let (stored, computed) =
                    (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
                errors.push(corrupt(place().field("crc"), "the checksum is wrong", stored, computed));
            }
            let owner = bits::be64(&self.block, 40).unwrap_or(0);
            if owner != self.inode.ino.0 {
                errors.push(corrupt(
                    place().field("owner"),
                    "the block belongs to another inode",
                    owner,
                    self.inode.ino,
                ));
            }
        }
        let end = dir_data::entries_end(context, &self.block);
        let mut reached = dir_data::header_size(context);
        for slot in dir_data::slots(context, &self.block) {
            let (offset, size, tag) = match slot {
                Slot::Unused { offset, length, tag } => (offset, usize::from(length), tag),
                Slot::Entry { offset, name, tag, .. } => {
                    (offset, dir_data::entry_size(context, u8::try_from(name.len()).unwrap_or(u8::MAX)), tag)
                }
            };
            reached = offset.saturating_add(size);
            if usize::from(tag) != offset && errors.len() < 4 {
                errors.push(corrupt(place().field("tag"), "an entry says it lies elsewhere", tag, offset));
            }
        }
        if reached != end {
            errors.push(corrupt(place(), "the entries do not end where they should", reached, end));
        }
        self.errors.extend(errors);
        self.ready = true;
    }
}

/// Gives each entry of a directory to `each`, `.` and `..` included, in disk order; whatever is wrong goes to
/// `report`, and the rest follows.
pub fn for_each(
    walk: &Walk<'_>,
    inode: Inode<'_>,
    report: &mut dyn FnMut(Error),
    mut each: impl FnMut(Entry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut blocks = blocks(walk, inode);
    while let Some(block) = blocks.next_block() {
        match block {
            Ok(block) => block.entries(&mut each)?,
            Err(error) => report(error),
        }
    }
    ControlFlow::Continue(())
}

/// An entry with its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEntry {
    /// Name: any bytes.
    pub name: Vec<u8>,
    /// Inode it names, unchecked.
    pub ino: Ino,
    /// File type (`XFS_DIR3_FT_*`) where the file system keeps one.
    pub ftype: Option<u8>,
}

/// The entries of a directory without `.` and `..`, in disk order, as an iterator. Holds the entries of one block.
///
/// An error is about one block; the iterator goes on with the next and then ends.
#[derive(Debug)]
pub struct Entries<'a> {
    blocks: DirBlocks<'a>,
    ready: VecDeque<OwnedEntry>,
}

/// The entries of a directory.
pub fn entries<'a>(walk: &'a Walk<'a>, inode: Inode<'a>) -> Entries<'a> {
    Entries { blocks: blocks(walk, inode), ready: VecDeque::new() }
}

impl Iterator for Entries<'_> {
    type Item = Result<OwnedEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Some(Ok(entry));
            }
            match self.blocks.next_block()? {
                Err(error) => return Some(Err(error)),
                Ok(block) => {
                    let _ = block.entries(|entry| {
                        if !entry.is_dots() {
                            let Entry { name, ino, ftype } = entry;
                            self.ready.push_back(OwnedEntry { name: name.to_vec(), ino, ftype });
                        }
                        ControlFlow::Continue(())
                    });
                }
            }
        }
    }
}

/// The inode that a name in a directory leads to; `None` where there is no such name. Where the file system ignores
/// case (feature ascii-ci), a name that differs only in it will do.
pub fn lookup(walk: &Walk<'_>, inode: Inode<'_>, name: &[u8], report: &mut dyn FnMut(Error)) -> Option<Ino> {
    let ignore_case = walk.context().features.has_ascii_ci();
    let fold = |bytes: &[u8]| bytes.iter().map(|&b| hash::fold_case(b)).collect::<Vec<u8>>();
    let folded = if ignore_case { fold(name) } else { Vec::new() };
    let (mut exact, mut similar) = (None, None);
    let _ = for_each(walk, inode, report, |entry| {
        if entry.name == name {
            exact = Some(entry.ino);
            return ControlFlow::Break(());
        }
        if ignore_case && similar.is_none() && entry.name.len() == name.len() && fold(entry.name) == folded {
            similar = Some(entry.ino);
        }
        ControlFlow::Continue(())
    });
    exact.or(similar)
}

/// The inode behind a path from `start`: `a/b`, `/a/b`, or nothing for `start` itself. Symbolic links on the way are
/// not followed.
///
/// # Errors
/// [`Error::Request`] where a part does not exist or is no directory; what [`Walk::inode`] says of each part.
pub fn resolve(walk: &Walk<'_>, start: Ino, path: &[u8], report: &mut dyn FnMut(Error)) -> Result<InodeBlock> {
    let mut block = walk.inode(start)?;
    let mut done: Vec<u8> = Vec::new();
    for part in path.split(|&b| b == b'/').filter(|part| !part.is_empty() && *part != b".") {
        let inode = block.inode();
        let shown = || String::from_utf8_lossy(if done.is_empty() { b"/" } else { &done }).escape_debug().to_string();
        let part_shown = || String::from_utf8_lossy(part).escape_debug().to_string();
        match inode.kind() {
            Kind::Directory => {}
            Kind::Symlink => {
                let text = format!("{}: a symbolic link (inode {}); links are not followed", shown(), inode.ino);
                return Err(Error::request(text));
            }
            kind => {
                return Err(Error::request(format!(
                    "{}: a {} (inode {}), not a directory",
                    shown(),
                    kind.name(),
                    inode.ino
                )));
            }
        }
        let Some(ino) = lookup(walk, inode, part, report) else {
            let text = format!("{}: no such name in {} (inode {})", part_shown(), shown(), inode.ino);
            return Err(Error::request(text));
        };
        done.push(b'/');
        done.extend_from_slice(part);
        block = walk.inode(ino)?;
    }
    Ok(block)
}

/// Where the hash index of a directory begins, as a file block.
pub fn leaf_block(geometry: &Geometry) -> FileBlock {
    FileBlock(LEAF_BYTE.checked_shr(geometry.block_log).unwrap_or(0))
}

/// The place of a directory block within its file, for messages.
pub fn block_place(walk: &Walk<'_>, ino: Ino, at: FileBlock, from: FsBlock) -> Place {
    walk.place(from, format!("inode {ino} › directory block {at}"))
}
