//! From an AG to its inode chunks and inodes: the inode btree tells where chunks lie, and whole chunks are read, many
//! at a time where they lie side by side. `xfs_iwalk_ag` (xfs_iwalk.c).

use super::batch::Batch;
use super::btree::Blocks;
use super::{Inode, Visited, Walk, corrupt, group, index, inode};
use crate::error::{Error, Place, Result};
use crate::format::inobt::{self, Chunk as Record, INODES_PER_CHUNK};
use crate::units::{AgIno, AgNumber, ByteOffset, Device, FsBlock, Ino};
use std::collections::VecDeque;

/// Largest read of chunks.
const LARGEST: u64 = 4 << 20;
/// Bytes between two chunks that are read along.
const GAP: u64 = 64 << 10;

/// A chunk of 64 inode numbers, in memory.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// Its AG.
    pub ag: AgNumber,
    /// Its record in the inode btree.
    pub record: Record,
    /// The inodes, side by side; shorter than 64 where the AG ends.
    pub bytes: &'a [u8],
    /// Inodes whose bytes could not be read: bit 0 for the first.
    pub unreadable: u64,
    walk: &'a Walk<'a>,
}

/// An inode of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// The inode.
    pub inode: Inode<'a>,
    /// Does the inode btree say that it is in use?
    pub in_use: bool,
}

impl<'a> Chunk<'a> {
    /// The inodes of the chunk that have space on disk and could be read, free ones included.
    pub fn inodes(&self) -> impl Iterator<Item = Slot<'a>> + use<'a> {
        let Self { ag, record, bytes, unreadable, walk } = *self;
        let size = index(walk.context().inode_size).max(1);
        (0u32..INODES_PER_CHUNK).zip(bytes.chunks_exact(size)).filter_map(move |(i, bytes)| {
            let hidden = unreadable.checked_shr(i).unwrap_or(0) & 1 != 0;
            if hidden || !record.has_space(i) {
                return None;
            }
            let ino = walk.geometry().join_inode(ag, AgIno(record.startino.0.checked_add(i)?))?;
            Some(Slot { inode: Inode::new(ino, bytes), in_use: record.in_use(i) })
        })
    }

    /// The inodes in use that are what they should be. Others, and wrong checksums, go to `report`; an inode with a
    /// wrong checksum is given all the same.
    pub fn used(&self, report: &mut dyn FnMut(Error), mut each: impl FnMut(Inode<'a>)) {
        for slot in self.inodes().filter(|slot| slot.in_use) {
            let place = || slot.inode.place(self.walk.volume());
            if slot.inode.has_magic() && slot.inode.own_number().is_none_or(|own| own == slot.inode.ino) {
                if let Some(error) = slot.inode.crc_error(self.walk.volume()) {
                    report(error);
                }
                each(slot.inode);
            } else if let Err(error) = inode::check_identity(slot.inode, &place()) {
                report(error);
            }
        }
    }
}

/// The inode chunks of an AG, one after the other. Not an `Iterator`, since each chunk is only lent.
#[derive(Debug)]
pub struct Chunks<'a> {
    walk: &'a Walk<'a>,
    ag: AgNumber,
    tree: Option<Blocks<'a>>,
    records: VecDeque<Record>,
    visited: Visited,
    errors: Vec<Error>,
    buffer: Vec<u8>,
    buffered: std::ops::Range<u64>,
    current: Option<(Record, std::ops::Range<usize>, u64)>,
}

/// The inode chunks of an AG. A missing or damaged inode header is the first error, and then there are none.
pub fn chunks<'a>(walk: &'a Walk<'a>, ag: AgNumber) -> Chunks<'a> {
    let mut errors = Vec::new();
    let tree = match group::agi(walk, ag, &mut |error| errors.push(error)) {
        Ok(agi) => Some(Blocks::new(walk, &inobt::SHAPE, group::inobt(ag, &agi))),
        Err(error) => {
            errors.push(error);
            None
        }
    };
    Chunks {
        walk,
        ag,
        tree,
        records: VecDeque::new(),
        visited: Visited::default(),
        errors,
        buffer: Vec::new(),
        buffered: 0..0,
        current: None,
    }
}

