//! From a bitmap to free runs: block by block, whatever its size. Words that are all free or all used, which is most
//! of them, cost one comparison per 64 extents. `xfs_rtalloc_query_all`, `xfs_rtfind_forw` (xfs_rtbitmap.c).

use super::meta::{MetaFile, Piece};
use super::{Group, Sizes};
use crate::format::rtbitmap::{ByteOrder, first_word};
use crate::walk::Walk;

/// Realtime extents side by side that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Free.
    Free {
        /// First extent within the group.
        start: u64,
        /// How many.
        extents: u64,
    },
    /// Not known: that part of the bitmap is missing.
    Unknown {
        /// First extent within the group.
        start: u64,
        /// How many.
        extents: u64,
    },
}

/// What a pass over a bitmap counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Free extents.
    pub free: u64,
    /// Extents of which nothing is known.
    pub unknown: u64,
    /// Free runs.
    pub runs: u64,
    /// Longest free run.
    pub longest: u64,
    /// Is the last extent free, and how long is the run that it ends?
    pub last_run: u64,
    /// Bits that are set behind the last extent: they stand for nothing.
    pub beyond: u64,
}

/// Looks at a part of the file before its bits are taken: a block of the file, or one that is missing. Do its words
/// mean something? If not, its extents are unknown.
pub type OnPiece<'f> = dyn FnMut(&Piece<'_>) -> bool + 'f;

/// The bits of one bitmap, fed word by word.
struct Bits<'f> {
    at: u64,
    limit: u64,
    open: Option<u64>,
    count: Count,
    each: &'f mut dyn FnMut(Run),
}

impl Bits<'_> {
    fn open(&mut self, at: u64) {
        if self.open.is_none() {
            self.open = Some(at);
        }
    }

    fn close(&mut self, at: u64) {
        if let Some(start) = self.open.take() {
            let extents = at.saturating_sub(start);
            self.count.runs = self.count.runs.saturating_add(1);
            self.count.longest = self.count.longest.max(extents);
            self.count.free = self.count.free.saturating_add(extents);
            if at >= self.limit {
                self.count.last_run = extents;
            }
            (self.each)(Run::Free { start, extents });
        }
    }

    /// A word of mixed bits, or the last one.
    fn mixed(&mut self, word: u64, bits: u64) {
        let mut rest = word;
        let mut left = bits;
        let mut at = self.at;
        while left > 0 {
            let same = if rest & 1 != 0 {
                self.open(at);
                u64::from(rest.trailing_ones()).min(left)
            } else {
                self.close(at);
                u64::from(rest.trailing_zeros()).min(left)
            };
            left = left.saturating_sub(same);
            at = at.saturating_add(same);
            rest = rest.checked_shr(u32::try_from(same).unwrap_or(64)).unwrap_or(0);
        }
    }

    fn word(&mut self, word: u64) {
        let left = self.limit.saturating_sub(self.at);
        if left >= 64 {
            match word {
                0 => self.close(self.at),
                u64::MAX => self.open(self.at),
                _ => self.mixed(word, 64),
            }
            self.at = self.at.saturating_add(64);
            return;
        }
        if left > 0 {
            self.mixed(word, left);
        }
        let beyond = word.checked_shr(u32::try_from(left).unwrap_or(64)).unwrap_or(0);
        self.count.beyond = self.count.beyond.saturating_add(u64::from(beyond.count_ones()));
        self.at = self.at.saturating_add(64);
        if self.at >= self.limit {
            self.close(self.limit);
        }
    }

    /// The words of a block, or of many: their number of bytes is a multiple of 8 for every block size.
    fn bytes(&mut self, bytes: &[u8], order: ByteOrder) {
        let (mut words, _) = bytes.as_chunks::<8>();
        loop {
            // Nothing changes in most words, in either byte order.
            let like = if self.open.is_some() { u64::MAX } else { 0 };
            let whole = usize::try_from(self.limit.saturating_sub(self.at) >> 6).unwrap_or(usize::MAX);
            let plain = words.get(..whole.min(words.len())).unwrap_or_default();
            let same = leading(plain, like);
            self.at = self.at.saturating_add(u64::try_from(same).unwrap_or(0).saturating_mul(64));
            let Some((&raw, more)) = words.get(same..).and_then(|rest| rest.split_first()) else { return };
            words = more;
            self.word(match order {
                ByteOrder::Little => u64::from_le_bytes(raw),
                // Words of 32 bits, the lowest bit of each first: only the bytes within a word are swapped.
                ByteOrder::Big => u64::from_be_bytes(raw).rotate_left(32),
            });
        }
    }

    fn missing(&mut self, extents: u64) {
        self.close(self.at.min(self.limit));
        let known = self.limit.saturating_sub(self.at).min(extents);
        if known > 0 {
            self.count.unknown = self.count.unknown.saturating_add(known);
            (self.each)(Run::Unknown { start: self.at, extents: known });
        }
        self.at = self.at.saturating_add(extents);
    }
}

/// How many of the first words are `like`: all zeros or all ones.
fn leading(words: &[[u8; 8]], like: u64) -> usize {
    let (groups, _) = words.as_chunks::<16>();
    let differs =
        |group: &&[[u8; 8]; 16]| group.iter().fold(0, |bits, &raw| bits | (u64::from_ne_bytes(raw) ^ like)) != 0;
    let skipped = groups.iter().position(|group| differs(&group)).unwrap_or(groups.len()).saturating_mul(16);
    let rest = words.get(skipped..).unwrap_or_default();
    let more = rest.iter().position(|&raw| u64::from_ne_bytes(raw) != like).unwrap_or(rest.len());
    skipped.saturating_add(more)
}

