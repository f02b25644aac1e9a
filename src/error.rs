//! Errors, and the place on disk they speak of.
//!
//! Three questions are kept apart: could the bytes be read ([`Error::Io`]), are they something this program
//! knows ([`Error::Unsupported`]), and do they make sense ([`Error::Corrupt`]). A request that cannot be answered
//! (no such AG, a bad address) is [`Error::Request`].

use crate::units::{ByteOffset, Device};
use std::fmt;

/// Where on disk something is: device, byte, length, structure, and the field when one is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which device.
    pub device: Device,
    /// First byte, from the start of that device.
    pub byte: ByteOffset,
    /// Length in bytes.
    pub length: u64,
    /// What lies there, as a path from the superblock: `sb 0`, `agf 3`, `inode 131 › bmbt block 77`.
    pub structure: String,
    /// Field within it, with xfs_db's name.
    pub field: Option<&'static str>,
}

impl Place {
    /// A place without a field.
    pub fn new(device: Device, byte: ByteOffset, length: u64, structure: impl Into<String>) -> Self {
        Self { device, byte, length, structure: structure.into(), field: None }
    }

    /// The same place, a field of it.
    #[must_use]
    pub fn field(&self, field: &'static str) -> Self {
        Self { field: Some(field), ..self.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.structure)?;
        if let Some(field) = self.field {
            write!(f, ".{field}")?;
        }
        write!(f, " at byte {} of the {} device", self.byte, self.device)
    }
}

/// Why an answer could not be given.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes could not be read.
    #[error("{place}: cannot read {} bytes: {source}", place.length)]
    Io {
        /// What was to be read.
        place: Box<Place>,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something outside a device failed (opening a file, reading /proc).
    #[error("{what}: {source}")]
    System {
        /// What was tried, with the name of the file.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Valid as far as can be told, but not something this program reads.
    #[error("{place}: {what}")]
    Unsupported {
        /// Where that shows.
        place: Box<Place>,
        /// The feature, named.
        what: String,
    },
    /// The bytes cannot be what they should be.
    #[error("{place}: {what}: found {found}, expected {expected}")]
    Corrupt {
        /// Where.
        place: Box<Place>,
        /// What is wrong.
        what: String,
        /// The value on disk.
        found: String,
        /// The value or bound that would be right.
        expected: String,
    },
    /// The question has no answer on this file system.
    #[error("{0}")]
    Request(String),
    /// A walk took more steps than any sound file system needs: the disk leads it in circles.
    #[error("given up after {steps} blocks: what is left leads in circles")]
    Exhausted {
        /// Blocks that were looked at.
        steps: u64,
    },
    /// No XFS was found where one was looked for.
    #[error("{0}")]
    NotXfs(String),
}

impl Error {
    /// A [`Error::Request`] from any text.
    pub fn request(text: impl Into<String>) -> Self {
        Self::Request(text.into())
    }
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;
