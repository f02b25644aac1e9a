//! What the summary must say, and what it says: a count for each power of two and each block of the bitmap. The free
//! runs come in order, so only a window of bitmap blocks is held at a time. `xchk_rtsum_compute`,
//! `xchk_rtsum_compare` (scrub/rtsummary.c), `xfs_rtsumoffs`.

use super::Sizes;
use super::meta::MetaFile;
use crate::format::rtbitmap::{ByteOrder, first_word};
use crate::format::rtsummary::word_index;
use crate::walk::{Walk, index};

/// Bitmap blocks of which counts are held.
const WINDOW: u64 = 4096;

/// A word of the summary that does not say what the bitmap says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Power of two: runs of 2^level to 2^(level+1) - 1 extents.
    pub level: u32,
    /// Bitmap block in which those runs begin.
    pub block: u64,
    /// On disk.
    pub disk: u32,
    /// Counted in the bitmap.
    pub computed: u32,
}

/// What is told while counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Disk and bitmap differ.
    Differs(Cell),
    /// They agree, and there is something.
    Same(Cell),
    /// A run is longer than the summary has levels for.
    NoLevel {
        /// First extent of the run.
        start: u64,
        /// Its extents.
        extents: u64,
    },
    /// The summary is not there from this word on, for some words.
    Missing {
        /// First word.
        first: u64,
        /// How many.
        words: u64,
    },
}

/// Free runs and extents by power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Runs of 2^i to 2^(i+1) - 1 extents.
    pub runs: [u64; 64],
    /// Extents in them.
    pub extents: [u64; 64],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { runs: [0; 64], extents: [0; 64] }
    }
}

impl Histogram {
    /// Takes in a free run.
    pub fn add(&mut self, extents: u64) {
        let level = index(extents.checked_ilog2().unwrap_or(0));
        if let (Some(runs), Some(sum)) = (self.runs.get_mut(level), self.extents.get_mut(level)) {
            *runs = runs.saturating_add(1);
            *sum = sum.saturating_add(extents);
        }
    }

    /// Takes in another one.
    pub fn merge(&mut self, other: &Self) {
        for (mine, more) in self.runs.iter_mut().zip(other.runs) {
            *mine = mine.saturating_add(more);
        }
        for (mine, more) in self.extents.iter_mut().zip(other.extents) {
            *mine = mine.saturating_add(more);
        }
    }

    /// Levels in use: those up to the last that has a run.
    pub fn used(&self) -> u32 {
        let last = self.runs.iter().rposition(|&n| n > 0);
        last.and_then(|n| u32::try_from(n).ok()).map_or(0, |n| n.saturating_add(1))
    }
}

/// Where the summary lies and how it is read.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The file.
    pub file: &'a MetaFile,
    /// Byte order of its words.
    pub order: ByteOrder,
}

/// Counts the runs of one bitmap and compares them with its summary.
#[derive(Debug)]
pub struct Tally<'a> {
    walk: &'a Walk<'a>,
    disk: Disk<'a>,
    sizes: Sizes,
    base: u64,
    counts: Vec<u32>,
    words: Vec<[u8; 4]>,
    /// Words that differ.
    pub differ: u64,
    /// Words that are not there.
    pub missing: u64,
    /// Words on disk, by level, summed up.
    pub disk_levels: [u64; 64],
}

impl<'a> Tally<'a> {
    /// Nothing counted so far.
    pub fn new(walk: &'a Walk<'a>, disk: Disk<'a>, sizes: Sizes) -> Self {
        Self {
            walk,
            disk,
            sizes,
            base: 0,
            counts: vec![0; index(sizes.levels).saturating_mul(usize::try_from(WINDOW).unwrap_or(1))],
            words: Vec::new(),
            differ: 0,
            missing: 0,
            disk_levels: [0; 64],
        }
    }

    fn slot(&mut self, level: u32, block: u64) -> Option<&mut u32> {
        let row = block.checked_sub(self.base).filter(|&row| row < WINDOW)?;
        let at = u64::from(level).checked_mul(WINDOW)?.checked_add(row)?;
        self.counts.get_mut(usize::try_from(at).ok()?)
    }

    /// Takes in a free run; runs come in order.
    pub fn add(&mut self, start: u64, extents: u64, told: &mut dyn FnMut(Told)) {
        let level = extents.checked_ilog2().unwrap_or(0);
        if level >= self.sizes.levels {
            told(Told::NoLevel { start, extents });
            return;
        }
        let block = start.checked_div(self.sizes.extents_per_block()).unwrap_or(0);
        while block >= self.base.saturating_add(WINDOW) {
            self.flush(told);
        }
        if let Some(count) = self.slot(level, block) {
            *count = count.saturating_add(1);
        }
    }

