//! What is in this file? `cargo run --example read_file IMAGE PATH [RTIMAGE]`

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use xfsinspect::source::{Cached, FileSource, Source};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::file::{self, Piece};
use xfsinspect::walk::{Walk, directory};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, path, rest @ ..] = args.as_slice() else { return Err("an image and a path, please".into()) };
    let open = |name: &str| -> std::io::Result<Arc<dyn Source>> {
        Ok(Arc::new(Cached::new(FileSource::open(Path::new(name))?)))
    };
    let rt = rest.first().map(|name| open(name)).transpose()?;
    let devices = Devices { data: open(image)?, log: None, rt };
    let volume = Volume::open(devices, Choice::default())?;
    let walk = Walk::new(&volume);

    let root = volume.superblock().rootino;
    let block = directory::resolve(&walk, root, path.as_bytes(), &mut |error| eprintln!("{error}"))?;
    let mut content = file::content(&walk, block.inode())?;
    let mut out = std::io::stdout().lock();
    while let Some(piece) = content.next_piece() {
        match piece? {
            Piece::Data { bytes, .. } => out.write_all(bytes)?,
            Piece::Zeros { length, .. } => {
                std::io::copy(&mut std::io::Read::take(std::io::repeat(0), length), &mut out)?;
            }
        }
    }
    Ok(())
}
