//! What is inode N called, and what is it? `cargo run --example find_inode IMAGE N`

use xfsinspect::Xfs;
use xfsinspect::format::dinode::Fork;
use xfsinspect::units::Ino;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, number] = args.as_slice() else { return Err("an image and an inode number, please".into()) };
    let fs = Xfs::open(image)?;
    let object = fs.inode(Ino(number.parse()?))?;
    let inode = object.metadata();
    println!("a {}, {} bytes, {} extents", inode.kind().name(), inode.size(), inode.extents(Fork::Data));
    for path in object.paths()? {
        println!("/{}", path.escape_ascii());
    }
    Ok(())
}
