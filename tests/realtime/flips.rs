//! Every single bit that matters, flipped, checksums mended: each must be found. By default a sample of them is tried;
//! XFSINSPECT_FLIPS=all tries them all.

use crate::damage::first_block;
use crate::patch::{Image, damage};
use xfsinspect::format::bmbt::{self, Extent};
use xfsinspect::format::dinode::{Fork, fork_format};
use xfsinspect::walk::btree::{At, Blocks, Root};
use xfsinspect::walk::metadir::GroupFile;
use xfsinspect::walk::rt::files::is_realtime_file;
use xfsinspect::walk::{Walk, group, inodes, rt};

fn all() -> bool {
    std::env::var("XFSINSPECT_FLIPS").is_ok_and(|value| value == "all")
}

/// Takes every `step`th of many, unless all are asked for.
fn sample<T>(items: Vec<T>, about: usize) -> Vec<T> {
    let step = if all() { 1 } else { (items.len() / about).max(1) };
    // A step that is odd meets all residues of powers of two.
    let step = if step > 1 { step | 1 } else { step };
    items.into_iter().step_by(step).collect()
}

/// An extent record of a realtime file: the structure that holds it, its checksum, and the byte within.
struct Record {
    byte: u64,
    length: usize,
    crc: usize,
    at: usize,
    extent: Extent,
    before: Option<Extent>,
    after: Option<Extent>,
}

fn records(image: &Image) -> Vec<Record> {
    let walk = Walk::new(&image.volume);
    let context = image.volume.context();
    let mut found: Vec<Record> = Vec::new();
    for ag in group::numbers(&walk) {
        let mut chunks = inodes::chunks(&walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            chunk.unwrap().used(&mut |e| panic!("{e}"), |inode| {
                if !is_realtime_file(inode) {
                    return;
                }
                let first = found.len();
                let fork = inode.fork(Fork::Data).unwrap();
                let v3 = if context.has_crc() { 176 } else { 100 };
                let (byte, _) = image.inode(inode.ino.0);
                if inode.format(Fork::Data) == fork_format::EXTENTS {
                    for n in 0..inode.extents(Fork::Data) as usize {
                        let extent = Extent::at(fork, n * 16).unwrap();
                        let length = context.inode_size as usize;
                        found.push(Record {
                            byte,
                            length,
                            crc: 100,
                            at: v3 + n * 16,
                            extent,
                            before: None,
                            after: None,
                        });
                    }
                } else {
                    let mut blocks = Blocks::new(&walk, &bmbt::SHAPE, Root::Fork { ino: inode.ino, bytes: fork });
                    while let Some(block) = blocks.next_block() {
                        let block = block.unwrap();
                        let At::Block(fsb) = block.at else { continue };
                        let byte = image.volume.geometry().block_byte(fsb).unwrap().0;
                        let header = if context.has_crc() { 72 } else { 24 };
                        for (n, record) in block.records().enumerate() {
                            let extent = Extent::at(record, 0).unwrap();
                            let length = context.block_size as usize;
                            found.push(Record {
                                byte,
                                length,
                                crc: 64,
                                at: header + n * 16,
                                extent,
                                before: None,
                                after: None,
                            });
                        }
                    }
                }
                for i in first..found.len() {
                    found[i].before = (i > first).then(|| found[i - 1].extent);
                    found[i].after = found.get(i + 1).map(|record| record.extent);
                }
            });
        }
    }
    found
}

/// Is this place in the file out of order, overlapping, or wrong modulo the realtime extent?
fn decidable(record: &Record, startoff: u64, unit: u64) -> bool {
    let end = startoff + u64::from(record.extent.blockcount);
    let overlaps_before = record.before.is_some_and(|b| startoff < b.startoff.0 + u64::from(b.blockcount));
    let overlaps_after = record.after.is_some_and(|a| end > a.startoff.0);
    let shifted = startoff % unit != record.extent.startoff.0 % unit;
    // Neighbours within one realtime extent must go on where the other ends.
    let touches = !record.extent.startblock.0.is_multiple_of(unit)
        || !(record.extent.startblock.0 + u64::from(record.extent.blockcount)).is_multiple_of(unit);
    overlaps_before || overlaps_after || shifted || touches
}

