//! Free runs of realtime extents, from a bitmap file. `xfs_rtalloc_query_range` (xfs_rtbitmap.c).

use crate::error::Error;
use crate::format::dinode::Fork;
use crate::format::rtbitmap::{self, ByteOrder};
use crate::format::{bits, checksum};
use crate::units::FileBlock;
use crate::walk::extents::ForkMap;
use crate::walk::{InodeBlock, Walk, corrupt};

/// Runs of free extents in order: first extent and length. A block of the bitmap that cannot be read is an error, and
/// its extents count as used.
#[derive(Debug)]
pub(crate) struct FreeRuns<'a> {
    walk: &'a Walk<'a>,
    file: InodeBlock,
    map: ForkMap,
    order: ByteOrder,
    /// Extents that the bitmap is about.
    extents: u64,
    words: Vec<u32>,
    next_block: u64,
    /// First extent that was not looked at.
    at: u64,
    word: u32,
    left: u32,
    next_word: usize,
    run: Option<u64>,
    /// Where a hole of the bitmap begins that was just come to.
    hole_at: Option<u64>,
}

/// The free runs that the bitmap in `file` tells of, for `extents` extents.
pub(crate) fn bitmap<'a>(
    walk: &'a Walk<'a>,
    file: InodeBlock,
    extents: u64,
    report: &mut dyn FnMut(Error),
) -> FreeRuns<'a> {
    let map = ForkMap::read(walk, file.inode(), Fork::Data, report);
    // Without groups, words are in the byte order of the machine that wrote them; all that are about today are
    // little-endian.
    let order = if rtbitmap::has_header(walk.context()) { ByteOrder::Big } else { ByteOrder::Little };
    let words = Vec::new();
    FreeRuns {
        walk,
        file,
        map,
        order,
        extents,
        words,
        next_block: 0,
        at: 0,
        word: 0,
        left: 0,
        next_word: 0,
        run: None,
        hole_at: None,
    }
}

impl FreeRuns<'_> {
    /// The next block of the bitmap into `words`; zeros, and the error, where it cannot be had.
    fn load(&mut self) -> Option<Error> {
        let block = FileBlock(self.next_block);
        if self.map.block(block).is_none() {
            return self.skip_hole(block);
        }
        self.next_block = self.next_block.saturating_add(1);
        self.words.clear();
        self.next_word = 0;
        match self.read(block) {
            Ok(bytes) => {
                self.words.extend(rtbitmap::words(self.walk.context(), &bytes, self.order));
                None
            }
            Err(error) => {
                let count = rtbitmap::words_per_block(self.walk.context());
                self.words.resize(crate::walk::index(count), 0);
                Some(error)
            }
        }
    }

    /// Goes on behind a hole of the file, whose extents count as used.
    fn skip_hole(&mut self, block: FileBlock) -> Option<Error> {
        let next = self.map.extents().partition_point(|extent| extent.startoff <= block);
        let next = self.map.extents().get(next).map(|extent| extent.startoff.0);
        let per_block = u64::from(rtbitmap::words_per_block(self.walk.context())).saturating_mul(32);
        // No run reaches over it.
        self.hole_at = Some(self.at);
        self.words.clear();
        self.next_word = 0;
        self.at = next.and_then(|next| next.checked_mul(per_block)).unwrap_or(self.extents).min(self.extents);
        self.next_block = next.unwrap_or(u64::MAX);
        let place = self.file.place().field("u3.bmx");
        Some(corrupt(place, "the bitmap has a hole", format_args!("no block {block}"), "a block for all extents"))
    }

    fn read(&self, block: FileBlock) -> Result<Vec<u8>, Error> {
        self.walk.step(1)?;
        let name = format!("inode {} › bitmap block {block}", self.file.ino());
        let block = self.map.read_blocks(self.walk, block, 1, &name)?;
        let context = self.walk.context();
        if rtbitmap::has_header(context) {
            let magic = bits::be32(&block.bytes, 0).unwrap_or(0);
            if magic != rtbitmap::MAGIC {
                let (found, right) = (format!("{magic:#x}"), format!("{:#x}", rtbitmap::MAGIC));
                return Err(corrupt(block.place.field("magicnum"), "no block of a bitmap", found, right));
            }
            if let checksum::CrcState::Bad { computed } = checksum::verify(&block.bytes, rtbitmap::CRC_OFFSET) {
                let stored = bits::array(&block.bytes, rtbitmap::CRC_OFFSET).map_or(0, u32::from_le_bytes);
                let (stored, computed) =
                    (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
                return Err(corrupt(block.place.field("crc"), "the checksum is wrong", stored, computed));
            }
        }
        Ok(block.bytes)
    }

    /// Ends a run before extent `at`.
    fn end_run(&mut self, at: u64) -> Option<(u64, u64)> {
        let start = self.run.take()?;
        Some((start, at.min(self.extents).saturating_sub(start))).filter(|&(_, length)| length > 0)
    }
}

impl Iterator for FreeRuns<'_> {
    type Item = Result<(u64, u64), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(at) = self.hole_at.take()
                && let Some(run) = self.end_run(at)
            {
                return Some(Ok(run));
            }
            if self.at >= self.extents {
                return self.end_run(self.extents).map(Ok);
            }
            if self.left == 0 {
                let Some(&word) = self.words.get(self.next_word) else {
                    match self.load() {
                        None if self.words.is_empty() => self.at = self.extents,
                        None => {}
                        Some(error) => {
                            if let Error::Exhausted { .. } = error {
                                (self.at, self.run) = (self.extents, None);
                            }
                            return Some(Err(error));
                        }
                    }
                    continue;
                };
                self.next_word = self.next_word.saturating_add(1);
                (self.word, self.left) = (word, 32);
            }
            let free = self.word & 1 != 0;
            let same = if free { self.word.trailing_ones() } else { self.word.trailing_zeros() }.min(self.left);
            let at = self.at;
            self.at = self.at.saturating_add(u64::from(same));
            self.left = self.left.saturating_sub(same);
            self.word = self.word.checked_shr(same).unwrap_or(0);
            if free {
                self.run.get_or_insert(at);
            } else if let Some(run) = self.end_run(at) {
                return Some(Ok(run));
            }
        }
    }
}
