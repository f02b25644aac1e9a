//! Makes seeds for the fuzz targets: `cargo run --example seeds` in fuzz/ fills corpus/TARGET. For decode and open they
//! are cut from testimages, which must be unpacked first: `cargo test --test expected` leaves them in target/tmp/images.
//! For check and print they are patches (see patches.rs): to one metadata block of every type of every image.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use xfsinspect::format::STRUCTURES;

mod patches;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ["check", "print"] {
        patched(&corpus.join(target))?;
    }
    cut(&corpus)
}

/// Fields of a block of which seeds are made.
const FIELDS: u16 = 24;

/// Every image as it is, and with one field set, in turn by each of the operations.
fn patched(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut count = 0u32;
    for base in 0..patches::BASES {
        let number = u8::try_from(base).unwrap_or(0);
        let mut seen = Vec::new();
        fs::write(folder.join(format!("{base}")), [number])?;
        for (at, unit) in patches::base(base).units.iter().enumerate() {
            if seen.contains(&unit.kind) {
                continue;
            }
            seen.push(unit.kind);
            let at = u16::try_from(at).unwrap_or(0).to_le_bytes();
            for field in 0..FIELDS.min(unit.fields()) {
                let place = field.to_le_bytes();
                let part = u8::try_from(patches::BASES * (count as usize % 5)).unwrap_or(0);
                let how = u8::try_from(count as usize % patches::OPERATIONS.len()).unwrap_or(0);
                let seed = [number + part, at[0], at[1], place[0], place[1], how, 1, 0, 0];
                fs::write(folder.join(format!("{base}-{}-{field}", unit.kind.name())), seed)?;
                count += 1;
            }
        }
    }
    println!("{count} patches in {}", folder.display());
    Ok(())
}

/// Heads of images and blocks from all over them.
fn cut(corpus: &Path) -> std::io::Result<()> {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/images");
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
