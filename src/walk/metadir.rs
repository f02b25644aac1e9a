//! The metadata directory: quota files and those of realtime groups, by path (feature metadir).
//! `xfs_metadir_load`, `xfs_rtginode_load` (xfs_metadir.c, xfs_rtgroup.c).

use super::{InodeBlock, Walk, directory};
use crate::error::{Error, Result};
use crate::units::{Ino, RgNumber};

/// Root of the metadata directory; `None` without one.
pub fn root(walk: &Walk<'_>) -> Option<Ino> {
    walk.context().features.has_metadir().then(|| walk.volume().superblock().metadirino)
}

/// A file of the metadata directory: `quota/user`, `rtgroups/0.rmap`.
///
/// # Errors
/// [`Error::Request`] where there is no metadata directory or no such file; whatever keeps it from being read.
pub fn open(walk: &Walk<'_>, path: &str, report: &mut dyn FnMut(Error)) -> Result<InodeBlock> {
    let root = root(walk).ok_or_else(|| Error::request("there is no metadata directory (feature metadir)"))?;
    directory::resolve(walk, root, path.as_bytes(), report)
}

/// The files that a realtime group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFile {
    /// Free and used extents; not on zoned devices.
    Bitmap,
    /// Free runs by length and place; not on zoned devices.
    Summary,
    /// Reverse mappings; feature rmapbt.
    Rmap,
    /// Shared extents; feature reflink.
    Refcount,
}

impl GroupFile {
    /// End of the file name: `0.rmap`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Summary => "summary",
            Self::Rmap => "rmap",
            Self::Refcount => "refcount",
        }
    }
}

/// A file of a realtime group.
///
/// # Errors
/// As [`open`].
pub fn group_file(
    walk: &Walk<'_>,
    group: RgNumber,
    file: GroupFile,
    report: &mut dyn FnMut(Error),
) -> Result<InodeBlock> {
    open(walk, &format!("rtgroups/{group}.{}", file.name()), report)
}
