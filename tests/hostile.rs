//! Walks over damaged file systems: every one ends, soon, in little memory, without a panic.
//!
//! Blocks of real images are overwritten with zeros, ones, noise, other metadata, or pointers that lead in circles; then
//! everything is walked. By default a sample of the blocks is taken; XFSINSPECT_HOSTILE=all takes them all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::overlay::Overlay;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use xfsinspect::error::Error;
use xfsinspect::format::btree_block::Shape;
use xfsinspect::format::dinode::Fork;
use xfsinspect::format::dinode_view::Kind;
use xfsinspect::format::{bmbt, bnobt, inobt, refcountbt, rmapbt};
use xfsinspect::units::{ByteOffset, Device, FsBlock, Ino};
use xfsinspect::volume::{Choice, Volume};
use xfsinspect::walk::btree::{At, Blocks, Root};
use xfsinspect::walk::extents::{ForkMap, extents, locate};
use xfsinspect::walk::shared::Shared;
use xfsinspect::walk::tree::{self, Event, Options};
use xfsinspect::walk::{Walk, attributes, directory, file, fsmap, group, inodes, owner, paths, symlink, unlinked};

fn patched(name: &str, patches: BTreeMap<u64, Vec<u8>>) -> Option<Volume> {
    counted(name, patches).map(|(volume, _)| volume)
}

/// The same, with the device, which tells how often it was read.
fn counted(name: &str, patches: BTreeMap<u64, Vec<u8>>) -> Option<(Volume, Arc<Overlay>)> {
    let mut devices = common::devices(name);
    let overlay = Overlay::new(devices.data, patches);
    devices.data = overlay.clone();
    Some((Volume::open(devices, Choice::default()).ok()?, overlay))
}

/// What a walk over everything came to.
#[derive(Debug, Default)]
struct Seen {
    names: u64,
    inodes: u64,
    extents: u64,
    errors: Vec<String>,
}

