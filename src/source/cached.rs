//! The reader every command goes through: aligned pieces of 64 KiB, each read once, and counted.
//!
//! Small unaligned reads are what slow disks are worst at, so a request is widened to whole pieces, neighbouring
//! missing pieces are fetched with one read, and what was read stays (bounded) until the command ends.

use super::Source;
use crate::units::ByteOffset;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Size of a piece: past it a slow disk gains nothing, below it it loses much.
const PIECE: u64 = 64 * 1024;
/// Pieces kept, unless told otherwise: 32 MiB.
const KEPT: usize = 512;
/// Requests longer than this are not kept: they are scans, and would only push out what is wanted again.
const LARGE: usize = 1 << 20;
/// Requests of this size, well below that of a piece, are scattered blocks: those that the system has in memory are taken
/// as they are, since a whole piece would only be copied in vain.
const BLOCKS: (usize, usize) = (4096, 16384);

/// What was asked of the device, for `--io-stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Reads issued.
    pub reads: u64,
    /// Bytes they returned.
    pub bytes: u64,
    /// Smallest read in bytes.
    pub smallest: u64,
    /// Largest read in bytes.
    pub largest: u64,
    /// Time spent in them.
    pub time: Duration,
}

#[derive(Debug, Default)]
struct State {
    most: usize,
    /// Longest request that is taken as the system has it in memory.
    as_is: usize,
    /// Did the last bytes come from the device?
    cold: bool,
    pieces: HashMap<u64, (u64, Arc<[u8]>)>,
    clock: u64,
    stats: IoStats,
}

/// A Source that reads each 64 KiB piece of another one once.
#[derive(Debug)]
pub struct Cached<S> {
    inner: S,
    state: Mutex<State>,
}

impl<S: Source> Cached<S> {
    /// Puts the cache on top of `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, state: Mutex::new(State { most: KEPT, as_is: BLOCKS.1, ..State::default() }) }
    }

    /// Keeps at most so many pieces of 64 KiB from now on: for runs that read nearly everything once. What the system
    /// has in memory is then taken as it is, however long, since a piece that nobody wants again is a copy in vain.
    pub fn keep_at_most(&self, pieces: usize) {
        let mut state = self.lock();
        (state.most, state.as_is) = (pieces.max(2), LARGE);
    }

    /// What was read so far.
    pub fn stats(&self) -> IoStats {
        self.lock().stats
    }

    /// The Source beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One read of the device, counted.
    fn fetch(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let start = Instant::now();
        let result = self.inner.read_at(ByteOffset(offset), buf);
        let took = start.elapsed();
        self.count(buf.len(), result.is_ok(), took);
        self.lock().cold = true;
        result
    }

    fn count(&self, size: usize, read: bool, took: Duration) {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let mut state = self.lock();
        let stats = &mut state.stats;
        stats.smallest = if stats.reads == 0 { size } else { stats.smallest.min(size) };
        stats.reads = stats.reads.saturating_add(1);
        stats.bytes = stats.bytes.saturating_add(if read { size } else { 0 });
        stats.largest = stats.largest.max(size);
        stats.time = stats.time.saturating_add(took);
    }

    /// Bytes that the system has in memory, and that were not read before.
    fn fetch_cached(&self, pieces: std::ops::RangeInclusive<u64>, offset: ByteOffset, buf: &mut [u8]) -> bool {
        if buf.len() < BLOCKS.0 {
            return false;
        }
        if let state = self.lock()
            && (buf.len() > state.as_is || pieces.clone().any(|piece| state.pieces.contains_key(&piece)))
        {
            return false;
        }
        let start = Instant::now();
        if !self.inner.read_if_cached(offset, buf) {
            return false;
        }
        let took = start.elapsed();
        self.count(buf.len(), true, took);
        self.lock().cold = false;
        true
    }

    fn kept(&self, piece: u64) -> Option<Arc<[u8]>> {
        let mut state = self.lock();
        state.clock = state.clock.saturating_add(1);
        let now = state.clock;
        state.pieces.get_mut(&piece).map(|(used, bytes)| {
            *used = now;
            Arc::clone(bytes)
        })
    }

    fn keep(&self, piece: u64, bytes: Arc<[u8]>) {
        let mut state = self.lock();
        if state.pieces.len() >= state.most {
            let mut ages: Vec<u64> = state.pieces.values().map(|(used, _)| *used).collect();
            let middle = ages.len().checked_div(2).unwrap_or(0);
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            state.pieces.retain(|_, (used, _)| *used > median);
        }
        state.clock = state.clock.saturating_add(1);
        let now = state.clock;
        state.pieces.insert(piece, (now, bytes));
    }

    /// Fetches pieces `first..=last` with one read. A run that cannot be read is left out: the caller then
    /// asks for just the bytes it needs, so that one bad sector does not hide its neighbours.
    fn fetch_run(&self, first: u64, last: u64) -> Option<Vec<Arc<[u8]>>> {
        let start = first.checked_mul(PIECE)?;
        let end = last.checked_add(1)?.checked_mul(PIECE)?.min(self.len());
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        let mut bytes = vec![0u8; length];
        self.fetch(start, &mut bytes).ok()?;
        let size = usize::try_from(PIECE).ok()?;
        Some(bytes.chunks(size).map(Arc::from).collect())
    }
}