/// What a pass is about.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// The group.
    pub group: &'a Group,
    /// Its bitmap file.
    pub file: &'a MetaFile,
    /// Sizes of this section.
    pub sizes: &'a Sizes,
    /// Byte order of the words.
    pub order: ByteOrder,
}

/// Goes over a bitmap once. `each` gets the runs in order, `pieces` every part of the file before its bits are taken.
/// Ends with the blocks that the group needs. Memory: one read.
pub fn scan(walk: &Walk<'_>, pass: &Pass<'_>, each: &mut dyn FnMut(Run), pieces: &mut OnPiece<'_>) -> Count {
    let Pass { group, file, sizes, order } = *pass;
    let per_block = sizes.extents_per_block();
    let blocks = group.extents.div_ceil(per_block.max(1));
    let mut bits = Bits { at: 0, limit: group.extents, open: None, count: Count::default(), each };
    let header = first_word(walk.context());
    let size = usize::try_from(walk.geometry().block_size()).unwrap_or(usize::MAX).max(1);
    let mut reached = 0u64;
    file.each(walk, 0, blocks, &mut |piece| {
        let believed = pieces(&piece);
        match piece {
            Piece::Blocks { first, bytes, .. } => {
                let blocks = u64::try_from(bytes.len().checked_div(size).unwrap_or(0)).unwrap_or(0);
                if !believed {
                    bits.missing(blocks.saturating_mul(per_block));
                } else if header == 0 {
                    bits.bytes(bytes, order);
                } else {
                    for block in bytes.chunks(size) {
                        bits.bytes(block.get(header..).unwrap_or_default(), order);
                    }
                }
                reached = first.saturating_add(blocks);
            }
            Piece::Missing { first, blocks, why: _ } => {
                bits.missing(blocks.saturating_mul(per_block));
                reached = first.saturating_add(blocks);
            }
        }
        true
    });
    if reached < blocks {
        // The budget of steps ended the pass.
        bits.missing(blocks.saturating_sub(reached).saturating_mul(per_block));
    }
    bits.close(group.extents);
    bits.count
}

/// The free runs of words that lie in memory: for tests and small sections. `Missing` never occurs.
pub fn runs_of(bytes: &[u8], extents: u64, order: ByteOrder, each: &mut dyn FnMut(Run)) -> Count {
    let mut bits = Bits { at: 0, limit: extents, open: None, count: Count::default(), each };
    bits.bytes(bytes, order);
    bits.close(extents.min(bits.at));
    bits.count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(bytes: &[u8], extents: u64, order: ByteOrder) -> (Vec<(u64, u64)>, Count) {
        let mut found = Vec::new();
        let count = runs_of(bytes, extents, order, &mut |run| {
            if let Run::Free { start, extents } = run {
                found.push((start, extents));
            }
        });
        (found, count)
    }

    #[test]
    fn the_recorder_of_case_c63() {
        // 4096 extents; runs of 4 at 163, 171 … 211, then 243 to the end: 3881 free.
        let mut bytes = vec![0u8; 4096];
        let free = [163u64, 171, 179, 187, 195, 203, 211].iter().flat_map(|&s| s..s + 4).chain(243..4096);
        free.for_each(|x| bytes[(x / 8) as usize] |= 1 << (x % 8));
        let (found, count) = runs(&bytes, 4096, ByteOrder::Little);
        let right = [(163, 4), (171, 4), (179, 4), (187, 4), (195, 4), (203, 4), (211, 4), (243, 3853)];
        assert_eq!(found, right);
        assert_eq!((count.free, count.longest, count.last_run, count.beyond), (3881, 3853, 3853, 0));
        // The same words as a big-endian machine writes them.
        let swapped: Vec<u8> = bytes.chunks(4).flat_map(|w| [w[3], w[2], w[1], w[0]]).collect();
        assert_eq!(runs(&swapped, 4096, ByteOrder::Big).0, right);
        assert_ne!(runs(&swapped, 4096, ByteOrder::Little).0, right);
    }

    #[test]
    fn bits_behind_the_last_extent_are_counted_apart() {
        let (found, count) = runs(&[0xff; 16], 70, ByteOrder::Little);
        assert_eq!((found, count.beyond, count.last_run), (vec![(0, 70)], 58, 70));
    }

    proptest! {
        #[test]
        fn runs_are_the_bits(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0u64..64, big: bool) {
            let bytes = &bytes[..bytes.len() & !7];
            let total = bytes.len() as u64 * 8;
            let extents = total.saturating_sub(cut);
            let bit = |x: u64| {
                let byte = if big { (x / 32) * 4 + 3 - (x % 32) / 8 } else { x / 8 };
                bytes[byte as usize] >> (x % 8) & 1 != 0
            };
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let (found, count) = runs(bytes, extents, order);
            let mut right: Vec<(u64, u64)> = Vec::new();
            for x in (0..extents).filter(|&x| bit(x)) {
                match right.last_mut() {
                    Some((start, n)) if *start + *n == x => *n += 1,
                    _ => right.push((x, 1)),
                }
            }
            prop_assert_eq!(count.free, right.iter().map(|r| r.1).sum::<u64>());
            prop_assert_eq!(count.beyond, (extents..total).filter(|&x| bit(x)).count() as u64);
            prop_assert_eq!(found, right);
        }
    }
}