/// Walks everything there is.
fn everything(volume: &Volume) -> Seen {
    let walk = Walk::new(volume);
    let mut seen = Seen::default();
    let mut errors: Vec<Error> = Vec::new();
    let _ = tree::for_each(
        &walk,
        (volume.superblock().rootino, b""),
        Options { inodes: true, sorted: true, shallow: false },
        &mut |error| errors.push(error),
        &mut |event| {
            let Event::Name(item) = event else { return ControlFlow::Continue(()) };
            seen.names += 1;
            let Some(inode) = item.inode else { return ControlFlow::Continue(()) };
            let mut more = Vec::new();
            let mut values = Vec::new();
            let _ = attributes::for_each(&walk, inode, &mut |error| more.push(error), |attribute| {
                values.extend(attribute.value().err());
                ControlFlow::Continue(())
            });
            seen.errors.extend(more.iter().chain(&values).map(Error::to_string));
            match inode.kind() {
                Kind::Symlink => seen.errors.extend(symlink::target(&walk, inode).err().map(|e| e.to_string())),
                Kind::Regular => match file::content(&walk, inode) {
                    Ok(mut content) => {
                        for _ in 0..3 {
                            match content.next_piece() {
                                Some(Err(error)) => seen.errors.push(error.to_string()),
                                Some(Ok(_)) => {}
                                None => break,
                            }
                        }
                    }
                    Err(error) => seen.errors.push(error.to_string()),
                },
                _ => {}
            }
            ControlFlow::Continue(())
        },
    );
    let mut some: Vec<Ino> = Vec::new();
    let mut sharing = Shared::new(&walk);
    for ag in group::numbers(&walk) {
        if let Ok(agi) = group::agi(&walk, ag, &mut |error| errors.push(error)) {
            errors.extend(unlinked::unlinked(&walk, ag, &agi).filter_map(Result::err));
        }
        if let Ok(agf) = group::agf(&walk, ag, &mut |error| errors.push(error)) {
            drain(&walk, &bnobt::SHAPE, group::bnobt(ag, &agf), &mut errors);
            if walk.context().features.has_rmapbt() {
                drain(&walk, &rmapbt::SHAPE, group::rmapbt(ag, &agf), &mut errors);
            }
            if walk.context().features.has_reflink() {
                drain(&walk, &refcountbt::SHAPE, group::refcountbt(ag, &agf), &mut errors);
            }
        }
        let mut chunks = inodes::chunks(&walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let mut own = Vec::new();
            chunk.used(&mut |error| own.push(error), |inode| {
                seen.inodes += 1;
                if seen.inodes % 500 == 1 {
                    some.push(inode.ino);
                }
                for fork in [Fork::Data, Fork::Attr] {
                    for extent in extents(&walk, inode, fork) {
                        match extent {
                            Ok(extent) => {
                                seen.extents += 1;
                                let realtime = xfsinspect::walk::extents::on_realtime(inode, fork);
                                let _ = locate(walk.geometry(), realtime, extent.startblock, extent.blockcount);
                                let (start, blocks) = (extent.startblock, extent.blockcount);
                                let _ =
                                    sharing.pieces(realtime, start, blocks, &mut |e| seen.errors.push(e.to_string()));
                            }
                            Err(error) => seen.errors.push(error.to_string()),
                        }
                    }
                }
            });
            errors.extend(own);
        }
    }
    some.truncate(4);
    for ino in some {
        let _ = paths::of(&walk, ino, &mut |error| errors.push(error));
    }
    for rmap in [true, false] {
        let query = fsmap::Query { rmap, ..fsmap::Query::default() };
        let mut ranges = 0;
        let _ = fsmap::for_each(volume, &query, &mut |error| errors.push(error), &mut |_| {
            ranges += 1;
            ControlFlow::Continue(())
        });
        assert!(ranges > 0);
        let bytes = [0, 4096, 70_000, 1 << 20, 40 << 20].map(ByteOffset);
        let bytes: Vec<_> = bytes.iter().flat_map(|&byte| [(Device::Data, byte), (Device::Rt, byte)]).collect();
        let answers = owner::of(&walk, &bytes, owner::Options { rmap }, &mut |error| errors.push(error));
        assert!(answers.iter().all(|answer| !answer.owners.is_empty()));
    }
    seen.errors.extend(errors.iter().map(Error::to_string));
    seen
}

fn drain(walk: &Walk<'_>, shape: &'static Shape, root: Root<'_>, errors: &mut Vec<Error>) {
    let mut blocks = Blocks::new(walk, shape, root);
    while let Some(block) = blocks.next_block() {
        errors.extend(block.err());
    }
}