impl<'a> Chunks<'a> {
    /// The chunks of these records, for a caller that has read the inode btree already. `buffer` is what
    /// [`Chunks::into_buffer`] gave before, or empty.
    pub fn of_records(
        walk: &'a Walk<'a>,
        ag: AgNumber,
        records: impl Iterator<Item = Record>,
        buffer: Vec<u8>,
    ) -> Self {
        let errors = Vec::new();
        let records = records.collect();
        Self {
            walk,
            ag,
            tree: None,
            records,
            visited: Visited::default(),
            errors,
            buffer,
            buffered: 0..0,
            current: None,
        }
    }

    /// The memory that chunks were read into, to be used again.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The next chunk, or what is wrong with one or with a block of the inode btree. `None` at the end.
    pub fn next_chunk(&mut self) -> Option<Result<Chunk<'_>>> {
        if let Err(error) = self.advance()? {
            return Some(Err(error));
        }
        let (record, range, unreadable) = self.current.clone()?;
        let bytes = self.buffer.get(range)?;
        Some(Ok(Chunk { ag: self.ag, record, bytes, unreadable, walk: self.walk }))
    }

    fn advance(&mut self) -> Option<Result<()>> {
        loop {
            if let Some(error) = self.errors.pop() {
                return Some(Err(error));
            }
            if let Some(record) = self.records.pop_front() {
                if self.take(record) {
                    return Some(Ok(()));
                }
                continue;
            }
            let tree = self.tree.as_mut()?;
            match tree.advance() {
                None => self.tree = None,
                Some(Err(error)) => self.errors.push(error),
                Some(Ok(())) => {
                    let context = self.walk.context();
                    let records = tree.current().into_iter().flat_map(|block| block.records());
                    self.records.extend(records.filter_map(|bytes| Record::at(context, bytes, 0)));
                }
            }
        }
    }

    fn place(&self, record: &Record) -> Place {
        let size = u64::from(self.walk.context().inode_size).saturating_mul(u64::from(INODES_PER_CHUNK));
        let byte = self.range(record).map_or(0, |range| range.start);
        let name = format!("agi {} › inobt chunk {}", self.ag, record.startino);
        Place::new(Device::Data, ByteOffset(byte), size, name)
    }

    /// Bytes of a chunk on the data device, cut at the end of the AG.
    fn range(&self, record: &Record) -> Option<std::ops::Range<u64>> {
        let geometry = self.walk.geometry();
        let first = geometry.inode_byte(geometry.join_inode(self.ag, record.startino)?)?.0;
        let size = u64::from(self.walk.context().inode_size).checked_mul(u64::from(INODES_PER_CHUNK))?;
        let ag = u64::from(geometry.ag_length(self.ag)?).checked_mul(geometry.block_size())?;
        let end = geometry.ag_start(self.ag)?.0.checked_add(ag)?;
        Some(first..first.checked_add(size)?.min(end))
    }

    /// Comes to a chunk: true when it can be looked at.
    fn take(&mut self, record: Record) -> bool {
        let Some(range) = self.range(&record) else {
            let error =
                corrupt(self.place(&record), "the chunk lies outside the AG", record.startino, "inodes of the AG");
            self.errors.push(error);
            return false;
        };
        if !self.visited.first_time(u64::from(record.startino.0)) {
            let error = corrupt(self.place(&record), "the chunk is listed twice", record.startino, "each chunk once");
            self.errors.push(error);
            return false;
        }
        if let Err(error) = self.walk.step(1) {
            self.errors.push(error);
            (self.tree, self.records) = (None, VecDeque::new());
            return false;
        }
        let within = |all: &std::ops::Range<u64>| all.start <= range.start && range.end <= all.end;
        let mut unreadable = 0;
        if !within(&self.buffered) && !self.read_ahead(range.clone()) {
            unreadable = self.read_pieces(&record, range.clone());
        }
        let offset = |byte: u64| byte.checked_sub(self.buffered.start).and_then(|n| usize::try_from(n).ok());
        let (Some(start), Some(end)) = (offset(range.start), offset(range.end)) else { return false };
        self.current = Some((record, start..end, unreadable));
        true
    }

    /// Reads the chunk at `range` and those that follow close behind it.
    fn read_ahead(&mut self, range: std::ops::Range<u64>) -> bool {
        let (end, taken) = self.run(range.clone(), 0);
        if let Some(next) = self.records.get(taken).and_then(|record| self.range(record)) {
            let (end, _) = self.run(next.clone(), taken.saturating_add(1));
            self.walk.volume().will_need(ByteOffset(next.start), end.saturating_sub(next.start));
        }
        self.fill(range.start..end) || (end > range.end && self.fill(range))
    }

    /// Where the run of chunks ends that begins with `range` and goes on with the records from `first` on, and the first
    /// record behind it.
    fn run(&self, range: std::ops::Range<u64>, first: usize) -> (u64, usize) {
        let (mut end, mut at) = (range.end, first);
        while let Some(next) = self.records.get(at).and_then(|record| self.range(record)) {
            let near = next.start >= end && next.start.saturating_sub(end) <= GAP;
            if !near || next.end.saturating_sub(range.start) > LARGEST {
                break;
            }
            (end, at) = (next.end, at.saturating_add(1));
        }
        (end, at)
    }

    fn fill(&mut self, range: std::ops::Range<u64>) -> bool {
        self.buffered = 0..0;
        let length = range.end.saturating_sub(range.start);
        let Ok(length) = usize::try_from(length) else { return false };
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let Some(into) = self.buffer.get_mut(..length) else { return false };
        let read = self.walk.volume().read_into(Device::Data, ByteOffset(range.start), into, String::new);
        if read.is_ok() {
            self.buffered = range;
        }
        read.is_ok()
    }

    /// Reads a chunk inode by inode, since it cannot be read as a whole. Gives the inodes that cannot be read.
    fn read_pieces(&mut self, record: &Record, range: std::ops::Range<u64>) -> u64 {
        let place = self.place(record);
        let size = index(self.walk.context().inode_size);
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        self.buffer.resize(length.max(self.buffer.len()), 0);
        let mut unreadable = 0u64;
        let mut first_error = None;
        let mut at = range.start;
        for (i, into) in (0u32..).zip(self.buffer.get_mut(..length).unwrap_or_default().chunks_mut(size.max(1))) {
            let name = || format!("{} › inode {i} of the chunk", place.structure);
            if record.has_space(i)
                && let Err(error) = self.walk.volume().read_into(Device::Data, ByteOffset(at), into, name)
            {
                unreadable |= 1u64.checked_shl(i).unwrap_or(0);
                first_error.get_or_insert(error);
            }
            at = at.saturating_add(u64::from(self.walk.context().inode_size));
        }
        self.errors.extend(first_error);
        self.buffered = range;
        unreadable
    }
}

