//! What is inode N called, and what is it? `cargo run --example find_inode IMAGE N`

use std::path::Path;
use std::sync::Arc;
use xfsinspect::format::dinode::Fork;
use xfsinspect::source::{Cached, FileSource};
use xfsinspect::units::Ino;
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::{Walk, paths};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, number] = args.as_slice() else { return Err("an image and an inode number, please".into()) };
    let ino = Ino(number.parse()?);
    let source = Cached::new(FileSource::open(Path::new(image))?);
    let volume = Volume::open(Devices::data_only(Arc::new(source)), Choice::default())?;
    let walk = Walk::new(&volume);

    let block = walk.inode(ino)?;
    let inode = block.inode();
    println!("a {}, {} bytes, {} extents", inode.kind().name(), inode.size(), inode.extents(Fork::Data));
    for path in paths::of(&walk, ino, &mut |error| eprintln!("{error}")) {
        println!("{:?}: /{}", path.from, path.path.escape_ascii());
    }
    Ok(())
}
