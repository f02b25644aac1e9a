//! The door for users of the library: a file system, its objects, what is wrong with it.
//!
//! Everything here is put together from the layers below, which stay open for what this leaves out: [`Xfs::volume`] leads
//! down to them.

use crate::check::context::Hooks;
use crate::check::{Options, Report, check};
use crate::error::{Error, Result};
use crate::format::bmbt::Extent;
use crate::format::dinode::Fork;
use crate::report::info::{DeviceNames, report};
use crate::source::{Cached, FileSource, Source, Window};
use crate::units::{ByteOffset, Ino};
use crate::volume::{Choice, Devices, OpenError, Scan, Volume};
use crate::walk::attributes::{self, Attribute};
use crate::walk::directory::{self, OwnedEntry};
use crate::walk::extents::{self, Location};
use crate::walk::file::Reader;
use crate::walk::{Inode, InodeBlock, Walk, paths, symlink};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An XFS file system, open for reading.
///
/// ```no_run
/// use std::io::Read;
/// use xfsinspect::Xfs;
///
/// let fs = Xfs::open("disk.img")?;
/// print!("{}", fs.info());
/// let mut text = String::new();
/// fs.path("/etc/fstab")?.reader()?.read_to_string(&mut text)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Xfs {
    volume: Volume,
}

/// A device of a file system, before it is opened.
enum Given {
    Path(PathBuf),
    Source(Arc<dyn Source>),
}

impl Given {
    fn open(self) -> Result<Arc<dyn Source>> {
        match self {
            Self::Source(source) => Ok(source),
            Self::Path(path) => {
                let system = |source| Error::System { what: path.display().to_string(), source };
                Ok(Arc::new(Cached::new(FileSource::open(&path).map_err(system)?)))
            }
        }
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Source(source) => write!(f, "a source of {} bytes", source.len()),
        }
    }
}

/// What to open, and through which superblock. Made by [`Xfs::builder`] and [`Xfs::from_source`].
#[derive(Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    data: Given,
    log: Option<Given>,
    rt: Option<Given>,
    offset: u64,
    choice: Choice,
    most_steps: Option<u64>,
}

impl Builder {
    fn new(data: Given) -> Self {
        Self { data, log: None, rt: None, offset: 0, choice: Choice::default(), most_steps: None }
    }

    /// The external log, a device or an image.
    pub fn log(mut self, path: impl AsRef<Path>) -> Self {
        self.log = Some(Given::Path(path.as_ref().to_owned()));
        self
    }

    /// The external log, from any source.
    pub fn log_source(mut self, source: impl Source + 'static) -> Self {
        self.log = Some(Given::Source(Arc::new(source)));
        self
    }

    /// The realtime section, a device or an image.
    pub fn realtime(mut self, path: impl AsRef<Path>) -> Self {
        self.rt = Some(Given::Path(path.as_ref().to_owned()));
        self
    }

    /// The realtime section, from any source.
    pub fn realtime_source(mut self, source: impl Source + 'static) -> Self {
        self.rt = Some(Given::Source(Arc::new(source)));
        self
    }

    /// Bytes of the data device before the file system: where its partition begins.
    pub fn offset(mut self, bytes: u64) -> Self {
        self.offset = bytes;
        self
    }

    /// Reads through the superblock copy of this AG instead of the primary.
    pub fn copy(mut self, ag: u32) -> Self {
        self.choice.copy = Some(ag);
        self
    }

    /// Looks for superblock copies on the whole device, where the primary is unusable, instead of in its first GiB.
    pub fn search_all(mut self) -> Self {
        self.choice.scan = Scan::All;
        self
    }

    /// Each question looks at no more than `steps` blocks; what lies beyond ends in [`Error::Exhausted`].
    pub fn max_steps(mut self, steps: u64) -> Self {
        self.most_steps = Some(steps);
        self
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`OpenError::NoSuperblock`] where there is no XFS; [`OpenError::Other`] where a device cannot be opened or read.
    pub fn open(self) -> std::result::Result<Xfs, OpenError> {
        let mut data = self.data.open()?;
        if self.offset > 0 {
            data = Arc::new(Window::new(data, ByteOffset(self.offset), None));
        }
        let log = self.log.map(Given::open).transpose()?;
        let rt = self.rt.map(Given::open).transpose()?;
        let volume = Volume::open(Devices { data, log, rt }, self.choice)?;
        let volume = match self.most_steps {
            Some(steps) => volume.limited(steps),
            None => volume,
        };
        Ok(Xfs { volume })
    }
}