/// Reads many inodes with few reads, in ascending order; `each` gets those that are what they should be, `report` what
/// is wrong with the others. Memory: the blocks that hold `inos`, at most 4 MiB at a time.
pub fn read_many(
    walk: &Walk<'_>,
    inos: &mut Vec<Ino>,
    report: &mut dyn FnMut(Ino, Error),
    each: &mut dyn FnMut(Inode<'_>),
) {
    inos.sort_unstable();
    inos.dedup();
    let geometry = walk.geometry();
    let size = index(walk.context().inode_size);
    let most = LARGEST.checked_div(geometry.block_size()).and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
    let mut batch = Batch::default();
    let mut wanted: Vec<FsBlock> = Vec::new();
    let mut rest = inos.as_slice();
    while !rest.is_empty() {
        wanted.clear();
        let mut taken = 0usize;
        for &ino in rest {
            let block = geometry.inode_place(ino).map(|(block, _)| block);
            if wanted.len() >= most && block.is_some_and(|block| wanted.last() != Some(&block)) {
                break;
            }
            wanted.extend(block.filter(|block| wanted.last() != Some(block)));
            taken = taken.saturating_add(1);
        }
        let (these, more) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
        rest = more;
        batch.load(walk.volume(), &mut wanted);
        for &ino in these {
            if let Err(error) = walk.step(1) {
                report(ino, error);
                return;
            }
            let bytes = geometry.inode_place(ino).and_then(|(block, within)| {
                let start = index(within);
                batch.get(block, index(walk.context().block_size))?.get(start..start.checked_add(size)?)
            });
            let Some(bytes) = bytes else {
                // Ask again, for the error.
                let error = walk.inode(ino).err();
                report(ino, error.unwrap_or_else(|| Error::request(format!("inode {ino}: not readable"))));
                continue;
            };
            let inode = Inode::new(ino, bytes);
            match inode::check_identity(inode, &inode.place(walk.volume())) {
                Ok(()) => each(inode),
                Err(error) => report(ino, error),
            }
        }
    }
}
