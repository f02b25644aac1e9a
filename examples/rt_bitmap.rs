//! Reads, counts and compares with its summary a realtime bitmap of 2^31 extents: 256 MiB that are made up as they are
//! read, so that nothing but the passage is measured.
//!
//! ```text
//! cargo run --release --example rt_bitmap            long free runs
//! cargo run --release --example rt_bitmap pieces     runs of 8 extents throughout
//! cargo run --release --example rt_bitmap write FILE the bitmap alone, for dd if=FILE of=/dev/null bs=1M
//! cargo run --release --example rt_bitmap from FILE  the bitmap from that file
//! ```

#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::io;
use std::sync::Arc;
use std::time::Instant;
use xfsinspect::check::rt::{Depth, Sink, Unobserved, check};
use xfsinspect::source::Source;
use xfsinspect::units::ByteOffset;
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::Walk;

const BLOCK: u64 = 4096;
/// Extents: a bit each.
const EXTENTS: u64 = 1 << 31;
/// Blocks of the bitmap, and where they lie.
const BITMAP: (u64, u64) = (EXTENTS / 8 / BLOCK, 1024);
/// Blocks of the summary (32 levels, a word for each block of the bitmap), and where they lie.
const SUMMARY: (u64, u64) = (32 * BITMAP.0 * 4 / BLOCK, 70_000);
const BLOCKS: u64 = 131_072;

/// A device that makes up what is read from it.
struct Made {
    /// The first blocks: superblock and inodes.
    head: Vec<u8>,
    /// A block of the bitmap; all are alike.
    bits: Vec<u8>,
    /// Level of all its free runs, and how many begin in a block.
    runs: (u64, u32),
    /// A block of counts of that level.
    counts: Vec<u8>,
    /// The bitmap, where it is read from a file.
    file: Option<std::fs::File>,
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(into) = bytes.get_mut(at..at + value.len()) {
        into.copy_from_slice(value);
    }
}

impl Made {
    fn new(pieces: bool) -> Self {
        let mut head = vec![0u8; 64 * 1024];
        let sb: [(usize, u64, usize); 31] = [
            (0, 0x5846_5342, 4),
            (4, BLOCK, 4),
            (8, BLOCKS, 8),
            (16, EXTENTS, 8),
            (24, EXTENTS, 8),
            (48, 16, 8),
            (56, 128, 8),
            (64, 129, 8),
            (72, 130, 8),
            (80, 1, 4),
            (84, BLOCKS, 4),
            (88, 1, 4),
            (92, BITMAP.0, 4),
            (96, 855, 4),
            (100, 0xb4a4, 2),
            (102, 512, 2),
            (104, 256, 2),
            (106, 16, 2),
            (120, 12, 1),
            (121, 9, 1),
            (122, 8, 1),
            (123, 4, 1),
            (124, 17, 1),
            (125, 31, 1),
            (127, 25, 1),
            (128, 64, 8),
            (136, 61, 8),
            (144, 1000, 8),
            (152, 0, 8),
            (200, 0x8a, 4),
            (204, 0x8a, 4),
        ];
        for (at, value, length) in sb {
            put(&mut head, at, &value.to_be_bytes()[8 - length..]);
        }
        for (ino, (blocks, start), sequence) in [(129u64, BITMAP, 4u8), (130, SUMMARY, 0)] {
            let at = (ino * 256) as usize;
            put(&mut head, at, &[0x49, 0x4e, 0x81, 0, 2, 2]);
            put(&mut head, at + 16, &1u32.to_be_bytes());
            put(&mut head, at + 56, &(blocks * BLOCK).to_be_bytes());
            put(&mut head, at + 64, &blocks.to_be_bytes());
            put(&mut head, at + 76, &1u32.to_be_bytes());
            put(&mut head, at + 91, &[sequence]);
            put(&mut head, at + 96, &u32::MAX.to_be_bytes());
            put(&mut head, at + 108, &(start << 21 | blocks).to_be_bytes());
        }
        let (bits, runs) = if pieces {
            // 8 used, 8 free: 2048 runs of 2^3 in a block.
            ([0u8, 0xff].repeat(BLOCK as usize / 2), (3, 2048))
        } else {
            // 1000 used, 31000 free, 768 used: one run of 2^14 and more.
            let mut bits = vec![0u8; BLOCK as usize];
            bits[125..4000].fill(0xff);
            (bits, (14, 1))
        };
        let counts = u32::to_le_bytes(runs.1).repeat(BLOCK as usize / 4);
        Self { head, bits, runs, counts, file: None }
    }

    /// All free extents.
    fn free(&self) -> u64 {
        self.bits.iter().map(|b| u64::from(b.count_ones())).sum::<u64>() * BITMAP.0
    }
}

impl Source for Made {
    fn len(&self) -> u64 {
        BLOCKS * BLOCK
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let mut at = offset.0;
        let bitmap = BITMAP.1 * BLOCK..(BITMAP.1 + BITMAP.0) * BLOCK;
        if let Some(file) = self.file.as_ref().filter(|_| bitmap.contains(&at)) {
            return std::os::unix::fs::FileExt::read_exact_at(file, buf, at - bitmap.start);
        }
        for piece in buf.chunks_mut(BLOCK as usize) {
            let (block, within) = (at / BLOCK, (at % BLOCK) as usize);
            if (BITMAP.1..BITMAP.1 + BITMAP.0).contains(&block) && within == 0 {
                piece.copy_from_slice(&self.bits[..piece.len()]);
            } else if (SUMMARY.1..SUMMARY.1 + SUMMARY.0).contains(&block) {
                let word = (at - SUMMARY.1 * BLOCK) / 4;
                if word / BITMAP.0 == self.runs.0 {
                    piece.copy_from_slice(&self.counts[..piece.len()]);
                } else {
                    piece.fill(0);
                }
            } else {
                let from = usize::try_from(at).ok().and_then(|at| self.head.get(at..at + piece.len()));
                match from {
                    Some(from) => piece.copy_from_slice(from),
                    None => piece.fill(0),
                }
            }
            at += piece.len() as u64;
        }
        Ok(())
    }
}

/// Most memory that the process ever held, in KiB.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut made = Made::new(args.iter().any(|word| word == "pieces"));
    if let Some(file) = args.iter().position(|word| word == "write").and_then(|at| args.get(at + 1)) {
        return std::fs::write(file, made.bits.repeat(BITMAP.0 as usize));
    }
    if let Some(file) = args.iter().position(|word| word == "from").and_then(|at| args.get(at + 1)) {
        made.file = Some(std::fs::File::open(file)?);
    }
    let right = made.free();
    let volume = Volume::open(Devices::data_only(Arc::new(made)), Choice::default());
    let volume = volume.map_err(|e| io::Error::other(format!("{e:?}")))?;
    let walk = Walk::new(&volume);
    for _ in 0..5 {
        let mut found = Vec::new();
        let mut keep = |finding: xfsinspect::check::Finding| found.push(finding.to_string());
        let start = Instant::now();
        let report = check(&walk, Depth::Bitmaps, &mut Unobserved, &mut Sink::new(&mut keep));
        let took = start.elapsed();
        let totals = report.map(|report| report.totals).unwrap_or_default();
        let speed = (EXTENTS / 8) as f64 / took.as_secs_f64() / 1e9;
        println!(
            "{} free of {right}, {} runs, {} words differ: {took:?}, {speed:.2} GB/s, peak {}",
            totals.free,
            totals.runs,
            totals.differ,
            peak()
        );
        found.iter().filter(|text| !text.contains("rtbitmap-free-count")).for_each(|text| println!("  {text}"));
    }
    Ok(())
}
