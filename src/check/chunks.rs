//! The inode chunks of an AG, and the way from an inode number to its chunk.
//!
//! Every directory entry asks for one. The numbers of the AG are cut into about twice as many stretches as there are
//! chunks, and it is kept which chunk is the first of each stretch: a chunk is found with one or two looks, and where many
//! of them crowd into a stretch by halves within it.
//!
//! Memory: 24 bytes for each chunk, and up to 8 for the stretches.

use crate::format::inobt::{Chunk, INODES_PER_CHUNK};
use std::ops::Deref;

/// Chunks in the order of their numbers, each once.
#[derive(Debug, Default)]
pub struct Chunks {
    chunks: Vec<Chunk>,
    /// First chunk of each stretch of numbers, and behind the last the number of chunks.
    first: Vec<u32>,
    /// A stretch has 2 to this many numbers.
    shift: u32,
}

impl Chunks {
    /// From chunks in any order; of those that begin with the same inode the first is kept.
    pub fn new(mut chunks: Vec<Chunk>) -> Self {
        chunks.sort_by_key(|chunk| chunk.startino);
        chunks.dedup_by_key(|chunk| chunk.startino);
        let last = chunks.last().map_or(0, |chunk| chunk.startino.0);
        let most = u32::try_from(chunks.len()).unwrap_or(u32::MAX).saturating_mul(2);
        let mut shift = INODES_PER_CHUNK.trailing_zeros();
        while shift < 31 && last >> shift > most {
            shift = shift.saturating_add(1);
        }
        let mut first = Vec::new();
        for (at, chunk) in (0u32..).zip(&chunks) {
            let stretch = usize::try_from(chunk.startino.0 >> shift).unwrap_or(usize::MAX);
            if first.len() <= stretch {
                first.resize(stretch.saturating_add(1), at);
            }
        }
        first.push(u32::try_from(chunks.len()).unwrap_or(u32::MAX));
        Self { chunks, first, shift }
    }

    /// The place in the list of the chunk that holds an inode, and which of its inodes that is.
    pub fn find(&self, agino: u32) -> Option<(usize, u32)> {
        let stretch = usize::try_from(agino >> self.shift).ok()?;
        let at = |stretch: usize| self.first.get(stretch).and_then(|&at| usize::try_from(at).ok());
        let from = at(stretch).unwrap_or(self.chunks.len());
        let to = at(stretch.saturating_add(1)).unwrap_or(self.chunks.len());
        let within = self.chunks.get(from..to)?.partition_point(|chunk| chunk.startino.0 <= agino);
        let place = from.checked_add(within)?.checked_sub(1)?;
        let inode = agino.checked_sub(self.chunks.get(place)?.startino.0)?;
        (inode < INODES_PER_CHUNK).then_some((place, inode))
    }
}

impl Deref for Chunks {
    type Target = [Chunk];

    fn deref(&self) -> &[Chunk] {
        &self.chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::AgIno;
    use proptest::prelude::*;

    fn chunks(starts: &[u32]) -> Chunks {
        let chunk = |&start| Chunk { startino: AgIno(start), holemask: 0, count: 64, freecount: 0, free: 0 };
        Chunks::new(starts.iter().map(chunk).collect())
    }

    #[test]
    fn finds_what_is_there() {
        let all = chunks(&[128, 64, 1000, 64, u32::MAX - 70]);
        assert_eq!(all.len(), 4);
        assert_eq!(
            [63, 64, 127, 128, 191, 192].map(|ino| all.find(ino)),
            [None, Some((0, 0)), Some((0, 63)), Some((1, 0)), Some((1, 63)), None]
        );
        assert_eq!((all.find(1063), all.find(1064)), (Some((2, 63)), None));
        assert_eq!((all.find(u32::MAX - 7), all.find(u32::MAX)), (Some((3, 63)), None));
        assert_eq!((chunks(&[]).find(0), chunks(&[0]).find(63)), (None, Some((0, 63))));
    }

    proptest! {
        #[test]
        fn as_if_looked_for_one_by_one(
            starts in proptest::collection::vec(prop_oneof![0u32..5000, any::<u32>()], 0..50), inos in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let all = chunks(&starts);
            for ino in inos.into_iter().chain(starts.iter().flat_map(|&start| [start, start.saturating_add(63), start.saturating_add(64)])) {
                let right = all.iter().enumerate().rev().find(|(_, chunk)| chunk.startino.0 <= ino);
                let right = right.map(|(at, chunk)| (at, ino - chunk.startino.0)).filter(|&(_, within)| within < 64);
                prop_assert_eq!(all.find(ino), right);
            }
            prop_assert!(all.first.len() <= 2 * all.len() + 3);
        }
    }
}