struct Tally {
    tried: usize,
    missed: Vec<String>,
    undecidable: usize,
}

impl Tally {
    fn take(&mut self, found: bool, what: impl FnOnce() -> String) {
        self.tried += 1;
        if !found {
            self.missed.push(what());
        }
    }
}

fn extents(image: &Image, tally: &mut Tally, about: usize, rmap: bool) {
    let unit = u64::from(image.volume.superblock().rextsize);
    let records = records(image);
    assert!(!records.is_empty());
    let mut flips = Vec::new();
    for (n, _) in records.iter().enumerate() {
        // Bit 127 is the flag; then 54 bits of startoff, 52 of startblock, 21 of blockcount.
        flips.extend((0..127u32).map(|bit| (n, bit)));
    }
    for (n, bit) in sample(flips, about) {
        let record = &records[n];
        if bit >= 73 {
            let startoff = record.extent.startoff.0 ^ 1 << (bit - 73);
            if !rmap && !decidable(record, startoff, unit) {
                tally.undecidable += 1;
                continue;
            }
        }
        let volume = image.changed(record.byte, record.length, record.crc, |bytes| {
            bytes[record.at + 15 - bit as usize / 8] ^= 1 << (bit % 8);
        });
        tally.take(!damage(&volume).is_empty(), || format!("bit {bit} of {:?}", record.extent));
    }
}

fn words(image: &Image, tally: &mut Tally, about: usize) {
    let walk = Walk::new(&image.volume);
    let section = image.volume.geometry().realtime.as_ref().unwrap();
    let sizes = rt::sizes(&walk, section);
    let grouped = section.groups.is_some();
    let (header, crc) = if grouped { (48, 4) } else { (0, 0) };
    let size = image.volume.context().block_size as usize;
    let mut flips = Vec::new();
    for number in 0..rt::count(section) {
        let group = rt::group(section, xfsinspect::units::RgNumber(number)).unwrap();
        let (_, bitmap) = first_block(image, number, GroupFile::Bitmap);
        let (_, summary) = first_block(image, number, GroupFile::Summary);
        for extent in 0..group.extents {
            let (word, bit) = (extent / 32, extent % 32);
            let byte = if grouped { 3 - bit / 8 } else { bit / 8 };
            flips.push((bitmap, header + word * 4 + byte, bit % 8, format!("group {number} extent {extent}")));
        }
        // One block of bitmap: a word for each level.
        assert_eq!(sizes.bitmap_blocks, 1);
        for level in 0..u64::from(sizes.levels) {
            flips.extend((0..32).map(|bit| {
                (summary, header + level * 4 + bit / 8, bit % 8, format!("group {number} level {level} bit {bit}"))
            }));
        }
    }
    for (block, byte, bit, what) in sample(flips, about) {
        let volume = image.changed(block, size, crc, |bytes| bytes[byte as usize] ^= 1 << bit);
        tally.take(!damage(&volume).is_empty(), || what);
    }
}

fn run(name: &str, about: usize, rmap: bool) {
    let image = Image::new(name);
    let mut tally = Tally { tried: 0, missed: Vec::new(), undecidable: 0 };
    words(&image, &mut tally, about);
    extents(&image, &mut tally, about, rmap);
    println!("{name}: {} flips found, {} cannot be decided", tally.tried, tally.undecidable);
    assert!(
        tally.missed.is_empty(),
        "{name}: {} of {} not found: {:#?}",
        tally.missed.len(),
        tally.tried,
        &tally.missed[..tally.missed.len().min(20)]
    );
}

/// 4096 bits of bitmap, 13 levels, 113 extents. What cannot be decided: a start within the file that still fits
/// between its neighbours, a whole number of realtime extents away: without reverse mappings nothing else knows it.
#[test]
fn every_bit_of_a_classic_section() {
    run("c63-classic-rt-recorder", 600, false);
}

/// 7 groups, 102400 bits, reverse mappings and shared extents: nothing is undecidable.
#[test]
fn every_bit_of_a_section_with_groups() {
    run("c64-rtgroups-64m", 300, true);
}
