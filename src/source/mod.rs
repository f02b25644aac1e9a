//! Where bytes come from. Knows nothing of XFS.
//!
//! Everything above reads through [`Source`]: positioned, exact, read-only. Sources stack: a [`Window`] on a
//! [`Cached`] [`FileSource`] is a Source again, and so are overlays to come (a metadump, a replayed log).
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::as_conversions))]

mod cached;
pub mod container;
mod file;
mod memory;
#[cfg(feature = "mmap")]
mod mmap;
pub mod mounts;
mod window;
#[cfg(feature = "cli")]
mod zst;

pub use cached::{Cached, IoStats};
pub use file::{FileKind, FileSource};
pub use memory::MemorySource;
#[cfg(feature = "mmap")]
pub use mmap::MmapSource;
pub use window::Window;
#[cfg(feature = "cli")]
pub use zst::{is_zstd, unpack_zstd};

use crate::units::ByteOffset;
use std::io;
use std::sync::Arc;

/// Bytes at rest: a device, an image, a buffer. Shared between threads, never written.
pub trait Source: Send + Sync {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Fills `buf` from `offset` on, wholly or not at all.
    ///
    /// # Errors
    /// Whatever the system says; `UnexpectedEof` when the range ends past [`Source::len`].
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()>;

    /// Fills `buf` if the bytes are in memory already; false, with nothing said about `buf`, where the device would have
    /// to be asked. A hint for readers that otherwise would read more than they need.
    fn read_if_cached(&self, _offset: ByteOffset, _buf: &mut [u8]) -> bool {
        false
    }

    /// These bytes will be read soon: a hint, so that the device works while the caller does.
    fn will_need(&self, _offset: ByteOffset, _length: u64) {}

    /// Smallest unit the device reads, in bytes; 512 where there is no device.
    fn sector_size(&self) -> u32 {
        512
    }

    /// No bytes at all?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn len(&self) -> u64 {
        (**self).len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buf)
    }
    fn read_if_cached(&self, offset: ByteOffset, buf: &mut [u8]) -> bool {
        (**self).read_if_cached(offset, buf)
    }
    fn will_need(&self, offset: ByteOffset, length: u64) {
        (**self).will_need(offset, length);
    }
    fn sector_size(&self) -> u32 {
        (**self).sector_size()
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn len(&self) -> u64 {
        (**self).len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buf)
    }
    fn read_if_cached(&self, offset: ByteOffset, buf: &mut [u8]) -> bool {
        (**self).read_if_cached(offset, buf)
    }
    fn will_need(&self, offset: ByteOffset, length: u64) {
        (**self).will_need(offset, length);
    }
    fn sector_size(&self) -> u32 {
        (**self).sector_size()
    }
}

/// The error for a range past the end, with the numbers in it.
pub(crate) fn past_end(offset: ByteOffset, wanted: usize, len: u64) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("bytes {offset} to +{wanted} lie past the end ({len} bytes)"))
}

/// `offset..offset + buf.len()` as indices into something of `len` bytes, or the error that says why not.
pub(crate) fn range_within(offset: ByteOffset, wanted: usize, len: u64) -> io::Result<std::ops::Range<usize>> {
    let end = u64::try_from(wanted).ok().and_then(|n| offset.0.checked_add(n)).filter(|&end| end <= len);
    match (usize::try_from(offset.0), end.and_then(|end| usize::try_from(end).ok())) {
        (Ok(start), Some(end)) => Ok(start..end),
        _ => Err(past_end(offset, wanted, len)),
    }
}
