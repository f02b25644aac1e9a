//! Where does this file lie? `cargo run --example extent_map IMAGE PATH`

use xfsinspect::Xfs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, path] = args.as_slice() else { return Err("an image and a path, please".into()) };
    let fs = Xfs::open(image)?;
    for extent in fs.path(path)?.extents() {
        let (extent, location) = extent?;
        let state = if extent.unwritten { "unwritten" } else { "written" };
        match location {
            Some(place) => println!(
                "file block {:>10}: {:>8} blocks, {state}, {} device, byte {}",
                extent.startoff, extent.blockcount, place.device, place.byte
            ),
            None => println!("file block {:>10}: {:>8} blocks that do not exist", extent.startoff, extent.blockcount),
        }
    }
    Ok(())
}
