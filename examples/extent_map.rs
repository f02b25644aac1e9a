//! Where does this file lie? `cargo run --example extent_map IMAGE PATH`

use std::path::Path;
use std::sync::Arc;
use xfsinspect::format::dinode::Fork;
use xfsinspect::source::{Cached, FileSource};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::extents::{extents, locate, on_realtime};
use xfsinspect::walk::{Walk, directory};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, path] = args.as_slice() else { return Err("an image and a path, please".into()) };
    let source = Cached::new(FileSource::open(Path::new(image))?);
    let volume = Volume::open(Devices::data_only(Arc::new(source)), Choice::default())?;
    let walk = Walk::new(&volume);

    let root = volume.superblock().rootino;
    let block = directory::resolve(&walk, root, path.as_bytes(), &mut |error| eprintln!("{error}"))?;
    let (inode, fork) = (block.inode(), Fork::Data);
    for extent in extents(&walk, inode, fork) {
        let extent = extent?;
        let state = if extent.unwritten { "unwritten" } else { "written" };
        match locate(volume.geometry(), on_realtime(inode, fork), extent.startblock, extent.blockcount) {
            Some(place) => println!(
                "file block {:>10}: {:>8} blocks, {state}, {} device, byte {}",
                extent.startoff, extent.blockcount, place.device, place.byte
            ),
            None => println!("file block {:>10}: {:>8} blocks that do not exist", extent.startoff, extent.blockcount),
        }
    }
    Ok(())
}