impl Xfs {
    /// Opens a device or an image.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> std::result::Result<Self, OpenError> {
        Self::builder(path).open()
    }

    /// A device or an image, with more to say about it before it is opened.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(Given::Path(path.as_ref().to_owned()))
    }

    /// Any source of bytes, with more to say about it before it is opened.
    pub fn from_source(source: impl Source + 'static) -> Builder {
        Builder::new(Given::Source(Arc::new(source)))
    }

    /// The layer below: devices, geometry, reads.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// The report of xfs_info. Devices have no names here; the log and the realtime section print as `external` where
    /// they lie on devices of their own.
    pub fn info(&self) -> String {
        let complete = !matches!(self.volume.origin(), crate::volume::Origin::Inferred { .. });
        report(self.volume.superblock(), self.volume.zoned(), DeviceNames::default(), complete)
    }

    /// The root directory.
    ///
    /// # Errors
    /// As [`Xfs::inode`].
    pub fn root(&self) -> Result<Object<'_>> {
        self.inode(self.volume.superblock().rootino)
    }

    /// An object by number.
    ///
    /// # Errors
    /// [`Error::Request`] where the number lies outside the AGs, [`Error::Io`], and [`Error::Corrupt`] where the bytes are
    /// no inode, or another one.
    pub fn inode(&self, ino: Ino) -> Result<Object<'_>> {
        let walk = Walk::new(&self.volume);
        let block = walk.inode(ino)?;
        Ok(Object { walk, block })
    }

    /// An object by path, from the root directory. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`Error::Request`] where there is no such path; where a directory on the way is damaged so that the name could be
    /// in what is lost, that damage.
    pub fn path(&self, path: impl AsRef<[u8]>) -> Result<Object<'_>> {
        let walk = Walk::new(&self.volume);
        let mut damage = None;
        let found = directory::resolve(&walk, self.volume.superblock().rootino, path.as_ref(), &mut |error| {
            damage.get_or_insert(error);
        });
        match (found, damage) {
            (Ok(block), _) => Ok(Object { walk, block }),
            (Err(_), Some(damage)) => Err(damage),
            (Err(error), None) => Err(error),
        }
    }

    /// What is wrong with it: findings, and a verdict.
    pub fn check(&self, options: &Options) -> Report {
        check(&self.volume, options, Hooks { progress: &|_| {}, cancel: &Arc::new(AtomicBool::new(false)) })
    }
}

/// A file, directory or anything else that has an inode.
#[derive(Debug)]
pub struct Object<'x> {
    walk: Walk<'x>,
    block: InodeBlock,
}

impl Object<'_> {
    /// Its number.
    pub fn ino(&self) -> Ino {
        self.block.ino()
    }

    /// The fields of its inode: kind, size, times, owner, flags.
    pub fn metadata(&self) -> Inode<'_> {
        self.block.inode()
    }

    /// Its extents in file order, with the place of each on its device; `None` for a place that does not exist.
    pub fn extents(&self) -> impl Iterator<Item = Result<(Extent, Option<Location>)>> {
        let inode = self.metadata();
        let realtime = extents::on_realtime(inode, Fork::Data);
        extents::extents(&self.walk, inode, Fork::Data).map(move |extent| {
            extent.map(|extent| {
                let geometry = self.walk.geometry();
                (extent, extents::locate(geometry, realtime, extent.startblock, extent.blockcount))
            })
        })
    }

    /// The entries of a directory in disk order, without `.` and `..`. A damaged block is an error among them; the
    /// entries of the others still come.
    pub fn entries(&self) -> impl Iterator<Item = Result<OwnedEntry>> {
        directory::entries(&self.walk, self.metadata())
    }

    /// Calls `each` for every extended attribute, until it breaks.
    ///
    /// # Errors
    /// The first damage; attributes behind it were given nevertheless.
    pub fn attributes(&self, each: impl FnMut(Attribute<'_>) -> ControlFlow<()>) -> Result<()> {
        let mut first = None;
        let _ = attributes::for_each(
            &self.walk,
            self.metadata(),
            &mut |error| {
                first.get_or_insert(error);
            },
            each,
        );
        first.map_or(Ok(()), Err)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`Error::Request`] for anything else; [`Error::Io`] and [`Error::Corrupt`].
    pub fn link_target(&self) -> Result<Vec<u8>> {
        symlink::target(&self.walk, self.metadata())
    }

    /// Its paths from the root directory, one for each name.
    ///
    /// # Errors
    /// The first damage met; paths may be missing then.
    pub fn paths(&self) -> Result<Vec<Vec<u8>>> {
        let mut first = None;
        let found = paths::of(&self.walk, self.ino(), &mut |error| {
            first.get_or_insert(error);
        });
        match first {
            Some(error) => Err(error),
            None => Ok(found.into_iter().map(|path| path.path).collect()),
        }
    }

    /// The content of a regular file, to be read from anywhere.
    ///
    /// # Errors
    /// [`Error::Request`] for anything but a regular file, and for a realtime file whose device was not given;
    /// [`Error::Corrupt`] where its extent map is damaged.
    pub fn reader(&self) -> Result<Content<'_>> {
        Ok(Content { reader: Reader::open(&self.walk, self.metadata())?, at: 0 })
    }
}

/// The content of a regular file. Holes and blocks that are allocated but unwritten read as zeros.
#[derive(Debug)]
pub struct Content<'a> {
    reader: Reader<'a>,
    at: u64,
}

impl Content<'_> {
    /// Length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.reader.size()
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read_at(self.at, buf).map_err(|error| match error {
            Error::Io { source, .. } => source,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })?;
        self.at = self.at.saturating_add(u64::try_from(read).unwrap_or(0));
        Ok(read)
    }
}

impl Seek for Content<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "seek before the start of the file");
        self.at = at.ok_or_else(outside)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::MemorySource;

    #[test]
    fn nothing_is_no_file_system() {
        let opened = Xfs::from_source(MemorySource::new(vec![0; 4096])).open();
        assert!(matches!(opened, Err(OpenError::NoSuperblock { .. })));
    }
}
