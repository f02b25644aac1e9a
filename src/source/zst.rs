//! Compressed images: `.zst` files, recognised by magic, unpacked into an unlinked temporary file.
//! Runs of zeros stay holes, so a 400 GB sparse image costs what it holds.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Does the file begin with the magic of a zstd frame?
pub fn is_zstd(head: &[u8]) -> bool {
    head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}

/// Unpacks `packed` into an unlinked sparse file in the system's temporary folder.
///
/// # Errors
/// What reading, decoding or writing says; a damaged archive is `InvalidData` or `Other` with zstd's own words.
pub fn unpack_zstd(mut packed: File) -> io::Result<File> {
    packed.seek(SeekFrom::Start(0))?;
    let mut decoder = zstd::stream::read::Decoder::new(packed)?;
    decoder.window_log_max(31)?;
    let mut out = tempfile::tempfile()?;
    let mut piece = vec![0u8; 1 << 16];
    let zeros = piece.clone();
    let mut length = 0u64;
    loop {
        let mut filled = 0usize;
        while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let n = decoder.read(rest)?;
            if n == 0 {
                break;
            }
            filled = filled.saturating_add(n);
        }
        let Some(bytes) = piece.get(..filled).filter(|bytes| !bytes.is_empty()) else { break };
        if zeros.get(..filled) != Some(bytes) {
            out.seek(SeekFrom::Start(length))?;
            out.write_all(bytes)?;
        }
        length = length.saturating_add(u64::try_from(filled).unwrap_or(0));
    }
    out.set_len(length)?;
    Ok(out)
}
