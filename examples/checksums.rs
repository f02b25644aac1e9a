//! How much processor time does it take to read all metadata of a V5 file system and to checksum it, and nothing else?
//! `cargo run --release --example checksums IMAGE`
//!
//! The yardstick for `check`: what has to be read is gathered first, out of the clock; then it is read once, in the order
//! of the disk, by one thread. Inodes, btrees of AGs and forks, blocks of directories and attributes.

use std::path::Path;
use std::sync::Arc;
use xfsinspect::format::btree_block::Shape;
use xfsinspect::format::checksum::{self, CrcState};
use xfsinspect::format::dinode::{Fork, fork_format};
use xfsinspect::format::dinode_view::Kind;
use xfsinspect::format::{bmbt, bnobt, cntbt, finobt, inobt, refcountbt, rmapbt};
use xfsinspect::source::FileSource;
use xfsinspect::units::{ByteOffset, Device};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::btree::{At, Blocks, Root};
use xfsinspect::walk::{Inode, Walk, extents, group, inodes};

/// First byte, length, size of one structure, and where in it the checksum stands; `None`: as its magic says.
type Range = (u64, usize, usize, Option<usize>);

/// Longest read.
const LARGEST: usize = 4 << 20;

fn tree<'a>(walk: &'a Walk<'a>, shape: &'static Shape, root: Root<'a>, list: &mut Vec<Range>) {
    let size = usize::try_from(walk.geometry().block_size()).unwrap_or(0);
    let mut blocks = Blocks::new(walk, shape, root);
    while let Some(next) = blocks.advance() {
        let at = blocks.current().map(|block| block.at).filter(|_| next.is_ok());
        // A root in an inode has no checksum of its own.
        if let Some(at @ At::Block(_)) = at {
            list.push((blocks.place(at).byte.0, size, size, Some(shape.crc_offset())));
        }
    }
}

fn forks(walk: &Walk<'_>, inode: Inode<'_>, list: &mut Vec<Range>) {
    for (fork, shape) in [(Fork::Data, &bmbt::SHAPE), (Fork::Attr, &bmbt::ATTR_SHAPE)] {
        if inode.format(fork) == fork_format::BTREE
            && let Some(bytes) = inode.fork(fork)
        {
            tree(walk, shape, Root::Fork { ino: inode.ino, bytes }, list);
        }
        if fork == Fork::Attr || inode.kind() == Kind::Directory {
            for extent in extents::extents(walk, inode, fork).flatten() {
                let location = extents::locate(walk.geometry(), false, extent.startblock, extent.blockcount);
                let size = usize::try_from(walk.geometry().block_size()).unwrap_or(0);
                list.extend(location.map(|at| (at.byte.0, usize::try_from(at.length).unwrap_or(0), size, None)));
            }
        }
    }
}

fn gather(walk: &Walk<'_>) -> Result<Vec<Range>, Box<dyn std::error::Error>> {
    let mut list = Vec::new();
    for ag in group::numbers(walk) {
        let (agf, agi) = (group::agf(walk, ag, &mut |_| {})?, group::agi(walk, ag, &mut |_| {})?);
        tree(walk, &bnobt::SHAPE, group::bnobt(ag, &agf), &mut list);
        tree(walk, &cntbt::SHAPE, group::cntbt(ag, &agf), &mut list);
        tree(walk, &inobt::SHAPE, group::inobt(ag, &agi), &mut list);
        let features = walk.context().features;
        if features.has_finobt() {
            tree(walk, &finobt::SHAPE, group::finobt(ag, &agi), &mut list);
        }
        if features.has_rmapbt() {
            tree(walk, &rmapbt::SHAPE, group::rmapbt(ag, &agf), &mut list);
        }
        if features.has_reflink() {
            tree(walk, &refcountbt::SHAPE, group::refcountbt(ag, &agf), &mut list);
        }
        let mut chunks = inodes::chunks(walk, ag);
        while let Some(Ok(chunk)) = chunks.next_chunk() {
            for slot in chunk.inodes() {
                let byte = walk.geometry().inode_byte(slot.inode.ino).unwrap_or_default();
                let size = slot.inode.bytes().len();
                list.push((byte.0, size, size, Some(100)));
                if slot.in_use {
                    forks(walk, slot.inode, &mut list);
                }
            }
        }
    }
    Ok(list)
}

/// Joins what lies side by side.
fn join(mut list: Vec<Range>) -> Vec<Range> {
    list.sort_unstable();
    list.dedup_by(|next, last| {
        let end = last.0.checked_add(u64::try_from(last.1).unwrap_or(u64::MAX));
        let joins = end == Some(next.0) && last.2 == next.2 && last.3 == next.3 && last.1 + next.1 <= LARGEST;
        if joins {
            last.1 += next.1;
        }
        joins
    });
    list
}

/// Time that this thread has had a processor so far: the first number of this file, in nanoseconds.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = std::env::args().nth(1).ok_or("an image, please")?;
    let source = FileSource::open(Path::new(&image))?;
    let volume = Volume::open(Devices::data_only(Arc::new(source)), Choice::default())?;
    let list = join(gather(&Walk::new(&volume))?);
    let mut buffer = vec![0u8; LARGEST];
    for pass in ["read", "read and checksummed"] {
        let (mut bytes, mut structures, mut wrong) = (0u64, 0u64, 0u64);
        let start = cpu_seconds()?;
        for &(byte, length, size, at) in &list {
            buffer.resize(length.max(buffer.len()), 0);
            let into = buffer.get_mut(..length).unwrap_or_default();
            volume.read_into(Device::Data, ByteOffset(byte), into, String::new)?;
            bytes += u64::try_from(length)?;
            if pass == "read" {
                continue;
            }
            for one in into.chunks(size) {
                // Blocks of directories keep it at byte 4, those of the index and of attributes at byte 12.
                let at = at.unwrap_or(if one.starts_with(b"XD") { 4 } else { 12 });
                structures += 1;
                wrong += u64::from(checksum::verify(one, at) != CrcState::Correct);
            }
        }
        let took = cpu_seconds()? - start;
        println!(
            "{pass}: {bytes} bytes in {} reads, {structures} checksums, {wrong} wrong: {took:.3} s CPU",
            list.len()
        );
    }
    Ok(())
}
