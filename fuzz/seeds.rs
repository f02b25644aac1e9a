//! Cuts seeds for the fuzz targets from testimages: `cargo run --example seeds` in fuzz/ fills corpus/decode and
//! corpus/open. Images must be unpacked first: `cargo test --test expected` leaves them in target/tmp/images.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use xfsinspect::format::STRUCTURES;

fn main() -> std::io::Result<()> {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/images");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    fs::create_dir_all(corpus.join("decode"))?;
    fs::create_dir_all(corpus.join("open"))?;
    let mut count = 0u32;
    for entry in fs::read_dir(images)? {
        let path = entry?.path();
        let file = File::open(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut head = vec![0u8; 16384];
        if file.read_exact_at(&mut head, 0).is_err() {
            continue;
        }
        fs::write(corpus.join("open").join(&name), &head)?;
        let v5 = head.get(101).is_some_and(|b| b & 15 == 5);
        // Blocks that begin with something, spread over the image, as every kind of structure.
        let mut block = vec![0u8; 4096];
        for at in (0..8u64 << 20).step_by(4096 * 37) {
            if file.read_exact_at(&mut block, at).is_err() || block[..4] == [0; 4] {
                continue;
            }
            let kind = u8::try_from(count as usize % STRUCTURES.len()).unwrap_or(0);
            let mut seed = vec![kind, if v5 { 6 } else { 7 }];
            seed.extend_from_slice(&block);
            fs::write(corpus.join("decode").join(format!("{count:05}")), &seed)?;
            count += 1;
        }
    }
    println!("{count} blocks");
    Ok(())
}
