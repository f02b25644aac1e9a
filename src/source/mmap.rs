//! An image file mapped into memory. Opt-in: a file that is cut short while it is mapped kills the process with
//! SIGBUS, where a positioned read returns an error. The only file of the crate that may hold `unsafe`.
#![allow(unsafe_code)]

use super::{Source, past_end, range_within};
use crate::units::ByteOffset;
use std::fs::File;
use std::io;

/// A mapped regular file.
#[derive(Debug)]
pub struct MmapSource(memmap2::Mmap);

impl MmapSource {
    /// Maps `file` read-only and privately.
    ///
    /// # Errors
    /// What mmap(2) says; block devices and empty files are refused by the caller or the kernel.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is private and read-only and lives as long as `self`. Nothing here holds a reference
        // across calls, bytes are copied out at once; a file truncated by somebody else raises SIGBUS, which the
        // user accepted by asking for --mmap (documented there and in the README).
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self(map))
    }
}

impl Source for MmapSource {
    fn len(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap_or(u64::MAX)
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let range = range_within(offset, buf.len(), self.len())?;
        let bytes = self.0.get(range).ok_or_else(|| past_end(offset, buf.len(), self.len()))?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}
