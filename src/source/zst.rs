//! Compressed images: `.zst` files, recognised by magic, unpacked into an unlinked temporary file.
//! Runs of zeros stay holes, so a 400 GB sparse image costs what it holds.

use super::Source;
use crate::units::ByteOffset;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Magic of a zstd frame.
const FRAME: u32 = 0xfd2f_b528;
/// Magics of frames to be skipped: pzstd begins with one, and lz4 has them, too.
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184d_2a50..=0x184d_2a5f;
/// Frames that are skipped at most before one of zstd.
const SKIPPED: u32 = 64;
/// Largest window that is taken unasked, as a power of two: 128 MiB, as zstd itself. A decoder allocates it.
const WINDOW: u32 = 27;
/// Largest window that zstd can take.
const WINDOW_MAX: u32 = 31;

/// Does the file begin with a zstd frame, possibly behind frames to be skipped?
pub fn is_zstd(source: &dyn Source) -> bool {
    let mut at = 0u64;
    for _ in 0..=SKIPPED {
        let mut head = [0; 8];
        let length = if at.saturating_add(8) <= source.len() { 8 } else { 4 };
        let Some(part) = head.get_mut(..length) else { return false };
        if source.read_at(ByteOffset(at), part).is_err() {
            return false;
        }
        let [a, b, c, d, size @ ..] = head;
        match u32::from_le_bytes([a, b, c, d]) {
            FRAME => return true,
            magic if SKIPPABLE.contains(&magic) => {
                at = at.saturating_add(8).saturating_add(u64::from(u32::from_le_bytes(size)));
            }
            _ => return false,
        }
    }
    false
}

/// Unpacks `packed`, any number of frames, into an unlinked sparse file in the system's temporary folder. `long` takes
/// windows up to 2 GiB, which cost as much memory.
///
/// # Errors
/// What reading, decoding or writing says; a damaged archive is `InvalidData` or `Other` with zstd's own words, a window
/// above 128 MiB without `long` is `Unsupported`.
pub fn unpack_zstd(packed: File, long: bool) -> io::Result<File> {
    unpack(packed, long).map_err(|error| {
        if !long && error.to_string().contains("too much memory") {
            let text =
                "the zstd frame asks for a window of more than 128 MiB of memory (made with zstd --long or --ultra)";
            return io::Error::new(io::ErrorKind::Unsupported, text);
        }
        error
    })
}

fn unpack(mut packed: File, long: bool) -> io::Result<File> {
    packed.seek(SeekFrom::Start(0))?;
    let mut decoder = zstd::stream::read::Decoder::new(packed)?;
    decoder.window_log_max(if long { WINDOW_MAX } else { WINDOW })?;
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