impl<S: Source> Source for Cached<S> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let len = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let end = offset.0.checked_add(len).filter(|&end| end <= self.len());
        let Some(end) = end else { return Err(super::past_end(offset, buf.len(), self.len())) };
        if buf.is_empty() {
            return Ok(());
        }
        if buf.len() > LARGE {
            return self.fetch(offset.0, buf);
        }
        let first = offset.0.checked_div(PIECE).unwrap_or(0);
        let last = end.saturating_sub(1).checked_div(PIECE).unwrap_or(0);
        if self.fetch_cached(first..=last, offset, buf) {
            return Ok(());
        }
        let mut have: Vec<(u64, Option<Arc<[u8]>>)> = (first..=last).map(|p| (p, self.kept(p))).collect();
        let mut at = 0usize;
        while let Some(missing) = have.iter().skip(at).position(|(_, bytes)| bytes.is_none()) {
            let from = at.saturating_add(missing);
            let count = have.iter().skip(from).take_while(|(_, bytes)| bytes.is_none()).count();
            at = from.saturating_add(count);
            let run = have.get_mut(from..at).unwrap_or_default();
            let (Some(&(lo, _)), Some(&(hi, _))) = (run.first(), run.last()) else { break };
            let Some(fetched) = self.fetch_run(lo, hi) else { return self.fetch(offset.0, buf) };
            for ((piece, slot), bytes) in run.iter_mut().zip(fetched) {
                self.keep(*piece, Arc::clone(&bytes));
                *slot = Some(bytes);
            }
        }
        let mut done = 0usize;
        let mut skip = usize::try_from(offset.0.checked_rem(PIECE).unwrap_or(0)).unwrap_or(0);
        for (_, bytes) in &have {
            let (Some(from), Some(to)) = (bytes.as_deref().and_then(|b| b.get(skip..)), buf.get_mut(done..)) else {
                break;
            };
            let n = from.len().min(to.len());
            if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
                to.copy_from_slice(from);
            }
            done = done.saturating_add(n);
            skip = 0;
        }
        if done == buf.len() { Ok(()) } else { Err(super::past_end(offset, buf.len(), self.len())) }
    }

    fn will_need(&self, offset: ByteOffset, length: u64) {
        // Where the system had the last bytes in memory, it has most of the others, too.
        if self.lock().cold {
            self.inner.will_need(offset, length);
        }
    }

    fn sector_size(&self) -> u32 {
        self.inner.sector_size()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemorySource;
    use super::*;

    fn pattern(n: usize) -> Vec<u8> {
        (0..n).map(|i| u8::try_from(i % 251).unwrap_or(0)).collect()
    }

    #[test]
    fn reads_each_piece_once_and_returns_the_same_bytes() {
        let bytes = pattern(300_000);
        let cached = Cached::new(MemorySource::new(bytes.clone()));
        for (at, len) in [(0usize, 10usize), (65_530, 20), (5, 200_000), (299_990, 10), (0, 300_000)] {
            let mut buf = vec![0; len];
            cached.read_at(ByteOffset(at as u64), &mut buf).expect("within");
            assert_eq!(buf.as_slice(), bytes.get(at..at + len).expect("within"), "{at}+{len}");
        }
        assert_eq!(cached.stats().bytes, 300_000);
        assert_eq!(cached.stats().reads, 4);
        assert!(cached.read_at(ByteOffset(299_999), &mut [0; 2]).is_err());
    }

    /// A device whose second piece cannot be read as a whole: sector 200 (byte 102400) is bad.
    struct Bad(MemorySource);
    impl Source for Bad {
        fn len(&self) -> u64 {
            self.0.len()
        }
        fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
            let bad = 102_400..102_912;
            if offset.0 < bad.end && offset.0 + buf.len() as u64 > bad.start {
                return Err(io::Error::other("bad sector"));
            }
            self.0.read_at(offset, buf)
        }
    }

    #[test]
    fn a_bad_sector_hides_only_itself() {
        let cached = Cached::new(Bad(MemorySource::new(pattern(200_000))));
        let mut sector = [0; 512];
        assert!(cached.read_at(ByteOffset(101_888), &mut sector).is_ok());
        assert!(cached.read_at(ByteOffset(102_400), &mut sector).is_err());
        assert!(cached.read_at(ByteOffset(102_912), &mut sector).is_ok());
    }
}