/// Bytes and size of every metadata block that the walks read: btrees, directories, attributes, inodes, headers.
fn metadata(volume: &Volume) -> Vec<(u64, usize)> {
    let walk = Walk::new(volume);
    let geometry = walk.geometry();
    let block_size = geometry.block_size() as usize;
    let mut found = Vec::new();
    let mut add = |block: FsBlock| found.extend(geometry.block_byte(block).map(|byte| (byte.0, block_size)));
    for ag in group::numbers(&walk) {
        let agf = group::agf(&walk, ag, &mut |_| {}).unwrap();
        let agi = group::agi(&walk, ag, &mut |_| {}).unwrap();
        let mut trees: Vec<(&'static Shape, Root<'_>)> =
            vec![(&inobt::SHAPE, group::inobt(ag, &agi)), (&bnobt::SHAPE, group::bnobt(ag, &agf))];
        if walk.context().features.has_rmapbt() {
            trees.push((&rmapbt::SHAPE, group::rmapbt(ag, &agf)));
        }
        for (shape, root) in trees {
            let mut blocks = Blocks::new(&walk, shape, root);
            while let Some(block) = blocks.next_block() {
                if let At::Block(block) = block.unwrap().at {
                    add(block);
                }
            }
        }
        let mut chunks = inodes::chunks(&walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            chunk.unwrap().used(&mut |_| {}, |inode| {
                add(geometry.inode_place(inode.ino).unwrap().0);
                let directory = inode.kind() == Kind::Directory;
                for fork in [Fork::Data, Fork::Attr] {
                    if inode.format(fork) == 3 {
                        let root = Root::Fork { ino: inode.ino, bytes: inode.fork(fork).unwrap() };
                        let mut blocks = Blocks::new(&walk, &bmbt::SHAPE, root);
                        while let Some(block) = blocks.next_block() {
                            if let At::Block(block) = block.unwrap().at {
                                add(block);
                            }
                        }
                    }
                    if fork == Fork::Attr || directory {
                        for extent in ForkMap::read(&walk, inode, fork, &mut |_| {}).extents() {
                            (0..u64::from(extent.blockcount)).for_each(|i| add(FsBlock(extent.startblock.0 + i)));
                        }
                    }
                }
            });
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Small and repeatable.
fn noise(seed: &mut u64) -> u8 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as u8
}

/// Most memory this process ever had, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn walks_end_on(name: &str) {
    let volume = common::volume(name);
    let (sound, device) = counted(name, BTreeMap::new()).unwrap();
    let sound = everything(&sound);
    let (least, mut most) = (device.reads(), 0);
    assert_eq!(sound.errors, Vec::<String>::new(), "{name} is sound");
    let blocks = metadata(&volume);
    let all = std::env::var("XFSINSPECT_HOSTILE").is_ok_and(|how| how == "all");
    let step = if all { 1 } else { (blocks.len() / 24).max(1) };
    let read = |at: u64, len: usize| volume.read(Device::Data, ByteOffset(at), len as u32, "block").unwrap().bytes;
    let (mut runs, mut noticed) = (0u32, 0u32);
    let mut seed = 7;
    for (i, &(at, len)) in blocks.iter().enumerate().step_by(step) {
        let (other, other_len) = blocks[(i * 7 + 3) % blocks.len()];
        let mut flipped = read(at, len);
        for _ in 0..40 {
            let place = (usize::from(noise(&mut seed)) * 256 + usize::from(noise(&mut seed))) % len;
            flipped[place] = noise(&mut seed);
        }
        // The header stays, so that what follows is believed.
        let mut believed: Vec<u8> = (0..len).map(|_| noise(&mut seed)).collect();
        believed[..8].copy_from_slice(&read(at, 8));
        let kinds =
            [vec![0; len], vec![0xff; len], believed, flipped, read(other, other_len)[..len.min(other_len)].to_vec()];
        for (kind, bytes) in kinds.into_iter().enumerate() {
            let Some((volume, device)) = counted(name, BTreeMap::from([(at, bytes)])) else { continue };
            let seen = everything(&volume);
            let reads = device.reads();
            most = most.max(reads);
            assert!(reads <= least * 2, "{name}: byte {at}, kind {kind}: {reads} reads, {least} of the sound image");
            runs += 1;
            noticed += u32::from(!seen.errors.is_empty());
        }
    }
    let peak = peak();
    println!(
        "{name}: {} blocks, {runs} runs, {noticed} with errors, {least} to {most} reads, peak {peak} MB",
        blocks.len()
    );
    assert!(peak < 256, "{peak} MB");
}

#[test]
fn walks_end_on_damaged_v5() {
    walks_end_on("v5-parent");
}

#[test]
fn walks_end_on_damaged_v4() {
    walks_end_on("v4-512b");
}

#[test]
fn walks_end_on_damaged_groups() {
    walks_end_on("v5-rtgroups-16k");
}

/// The byte and the bytes of the block in which `needle` lies, of the directory `ino`.
fn find_in_directory(volume: &Volume, ino: Ino, needle: &[u8]) -> (u64, usize) {
    let walk = Walk::new(volume);
    let block = walk.inode(ino).unwrap();
    if block.inode().format(Fork::Data) == 1 {
        let bytes = block.inode().bytes();
        let at = bytes.windows(needle.len()).position(|w| w == needle).expect("the name");
        return (block.place().byte.0, at);
    }
    for extent in ForkMap::read(&walk, block.inode(), Fork::Data, &mut |_| {}).extents() {
        let read = volume.blocks(extent.startblock, extent.blockcount, "directory").unwrap();
        if let Some(at) = read.bytes.windows(needle.len()).position(|w| w == needle) {
            return (read.place.byte.0, at);
        }
    }
    panic!("no such name");
}

fn lookup(volume: &Volume, path: &str) -> Ino {
    let walk = Walk::new(volume);
    let root = volume.superblock().rootino;
    directory::resolve(&walk, root, path.as_bytes(), &mut |e| panic!("{e}")).unwrap().ino()
}

#[test]
fn a_directory_below_itself() {
    let name = "v5-parent";
    let volume = common::volume(name);
    let (root, dirs) = (volume.superblock().rootino, lookup(&volume, "dirs"));
    // The entry "shortform" of dirs leads back to the root: in a directory in its inode the number follows the name and
    // the file type, four bytes.
    let (at, within) = find_in_directory(&volume, dirs, b"shortform");
    let number = (root.0 as u32).to_be_bytes().to_vec();
    let volume = patched(name, BTreeMap::from([(at + within as u64 + 10, number)])).unwrap();
    let seen = everything(&volume);
    assert!(seen.errors.iter().any(|e| e.contains("the directory is reached twice")), "{:#?}", seen.errors);
}

#[test]
fn an_extent_map_in_circles() {
    let name = "v5-1k-rmap";
    let volume = common::volume(name);
    let walk = Walk::new(&volume);
    // The first file whose extent map has nodes below its root.
    let (mut target, mut leaf) = (None, None);
    for ag in group::numbers(&walk) {
        let mut chunks = inodes::chunks(&walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            chunk.unwrap().used(&mut |_| {}, |inode| {
                if inode.format(Fork::Data) != 3 {
                    return;
                }
                let root = Root::Fork { ino: inode.ino, bytes: inode.fork(Fork::Data).unwrap() };
                let mut blocks = Blocks::new(&walk, &bmbt::SHAPE, root);
                while let Some(block) = blocks.next_block() {
                    let block = block.unwrap();
                    if let At::Block(at) = block.at {
                        let found = (inode.ino, volume.geometry().block_byte(at).unwrap().0, at.0);
                        if block.level > 0 {
                            target.get_or_insert(found);
                        } else {
                            leaf.get_or_insert(found);
                        }
                    }
                }
            });
        }
    }
    let (ino, leaf_byte, leaf_block) = leaf.expect("a file with a btree");
    // The leaf's right neighbour is itself: neighbours are not followed, all extents are still found.
    let count = |volume: &Volume| {
        let walk = Walk::new(volume);
        let block = walk.inode(ino).unwrap();
        let all: Vec<_> = extents(&walk, block.inode(), Fork::Data).collect();
        let good = all.iter().filter(|e| e.is_ok()).count();
        (good, all.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect::<Vec<_>>())
    };
    let (whole, errors) = count(&volume);
    assert!(errors.is_empty());
    let circle = patched(name, BTreeMap::from([(leaf_byte + 16, leaf_block.to_be_bytes().to_vec())])).unwrap();
    let (found, errors) = count(&circle);
    assert_eq!(found, whole);
    assert!(errors.iter().any(|e| e.contains("checksum")), "{errors:?}");
    if let Some((ino, byte, block)) = target {
        // A node all of whose children are itself.
        let room = (volume.context().block_size as usize - 72) / 16;
        let itself: Vec<u8> = block.to_be_bytes().repeat(room);
        let circle = patched(name, BTreeMap::from([(byte + 72 + 8 * room as u64, itself)])).unwrap();
        let walk = Walk::new(&circle);
        let inode = walk.inode(ino).unwrap();
        let errors: Vec<_> = extents(&walk, inode.inode(), Fork::Data).filter_map(Result::err).collect();
        assert!(errors.iter().any(|e| e.to_string().contains("reached twice")), "{errors:?}");
    }
}

#[test]
fn an_unlinked_list_in_circles() {
    let name = "v5-parent";
    let volume = common::volume(name);
    let ino = lookup(&volume, "files/empty");
    let (ag, agino) = volume.geometry().split_inode(ino).unwrap();
    let header = volume.geometry().ag_header(ag, 2).unwrap().0;
    let byte = volume.geometry().inode_byte(ino).unwrap().0;
    let number = agino.0.to_be_bytes().to_vec();
    // Bucket 5 begins with an inode whose successor is itself.
    let patches = BTreeMap::from([(header + 40 + 4 * 5, number.clone()), (byte + 96, number)]);
    let volume = patched(name, patches).unwrap();
    let walk = Walk::new(&volume);
    let agi = group::agi(&walk, ag, &mut |_| {}).unwrap();
    let found: Vec<_> = unlinked::unlinked(&walk, ag, &agi).collect();
    assert_eq!(found.len(), 2);
    assert!(matches!(found[0], Ok((5, first)) if first == ino));
    assert!(found[1].as_ref().is_err_and(|e| e.to_string().contains("comes to an inode twice")));
}

#[test]
fn a_budget_ends_everything() {
    let volume = common::volume("v5-parent");
    let walk = Walk::with_budget(&volume, 50);
    let mut errors = Vec::new();
    let root = (volume.superblock().rootino, &b""[..]);
    let _ = tree::for_each(
        &walk,
        root,
        Options { inodes: true, ..Options::default() },
        &mut |e| errors.push(e),
        &mut |_| ControlFlow::Continue(()),
    );
    assert!(errors.iter().all(|e| matches!(e, Error::Exhausted { steps: 50 })), "{errors:?}");
    assert!(!errors.is_empty());
}

#[test]
fn a_btree_with_fewer_extents_than_the_core_says() {
    // Case C18: inode 131, core says 578, the leaves hold 575.
    let volume = common::volume("c18-nextents-mismatch");
    let walk = Walk::new(&volume);
    let block = walk.inode(Ino(131)).unwrap();
    let all: Vec<_> = extents(&walk, block.inode(), Fork::Data).collect();
    assert_eq!(all.iter().filter(|extent| extent.is_ok()).count(), 575);
    let last = all.last().unwrap().as_ref().expect_err("the count is wrong").to_string();
    assert!(last.contains("core.nextents") && last.contains("found 578, expected 575"), "{last}");
}

#[test]
fn owners_are_found_without_a_lost_leaf_of_reverse_mappings() {
    let sound = common::volume("v5-default");
    // A leaf of the reverse mapping btree of AG 0, by xfs_db.
    let lost = patched("v5-default", BTreeMap::from([(12 * 4096, vec![0; 4096])])).unwrap();
    let ranges = |volume: &Volume, errors: &mut Vec<Error>| {
        let mut all = Vec::new();
        let _ = fsmap::for_each(volume, &fsmap::Query::default(), &mut |error| errors.push(error), &mut |range| {
            all.push(*range);
            ControlFlow::Continue(())
        });
        all
    };
    let mut errors = Vec::new();
    let right = ranges(&sound, &mut errors);
    assert!(errors.is_empty());
    let left = ranges(&lost, &mut errors);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let free = |all: &[fsmap::Range]| all.iter().filter(|r| r.owner == fsmap::Owner::Free).copied().collect::<Vec<_>>();
    assert_eq!(free(&left), free(&right), "the free space btree tells");
    let gone: Vec<_> = right.iter().filter(|range| !left.contains(range)).collect();
    assert!(gone.len() > 10 && left.iter().any(|range| range.owner == fsmap::Owner::Unknown));
    let walk = Walk::new(&lost);
    let bytes: Vec<_> = gone.iter().map(|range| (Device::Data, range.start)).collect();
    let answers = owner::of(&walk, &bytes, owner::Options { rmap: true }, &mut |_| {});
    for (range, answer) in gone.iter().zip(&answers) {
        // The block of the lost leaf itself is out of reach.
        let named = answer.owners.iter().any(|(found, _)| found.owner == range.owner);
        assert!(named || range.owner == fsmap::Owner::Ag, "{range:?} {answer:?}");
    }
}
