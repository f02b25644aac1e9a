//! Image files and block devices, by positioned reads. Opened read-only, always.
//!
//! A block device is read with O_DIRECT: through the page cache a mounted file system shows stale superblocks.
//! Where the kernel refuses O_DIRECT the page cache is used and [`FileSource::is_direct`] says so.

use super::{Source, past_end};
use crate::units::ByteOffset;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What kind of file a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file: an image.
    Regular,
    /// A block device, with its number (major, minor).
    BlockDevice(u32, u32),
}

/// A regular file or block device, open for reading.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    kind: FileKind,
    len: u64,
    sector: u32,
    direct: bool,
}

/// Memory alignment that satisfies O_DIRECT on every device seen so far.
const DIRECT_ALIGN: usize = 4096;

impl FileSource {
    /// Opens `path` read-only.
    ///
    /// # Errors
    /// What open(2) says; `InvalidInput` for directories, pipes and character devices.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(nonblock()).open(path)?;
        let meta = file.metadata()?;
        let kind = if meta.file_type().is_block_device() {
            let dev = meta.rdev();
            FileKind::BlockDevice(rustix::fs::major(dev), rustix::fs::minor(dev))
        } else if meta.is_file() {
            FileKind::Regular
        } else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file or block device"));
        };
        let FileKind::BlockDevice(..) = kind else { return Self::from_file(file) };
        let direct = OpenOptions::new().read(true).custom_flags(direct_flag()).open(path).ok();
        let is_direct = direct.is_some();
        let file = direct.unwrap_or(file);
        let sector = rustix::fs::ioctl_blksszget(&file).unwrap_or(512).max(512);
        let len = io::Seek::seek(&mut &file, io::SeekFrom::End(0))?;
        Ok(Self { file, kind, len, sector, direct: is_direct })
    }

    /// A regular file that is open already (an unpacked image).
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn from_file(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, kind: FileKind::Regular, len, sector: 512, direct: false })
    }

    /// Regular file or block device?
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Are reads going past the page cache?
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// The open file, for mapping or unpacking it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads whole sectors into aligned memory and copies the wanted part out.
    fn read_direct(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let impossible = || past_end(offset, buf.len(), self.len);
        let sector = u64::from(self.sector);
        let wanted = u64::try_from(buf.len()).map_err(|_| impossible())?;
        let skip = offset.0.checked_rem(sector).unwrap_or(0);
        let first = offset.0.saturating_sub(skip);
        let length = skip
            .checked_add(wanted)
            .and_then(|n| n.checked_next_multiple_of(sector))
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(impossible)?;
        let mut memory = vec![0u8; length.saturating_add(DIRECT_ALIGN)];
        let shift = memory.as_ptr().align_offset(DIRECT_ALIGN);
        let aligned = memory.get_mut(shift..).and_then(|m| m.get_mut(..length)).ok_or_else(impossible)?;
        self.file.read_exact_at(aligned, first)?;
        let skip = usize::try_from(skip).map_err(|_| impossible())?;
        let bytes = aligned.get(skip..).and_then(|m| m.get(..buf.len())).ok_or_else(impossible)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let end = u64::try_from(buf.len()).ok().and_then(|n| offset.0.checked_add(n));
        if end.is_none_or(|end| end > self.len) {
            return Err(past_end(offset, buf.len(), self.len));
        }
        if self.direct { self.read_direct(offset, buf) } else { self.file.read_exact_at(buf, offset.0) }
    }

    fn read_if_cached(&self, offset: ByteOffset, buf: &mut [u8]) -> bool {
        if self.direct {
            return false;
        }
        let wanted = buf.len();
        let mut into = [io::IoSliceMut::new(buf)];
        let read = rustix::io::preadv2(&self.file, &mut into, offset.0, rustix::io::ReadWriteFlags::NOWAIT);
        read.is_ok_and(|n| n == wanted)
    }

    fn will_need(&self, offset: ByteOffset, length: u64) {
        // Direct reads pass by the page cache.
        if !self.direct
            && let Some(length) = NonZeroU64::new(length)
        {
            // OK: only a hint.
            let _ = rustix::fs::fadvise(&self.file, offset.0, Some(length), rustix::fs::Advice::WillNeed);
        }
    }

    fn sector_size(&self) -> u32 {
        self.sector
    }
}

/// O_NONBLOCK: opening a FIFO by mistake must fail, not hang.
fn nonblock() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

/// O_DIRECT.
fn direct_flag() -> i32 {
    i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap_or(0)
}
