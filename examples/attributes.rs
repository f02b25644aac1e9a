//! Which extended attributes has this file? `cargo run --example attributes IMAGE PATH`

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use xfsinspect::source::{Cached, FileSource};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::{Walk, attributes, directory};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, path] = args.as_slice() else { return Err("an image and a path, please".into()) };
    let source = Cached::new(FileSource::open(Path::new(image))?);
    let volume = Volume::open(Devices::data_only(Arc::new(source)), Choice::default())?;
    let walk = Walk::new(&volume);

    let root = volume.superblock().rootino;
    let block = directory::resolve(&walk, root, path.as_bytes(), &mut |error| eprintln!("{error}"))?;
    let _ = attributes::for_each(&walk, block.inode(), &mut |error| eprintln!("{error}"), |attribute| {
        let name = attribute.name.escape_ascii();
        match (attribute.namespace(), attribute.parent()) {
            (_, Some((directory, _))) => println!("{name} is its name in the directory inode {directory}"),
            (namespace, None) => match attribute.value() {
                Ok(value) => println!("{}{name} = {}", namespace.unwrap_or("?."), value.escape_ascii()),
                Err(error) => eprintln!("{error}"),
            },
        }
        ControlFlow::Continue(())
    });
    Ok(())
}
