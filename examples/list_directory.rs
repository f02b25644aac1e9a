//! What is in this directory? `cargo run --example list_directory IMAGE [PATH]`

use std::path::Path;
use std::sync::Arc;
use xfsinspect::source::{Cached, FileSource};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::{Walk, directory};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let image = args.next().ok_or("an image, please")?;
    let path = args.next().unwrap_or_default();

    let source = Cached::new(FileSource::open(Path::new(&image))?);
    let volume = Volume::open(Devices::data_only(Arc::new(source)), Choice::default())?;
    let walk = Walk::new(&volume);

    let root = volume.superblock().rootino;
    let block = directory::resolve(&walk, root, path.as_bytes(), &mut |error| eprintln!("{error}"))?;
    for entry in directory::entries(&walk, block.inode()) {
        match entry {
            Ok(entry) => println!("{:>12} {}", entry.ino, entry.name.escape_ascii()),
            // One block is damaged; the entries of the others still come.
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}
