//! Which extended attributes has this file? `cargo run --example attributes IMAGE PATH`

use std::ops::ControlFlow;
use xfsinspect::Xfs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, path] = args.as_slice() else { return Err("an image and a path, please".into()) };
    let fs = Xfs::open(image)?;
    fs.path(path)?.attributes(|attribute| {
        let name = attribute.name.escape_ascii();
        match (attribute.namespace(), attribute.parent()) {
            (_, Some((directory, _))) => println!("{name} is its name in the directory inode {directory}"),
            (namespace, None) => match attribute.value() {
                Ok(value) => println!("{}{name} = {}", namespace.unwrap_or("?."), value.escape_ascii()),
                Err(error) => eprintln!("{error}"),
            },
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}
