//! Any bytes as a device with a file system: the tree, attributes, contents, inodes, extents, free lists of unlinked
//! inodes and paths are walked under a small budget. Every walk must end without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;
use std::sync::Arc;
use xfsinspect::format::dinode::Fork;
use xfsinspect::source::MemorySource;
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::tree::{self, Event, Options};
use xfsinspect::walk::{Walk, attributes, extents, file, group, inodes, paths, symlink, unlinked};

fuzz_target!(|data: &[u8]| {
    let devices = Devices::data_only(Arc::new(MemorySource::new(data)));
    let Ok(volume) = Volume::open(devices, Choice::default()) else { return };
    let walk = Walk::with_budget(&volume, 1 << 14);
    let root = volume.superblock().rootino;
    let options = Options { inodes: true, sorted: true, shallow: false };
    let _ = tree::for_each(&walk, (root, b""), options, &mut |_| {}, &mut |event| {
        let Event::Name(item) = event else { return ControlFlow::Continue(()) };
        if let Some(inode) = item.inode {
            let _ = attributes::for_each(&walk, inode, &mut |_| {}, |attribute| {
                let _ = attribute.value();
                ControlFlow::Continue(())
            });
            let _ = symlink::target(&walk, inode);
            if let Ok(mut content) = file::content(&walk, inode) {
                for _ in 0..4 {
                    let _ = content.next_piece();
                }
            }
        }
        ControlFlow::Continue(())
    });
    for ag in group::numbers(&walk).take(16) {
        if let Ok(agi) = group::agi(&walk, ag, &mut |_| {}) {
            let _ = unlinked::unlinked(&walk, ag, &agi).count();
        }
        let mut chunks = inodes::chunks(&walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            let Ok(chunk) = chunk else { continue };
            for slot in chunk.inodes() {
                for fork in [Fork::Data, Fork::Attr] {
                    let _ = extents::extents(&walk, slot.inode, fork).count();
                }
            }
        }
    }
    let _ = paths::of(&walk, root, &mut |_| {});
});