    /// Compares what is left.
    pub fn finish(&mut self, told: &mut dyn FnMut(Told)) {
        while self.base < self.sizes.bitmap_blocks {
            self.flush(told);
        }
    }

    /// Are all words of this window and of those after it behind the last block of the file? Words of level 0 come
    /// first in it.
    fn is_behind(&self) -> bool {
        let end = self.disk.file.extents().last();
        let end = end.map_or(0, |extent| extent.startoff.0.saturating_add(u64::from(extent.blockcount)));
        let words = self.walk.geometry().block_size().checked_div(4).unwrap_or(0);
        self.base >= end.saturating_mul(words)
    }

    /// Gives all up that is left: it is missing.
    fn give_up(&mut self, told: &mut dyn FnMut(Told)) {
        let rows = self.sizes.bitmap_blocks.saturating_sub(self.base);
        for level in 0..self.sizes.levels {
            self.missing = self.missing.saturating_add(rows);
            if let Some(first) = word_index(level, self.base, self.sizes.bitmap_blocks) {
                told(Told::Missing { first, words: rows });
            }
        }
        self.base = u64::MAX;
    }

    /// Compares the window with the disk, and moves on. A count of extents that is nothing but damage must not lead
    /// through billions of windows: what the file cannot hold is not looked for, and each window takes steps.
    fn flush(&mut self, told: &mut dyn FnMut(Told)) {
        let file = self.disk.file;
        let header = u64::try_from(first_word(self.walk.context())).unwrap_or(0);
        let rows = self.sizes.bitmap_blocks.saturating_sub(self.base).min(WINDOW);
        let blocks =
            rows.saturating_mul(4).checked_div(self.walk.geometry().block_size()).unwrap_or(0).saturating_add(1);
        let steps = blocks.saturating_mul(u64::from(self.sizes.levels));
        if self.is_behind() || self.walk.step(steps).is_err() {
            return self.give_up(told);
        }
        for level in 0..self.sizes.levels {
            let Some(first) = word_index(level, self.base, self.sizes.bitmap_blocks) else { continue };
            let mut words = std::mem::take(&mut self.words);
            let there = rows == 0 || file.words(self.walk, header, (first, rows), &mut words);
            if !there {
                self.missing = self.missing.saturating_add(rows);
                told(Told::Missing { first, words: rows });
            }
            if there {
                self.compare(level, &words, told);
            }
            self.words = words;
        }
        self.counts.fill(0);
        self.base = self.base.saturating_add(WINDOW);
    }

    /// Compares the words of one level in the window. Most are zeros on both sides: that takes no look at each.
    fn compare(&mut self, level: u32, words: &[[u8; 4]], told: &mut dyn FnMut(Told)) {
        let window = usize::try_from(WINDOW).unwrap_or(usize::MAX);
        let first = index(level).saturating_mul(window);
        let counts = self.counts.get(first..first.saturating_add(words.len())).unwrap_or_default();
        let nothing = words.iter().fold(0, |bits, raw| bits | u32::from_ne_bytes(*raw)) == 0;
        if nothing && counts.iter().fold(0, |bits, count| bits | count) == 0 {
            return;
        }
        let (mut sum, mut differ) = (0u64, 0u64);
        for ((row, raw), &computed) in (0u64..).zip(words).zip(counts) {
            let disk = match self.disk.order {
                ByteOrder::Little => u32::from_le_bytes(*raw),
                ByteOrder::Big => u32::from_be_bytes(*raw),
            };
            sum = sum.saturating_add(u64::from(disk));
            if disk | computed == 0 {
                continue;
            }
            let cell = Cell { level, block: self.base.saturating_add(row), disk, computed };
            if disk == computed {
                told(Told::Same(cell));
            } else {
                differ = differ.saturating_add(1);
                told(Told::Differs(cell));
            }
        }
        self.differ = self.differ.saturating_add(differ);
        if let Some(all) = self.disk_levels.get_mut(index(level)) {
            *all = all.saturating_add(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case C63: levels 2 and 11 as the summary of that image has them.
    #[test]
    fn the_histogram_of_case_c63() {
        let mut histogram = Histogram::default();
        (0..7).for_each(|_| histogram.add(4));
        histogram.add(3853);
        assert_eq!((histogram.runs[2], histogram.runs[11], histogram.used()), (7, 1, 12));
        let mut twice = histogram;
        twice.merge(&histogram);
        assert_eq!((twice.runs[2], twice.extents[11]), (14, 7706));
    }
}
