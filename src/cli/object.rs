//! What a person names: a path or an inode number, and what comes back of a walk.

use super::args::number;
use super::session::Session;
use crate::error::{Error, Result};
use crate::report::text::escaped;
use crate::units::Ino;
use crate::walk::paths::{self, From, PathOf};
use crate::walk::{InodeBlock, Walk, directory};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What was named on the command line.
#[derive(Clone, Debug)]
pub struct Object {
    /// The inode.
    pub block: InodeBlock,
    /// The path without leading slash, where it was named by one.
    pub path: Option<Vec<u8>>,
}

/// The number that a word is: decimal or 0x hexadecimal, no unit.
pub fn as_ino(what: &OsStr) -> Option<Ino> {
    let text = what.to_str().filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits = text
        .strip_prefix("0x")
        .map_or(text.bytes().all(|b| b.is_ascii_digit()), |hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    if digits { number(text).ok().map(Ino) } else { None }
}

/// A path as typed, without slashes at its ends and doubled ones.
fn clean(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|&b| b == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.collect::<Vec<_>>().join(&b'/')
}

/// Finds what was named.
///
/// # Errors
/// Whatever keeps it from being found or read; a free inode is not found.
pub fn open(session: &RefCell<&mut Session>, walk: &Walk<'_>, what: &OsStr) -> Result<Object> {
    walk.refill();
    let object = match as_ino(what) {
        Some(ino) => Object { block: walk.inode(ino)?, path: None },
        None => {
            let path = clean(what.as_bytes());
            let root = walk.volume().superblock().rootino;
            let block = directory::resolve(walk, root, &path, &mut |error| session.borrow_mut().problem(&error))?;
            Object { block, path: Some(path) }
        }
    };
    let inode = object.block.inode();
    if inode.mode() == 0 {
        return Err(Error::request(format!("inode {}: free, it holds nothing", inode.ino)));
    }
    if let Some(error) = inode.crc_error(walk.volume()) {
        session.borrow_mut().problem(&error);
    }
    Ok(object)
}

/// The objects of the command line, the root where none was named. One that cannot be found is an error of its own.
pub fn open_all(session: &RefCell<&mut Session>, walk: &Walk<'_>, what: &[OsString]) -> Vec<Object> {
    let root = [OsString::from("/")];
    let what = if what.is_empty() { &root[..] } else { what };
    let mut objects = Vec::new();
    for what in what {
        match open(session, walk, what) {
            Ok(object) => objects.push(object),
            // Damage on the way is damage; a name that does not exist is not.
            Err(error @ Error::Corrupt { .. }) => session.borrow_mut().problem(&error),
            Err(error) => session.borrow_mut().error(&error),
        }
    }
    objects
}

/// A path as bytes, with its beginning marked where that is not the root: `(metadir)/rtgroups/0.rmap`,
/// `(inode 131)/a`.
pub fn path_bytes(path: &PathOf) -> Vec<u8> {
    let from = match path.from {
        From::Root => return path.path.clone(),
        From::Metadata => "(metadir)".to_owned(),
        From::Lost(ino) => format!("(inode {ino})"),
    };
    let mut out = from.into_bytes();
    if !path.path.is_empty() {
        out.push(b'/');
        out.extend_from_slice(&path.path);
    }
    out
}

impl Object {
    /// Its path: the one it was named by, or the first there is.
    pub fn path(&self, walk: &Walk<'_>) -> Vec<u8> {
        if let Some(path) = &self.path {
            return path.clone();
        }
        let found = paths::of(walk, self.block.ino(), &mut |_| {});
        match found.first() {
            Some(path) => path_bytes(path),
            None => format!("(inode {})", self.block.ino()).into_bytes(),
        }
    }

    /// How to speak of it in messages.
    pub fn shown(&self) -> String {
        match &self.path {
            Some(path) if path.is_empty() => "/".to_owned(),
            Some(path) => escaped(path),
            None => format!("inode {}", self.block.ino()),
        }
    }
}
