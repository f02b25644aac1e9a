//! How many inodes are in use, and how many extents have they? `cargo run --release --example all_inodes IMAGE`
//!
//! AGs side by side, whole chunks per read: a million inodes take a fraction of a second.

use std::path::Path;
use std::sync::Arc;
use xfsinspect::format::dinode::Fork;
use xfsinspect::source::FileSource;
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::{Walk, extents, inodes, parallel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = std::env::args().nth(1).ok_or("an image, please")?;
    let source = FileSource::open(Path::new(&image))?;
    let volume = Volume::open(Devices::data_only(Arc::new(source)), Choice::default())?;
    let walk = Walk::new(&volume);

    let counts = parallel::per_ag(&walk, parallel::default_threads(), |ag| {
        let (mut used, mut mapped) = (0u64, 0u64);
        let mut chunks = inodes::chunks(&walk, ag);
        while let Some(chunk) = chunks.next_chunk() {
            match chunk {
                Ok(chunk) => chunk.used(&mut |error| eprintln!("{error}"), |inode| {
                    used = used.saturating_add(1);
                    for fork in [Fork::Data, Fork::Attr] {
                        let all = extents::extents(&walk, inode, fork).filter(Result::is_ok);
                        mapped = mapped.saturating_add(u64::try_from(all.count()).unwrap_or(u64::MAX));
                    }
                }),
                Err(error) => eprintln!("{error}"),
            }
        }
        (used, mapped)
    });
    for (ag, (used, mapped)) in counts.iter().enumerate() {
        println!("AG {ag}: {used} inodes in use, {mapped} extents");
    }
    Ok(())
}
